//! What a copy shows while it works: rows gone through, once to copy and once to compare.

use std::time::Duration;

use highwater_core::Moment;
use highwater_sources::Clock;
use highwater_store::CopyProgress;

use super::{ClearOnDrop, bar, has_bar};
use crate::out;

/// Draws until dropped. Silent when told to be quiet.
pub(crate) async fn draw(progress: &CopyProgress, clock: &Clock, quiet: bool) {
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
            bar.set_position((share(progress) * 1000.0) as u64);
            bar.set_message(line(progress, clock.moment(), began));
        }
    }
    loop {
        clock.sleep(LINE_TICK).await;
        out::complain(&format!("copy: {}", line(progress, clock.moment(), began)));
    }
}

/// Of the way there and back.
fn share(progress: &CopyProgress) -> f64 {
    let whole = 2 * progress.total();
    if whole == 0 { 0.0 } else { (progress.done() as f64 / whole as f64).min(1.0) }
}

fn line(progress: &CopyProgress, now: Moment, began: Moment) -> String {
    let (done, whole) = (progress.done(), 2 * progress.total());
    let rate = done as f64 / now.since(began).as_secs_f64().max(1e-3);
    let mut parts = vec![
        progress.doing(),
        format!("{:.1}% of {} rows", 100.0 * share(progress), out::grouped(progress.total())),
        format!("{} rows/s", out::grouped(rate as u64)),
    ];
    if rate >= 1.0 && whole > done {
        parts.push(format!("{} left", out::duration(Duration::from_secs_f64((whole - done) as f64 / rate))));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}
