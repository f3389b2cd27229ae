//! What a transport is told before it starts: bounds on time, memory and trust, as plain data.

use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::Memory;

#[derive(Clone, Debug)]
pub struct TransportSettings {
    pub deadlines: Deadlines,
    pub pool: PoolLimits,
    /// The most bytes of a body, compressed and again decompressed.
    pub body_max: usize,
    /// What bodies share with each other, and with whatever becomes of them.
    pub memory: Option<Memory>,
    pub redirects: Redirects,
    pub roots: Roots,
}

impl Default for TransportSettings {
    fn default() -> Self {
        TransportSettings {
            deadlines: Deadlines::default(),
            pool: PoolLimits::default(),
            body_max: 8 * 1024 * 1024,
            memory: None,
            redirects: Redirects::SameOrigin,
            roots: Roots::Native,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// Name resolution, TCP and TLS together.
    pub connect: Duration,
    /// From the request to the head of its answer, on a connection that stands.
    pub first_byte: Duration,
    /// The body of an answer that says all there is to say by its status.
    pub page: Duration,
    /// Everything, redirects and second tries included.
    pub total: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Deadlines { connect: seconds(10), first_byte: seconds(30), page: seconds(5), total: seconds(60) }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    pub idle_max: usize,
    pub idle_timeout: Duration,
    /// Requests at once on one HTTP/2 connection. Servers commonly allow 100; what exceeds that queues or is refused.
    pub streams_max: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        PoolLimits { idle_max: 512, idle_timeout: Duration::from_secs(50), streams_max: 100 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// Same scheme, host and port.
    SameOrigin,
    /// Any host, but never from TLS to plain text, and without the credentials of the request.
    AnyHost,
}

/// Whom TLS trusts.
#[derive(Clone, Debug)]
pub enum Roots {
    /// The trust store of the system; `SSL_CERT_FILE` and `SSL_CERT_DIR` name another.
    Native,
    Only(Vec<CertificateDer<'static>>),
    /// Whoever answers: traffic is encrypted, but may be read by whom it is sent to by mistake.
    Anybody,
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("{0}")]
    BaseUrl(&'static str),
    #[error("no trusted root certificates found; set SSL_CERT_FILE to a PEM file that has them")]
    NoRoots,
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}
