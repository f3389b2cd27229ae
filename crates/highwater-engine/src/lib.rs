//! Moves objects from a source into a store, in order and provably: planner, dispatcher, workers, verification.
//! The only crate that spawns tasks of its own.

mod account;
mod asking;
mod context;
mod dispatcher;
mod duties;
mod entropy;
mod error;
mod follow;
mod forecast;
mod guard;
mod planner;
mod recall;
mod refusal;
mod run;
mod search;
mod serve;
mod settings;
mod status;
mod stop;
mod sync;
mod turns;
mod verify;
mod window;
mod work;
mod worker;

pub use context::{Engine, Process, World, describe};
pub use entropy::Entropy;
pub use error::EngineError;
pub use forecast::StreamForecast;
pub use planner::Range;
pub use search::{Among, Findings, IndexProgress, Indexed, Match, Search, SearchError};
pub use serve::{LiveSettings, Pulse, PulseView, RescanSettings, ServeRequest, Unheard};
pub use settings::{EngineSettings, LeaseTimes, Patience, Sizes};
pub use status::{StreamStatus, store_status, stream_statuses};
pub use stop::Stop;
pub use sync::{Ending, Force, Left, SyncReport, SyncRequest};
pub use verify::{EXAMPLES_MAX, Finding, FindingKind, Sample, StreamVerdict, VerifyReport};
