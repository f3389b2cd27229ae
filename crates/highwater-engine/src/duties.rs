//! What must go on as long as anything is fetched: permits are handed out, and the account is shared with others.

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use tokio::task::AbortHandle;

use crate::{Engine, account::AccountLink};

/// Runs until it is dropped.
pub(crate) struct Duties {
    tasks: [AbortHandle; 2],
    watch: DutyWatch,
}

/// Tells when a duty has died.
#[derive(Clone)]
pub(crate) struct DutyWatch(Shared<BoxFuture<'static, &'static str>>);

impl Duties {
    pub(crate) fn start(engine: &Engine, account: AccountLink) -> Self {
        let source = engine.source.clone();
        let driver = tokio::spawn(async move { source.gateway().drive().await });
        let beat = tokio::spawn(account.keep());
        let tasks = [driver.abort_handle(), beat.abort_handle()];
        let died = async move {
            tokio::select! {
                biased;
                _ = driver => "the throttle's driver",
                _ = beat => "the account's beat",
            }
        };
        Duties { tasks, watch: DutyWatch(died.boxed().shared()) }
    }

    pub(crate) fn watch(&self) -> DutyWatch {
        self.watch.clone()
    }
}

impl DutyWatch {
    pub(crate) async fn died(&self) -> &'static str {
        self.0.clone().await
    }
}

impl Drop for Duties {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
