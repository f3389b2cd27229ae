//! A simulator on real sockets: HTTP/1.1 with keep-alive and pipelining, and HTTP/2 in clear text with prior
//! knowledge. It carries answers out and decides nothing about them.

mod h1;
mod h2;
mod wire;

use std::{io, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::hn::HnSim;

/// Out of file descriptors, most likely: some connection has to end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown`; returns when every connection has ended.
pub async fn serve(listener: TcpListener, sim: Arc<HnSim>, shutdown: CancellationToken) -> io::Result<()> {
    let site = Arc::new(Site { sim, clock: Clock::start(), tasks: TaskTracker::new(), shutdown });
    while let Some(accepted) = site.shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => site.open(stream),
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    site.tasks.close();
    site.tasks.wait().await;
    Ok(())
}

/// What every connection needs.
struct Site {
    sim: Arc<HnSim>,
    clock: Clock,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Site {
    fn open(self: &Arc<Self>, stream: TcpStream) {
        let site = Arc::clone(self);
        self.tasks.spawn(async move {
            let ended = site.shutdown.run_until_cancelled(site.connection(stream)).await;
            // Clients of a simulator that breaks connections break them too.
            if let Some(Err(error)) = ended {
                tracing::debug!(%error, "connection ended");
            }
        });
    }

    async fn connection(self: &Arc<Self>, stream: TcpStream) -> io::Result<()> {
        let _open = self.sim.stats().connections.enter();
        stream.set_nodelay(true)?;
        match h1::run(stream, self).await? {
            h1::Ended::Closed => Ok(()),
            h1::Ended::Http2 { stream, read } => h2::run(stream, read, Arc::clone(self)).await,
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

/// The time since the server started.
struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the edge where a simulation meets time; its heart is told")]
    fn start() -> Self {
        Clock(Instant::now())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
