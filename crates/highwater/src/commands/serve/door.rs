//! Opens the store of a service. A server that is away is waited for, as it would be if it went away a moment later: whoever
//! starts both at boot, or restarts a service during an outage, need not see to the order.

use std::{sync::Arc, time::Duration};

use highwater_store::{ErrorKind, Store};
use tokio_util::sync::CancellationToken;

use crate::{
    out,
    settings::{Access, Settings},
    watchdog::Systemd,
};

const AGAIN: Duration = Duration::from_secs(2);
/// Beyond the longest that a try may take before it is given up.
const START_MORE: Duration = Duration::from_secs(120);

/// None if a stop is asked for before the store is there.
pub(super) async fn open(
    settings: &Settings,
    systemd: &Systemd,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Arc<dyn Store>>> {
    let location = settings.location()?;
    let mut is_told = false;
    loop {
        let opened = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(None),
            opened = location.attempt(Access::Write, settings.config.sharding) => opened,
        };
        let error = match opened {
            Ok(store) => {
                settings.check_names(&*store).await?;
                return Ok(Some(store));
            }
            Err(error) if error.kind == ErrorKind::Unreachable => highwater_engine::describe(&error),
            Err(error) => return Err(location.trouble(&error).into()),
        };
        systemd.starting("waiting for the store", START_MORE);
        if !std::mem::replace(&mut is_told, true) {
            out::complain(&format!("{error}; waiting for it"));
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(None),
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}
