//! Mail is put where `shards` says that it lies before anything else is done with it.

use highwater_sources::Clock;
use highwater_store::{MoveProgress, Store};
use tokio_util::sync::CancellationToken;

use crate::{args::Global, progress, settings::Settings};

/// Broken off anywhere, it goes on from there the next time.
pub(crate) async fn arrange(
    global: &Global,
    settings: &Settings,
    store: &dyn Store,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    if !settings.config.has_mail() {
        return Ok(());
    }
    let (moves, clock) = (MoveProgress::default(), Clock::system());
    tokio::select! {
        biased;
        () = stop.cancelled() => Ok(()),
        moved = store.arrange(&moves) => Ok(moved?),
        () = progress::draw_moves(&moves, &clock, global.quiet || global.json) => {
            unreachable!("drawing never ends")
        }
    }
}
