//! The remote APIs: how to reach them politely, and what their answers mean.

mod call;
mod clock;
mod decoding;
mod gateway;
mod hn;
mod source;
mod transport;

pub use call::{Beat, Call, InFlight};
pub use clock::Clock;
pub use decoding::Decoding;
pub use gateway::{Classifier, Gateway, GatewayError, Jitter, News, Reading, Stopped, Traffic, read_status};
pub use hn::Hn;
pub use source::{Answer, Density, Fetched, Source, StreamPolicy, StreamSpec};
pub use transport::{
    Deadlines, HttpTransport, PoolLimits, Redirects, Request, Response, Roots, SetupError, Transport, TransportSettings,
};
