//! What a copy shows while it works: rows gone through, once to copy and once to compare.

use std::time::Duration;

use highwater_core::Moment;
use highwater_sources::Clock;
use highwater_store::CopyProgress;

use super::steady::{self, Counted};
use crate::out;

/// Draws until dropped. Silent when told to be quiet.
pub(crate) async fn draw(progress: &CopyProgress, clock: &Clock, quiet: bool) {
    steady::draw(progress, clock, quiet).await;
}

impl Counted for CopyProgress {
    const NAME: &'static str = "copy";

    /// Of the way there and back.
    fn share(&self) -> f64 {
        let whole = 2 * self.total();
        if whole == 0 { 0.0 } else { (self.done() as f64 / whole as f64).min(1.0) }
    }

    fn line(&self, now: Moment, began: Moment) -> String {
        let (done, whole) = (self.done(), 2 * self.total());
        let rate = done as f64 / now.since(began).as_secs_f64().max(1e-3);
        let mut parts = vec![
            self.doing(),
            format!("{} of {} rows", out::percent(done, whole, 1), out::grouped(self.total())),
            format!("{} rows/s", out::grouped(rate as u64)),
        ];
        if rate >= 1.0 && whole > done {
            parts.push(format!("{} left", out::duration(Duration::from_secs_f64((whole - done) as f64 / rate))));
        }
        parts.retain(|part| !part.is_empty());
        parts.join(" · ")
    }
}
