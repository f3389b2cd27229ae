//! SIGINT and SIGTERM: the first stops in order, the second at once.

use std::{cell::Cell, future::Future, rc::Rc};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;

/// What a process gets when a file outgrows its limit; the write then fails, which the store can say and survive.
const SIGXFSZ: i32 = 25;

pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Taken and dropped, so that it does not kill.
    _file_size: Signal,
}

/// Says, whenever SIGHUP comes, that nothing comes of it; it would end the process otherwise.
pub(crate) async fn answer_hangups() -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    while hangup.recv().await.is_some() {
        crate::out::complain("the configuration is read at start: restart the service to apply changes");
    }
    Ok(())
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _file_size: signal(SignalKind::from_raw(SIGXFSZ))?,
        })
    }

    async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }

    /// Runs `work`, asking it to stop when a signal comes; tells which one came.
    pub(crate) async fn guard<T>(
        mut self,
        stop: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> (T, Option<Exit>) {
        let seen = Rc::new(Cell::new(None));
        let note = seen.clone();
        let watch = async move {
            let first = self.next().await;
            note.set(Some(first));
            stop.cancel();
            // Everything committed is safe, so there is nothing to wait for.
            let second = self.next().await;
            std::process::exit(second.code().into());
        };
        tokio::select! {
            biased;
            value = work => (value, seen.get()),
            () = watch => unreachable!("the second signal ends the process"),
        }
    }
}
