//! Whom we trust and what we offer in a TLS handshake.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use tokio_rustls::TlsConnector;

use super::settings::{Roots, SetupError};

pub(super) fn connector(roots: &Roots) -> Result<TlsConnector, SetupError> {
    let store = store(roots);
    if store.is_empty() {
        return Err(SetupError::NoRoots);
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn store(roots: &Roots) -> RootCertStore {
    let mut store = RootCertStore::empty();
    let (_, unreadable) = match roots {
        Roots::Only(certificates) => store.add_parsable_certificates(certificates.iter().cloned()),
        Roots::Native => {
            let found = rustls_native_certs::load_native_certs();
            for error in found.errors {
                tracing::warn!(%error, "part of the trust store could not be read");
            }
            store.add_parsable_certificates(found.certs)
        }
    };
    if unreadable > 0 {
        tracing::warn!(unreadable, "some trusted root certificates could not be read");
    }
    store
}
