//! Where answers are decoded: beside the thread that fetches, or on it.

mod decoder;

use std::{future::pending, panic::resume_unwind};

use tokio::task::{JoinError, spawn_blocking};

pub use decoder::Decoder;

#[derive(Clone, Debug)]
pub enum Decoding {
    /// On the runtime's threads for blocking work, several at a time: for answers that take long.
    Blocking,
    /// On one thread that does nothing else: for many small ones. What they allocate stays where it is at hand for the
    /// next, instead of on whichever thread was idle.
    Beside(Decoder),
    /// Where the answers arrive, so that a simulation stays on one thread and repeats itself exactly.
    Inline,
}

/// At about ten microseconds each.
const FEW: usize = 4;

/// Bytes that take as long as one of those, in one answer or in many.
pub(crate) const DECODED_LIKE_AN_ITEM: usize = 4 << 10;

impl Decoding {
    /// A few answers are decoded sooner than another thread is woken for them.
    pub(crate) async fn run<T: Send + 'static>(&self, answers: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
        match self {
            Decoding::Inline => work(),
            Decoding::Blocking | Decoding::Beside(_) if answers <= FEW => work(),
            Decoding::Beside(decoder) => decoder.run(work).await,
            Decoding::Blocking => match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
                Ok(done) => done,
                Err(Ok(panic)) => resume_unwind(panic),
                // The runtime is shutting down: nobody waits for this any more.
                Err(Err(_cancelled)) => pending().await,
            },
        }
    }
}
