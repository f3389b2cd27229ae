//! Where a store does its work: beside the thread that fetches, or on it.

use std::{future::pending, panic::resume_unwind};

use tokio::{
    runtime::Handle,
    task::{JoinError, spawn_blocking},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// On the runtime's threads for blocking work.
    Blocking,
    /// Where it is called, so that a simulation stays on one thread and repeats itself exactly.
    Inline,
}

impl Execution {
    pub(crate) async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match self {
            Execution::Inline => work(),
            Execution::Blocking => match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
                Ok(done) => done,
                Err(Ok(panic)) => resume_unwind(panic),
                // The runtime is shutting down: nobody waits for this any more.
                Err(Err(_cancelled)) => pending().await,
            },
        }
    }

    /// For what waits, but has much to do in between. Once begun beside, it is carried through, also when nobody waits
    /// for it any more.
    pub(crate) async fn carry<F>(self, work: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        match self {
            Execution::Inline => work.await,
            Execution::Blocking => {
                let runtime = Handle::current();
                self.run(move || runtime.block_on(work)).await
            }
        }
    }
}
