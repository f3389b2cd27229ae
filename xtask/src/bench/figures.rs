//! From rounds to figures: medians, ratios within a round, and whether they meet their targets.

use serde::Serialize;

use super::{
    Rate,
    peers::PEERS,
    round::{LATENCY_MS, Round, SLOW_IN_FLIGHT, Slow},
};

#[derive(Serialize)]
pub(super) struct Figures {
    pub(super) measured: Vec<Measured>,
    pub(super) judged: Vec<Judged>,
}

/// The medians of one program.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) items_per_second: f64,
    pub(super) peak_rss_mb: Option<f64>,
}

/// A figure that has a target.
#[derive(Debug, Serialize)]
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) target: Option<Target>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// Peak resident memory of the product, in MB.
const RSS_MAX: f64 = 120.0;
const CONTROL_MAX: f64 = 0.02;

pub(super) fn all(rounds: &[Round], slow: &[Slow]) -> Figures {
    let mut judged = speed(rounds, slow);
    judged.extend(memory(rounds, slow));
    judged.extend(control(rounds));
    judged.extend(against_peers(rounds));
    Figures { measured: measured(rounds, slow), judged }
}

impl Target {
    pub(super) fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
        }
    }
}

fn measured(rounds: &[Round], slow: &[Slow]) -> Vec<Measured> {
    let one = |name: &str, rates: Vec<Rate>| Measured {
        name: name.to_owned(),
        items_per_second: median(rates.iter().map(|rate| rate.items_per_second)).unwrap_or(f64::NAN),
        peak_rss_mb: median(rates.iter().filter_map(|rate| rate.peak_rss_mb)),
    };
    let mut measured = vec![
        one("end to end", rounds.iter().map(|round| round.sync.rate).collect()),
        one("fetch, same client", rounds.iter().map(|round| round.fetch).collect()),
        one("fetch, lean client", rounds.iter().map(|round| round.lean).collect()),
        one(&slow_name(), slow.iter().map(|slow| slow.sync.rate).collect()),
    ];
    for peer in &PEERS {
        let rates: Vec<_> = rounds.iter().filter_map(|round| round.peers.get(peer.name).copied()).collect();
        if !rates.is_empty() {
            measured.push(one(peer.name, rates));
        }
    }
    measured
}

fn slow_name() -> String {
    format!("end to end, {LATENCY_MS} ms, {SLOW_IN_FLIGHT} in flight")
}

fn speed(rounds: &[Round], slow: &[Slow]) -> Vec<Judged> {
    let ours = |round: &Round| round.sync.rate.items_per_second;
    let possible = f64::from(SLOW_IN_FLIGHT) * 1_000.0 / f64::from(LATENCY_MS);
    let to_same = rounds.iter().map(|round| ours(round) / round.fetch.items_per_second);
    let to_best = rounds.iter().map(|round| ours(round) / round.best_fetch());
    let to_possible = slow.iter().map(|slow| slow.sync.rate.items_per_second / possible);
    [
        judged("end to end / fetch, same client", to_same, Target::AtLeast(0.75)),
        judged("end to end / best fetch", to_best, Target::AtLeast(0.5)),
        judged("with latency / (in flight / latency)", to_possible, Target::AtLeast(0.9)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn memory(rounds: &[Round], slow: &[Slow]) -> Vec<Judged> {
    let fast = rounds.iter().filter_map(|round| round.sync.rate.peak_rss_mb);
    let slow = slow.iter().filter_map(|slow| slow.sync.rate.peak_rss_mb);
    let fast = judged("peak memory, MB", fast, Target::AtMost(RSS_MAX));
    fast.into_iter().chain(judged("peak memory with latency, MB", slow, Target::AtMost(RSS_MAX))).collect()
}

fn control(rounds: &[Round]) -> Vec<Judged> {
    let rows = rounds.iter().map(|round| round.sync.control.rows);
    let bytes = rounds.iter().map(|round| round.sync.control.bytes);
    let time = rounds.iter().filter_map(|round| round.sync.control_time);
    let target = Target::AtMost(CONTROL_MAX);
    let bytes = median(bytes).map(|value| Judged { name: "control bytes / file".into(), value, target: None });
    [judged("control rows / items", rows, target), bytes, judged("control time / run", time, target)]
        .into_iter()
        .flatten()
        .collect()
}

fn against_peers(rounds: &[Round]) -> Vec<Judged> {
    let ratio = |round: &Round, name| {
        let theirs: &Rate = round.peers.get(name)?;
        Some(round.sync.rate.items_per_second / theirs.items_per_second)
    };
    let judge = |peer: &super::peers::Peer| {
        let value = median(rounds.iter().filter_map(|round| ratio(round, peer.name)))?;
        Some(Judged { name: format!("end to end / {}", peer.name), value, target: peer.target.map(Target::AtLeast) })
    };
    PEERS.iter().filter_map(judge).collect()
}

pub(super) fn judged(name: &str, values: impl Iterator<Item = f64>, target: Target) -> Option<Judged> {
    median(values).map(|value| Judged { name: name.to_owned(), value, target: Some(target) })
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_ignores_one_bad_round() {
        assert_eq!(median([9.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([1.0, 2.0].into_iter()), Some(1.5));
        assert_eq!(median([].into_iter()), None);
    }

    #[test]
    fn a_target_is_met_at_its_edge() {
        assert!(Target::AtLeast(0.75).is_met(0.75));
        assert!(!Target::AtLeast(0.75).is_met(0.749));
        assert!(Target::AtMost(0.02).is_met(0.02));
        assert!(!Target::AtMost(0.02).is_met(0.021));
    }
}
