//! What can be wrong. The names are stable: they stand in the ledger, in messages and in other people's rules.

use super::Severity;
use crate::word;

word! {
    pub enum Condition {
        BadShareWarn = "bad_share_warn",
        BadShareCritical = "bad_share_critical",
        BadPerHour = "bad_per_hour",
        ControlPlaneHalf = "control_plane_half",
        ControlPlaneNear = "control_plane_near",
        Throttled = "throttled",
        BlindWindowOpen = "blind_window_open",
        ListenerDown = "listener_down",
        LastEventOld = "last_event_old",
        NoWorkerAlive = "no_worker_alive",
        DeadLetters = "dead_letters",
        Lag = "lag",
        QueueLong = "queue_long",
        Reconnecting = "reconnecting",
        RescanOld = "rescan_old",
    }
}

impl Condition {
    pub const fn severity(self) -> Severity {
        match self {
            Condition::BadShareCritical
            | Condition::BadPerHour
            | Condition::ControlPlaneNear
            | Condition::BlindWindowOpen
            | Condition::ListenerDown
            | Condition::NoWorkerAlive => Severity::Critical,
            Condition::BadShareWarn
            | Condition::ControlPlaneHalf
            | Condition::Throttled
            | Condition::LastEventOld
            | Condition::DeadLetters
            | Condition::Lag
            | Condition::QueueLong
            | Condition::Reconnecting
            | Condition::RescanOld => Severity::Warning,
        }
    }

    /// The greater one that says the same and more: while it holds, this one is not worth a message.
    pub(super) const fn covered_by(self) -> Option<Condition> {
        match self {
            Condition::BadShareWarn => Some(Condition::BadShareCritical),
            Condition::ControlPlaneHalf => Some(Condition::ControlPlaneNear),
            _ => None,
        }
    }
}
