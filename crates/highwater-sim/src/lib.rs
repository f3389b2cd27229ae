//! The mirrored APIs simulated: deterministic by seed, with a fault plan and a truth to compare with.
//!
//! The heart is sans-IO: a simulator such as [`hn::HnSim`] turns a request and the time since its start into an
//! [`Answer`]. [`server`] carries answers out on real sockets; tests carry them out in process on virtual time.

mod answer;
mod dice;
mod fault;
pub mod gmail;
pub mod hn;
pub mod looker;
mod params;
pub mod plan;
mod quota;
pub mod rng;
pub mod server;
mod simulator;
mod stats;
mod transport;

pub use answer::{
    Accept, AcceptEncoding, Answer, Arrival, ContentEncoding, Declared, EVENT_STREAM, Etag, HTML, Headers, IfNoneMatch,
    JSON, JSON_LINES, Message, Paging, Reply, RetryAfter, SimRequest, Verb,
};
pub use fault::{Fault, Step, UnknownFault};
pub use gmail::{GmailCounts, GmailFault, GmailPlan, GmailPreset, GmailSim, MessageState, MessageTruth};
pub use hn::{
    CannotMutate, EventStream, Expected, HnSim, Moved, MutationKind, Opening, Publicity, StreamOrder, StreamStep,
    StreamTurn, Version, World,
};
pub use looker::{LookerCounts, LookerFault, LookerPlan, LookerPreset, LookerSim, LookerType};
pub use plan::{FaultPlan, PlanError, Preset};
pub use rng::Seed;
pub use simulator::{Simulator, Takes};
pub use stats::{Entered, Gauge, Stats, StatsReport};
pub use transport::SimTransport;
