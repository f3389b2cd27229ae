//! What went through a gateway, counted once and read by whoever shows it. Counters are atomics: nobody waits for them.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use highwater_core::{Lane, throttle::Snapshot};

/// Upper bounds of the classes of latency; the last class has none.
pub const LATENCY_BOUNDS: [Duration; LATENCY_CLASSES - 1] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
];
pub const LATENCY_CLASSES: usize = 13;

/// The state of a gateway, and counts since it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meter {
    pub traffic: Traffic,
    /// By `Lane::index`.
    pub lanes: [Answers; Lane::ALL.len()],
    /// Of what has no lane: probes and feeds.
    pub aside: Answers,
    pub latency: Latency,
    /// Rate, requests in flight, who waits, and for how long the gate was closed.
    pub throttle: Snapshot,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Sent, whatever became of them.
    pub requests: u64,
    /// Answers that asked to slow down.
    pub throttled: u64,
    /// Of bodies, decompressed. Feeds are left out.
    pub bytes: u64,
}

/// What requests came to. One that was given up under way came to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    pub served: u64,
    /// Served, and what was known already is still so.
    pub not_modified: u64,
    pub failed: u64,
    pub throttled: u64,
}

/// From sending to the whole answer, of those served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// By class, each for itself.
    pub counts: [u64; LATENCY_CLASSES],
    pub sum: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    Served,
    NotModified,
    Failed,
    Throttled,
}

const OUTCOMES: usize = 4;
const ASIDE: usize = Lane::ALL.len();

#[derive(Default)]
pub(super) struct Counters {
    sent: AtomicU64,
    bytes: AtomicU64,
    answers: [[AtomicU64; OUTCOMES]; ASIDE + 1],
    latency: [AtomicU64; LATENCY_CLASSES],
    latency_nanos: AtomicU64,
}

impl Counters {
    pub(super) fn sent(&self) {
        self.sent.fetch_add(1, Relaxed);
    }

    /// Without a lane for probes and feeds.
    pub(super) fn met(&self, lane: Option<Lane>, met: Met) {
        self.answers[lane.map_or(ASIDE, Lane::index)][met as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn took(&self, latency: Duration) {
        let class = LATENCY_BOUNDS.partition_point(|bound| *bound < latency);
        self.latency[class].fetch_add(1, Relaxed);
        self.latency_nanos.fetch_add(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn traffic(&self) -> Traffic {
        let throttled = self.answers.iter().map(|answers| answers[Met::Throttled as usize].load(Relaxed)).sum();
        Traffic { requests: self.sent.load(Relaxed), throttled, bytes: self.bytes.load(Relaxed) }
    }

    pub(super) fn meter(&self, throttle: Snapshot) -> Meter {
        Meter {
            traffic: self.traffic(),
            lanes: Lane::ALL.map(|lane| self.answers(lane.index())),
            aside: self.answers(ASIDE),
            latency: Latency {
                counts: std::array::from_fn(|class| self.latency[class].load(Relaxed)),
                sum: Duration::from_nanos(self.latency_nanos.load(Relaxed)),
            },
            throttle,
        }
    }

    fn answers(&self, of: usize) -> Answers {
        let read = |met: Met| self.answers[of][met as usize].load(Relaxed);
        Answers {
            served: read(Met::Served),
            not_modified: read(Met::NotModified),
            failed: read(Met::Failed),
            throttled: read(Met::Throttled),
        }
    }
}
