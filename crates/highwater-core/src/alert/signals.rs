//! What the alerts are judged from: figures of one source at one moment. Totals count since the process began.

use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    pub items: ItemSignals,
    pub catchup: CatchupSignals,
    /// None if the source has no feed, or another process listens to it.
    pub live: Option<LiveSignals>,
    /// How long a record of changes could not be read; none while it can, and where there is none.
    pub unheard_for: Option<Duration>,
    pub control: ControlSignals,
    /// How long in total the gate was closed or the rate cut.
    pub throttled: Duration,
    /// Since the last pass over what is stored ended; none if none is due yet.
    pub rescan_age: Option<Duration>,
    /// How often there is to be one.
    pub rescan_every: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemSignals {
    /// Items settled in total,
    pub settled: u64,
    /// and those of them that became dead letters.
    pub bad: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatchupSignals {
    pub dead_letters: u64,
    /// Positions between the frontier and the head.
    pub lag: u64,
    /// Whether the frontier has ever reached the head: before that a lag is the work itself.
    pub caught_up_once: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveSignals {
    /// How long the feed has been down; none while it is connected.
    pub down_for: Option<Duration>,
    pub last_event_age: Option<Duration>,
    pub oldest_window_age: Option<Duration>,
    pub workers_alive: u64,
    pub queue_depth: u64,
    pub reconnects: u64,
}

/// What the books about the mirror take up, and may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlSignals {
    pub bytes: u64,
    pub budget: Option<u64>,
}
