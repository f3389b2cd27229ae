//! What a search shows while it brings its index up to date: rows compared, and texts read.

use highwater_core::Moment;
use highwater_engine::IndexProgress;
use highwater_sources::Clock;

use super::steady::{self, Counted};
use crate::out;

/// Draws until dropped. Silent when told to be quiet.
pub(crate) async fn draw(progress: &IndexProgress, total: u64, clock: &Clock, quiet: bool) {
    steady::draw(&Indexing { progress, total }, clock, quiet).await;
}

struct Indexing<'a> {
    progress: &'a IndexProgress,
    total: u64,
}

impl Counted for Indexing<'_> {
    const NAME: &'static str = "index";

    fn share(&self) -> f64 {
        if self.total == 0 { 0.0 } else { (self.progress.looked_at() as f64 / self.total as f64).min(1.0) }
    }

    fn line(&self, now: Moment, began: Moment) -> String {
        let (looked_at, indexed) = (self.progress.looked_at(), self.progress.indexed());
        let rate = indexed as f64 / now.since(began).as_secs_f64().max(1e-3);
        let looked_at = format!("{} of {} looked at", out::grouped(looked_at), out::grouped(self.total.max(looked_at)));
        let indexed = format!("{} indexed, {} a second", out::grouped(indexed), out::grouped(rate as u64));
        [self.progress.table().to_owned(), looked_at, indexed].join(" · ")
    }
}
