//! Which conditions hold, and the sentence that says so.

use std::{cmp::Ordering, time::Duration};

use super::{Condition, ControlSignals, ItemSignals, LiveSignals, Signals, recent::Recent};
use crate::Timestamp;

/// Items after which a share of bad ones means something.
const SHARE_ITEMS: u64 = 10_000;
const SHARE_WARN: f64 = 0.002;
const SHARE_CRITICAL: f64 = 0.01;
const BAD_PER_HOUR_MAX: u64 = 200;
const CONTROL_HALF: f64 = 0.5;
const CONTROL_NEAR: f64 = 0.8;
const THROTTLED_WINDOW: Duration = Duration::from_secs(15 * 60);
const THROTTLED_MAX: Duration = Duration::from_secs(10 * 60);
const BLIND_MAX: Duration = HOUR;
/// Twice the longest wait between two attempts to connect.
const DOWN_MAX: Duration = Duration::from_secs(60);
const EVENT_AGE_MAX: Duration = Duration::from_secs(300);
const LAG_MAX: u64 = 50_000;
const QUEUE_MAX: u64 = 2_000;
const RECONNECTS_PER_HOUR_MAX: u64 = 6;
/// Two scheduled passes that did not happen, where they are to be as often as they are by default, or more often.
const RESCAN_AGE_MAX: Duration = Duration::from_secs(12 * 3600);
const HOUR: Duration = Duration::from_secs(3600);

/// What must be remembered to judge the figures of a moment.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    /// Since when nothing has escaped it.
    since: Option<Timestamp>,
    /// Where the counting of the present window of items began.
    began: ItemSignals,
    /// The last whole window.
    share: Option<ItemSignals>,
    bad_hour: Recent,
    throttled: Recent,
    reconnects: Recent,
}

impl Default for Watch {
    fn default() -> Self {
        Watch {
            since: None,
            began: ItemSignals::default(),
            share: None,
            bad_hour: Recent::over(HOUR),
            throttled: Recent::over(THROTTLED_WINDOW),
            reconnects: Recent::over(HOUR),
        }
    }
}

impl Watch {
    pub(super) fn observe(&mut self, signals: &Signals, now: Timestamp) {
        self.since.get_or_insert(now);
        self.observe_share(signals.items);
        self.bad_hour.observe(signals.items.bad, now);
        self.throttled.observe(u64::try_from(signals.throttled.as_millis()).unwrap_or(u64::MAX), now);
        self.reconnects.observe(signals.live.map_or(self.reconnects.total(), |live| live.reconnects), now);
    }

    fn observe_share(&mut self, items: ItemSignals) {
        if items.settled < self.began.settled {
            self.began = ItemSignals::default();
        }
        let settled = items.settled - self.began.settled;
        if settled >= SHARE_ITEMS {
            self.share = Some(ItemSignals { settled, bad: items.bad.saturating_sub(self.began.bad) });
            self.began = items;
        }
    }

    /// What comes next is the first of what is seen without a gap.
    pub(super) fn look_away(&mut self) {
        self.since = None;
    }

    /// Whether what was seen is too little to say that a condition, which does not seem to hold, does not: an alert of an
    /// earlier process may stand on what only that one saw.
    pub(super) fn is_undecided(&self, condition: Condition, signals: &Signals, now: Timestamp) -> bool {
        let seen = self.since.map_or(Duration::ZERO, |since| now.since(since));
        match condition {
            Condition::BadShareWarn | Condition::BadShareCritical => self.share.is_none(),
            Condition::BadPerHour | Condition::Reconnecting => seen < HOUR,
            Condition::Throttled => seen < THROTTLED_WINDOW,
            Condition::ListenerDown => signals.unheard_for.or(signals.live.and_then(|live| live.down_for)).is_some(),
            Condition::LastEventOld => signals.live.and_then(|live| live.last_event_age).is_some_and(|age| age > seen),
            _ => false,
        }
    }

    /// The sentence about a condition that holds.
    pub(super) fn trouble(&self, condition: Condition, signals: &Signals) -> Option<String> {
        let live = signals.live.as_ref();
        match condition {
            Condition::BadShareWarn => self.bad_share(SHARE_WARN),
            Condition::BadShareCritical => self.bad_share(SHARE_CRITICAL),
            Condition::BadPerHour => {
                above(self.bad_hour.growth(), BAD_PER_HOUR_MAX).map(|bad| format!("{bad} dead letters within an hour"))
            }
            Condition::ControlPlaneHalf => control(signals.control, CONTROL_HALF),
            Condition::ControlPlaneNear => control(signals.control, CONTROL_NEAR),
            Condition::Throttled => above(Duration::from_millis(self.throttled.growth()), THROTTLED_MAX)
                .map(|throttled| format!("the source throttled us for {} of the last 15 min", spell(throttled))),
            Condition::BlindWindowOpen => above(live?.oldest_window_age?, BLIND_MAX)
                .map(|age| format!("changes of a time without a feed have not been looked up for {}", spell(age))),
            Condition::ListenerDown => match live {
                Some(live) => {
                    above(live.down_for?, DOWN_MAX).map(|down| format!("the feed has been down for {}", spell(down)))
                }
                None => above(signals.unheard_for?, DOWN_MAX)
                    .map(|unheard| format!("the record of changes could not be read for {}", spell(unheard))),
            },
            Condition::LastEventOld => above(live?.last_event_age?, EVENT_AGE_MAX)
                .map(|age| format!("the feed has told nothing for {}", spell(age))),
            Condition::NoWorkerAlive => no_worker(live?),
            Condition::DeadLetters => above(signals.catchup.dead_letters, 0).map(|letters| {
                format!("{letters} {} for a decision", plural(letters, "dead letter waits", "dead letters wait"))
            }),
            Condition::Lag => above(signals.catchup.lag, LAG_MAX)
                .filter(|_| signals.catchup.caught_up_once)
                .map(|lag| format!("the frontier is {lag} positions behind the head")),
            Condition::QueueLong => above(live?.queue_depth, QUEUE_MAX)
                .map(|depth| format!("{depth} changes the feed named wait to be fetched")),
            Condition::Reconnecting => above(self.reconnects.growth(), RECONNECTS_PER_HOUR_MAX)
                .map(|reconnects| format!("the feed was connected anew {reconnects} times within an hour")),
            Condition::RescanOld => {
                above(signals.rescan_age?, RESCAN_AGE_MAX.max(signals.rescan_every.saturating_mul(2)))
                    .map(|age| format!("the last pass over what may have changed ended {} ago", spell(age)))
            }
        }
    }

    fn bad_share(&self, least: f64) -> Option<String> {
        let ItemSignals { settled, bad } = self.share?;
        let is_bad = bad as f64 >= least * settled as f64;
        is_bad.then(|| format!("{bad} of the last {settled} items became dead letters"))
    }
}

fn above<T: PartialOrd>(figure: T, most: T) -> Option<T> {
    (figure.partial_cmp(&most) == Some(Ordering::Greater)).then_some(figure)
}

fn no_worker(live: &LiveSignals) -> Option<String> {
    (live.workers_alive == 0).then(|| "no worker fetches what the feed names".into())
}

fn control(control: ControlSignals, least: f64) -> Option<String> {
    let ControlSignals { bytes, budget } = control;
    let budget = budget?;
    let is_near = bytes as f64 >= least * budget as f64;
    is_near.then(|| {
        let percent = 100 * u128::from(bytes) / u128::from(budget.max(1));
        format!("the books take up {bytes} bytes, {percent}% of the {budget} they may")
    })
}

fn plural(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

fn spell(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..300 => format!("{seconds} s"),
        seconds @ 300..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}
