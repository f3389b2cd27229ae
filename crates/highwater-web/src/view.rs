//! A service as plain data, at one moment. What is absent has not happened yet. Nothing in it names a person or an
//! object of the mirror, and everything in it may be shown.

use std::time::Duration;

use highwater_core::{AGE_BOUNDS, Ages, Condition, Lane, Severity};
use serde::{Serialize, Serializer};

#[derive(Clone, Debug, Default, Serialize)]
pub struct ServiceView {
    pub build: BuildView,
    #[serde(rename = "uptime_seconds", serialize_with = "seconds")]
    pub uptime: Duration,
    /// Loops that ended although the service goes on.
    pub dead_loops: Vec<String>,
    pub sources: Vec<SourceView>,
    pub alerts: Vec<AlertView>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct BuildView {
    pub version: &'static str,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct SourceView {
    pub name: String,
    pub kind: String,
    pub traffic: TrafficView,
    pub work: WorkView,
    pub catchup: Vec<StreamView>,
    /// None for a source without a feed.
    pub live: Option<LiveView>,
    pub rescan: Option<RescanView>,
    /// A record of changes is to be followed, and cannot be at present.
    pub unheard: bool,
    pub profiles: ProfileView,
    pub store: StoreView,
}

impl SourceView {
    /// Those there are now.
    pub fn dead_letters(&self) -> u64 {
        self.catchup.iter().map(|stream| stream.dead_letters).sum()
    }
}

/// Between us and the remote. Counts are totals since the service began.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TrafficView {
    pub requests: Vec<RequestCount>,
    /// In seconds.
    pub latency: HistogramView,
    /// Requests a second that may leave now; none if there is no limit.
    pub rate_limit: Option<f64>,
    pub in_flight: u64,
    pub waiting: u64,
    pub throttled: Vec<ThrottledView>,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct RequestCount {
    #[serde(serialize_with = "lane")]
    pub lane: Lane,
    /// A word: `served`, `failed`, `throttled`.
    pub outcome: &'static str,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ThrottledView {
    /// A word: what kept requests from leaving.
    pub reason: &'static str,
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub time: Duration,
}

/// Between us and the store. Counts are totals since the service began, but for `segments_open`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WorkView {
    pub retries: u64,
    pub splits: u64,
    pub stalls: u64,
    pub panics: u64,
    pub commits: u64,
    /// In seconds.
    pub commit_latency: HistogramView,
    pub rows_new: u64,
    pub rows_changed: u64,
    pub rows_unchanged: u64,
    pub segments_open: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct StreamView {
    pub stream: String,
    pub origin: i64,
    pub frontier: i64,
    pub target: i64,
    pub stored: u64,
    pub retrying: u64,
    pub dead_letters: u64,
    /// Positions between the frontier and the head of the remote.
    pub lag: u64,
    pub percent: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct LiveView {
    pub connected: bool,
    /// False while another process of the same mirror listens.
    pub is_listener: bool,
    #[serde(rename = "last_event_age_seconds", serialize_with = "maybe_seconds")]
    pub last_event_age: Option<Duration>,
    pub workers_alive: u64,
    pub queue_depth: u64,
    pub reconnects: u64,
    pub items_updated: u64,
    /// How old items were when they were found changed, in seconds.
    pub update_ages: HistogramView,
    pub blind_windows_open: u64,
    #[serde(rename = "oldest_window_age_seconds", serialize_with = "maybe_seconds")]
    pub oldest_window_age: Option<Duration>,
    /// Since the last commit, or the last look that found nothing to commit.
    #[serde(rename = "last_commit_age_seconds", serialize_with = "maybe_seconds")]
    pub last_commit_age: Option<Duration>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct RescanView {
    #[serde(rename = "last_run_age_seconds", serialize_with = "maybe_seconds")]
    pub last_run_age: Option<Duration>,
    pub items_processed: u64,
    pub items_changed: u64,
    pub running: bool,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ProfileView {
    pub known: u64,
    pub not_fetched: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct StoreView {
    /// Whether writing fails at present.
    pub trouble: bool,
    pub database_bytes: Option<u64>,
    pub control_bytes: Option<u64>,
    pub blob_bytes: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AlertView {
    pub source: String,
    #[serde(serialize_with = "condition")]
    pub condition: Condition,
    #[serde(serialize_with = "severity")]
    pub severity: Severity,
    pub message: String,
    #[serde(rename = "age_seconds", serialize_with = "seconds")]
    pub age: Duration,
}

/// Observations counted in classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HistogramView {
    /// Upper bounds of the classes, inclusive and ascending.
    pub bounds: Vec<f64>,
    /// One more than the bounds: the last class has none.
    pub counts: Vec<u64>,
    /// Of all observations, where it is kept.
    pub sum: Option<f64>,
}

impl HistogramView {
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds another of the same classes; one without classes takes on those of the other.
    pub(crate) fn merge(&mut self, other: &HistogramView) {
        if self.counts.is_empty() {
            self.clone_from(other);
        } else if self.bounds == other.bounds {
            self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
            self.sum = self.sum.zip(other.sum).map(|(mine, theirs)| mine + theirs);
        }
    }
}

impl From<Ages> for HistogramView {
    fn from(ages: Ages) -> Self {
        let bounds = AGE_BOUNDS.iter().map(|seconds| *seconds as f64).collect();
        HistogramView { bounds, counts: ages.counts.0.to_vec(), sum: Some(ages.sum.as_secs_f64()) }
    }
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

fn maybe_seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

fn lane<S: Serializer>(lane: &Lane, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(lane.as_str())
}

fn condition<S: Serializer>(condition: &Condition, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(condition.as_str())
}

fn severity<S: Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.as_str())
}
