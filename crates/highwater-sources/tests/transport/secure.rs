//! TLS and HTTP/2, with an authority made for the occasion.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use highwater_core::FailureKind;
use highwater_sources::{HttpTransport, Roots, SetupError, TransportSettings};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Barrier, Notify},
};
use tokio_rustls::TlsAcceptor;

use crate::{get, get_failure};

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn root(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub(crate) fn server_config(&self, name: &str, alpn: &[&str]) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        config
    }

    pub(crate) fn transport(&self, url: &str) -> HttpTransport {
        let roots = Roots::Only(vec![self.root()]);
        HttpTransport::new(url, TransportSettings { roots, ..TransportSettings::default() }).unwrap()
    }
}

impl Authority {
    /// The URL of a server that leads everybody elsewhere.
    pub(crate) async fn redirecting(&self, location: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let acceptor = TlsAcceptor::from(Arc::new(self.server_config("127.0.0.1", &["http/1.1"])));
        let answer = crate::server::redirect(location);
        tokio::spawn(async move {
            let mut tls = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            tls.read_u8().await.unwrap();
            tls.write_all(&answer).await.unwrap();
            tls.shutdown().await.ok();
        });
        url
    }
}

/// Answers with the HTTP version once as many requests as expected are there together.
struct SecureServer {
    url: String,
    connections: Arc<AtomicUsize>,
    /// Ends the connections that are open, in order.
    go_away: Arc<Notify>,
}

impl SecureServer {
    async fn start(config: ServerConfig, together: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let server = SecureServer { url, connections: Arc::default(), go_away: Arc::default() };
        let (connections, go_away) = (server.connections.clone(), server.go_away.clone());
        let (acceptor, barrier) = (TlsAcceptor::from(Arc::new(config)), Arc::new(Barrier::new(together)));
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(acceptor.clone(), tcp, barrier.clone(), go_away.clone()));
            }
        });
        server
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(acceptor: TlsAcceptor, tcp: TcpStream, barrier: Arc<Barrier>, go_away: Arc<Notify>) {
    let Ok(tls) = acceptor.accept(tcp).await else { return };
    let service = service_fn(move |request: http::Request<Incoming>| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            let version = format!("{:?}", request.version());
            Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from(version))))
        }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(tls), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = go_away.notified() => connection.as_mut().graceful_shutdown(),
    }
    connection.await.ok();
}

pub(crate) const BOTH: &[&str] = &["h2", "http/1.1"];

#[tokio::test]
async fn a_trusted_server_is_spoken_to_in_the_best_protocol_it_knows() {
    let authority = Authority::new();
    for (alpn, version) in [(BOTH, "HTTP/2.0"), (&["http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")] {
        let server = SecureServer::start(authority.server_config("127.0.0.1", alpn), 1).await;
        let transport = authority.transport(&server.url);
        for _ in 0..3 {
            assert_eq!(get(&transport, "/").await.unwrap().body, version);
        }
        assert_eq!(server.connections(), 1);
        transport.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_is_not_spoken_to() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let impostor = SecureServer::start(theirs.server_config("127.0.0.1", BOTH), 1).await;
    assert_eq!(get_failure(&ours.transport(&impostor.url)).await, FailureKind::Connect);
    let misnamed = SecureServer::start(ours.server_config("other.example", BOTH), 1).await;
    assert_eq!(get_failure(&ours.transport(&misnamed.url)).await, FailureKind::Connect);
}

#[tokio::test]
async fn without_roots_there_is_no_transport() {
    let settings = TransportSettings { roots: Roots::Only(Vec::new()), ..TransportSettings::default() };
    assert!(matches!(HttpTransport::new("https://example.com", settings), Err(SetupError::NoRoots)));
}

/// The trust store of a process cannot be changed from within: this runs itself once more, with another.
#[test]
fn the_trust_store_may_be_named_by_the_environment() {
    const CHILD: &str = "HIGHWATER_TEST_TRUST";
    let transport = || HttpTransport::new("https://example.com", TransportSettings::default());
    if std::env::var_os(CHILD).is_some() {
        assert!(matches!(transport(), Err(SetupError::NoRoots)));
        return;
    }
    let empty = tempfile::NamedTempFile::new().unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "secure::the_trust_store_may_be_named_by_the_environment"])
        .env("SSL_CERT_FILE", empty.path())
        .env(CHILD, "1")
        .env_remove("SSL_CERT_DIR")
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

#[tokio::test]
async fn requests_share_connections_up_to_the_cap_of_streams() {
    let authority = Authority::new();
    for (together, connections) in [(100, 1), (101, 2)] {
        let server = SecureServer::start(authority.server_config("127.0.0.1", BOTH), together).await;
        let transport = authority.transport(&server.url);
        let answers = join_all((0..together).map(|_| get(&transport, "/"))).await;
        assert!(answers.into_iter().all(|answer| answer.unwrap().body == "HTTP/2.0"));
        assert_eq!(server.connections(), connections, "{together} together");
    }
}

#[tokio::test]
async fn a_connection_that_is_being_closed_is_replaced() {
    let authority = Authority::new();
    let server = SecureServer::start(authority.server_config("127.0.0.1", BOTH), 1).await;
    let transport = authority.transport(&server.url);
    for connections in 1..=3 {
        get(&transport, "/").await.unwrap();
        assert_eq!(server.connections(), connections);
        server.go_away.notify_one();
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn shutdown_ends_the_drivers_and_what_they_carry() {
    let authority = Authority::new();
    let server = SecureServer::start(authority.server_config("127.0.0.1", BOTH), 2).await;
    let transport = authority.transport(&server.url);
    let stuck = get_failure(&transport);
    let shutdown = async {
        while server.connections() == 0 {
            tokio::task::yield_now().await;
        }
        transport.shutdown().await;
    };
    let (kind, ()) = tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(stuck, shutdown) })
        .await
        .expect("shutdown does not wait for answers");
    assert!(matches!(kind, FailureKind::Broken | FailureKind::Connect), "{kind:?}");
}
