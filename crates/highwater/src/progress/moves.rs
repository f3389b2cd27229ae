//! What is shown while mail is moved from file to file: a plain line now and then, since it is done once.

use std::time::Duration;

use highwater_sources::Clock;
use highwater_store::MoveProgress;

use crate::out;

/// Draws until dropped. Silent when told to be quiet.
pub(crate) async fn draw(progress: &MoveProgress, clock: &Clock, quiet: bool) {
    const TICK: Duration = Duration::from_secs(2);
    if quiet {
        return std::future::pending().await;
    }
    loop {
        clock.sleep(TICK).await;
        out::complain(&line(progress));
    }
}

fn line(progress: &MoveProgress) -> String {
    let (moved, total) = (progress.moved(), progress.total());
    let share = out::percent(moved, total, 1);
    format!("moving mail to where shards says: {share} of {} messages", out::grouped(total))
}
