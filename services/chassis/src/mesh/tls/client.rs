//! TLS of calls to other parts.

use std::{fmt, io, path::Path, sync::Arc};

use anyhow::Context as _;
use domain::core::workload::CallerPolicy;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
        SignatureScheme,
        client::{
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
            verify_server_cert_signed_by_trust_anchor,
        },
        crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
        pki_types::{CertificateDer, ServerName, UnixTime},
        server::ParsedCertificate,
    },
};

use super::{
    files::{MeshContent, paths, provider, roots, uri_names},
    reloaded::ReloadedValue,
};
use crate::settings::TlsSettings;

/// TLS with a certificate of our own, to parts whose identity may be called. Clones share it.
#[derive(Clone)]
pub(crate) struct ClientTls(Arc<ReloadedValue<ClientConfig>>);

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}

impl ClientTls {
    /// Reads the files of the settings.
    ///
    /// # Errors
    /// Names the setting and the file that cannot be used.
    pub(crate) fn new(settings: &TlsSettings) -> anyhow::Result<Self> {
        let of = settings.clone();
        Ok(Self(Arc::new(ReloadedValue::new(paths(settings), move || config(&of))?)))
    }

    /// Returns TLS to servers outside of the mesh, by their names and the authorities in `ca_file`.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub(crate) fn trusting(ca_file: &Path) -> anyhow::Result<Self> {
        let file = ca_file.to_owned();
        Ok(Self(Arc::new(ReloadedValue::new([ca_file.to_owned()], move || outside_config(&file))?)))
    }

    /// Performs the handshake with the part at `host`.
    ///
    /// # Errors
    /// When either end refuses the other.
    pub(crate) async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        // Addresses of IPv6 have brackets in a URL.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(self.0.current()).connect(name, stream).await
    }
}

fn config(settings: &TlsSettings) -> anyhow::Result<ClientConfig> {
    let MeshContent { own, identity: _, roots, policy } = MeshContent::read(settings)?;
    let provider = provider();
    let verifier = IdentityVerifier { roots, policy, provider: Arc::clone(&provider) };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(own.chain, own.key)
        .context("tls.certificate and tls.key do not fit")?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn outside_config(ca_file: &Path) -> anyhow::Result<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(ca_file)?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Verifies the authority and the identity of a part instead of the name of its machine: certificates of workloads need
/// not have names of machines.
#[derive(Debug)]
struct IdentityVerifier {
    roots: Arc<RootCertStore>,
    policy: CallerPolicy,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for IdentityVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        match self.policy.admit(Some(&uri_names(end_entity))) {
            Ok(_) => Ok(ServerCertVerified::assertion()),
            Err(refusal) => Err(CertificateError::Other(OtherError(Arc::new(refusal))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
