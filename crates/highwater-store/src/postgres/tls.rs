//! How far the server is trusted: the modes of libpq, on rustls.

use std::{path::PathBuf, sync::Arc};

use highwater_core::word;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{ErrorKind, Result, StoreError};

word! {
    pub(super) enum SslMode {
        Disable = "disable",
        Allow = "allow",
        Prefer = "prefer",
        Require = "require",
        VerifyCa = "verify-ca",
        VerifyFull = "verify-full",
    }
}

#[derive(Clone, Debug)]
pub(super) struct Trust {
    pub(super) mode: SslMode,
    /// Certificates to trust instead of the system's.
    pub(super) root: Option<PathBuf>,
}

impl Trust {
    /// The ways to connect, in the order in which they are tried.
    pub(super) fn attempts(&self) -> &'static [tokio_postgres::config::SslMode] {
        use tokio_postgres::config::SslMode as Way;
        match self.mode {
            SslMode::Disable => &[Way::Disable],
            SslMode::Allow => &[Way::Disable, Way::Require],
            SslMode::Prefer => &[Way::Prefer, Way::Disable],
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Way::Require],
        }
    }

    pub(super) fn connector(&self) -> Result<MakeRustlsConnect> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.mode {
            // As libpq: a root certificate that is at hand is made use of.
            SslMode::Require if self.root.is_some() => Arc::new(AnyName(self.verifier(&provider)?)),
            SslMode::Disable | SslMode::Allow | SslMode::Prefer | SslMode::Require => {
                Arc::new(Anybody(provider.clone()))
            }
            SslMode::VerifyCa => Arc::new(AnyName(self.verifier(&provider)?)),
            SslMode::VerifyFull => self.verifier(&provider)?,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::new(ErrorKind::CannotOpen, "setting up TLS").caused_by(error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>> {
        let roots = Arc::new(self.roots()?);
        WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build().map_err(|error| {
            StoreError::new(ErrorKind::CannotOpen, "there is no root certificate to trust").caused_by(error)
        })
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match &self.root {
            Some(path) if path.as_os_str() != "system" => {
                let cannot_read = || {
                    let file = format!("cannot read root certificates from {}", path.display());
                    StoreError::new(ErrorKind::CannotOpen, file)
                };
                for certificate in
                    CertificateDer::pem_file_iter(path).map_err(|error| cannot_read().caused_by(error))?
                {
                    let certificate = certificate.map_err(|error| cannot_read().caused_by(error))?;
                    roots.add(certificate).map_err(|error| cannot_read().caused_by(error))?;
                }
            }
            // Some of the system's certificates may be odd; the others do.
            _ => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        Ok(roots)
    }
}

/// Any certificate will do: the channel is secret, but nobody knows with whom.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A certificate of the right authority, for whatever name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.0.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
