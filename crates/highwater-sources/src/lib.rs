//! The remote APIs: how to reach them politely, and what their answers mean.

mod allowance;
mod budget;
mod call;
mod changes;
mod clock;
mod decoding;
mod escape;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
pub mod gmail;
mod hn;
mod html;
mod live;
pub mod looker;
mod memory;
mod recall;
pub mod search;
mod source;
mod sse;
mod text;
mod transport;

pub use allowance::{Activity, Allowance};
pub use budget::Budget;
pub use call::{Beat, Call, InFlight, Tags};
pub use changes::{Census, Changes, Known, Mark, Since};
pub use clock::Clock;
pub use decoding::{Decoder, Decoding};
pub use gateway::{
    Answers, Classifier, Gateway, GatewayError, Jitter, LATENCY_BOUNDS, LATENCY_CLASSES, Latency, Line, Meter, News,
    Pass, QuotaReader, Reading, Stopped, Traffic, read_status,
};
pub use hn::Hn;
pub use live::{Feed, Listening, Live, Told};
pub use memory::{Held, Memory};
pub use recall::{Recall, Stored};
pub use source::{
    Answer, Density, Discovered, Fetched, Following, Forecast, NamedIn, Renewal, Roll, Source, StreamPolicy,
    StreamSpec, Survey, Unlisted,
};
pub use transport::{
    Again, Chunks, Deadlines, HttpTransport, OpenResponse, PoolLimits, Redirects, Request, Response, Roots, Sent,
    SetupError, Transport, TransportSettings, check_base_url, port_of,
};
