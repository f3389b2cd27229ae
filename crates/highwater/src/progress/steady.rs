//! Drawing what goes through a known number of things, by a bar or by lines.

use std::{future::pending, time::Duration};

use highwater_core::Moment;
use highwater_sources::Clock;

use super::{ClearOnDrop, bar, has_bar};
use crate::out;

const BAR_TICK: Duration = Duration::from_millis(200);
const LINE_TICK: Duration = Duration::from_secs(2);

/// What there is to be seen.
pub(super) trait Counted {
    /// Before each line.
    const NAME: &'static str;
    /// How much of all is done, from 0 to 1.
    fn share(&self) -> f64;
    fn line(&self, now: Moment, began: Moment) -> String;
}

/// Draws until dropped. Silent when told to be quiet.
pub(super) async fn draw<C: Counted>(counted: &C, clock: &Clock, quiet: bool) {
    if quiet {
        return pending().await;
    }
    let began = clock.moment();
    if has_bar() {
        let bar = bar();
        let _clear = ClearOnDrop(&bar);
        loop {
            clock.sleep(BAR_TICK).await;
            bar.set_position((counted.share() * 1000.0) as u64);
            bar.set_message(counted.line(clock.moment(), began));
        }
    }
    loop {
        clock.sleep(LINE_TICK).await;
        out::complain(&format!("{}: {}", C::NAME, counted.line(clock.moment(), began)));
    }
}
