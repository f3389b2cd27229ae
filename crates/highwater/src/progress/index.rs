//! What a search shows while it brings its index up to date: rows compared, and texts read.

use std::time::Duration;

use highwater_core::Moment;
use highwater_engine::IndexProgress;
use highwater_sources::Clock;

use super::{ClearOnDrop, bar, has_bar};
use crate::out;

/// Draws until dropped. Silent when told to be quiet.
pub(crate) async fn draw(progress: &IndexProgress, total: u64, clock: &Clock, quiet: bool) {
    const BAR_TICK: Duration = Duration::from_millis(200);
    const LINE_TICK: Duration = Duration::from_secs(2);
    if quiet {
        return std::future::pending().await;
    }
    let began = clock.moment();
    if has_bar() {
        let bar = bar();
        let _clear = ClearOnDrop(&bar);
        loop {
            clock.sleep(BAR_TICK).await;
            bar.set_position((share(progress, total) * 1000.0) as u64);
            bar.set_message(line(progress, total, clock.moment(), began));
        }
    }
    loop {
        clock.sleep(LINE_TICK).await;
        out::complain(&format!("index: {}", line(progress, total, clock.moment(), began)));
    }
}

fn share(progress: &IndexProgress, total: u64) -> f64 {
    if total == 0 { 0.0 } else { (progress.looked_at() as f64 / total as f64).min(1.0) }
}

fn line(progress: &IndexProgress, total: u64, now: Moment, began: Moment) -> String {
    let (looked_at, indexed) = (progress.looked_at(), progress.indexed());
    let rate = indexed as f64 / now.since(began).as_secs_f64().max(1e-3);
    let looked_at = format!("{} of {} looked at", out::grouped(looked_at), out::grouped(total.max(looked_at)));
    let indexed = format!("{} indexed, {} a second", out::grouped(indexed), out::grouped(rate as u64));
    [progress.table().to_owned(), looked_at, indexed].join(" · ")
}
