//! The part of a plan that makes the world move: mutations, streams, and when items were posted.

use std::{num::NonZeroU32, time::Duration};

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MutationPlan {
    pub every_ms: Option<NonZeroU32>,
    pub window_ids: NonZeroU32,
    pub unpublished: f64,
    pub profiles: f64,
    pub stop_after_ms: Option<u32>,
    pub updates_every_ms: NonZeroU32,
}

impl MutationPlan {
    pub(crate) fn every(&self) -> Option<Duration> {
        self.every_ms.map(millis)
    }

    pub(crate) fn updates_every(&self) -> Duration {
        millis(self.updates_every_ms)
    }

    pub(crate) fn stop_after(&self) -> Duration {
        self.stop_after_ms.map_or(Duration::MAX, |ms| Duration::from_millis(u64::from(ms)))
    }
}

impl Default for MutationPlan {
    fn default() -> Self {
        const WINDOW: NonZeroU32 = NonZeroU32::new(2_000).expect("2,000 is not zero");
        const UPDATES: NonZeroU32 = NonZeroU32::new(1_000).expect("1,000 is not zero");
        MutationPlan {
            every_ms: None,
            window_ids: WINDOW,
            unpublished: 0.0,
            profiles: 0.2,
            stop_after_ms: None,
            updates_every_ms: UPDATES,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StreamPlan {
    pub keep_alive_ms: NonZeroU32,
    pub forms: Vec<WriteForm>,
    pub split: u32,
    pub cut_after_events: Option<NonZeroU32>,
    pub drop_after_events: Option<NonZeroU32>,
    pub silent_after_events: Option<u32>,
    pub redirect: Option<Redirect>,
    pub status_first: Vec<u16>,
}

impl StreamPlan {
    pub(crate) fn keep_alive(&self) -> Duration {
        millis(self.keep_alive_ms)
    }
}

impl Default for StreamPlan {
    fn default() -> Self {
        // What Firebase keeps to within half a second.
        const KEEP_ALIVE: NonZeroU32 = NonZeroU32::new(30_000).expect("30,000 is not zero");
        StreamPlan {
            keep_alive_ms: KEEP_ALIVE,
            forms: vec![WriteForm::Put],
            split: 0,
            cut_after_events: None,
            drop_after_events: None,
            silent_after_events: None,
            redirect: None,
            status_first: Vec::new(),
        }
    }
}

/// How a stream tells of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteForm {
    /// `put` of everything at `/`.
    Put,
    /// `put` at `/key` for each key.
    PutPath,
    /// `put` at `/key/3` for each place of a list.
    PutIndex,
    /// One `patch` at `/` with all keys.
    Patch,
    /// `put` of `null` at `/`, then of everything.
    PutNull,
}

/// Where a stream is sent first, by 307.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Redirect {
    /// Another path of the same server.
    Path,
    /// Another port, which the server opens for it.
    Port,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockPlan {
    pub now: Option<u32>,
    pub seconds_per_id: u32,
}

impl Default for ClockPlan {
    fn default() -> Self {
        // Fifty million items in twenty years.
        ClockPlan { now: None, seconds_per_id: 12 }
    }
}

fn millis(ms: NonZeroU32) -> Duration {
    Duration::from_millis(u64::from(ms.get()))
}
