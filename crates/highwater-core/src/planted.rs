//! Known bugs behind the feature `planted`: a simulator that never fails proves nothing, so the suite must find each.
//! Without the feature every question is `false` at compile time.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    FenceSkipped,
    FrontierOverGap,
    StateBeforeData,
    FirstNullFinal,
    RetryAfterIgnored,
    TwoWorkersOneLease,
    DropOnSplit,
    KidsNotReplaced,
    ReservationLimiter,
    ThrottleCountsAsStrike,
    CursorPastQueue,
    NamedInFlightForgotten,
    LateAnswerWins,
}

impl Bug {
    pub const ALL: [Bug; 13] = [
        Bug::FenceSkipped,
        Bug::FrontierOverGap,
        Bug::StateBeforeData,
        Bug::FirstNullFinal,
        Bug::RetryAfterIgnored,
        Bug::TwoWorkersOneLease,
        Bug::DropOnSplit,
        Bug::KidsNotReplaced,
        Bug::ReservationLimiter,
        Bug::ThrottleCountsAsStrike,
        Bug::CursorPastQueue,
        Bug::NamedInFlightForgotten,
        Bug::LateAnswerWins,
    ];
}

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static ACTIVE: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    pub fn planted(bug: Bug) -> bool {
        ACTIVE.get() == Some(bug)
    }

    /// Runs `body` with `bug` switched on, on this thread only.
    pub fn with_planted<T>(bug: Option<Bug>, body: impl FnOnce() -> T) -> T {
        struct Restore(Option<Bug>);
        impl Drop for Restore {
            fn drop(&mut self) {
                ACTIVE.set(self.0);
            }
        }
        let _restore = Restore(ACTIVE.replace(bug));
        body()
    }
}

#[cfg(feature = "planted")]
pub use switch::{planted, with_planted};

#[cfg(not(feature = "planted"))]
pub const fn planted(_: Bug) -> bool {
    false
}
