//! Verification of clients by authorities that change while a listener serves.

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

use super::files::provider;

/// Authorities whose clients a listener takes. Clones share them. Without one every certificate is refused.
#[derive(Clone, Default)]
pub struct ClientAuthorities(Arc<RwLock<Option<Arc<dyn ClientCertVerifier>>>>);

impl ClientAuthorities {
    /// Replaces the authorities by these certificates in DER. One that cannot be used is left out.
    pub fn replace<'a>(&self, certificates: impl IntoIterator<Item = &'a [u8]>) {
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            if let Err(error) = roots.add(CertificateDer::from(certificate)) {
                tracing::warn!(%error, "authority of clients left out");
            }
        }
        let built = WebPkiClientVerifier::builder_with_provider(roots.into(), provider()).build();
        *self.0.write() = match built {
            Ok(verifier) => Some(verifier),
            Err(error) => {
                tracing::info!(%error, "no client can be verified");
                None
            }
        };
    }

    fn current(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        self.0.read().clone()
    }
}

/// Verifier of a listener, by the authorities as they are at each handshake. A client without a certificate is let in, and
/// gets an answer with the reason.
pub(super) struct ListenerVerifier {
    authorities: ClientAuthorities,
    provider: Arc<CryptoProvider>,
}

impl ListenerVerifier {
    pub(super) fn new(authorities: ClientAuthorities) -> Self {
        Self { authorities, provider: provider() }
    }
}

impl fmt::Debug for ListenerVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListenerVerifier")
    }
}

impl ClientCertVerifier for ListenerVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// Hints would have to be borrowed from authorities that change. Without hints a client presents its certificate.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verifier = self.authorities.current().ok_or(CertificateError::UnknownIssuer)?;
        verifier.verify_client_cert(end_entity, intermediates, now)
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
