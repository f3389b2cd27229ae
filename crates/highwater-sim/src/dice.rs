//! When a fault strikes: a pure function of seed, key and request number. It knows probabilities and scripts, not
//! what a fault looks like.

use std::{collections::HashMap, time::Duration};

use crate::{
    fault::{Fault, Step},
    plan::{FaultPlan, LatencyPlan, Script},
    rng::{Purpose, Seed, Share, scale},
};

/// Two nulls in a row heal; a client may take the third for the truth.
const NULLS_IN_A_ROW_MAX: u32 = 2;

/// Where counting stops: from here on every request looks the same, and must be good.
const NTH_MAX: u32 = u16::MAX as u32;

#[derive(Debug)]
pub(crate) struct Dice {
    seed: Seed,
    rates: Ladder<Fault>,
    cycle: u32,
    scripts: Vec<Lines>,
    by_id: HashMap<u64, usize>,
    by_share: Ladder<usize>,
    latency: LatencyPlan,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// An item old enough that clients may believe its nulls.
    Settled(u64),
    /// An item at the head.
    Fresh(u64),
    /// Anything but an item.
    Page(u64),
}

impl Dice {
    pub(crate) fn new(seed: Seed, plan: &FaultPlan) -> Self {
        let numbered = || plan.scripts.iter().enumerate();
        let ids = |script: &Script| script.ids.iter().copied().chain(script.id).collect::<Vec<_>>();
        Dice {
            seed,
            rates: Ladder::new(plan.rates.iter().map(|(fault, rate)| (*rate, *fault))),
            cycle: u32::from(plan.heal_after) + 1,
            scripts: plan.scripts.iter().map(Lines::new).collect(),
            by_id: numbered().flat_map(|(at, script)| ids(script).into_iter().map(move |id| (id, at))).collect(),
            by_share: Ladder::new(numbered().filter_map(|(at, script)| Some((script.share?, at)))),
            latency: plan.latency.clone(),
        }
    }

    /// The fault of the `nth` request (from 0) for `key`.
    pub(crate) fn fault(&self, key: Key, nth: u32) -> Option<Fault> {
        match self.script(key) {
            Some(lines) => lines.step(nth).fault(),
            None if nth == NTH_MAX => None,
            None => self.by_rate(key, nth),
        }
    }

    /// The fault that never heals.
    pub(crate) fn lasting(&self, key: Key) -> Option<Fault> {
        self.script(key)?.then.fault()
    }

    pub(crate) fn latency(&self, key: Key, nth: u32) -> Duration {
        let fixed = Duration::from_millis(u64::from(self.latency.fixed_ms));
        if self.latency.jitter_ms == 0 {
            return fixed;
        }
        let hash = self.seed.hash_nth(Purpose::Latency, key.number(), u64::from(nth));
        fixed + Duration::from_micros(scale(hash, u64::from(self.latency.jitter_ms) * 1_000 + 1))
    }

    fn by_rate(&self, key: Key, nth: u32) -> Option<Fault> {
        let place = nth % self.cycle;
        if self.rates.is_empty() || place + 1 == self.cycle {
            return None;
        }
        let hash = self.seed.hash_nth(Purpose::Fault, key.number(), u64::from(nth));
        self.rates.pick(hash).filter(|fault| match (fault, key) {
            (Fault::Null, Key::Settled(_)) => place < NULLS_IN_A_ROW_MAX,
            (Fault::Null, _) => false,
            (fault, Key::Page(_)) => !fault.only_for_items(),
            _ => true,
        })
    }

    fn script(&self, key: Key) -> Option<&Lines> {
        let at = match key {
            Key::Page(_) => None,
            Key::Fresh(id) => self.by_id.get(&id).copied(),
            Key::Settled(id) => self.by_id.get(&id).copied().or_else(|| self.shared(id)),
        };
        self.scripts.get(at?)
    }

    fn shared(&self, id: u64) -> Option<usize> {
        if self.by_share.is_empty() { None } else { self.by_share.pick(self.seed.hash(Purpose::Script, id)) }
    }
}

impl Key {
    /// Pages count down from the top, where no item id reaches.
    const fn number(self) -> u64 {
        match self {
            Key::Settled(id) | Key::Fresh(id) => id,
            Key::Page(page) => u64::MAX - page,
        }
    }
}

#[derive(Debug)]
struct Lines {
    replies: Vec<Step>,
    then: Step,
}

impl Lines {
    fn new(script: &Script) -> Self {
        Lines { replies: script.replies.clone(), then: script.then }
    }

    fn step(&self, nth: u32) -> Step {
        self.replies.get(nth as usize).copied().unwrap_or(self.then)
    }
}

/// Alternatives with probabilities, as rising thresholds.
#[derive(Debug)]
pub(crate) struct Ladder<T> {
    rungs: Vec<(Share, T)>,
}

impl<T: Copy> Ladder<T> {
    pub(crate) fn new(shares: impl Iterator<Item = (f64, T)>) -> Self {
        let mut sum = 0.0;
        let rungs = shares.filter_map(|(share, what)| {
            sum += share;
            Some((Share::new(f64::min(sum, 1.0))?, what))
        });
        Ladder { rungs: rungs.collect() }
    }

    fn is_empty(&self) -> bool {
        self.rungs.is_empty()
    }

    pub(crate) fn pick(&self, hash: u64) -> Option<T> {
        let (top, _) = self.rungs.last()?;
        if !top.hit(hash) {
            return None;
        }
        self.rungs.iter().find(|(share, _)| share.hit(hash)).map(|(_, what)| *what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dice(plan: &str) -> Dice {
        Dice::new(Seed(11), &FaultPlan::parse(plan).unwrap())
    }

    #[test]
    fn a_script_plays_line_by_line_and_spares_its_id_from_rates() {
        let dice = dice(
            "[rates]\nhtml = 1\n[[script]]\nid = 5\nreplies = ['500', 'normal', 'reset']\n[[script]]\nids = [6]\nthen = '404'",
        );
        let seen = |id| [0, 1, 2, 3, 9].map(|nth| dice.fault(Key::Settled(id), nth));
        assert_eq!(seen(5), [Some(Fault::Internal), None, Some(Fault::Reset), None, None]);
        assert_eq!(seen(6), [Some(Fault::NotFound); 5]);
        assert_eq!(dice.lasting(Key::Settled(5)), None);
        assert_eq!(dice.lasting(Key::Fresh(6)), Some(Fault::NotFound));
        assert_eq!(dice.fault(Key::Settled(7), 0), Some(Fault::Html));
    }

    #[test]
    fn rates_strike_as_often_as_they_say_and_always_heal() {
        let dice = dice("heal_after = 3\n[rates]\n500 = 0.1\nreset = 0.3");
        let count = |fault| (0..10_000).filter(|id| dice.fault(Key::Settled(*id), 0) == Some(fault)).count();
        assert!((800..1_200).contains(&count(Fault::Internal)));
        assert!((2_700..3_300).contains(&count(Fault::Reset)));
        let healed = (0..1_000).all(|id| [3, 7].map(|nth| dice.fault(Key::Settled(id), nth)) == [None, None]);
        assert!(healed);
    }

    #[test]
    fn nulls_by_rate_never_come_three_in_a_row_nor_at_the_head_nor_on_pages() {
        let dice = dice("[rates]\nnull = 1");
        let nulls = |key| [0, 1, 2, 3, 4, 5].map(|nth| dice.fault(key, nth).is_some());
        assert_eq!(nulls(Key::Settled(3)), [true, true, false, false, false, true]);
        assert_eq!(nulls(Key::Fresh(3)), [false; 6]);
        assert_eq!(nulls(Key::Page(3)), [false; 6]);
    }

    #[test]
    fn jitter_stays_in_its_range_and_replays() {
        let dice = dice("latency = { fixed_ms = 10, jitter_ms = 5 }");
        let waits: Vec<_> = (0..1_000).map(|id| dice.latency(Key::Settled(id), 0)).collect();
        assert!(waits.iter().all(|wait| (10_000..=15_000).contains(&wait.as_micros())));
        assert!(waits.iter().any(|wait| *wait != waits[0]));
        assert_eq!(waits[7], dice.latency(Key::Settled(7), 0));
    }
}
