//! What an operator may tune about the engine.

use std::time::Duration;

use highwater_core::{DeadLetterPolicy, RetryPolicy};
use highwater_sources::StreamPolicy;

#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub retry: RetryPolicy,
    pub patience: Patience,
    pub lease: LeaseTimes,
    pub sizes: Sizes,
    /// Overrides the stream's own policy.
    pub dead_letters: Option<DeadLetterPolicy>,
    /// How often a remote's record of changes is followed. It is forgotten after days, sometimes hours.
    pub follow_every: Duration,
}

/// How long things are waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Retries due within this time are waited for; so is a remote that is out.
    pub retry: Duration,
    /// The unpublished head is waited for this long.
    pub head: Duration,
    /// A job without a sign of life for this long is cancelled.
    pub stall: Duration,
    /// A store that cannot write is waited for this long.
    pub store: Duration,
    /// Requests under way may take this long to finish once a stop was asked for.
    pub stop: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct LeaseTimes {
    pub ttl: Duration,
    pub beat: Duration,
}

/// Overrides of a stream's sizes, and the bound on work in memory.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub segment: Option<u64>,
    pub job: Option<usize>,
    /// Requests that may be under way at once; more keys than that are kept at hand.
    pub in_flight: u32,
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            retry: RetryPolicy::default(),
            patience: Patience::default(),
            lease: LeaseTimes { ttl: Duration::from_secs(30), beat: Duration::from_secs(10) },
            sizes: Sizes { segment: None, job: None, in_flight: 64 },
            dead_letters: None,
            follow_every: Duration::from_secs(300),
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            retry: Duration::from_secs(120),
            head: Duration::from_secs(30),
            stall: Duration::from_secs(600),
            store: Duration::from_secs(120),
            stop: Duration::from_secs(3),
        }
    }
}

impl EngineSettings {
    /// A stream's policy with the operator's wishes applied.
    pub(crate) fn applied_to(&self, policy: StreamPolicy) -> StreamPolicy {
        StreamPolicy {
            segment_size: self.sizes.segment.unwrap_or(policy.segment_size).max(1),
            job_size: self.sizes.job.unwrap_or(policy.job_size).max(1),
            dead_letters: self.dead_letters.unwrap_or(policy.dead_letters),
            ..policy
        }
    }

    /// Keys that may be asked for at once: whenever a request slot falls free, another key is there for it, also while a
    /// job is being decoded.
    pub(crate) fn keys_fetching(&self, job_size: usize) -> usize {
        2 * (self.sizes.in_flight as usize + job_size)
    }

    /// Jobs at work at once: besides those that fetch, as many as two of the largest group commits take, one that is
    /// written and one that gathers.
    pub(crate) fn jobs_max(&self, job_size: usize) -> usize {
        const KEYS_IN_COMMITS: usize = 16_000;
        (self.keys_fetching(job_size) + KEYS_IN_COMMITS).div_ceil(job_size).clamp(4, 512)
    }
}
