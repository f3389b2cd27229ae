//! Opens connections: names to addresses, the addresses in turn, TLS on top. It keeps no connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use highwater_core::{Failure, Moment};
use rustls::pki_types::ServerName;
use tokio::{
    net::{TcpStream, lookup_host},
    sync::Mutex,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{fault, origin::Origin, stream::Stream};
use crate::Clock;

/// Hundreds of connections are opened within moments of each other; that is one question to the resolver.
const RESOLVED_FOR: Duration = Duration::from_secs(10);

pub(super) struct Dialer {
    tls: Option<TlsConnector>,
    clock: Clock,
    connect_timeout: Duration,
    /// Held while the resolver is asked, so that everybody else waits for the same answer.
    resolved: Mutex<Option<Resolved>>,
}

struct Resolved {
    addresses: Arc<[SocketAddr]>,
    until: Moment,
}

impl Dialer {
    pub(super) fn new(tls: Option<TlsConnector>, clock: Clock, connect_timeout: Duration) -> Self {
        Dialer { tls, clock, connect_timeout, resolved: Mutex::new(None) }
    }

    pub(super) async fn dial(&self, origin: &Origin) -> Result<Stream, Failure> {
        let tcp = match origin.host.parse() {
            Ok(ip) => self.first_of(&[SocketAddr::new(ip, origin.port)]).await?,
            Err(_) => self.by_name(origin).await?,
        };
        if origin.is_tls() { self.secure(origin, tcp).await } else { Ok(Stream::Plain(tcp)) }
    }

    async fn by_name(&self, origin: &Origin) -> Result<TcpStream, Failure> {
        let addresses = self.resolve(origin).await?;
        let tcp = self.first_of(&addresses).await;
        if tcp.is_err() {
            self.resolved.lock().await.take();
        }
        tcp
    }

    async fn resolve(&self, origin: &Origin) -> Result<Arc<[SocketAddr]>, Failure> {
        let mut resolved = self.resolved.lock().await;
        if let Some(known) = resolved.as_ref().filter(|known| self.clock.moment() < known.until) {
            return Ok(known.addresses.clone());
        }
        let found = lookup_host((origin.host.as_str(), origin.port)).await;
        let addresses: Arc<[SocketAddr]> = found.map_err(|e| fault::connect_io("name resolution", &e))?.collect();
        if addresses.is_empty() {
            return Err(fault::connect("name resolution: the name has no address"));
        }
        *resolved = Some(Resolved { addresses: addresses.clone(), until: self.clock.moment() + RESOLVED_FOR });
        Ok(addresses)
    }

    /// Every address gets its share of the time, so that a silent one does not use up that of the others.
    async fn first_of(&self, addresses: &[SocketAddr]) -> Result<TcpStream, Failure> {
        let share = self.connect_timeout / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut last = fault::connect("there is no address to connect to");
        for address in addresses {
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => {
                    tcp.set_nodelay(true).map_err(|e| fault::connect_io("connecting", &e))?;
                    return Ok(tcp);
                }
                Ok(Err(error)) => last = fault::connect_io("connecting", &error),
                Err(_) => last = fault::timeout("connecting", share),
            }
        }
        Err(last)
    }

    async fn secure(&self, origin: &Origin, tcp: TcpStream) -> Result<Stream, Failure> {
        let connector = self.tls.as_ref().ok_or_else(|| fault::connect("TLS is not set up"))?;
        let name = ServerName::try_from(origin.host.clone()).map_err(|_| fault::connect("TLS: not a host name"))?;
        let tls = connector.connect(name, tcp).await.map_err(|e| fault::connect_io("TLS", &e))?;
        Ok(Stream::Tls(Box::new(tls)))
    }
}
