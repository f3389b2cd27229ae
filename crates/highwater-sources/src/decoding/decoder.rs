//! A thread that decodes, and nothing else. It ends when nobody is left who could hand it work.

use std::{
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::mpsc,
    thread,
};

use tokio::sync::oneshot;

#[derive(Clone)]
pub struct Decoder {
    /// Never more than there are keys being fetched: whoever hands something over waits for it.
    work: mpsc::Sender<Work>,
}

type Work = Box<dyn FnOnce() + Send>;

impl Decoder {
    pub fn start() -> io::Result<Self> {
        let (work, queue) = mpsc::channel::<Work>();
        thread::Builder::new().name("decode".into()).spawn(move || queue.into_iter().for_each(|work| work()))?;
        Ok(Decoder { work })
    }

    /// Not begun, or done, when the caller leaves. Panics where it is awaited if `work` does.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (reply, answer) = oneshot::channel();
        let caught = Box::new(move || {
            if reply.is_closed() {
                return;
            }
            // Nobody looks at what a panic leaves behind: it goes on where the answer is awaited. A caller that has left
            // wants no answer.
            reply.send(catch_unwind(AssertUnwindSafe(work))).ok();
        });
        self.work.send(caught).expect("the thread lives as long as its decoder");
        match answer.await.expect("all that is handed over is answered") {
            Ok(done) => done,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn works_on_a_thread_of_its_own_in_order() {
        let decoder = Decoder::start().unwrap();
        let here = thread::current().id();
        let first = decoder.run(thread::current).await;
        let second = decoder.clone().run(thread::current).await;
        assert_eq!(first.id(), second.id());
        assert_ne!(first.id(), here);
        assert_eq!(first.name(), Some("decode"));
    }

    #[tokio::test]
    async fn a_panic_reaches_the_caller_and_ends_nothing_else() {
        let decoder = Decoder::start().unwrap();
        let failing = decoder.clone();
        let failed = tokio::spawn(async move { failing.run(|| panic!("as planned")).await }).await;
        assert!(failed.unwrap_err().is_panic());
        assert_eq!(decoder.run(|| 7).await, 7);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_holds_up_nothing() {
        let decoder = Decoder::start().unwrap();
        let (open, gate) = mpsc::channel::<()>();
        let left = decoder.run(move || gate.recv().is_ok());
        // Handed over by the first look at it, and left behind.
        assert!(futures_util::FutureExt::now_or_never(left).is_none());
        open.send(()).unwrap();
        assert_eq!(decoder.run(|| 7).await, 7);
    }
}
