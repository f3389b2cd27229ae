//! The HTTP server: connections in, bounded in number, size and time. It answers reads only.

mod answer;

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{AccessError, AccessRules, ServiceView};

/// A few scrapers and a few people; the next connections wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// Also for the next request on a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// After which a connection takes no further request.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(600);
/// For the answer under way when a connection is to end.
const GRACE: Duration = Duration::from_secs(5);
/// Out of file descriptors, most likely: some connection has to end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where the figures come from. Asked for every request that shows any.
pub trait Views: Send + Sync {
    fn view(&self) -> BoxFuture<'_, Arc<ServiceView>>;
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("the address of the listener cannot be told")]
    Address(#[source] io::Error),
}

/// Serves until `shutdown`; returns when every connection has ended.
pub async fn serve(
    listener: TcpListener,
    rules: AccessRules,
    views: Arc<dyn Views>,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    rules.check(listener.local_addr().map_err(ServeError::Address)?)?;
    let site = Arc::new(Site { rules, views, shutdown });
    let (tasks, places) = (TaskTracker::new(), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    while let Some((stream, place)) = site.shutdown.run_until_cancelled(accept(&listener, &places)).await {
        let site = Arc::clone(&site);
        tasks.spawn(async move {
            let _place = place;
            site.connection(stream).await;
        });
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
    Ok(())
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("nobody closes the semaphore");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

/// What every connection needs.
struct Site {
    rules: AccessRules,
    views: Arc<dyn Views>,
    shutdown: CancellationToken,
}

impl Site {
    async fn connection(self: &Arc<Self>, stream: TcpStream) {
        let service = service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        let mut connection = pin!(builder().serve_connection(TokioIo::new(stream), service));
        let is_over = timeout(CONNECTION_AGE_MAX, self.shutdown.cancelled());
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            _ = is_over => {
                connection.as_mut().graceful_shutdown();
                timeout(GRACE, connection).await.unwrap_or(Ok(()))
            }
        };
        // The fault of whoever is at the other end; requests are not repeated here, they may carry a token.
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    }
}

fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    builder
}
