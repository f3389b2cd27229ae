//! A simulator on real sockets: HTTP/1.1 with keep-alive and pipelining, and HTTP/2 in clear text with prior
//! knowledge. It carries answers and streams out and decides nothing about them.

mod events;
mod h1;
mod h2;
mod wire;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    answer::{Accept, Answer, Arrival, SimRequest},
    hn::Opening,
    plan::Redirect,
    simulator::Simulator,
};

/// Out of file descriptors, most likely: some connection has to end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown`; returns when every connection has ended. A plan that sends streams to another port has one
/// opened beside the listener's.
pub async fn serve<S: Simulator>(listener: TcpListener, sim: Arc<S>, shutdown: CancellationToken) -> io::Result<()> {
    let elsewhere = match sim.redirect() {
        Some(Redirect::Port) => Some(TcpListener::bind((listener.local_addr()?.ip(), 0)).await?),
        Some(Redirect::Path) | None => None,
    };
    let port = elsewhere.as_ref().map(TcpListener::local_addr).transpose()?.map(|address| address.port());
    let site = Arc::new(Site { sim, clock: Clock::start(), tasks: TaskTracker::new(), shutdown, elsewhere: port });
    let redirected = async {
        if let Some(listener) = elsewhere {
            site.accept(&listener, Arrival::Redirected).await;
        }
    };
    tokio::join!(site.accept(&listener, Arrival::FirstHand), redirected);
    site.tasks.close();
    site.tasks.wait().await;
    Ok(())
}

/// What every connection needs.
struct Site<S> {
    sim: Arc<S>,
    clock: Clock,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    /// The port that streams are redirected to.
    elsewhere: Option<u16>,
}

/// What is due for one request.
enum Due {
    Answer(Answer),
    Open(Box<Opening>),
}

impl<S: Simulator> Site<S> {
    async fn accept(self: &Arc<Self>, listener: &TcpListener, arrival: Arrival) {
        while let Some(accepted) = self.shutdown.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, _)) => self.open(stream, arrival),
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn open(self: &Arc<Self>, stream: TcpStream, arrival: Arrival) {
        let site = Arc::clone(self);
        self.tasks.spawn(async move {
            let ended = site.shutdown.run_until_cancelled(site.connection(stream, arrival)).await;
            // Clients of a simulator that breaks connections break them too.
            if let Some(Err(error)) = ended {
                tracing::debug!(%error, "connection ended");
            }
        });
    }

    async fn connection(self: &Arc<Self>, stream: TcpStream, arrival: Arrival) -> io::Result<()> {
        let _open = self.sim.connections().enter();
        stream.set_nodelay(true)?;
        let local = stream.local_addr()?.ip();
        let line = Line { site: Arc::clone(self), arrival, local };
        match h1::run(stream, &line).await? {
            h1::Ended::Closed => Ok(()),
            h1::Ended::Http2 { stream, read } => h2::run(stream, read, line).await,
        }
    }
}

/// One connection's place on the site.
struct Line<S> {
    site: Arc<Site<S>>,
    arrival: Arrival,
    local: IpAddr,
}

impl<S> Clone for Line<S> {
    fn clone(&self) -> Self {
        Line { site: Arc::clone(&self.site), ..*self }
    }
}

impl<S: Simulator> Line<S> {
    fn now(&self) -> Duration {
        self.site.clock.elapsed()
    }

    fn due(&self, request: &SimRequest<'_>) -> Due {
        let (sim, now) = (&self.site.sim, self.now());
        match request.accept {
            Accept::Json => Due::Answer(sim.answer(request, now)),
            Accept::EventStream => match sim.open_stream(&SimRequest { arrival: self.arrival, ..*request }, now) {
                Opening::Answer(answer) => Due::Answer(answer),
                opening => Due::Open(Box::new(opening)),
            },
        }
    }

    /// Seen from the client that came here.
    fn elsewhere(&self) -> SocketAddr {
        SocketAddr::new(self.local, self.site.elsewhere.unwrap_or_default())
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
