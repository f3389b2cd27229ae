//! What a running service shows of itself over HTTP: metrics, health and its state as JSON. It is handed plain views and
//! knows neither store nor engine.

mod access;
mod health;
pub mod metrics;
mod server;
mod view;

pub use access::{AccessError, AccessRules, Token};
pub use health::{Health, Readiness, Reason};
pub use server::{ServeError, Views, serve};
pub use view::{
    AlertView, BuildView, HistogramView, LiveView, ProfileView, RequestCount, RescanView, ServiceView, SourceView,
    StoreView, StreamView, ThrottledView, TrafficView, WorkView,
};
