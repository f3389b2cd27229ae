//! How long answers take, in bounded memory: a histogram of the current round, a figure for the round before, and a
//! slow baseline to compare with. It judges; what follows from it is decided elsewhere.

use crate::Moment;
use std::time::Duration;

/// A round is long enough for a median to mean something, and short enough to follow a source that changes.
const ROUND_LASTS: Duration = Duration::from_secs(1);
const ROUND_SAMPLES: u32 = 8;
/// Eight cells per doubling keep a median within 6 %; 32 doublings of a microsecond pass an hour.
const CELLS_PER_DOUBLING: u32 = 8;
const DOUBLINGS: u32 = 32;
const CELLS: usize = (CELLS_PER_DOUBLING * DOUBLINGS) as usize;
/// Weight of the newest round: the baseline takes about 20 rounds to accept a new normal.
const BASELINE_WEIGHT: f64 = 0.05;
const SLOW_DEVIATIONS: f64 = 2.5;
/// A perfectly even source still differs by the width of a cell.
const DEVIATION_LEAST: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Normal,
    Slow,
}

#[derive(Debug)]
pub(super) struct Latency {
    cells: Box<[u32; CELLS]>,
    round: Round,
    typical: Option<f64>,
    baseline: Option<Baseline>,
}

#[derive(Debug)]
struct Round {
    started: Moment,
    samples: u32,
    sum: f64,
    squares: f64,
}

/// Running means of seconds and of squared seconds.
#[derive(Clone, Copy, Debug)]
struct Baseline {
    mean: f64,
    square: f64,
}

impl Latency {
    pub(super) fn new(now: Moment) -> Self {
        Latency { cells: Box::new([0; CELLS]), round: Round::new(now), typical: None, baseline: None }
    }

    /// Seconds an answer takes. The mean where it is above the median: requests that hang hold their place too.
    pub(super) fn typical(&self) -> Option<f64> {
        self.typical
    }

    /// Adds a sample, and judges the round when this one ends it.
    pub(super) fn record(&mut self, latency: Duration, now: Moment) -> Option<Health> {
        self.cells[cell(latency)] += 1;
        self.round.add(latency.as_secs_f64());
        self.round.is_complete(now).then(|| self.end_round(now))
    }

    fn end_round(&mut self, now: Moment) -> Health {
        let median = self.median();
        let Baseline { mean, square } = self.round.means();
        let newest = median.max(mean);
        self.typical = Some(self.typical.map_or(newest, |before| (before + newest) / 2.0));
        let health = self.baseline.map_or(Health::Normal, |baseline| baseline.judge(median));
        self.baseline = Some(self.baseline.map_or(Baseline { mean, square }, |before| before.moved(mean, square)));
        self.cells.fill(0);
        self.round = Round::new(now);
        health
    }

    fn median(&self) -> f64 {
        let mut left = self.round.samples.div_ceil(2);
        let reached = self.cells.iter().position(|&count| {
            left = left.saturating_sub(count);
            left == 0
        });
        middle(reached.unwrap_or(CELLS - 1))
    }
}

impl Round {
    fn new(now: Moment) -> Self {
        Round { started: now, samples: 0, sum: 0.0, squares: 0.0 }
    }

    fn add(&mut self, seconds: f64) {
        self.samples += 1;
        self.sum += seconds;
        self.squares += seconds * seconds;
    }

    fn is_complete(&self, now: Moment) -> bool {
        self.samples >= ROUND_SAMPLES && now.since(self.started) >= ROUND_LASTS
    }

    fn means(&self) -> Baseline {
        let samples = f64::from(self.samples.max(1));
        Baseline { mean: self.sum / samples, square: self.squares / samples }
    }
}

impl Baseline {
    fn judge(self, median: f64) -> Health {
        let deviation = (self.square - self.mean * self.mean).max(0.0).sqrt();
        let most = self.mean + SLOW_DEVIATIONS * deviation.max(DEVIATION_LEAST * self.mean);
        if median > most { Health::Slow } else { Health::Normal }
    }

    fn moved(self, mean: f64, square: f64) -> Self {
        Baseline {
            mean: self.mean + BASELINE_WEIGHT * (mean - self.mean),
            square: self.square + BASELINE_WEIGHT * (square - self.square),
        }
    }
}

/// The doubling is the position of the highest bit of the microseconds, the cell inside it the three bits below.
fn cell(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
    let doubling = micros.ilog2();
    let below = (u128::from(micros) * u128::from(CELLS_PER_DOUBLING)) >> doubling;
    let index = u128::from(doubling * CELLS_PER_DOUBLING) + below - u128::from(CELLS_PER_DOUBLING);
    usize::try_from(index).unwrap_or(CELLS).min(CELLS - 1)
}

/// Seconds at the middle of a cell.
fn middle(cell: usize) -> f64 {
    let (doubling, below) = (cell / CELLS_PER_DOUBLING as usize, cell % CELLS_PER_DOUBLING as usize);
    let within = 1.0 + (below as f64 + 0.5) / f64::from(CELLS_PER_DOUBLING);
    within * (doubling as f64).exp2() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_of(latency: &mut Latency, millis: u64, second: u64) -> Option<Health> {
        let now = Moment::after_start(Duration::from_secs(second));
        (0..ROUND_SAMPLES).filter_map(|_| latency.record(Duration::from_millis(millis), now)).last()
    }

    #[test]
    fn the_middle_of_a_cell_is_near_every_latency_in_it() {
        for micros in [1, 2, 7, 100, 999, 100_000, 7_000_000, 3_000_000_000] {
            let near = middle(cell(Duration::from_micros(micros))) * 1e6 / micros as f64;
            assert!((0.93..1.5).contains(&near), "{micros} µs: {near}");
        }
        assert_eq!(cell(Duration::MAX), CELLS - 1);
    }

    #[test]
    fn a_source_that_becomes_much_slower_is_noticed_and_accepted_later() {
        let mut latency = Latency::new(Moment::START);
        (1..10).for_each(|second| assert_ne!(round_of(&mut latency, 100, second), Some(Health::Slow)));
        assert_eq!(round_of(&mut latency, 130, 10), Some(Health::Slow));
        let accepted = (11..60).find(|&second| round_of(&mut latency, 130, second) == Some(Health::Normal));
        assert!(accepted.is_some());
    }

    #[test]
    fn few_samples_give_no_figure() {
        let mut latency = Latency::new(Moment::START);
        let late = Moment::after_start(Duration::from_secs(60));
        (0..7).for_each(|_| assert_eq!(latency.record(Duration::from_millis(5), late), None));
        assert_eq!(latency.typical(), None);
    }
}
