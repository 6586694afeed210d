//! TLS of listeners.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use domain::core::{
    call_rules::{CallTable, CallerDirectory, NamedCaller},
    workload::{CallerPolicy, CallerRefusal},
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, CertificateError, InvalidMessage, ServerConfig,
        server::{NoServerSessionStorage, WebPkiClientVerifier},
    },
    server::TlsStream,
};

use super::{
    authorities::{ClientAuthorities, ListenerVerifier},
    files::{CertificateFiles, MeshContent, paths, provider, uri_names},
    reloaded::ReloadedValue,
};
use crate::settings::TlsSettings;

/// Connections that were refused in the TLS handshake.
const REFUSED: &str = "reveille_tls_handshakes_refused_total";

/// Time between two warnings about refused handshakes of a listener: a client that retries must not flood the log.
const QUIET: Duration = Duration::from_secs(60);

/// TLS of a listener. Clones share it.
#[derive(Clone)]
pub struct ServerTls(Arc<ListenerTls>);

struct ListenerTls {
    content: ReloadedValue<ServerContent>,
    last_warning: Mutex<Option<Instant>>,
}

struct ServerContent {
    config: Arc<ServerConfig>,
    /// Parts that may call; `None`: clients are not asked for certificates.
    parts: Option<KnownParts>,
}

/// Identities that may call, and their names in the rules.
struct KnownParts {
    policy: CallerPolicy,
    directory: CallerDirectory,
}

/// Decision about the client of a connection between parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerVerdict(pub Result<Arc<NamedCaller>, CallerRefusal>);

/// Certificate that a client has proved to own, in DER. Clones share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate(Arc<[u8]>);

impl ClientCertificate {
    /// Returns the certificate in DER.
    pub fn der(&self) -> &[u8] {
        &self.0
    }
}

/// Connection after the handshake.
pub struct AcceptedTls<S> {
    /// The encrypted connection.
    pub stream: TlsStream<S>,
    /// Certificate of the client; `None`: it was not asked for one, or has none.
    pub certificate: Option<ClientCertificate>,
    /// Decision about the client; `None`: any client may use the listener.
    pub caller: Option<CallerVerdict>,
}

impl ServerTls {
    /// Encrypts connections of any client over HTTP/1.1.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn for_anyone(files: &CertificateFiles) -> anyhow::Result<Self> {
        let of = files.clone();
        let make = move || Ok(ServerContent { config: open_config(&of)?, parts: None });
        Self::new(ReloadedValue::new([files.certificate.clone(), files.key.clone()], make)?)
    }

    /// Encrypts connections between parts, whose certificates are verified; `None` if the part has no certificate. Callers get
    /// the names that they have in `rules`.
    ///
    /// # Errors
    /// Names the setting and the file that cannot be used.
    pub fn for_parts(settings: &TlsSettings, rules: CallTable) -> anyhow::Result<Option<Self>> {
        if !settings.is_set().map_err(anyhow::Error::msg)? {
            return Ok(None);
        }
        let of = settings.clone();
        let content = ReloadedValue::new(paths(settings), move || mesh_content(&of, rules))?;
        Self::new(content).map(Some)
    }

    /// Encrypts connections of clients over HTTP/1.1, whose certificates are verified by `authorities`. A client without
    /// one is let in.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn for_clients(files: &CertificateFiles, authorities: &ClientAuthorities) -> anyhow::Result<Self> {
        let (of, authorities) = (files.clone(), authorities.clone());
        let make = move || Ok(ServerContent { config: client_config(&of, &authorities)?, parts: None });
        Self::new(ReloadedValue::new([files.certificate.clone(), files.key.clone()], make)?)
    }

    fn new(content: ReloadedValue<ServerContent>) -> anyhow::Result<Self> {
        metrics::describe_counter!(REFUSED, "Connections that were refused in the TLS handshake");
        Ok(Self(Arc::new(ListenerTls { content, last_warning: Mutex::default() })))
    }

    /// Checks that a listener without TLS is reached from this machine only, unless the settings allow more.
    ///
    /// # Errors
    /// Names both ways out.
    pub fn check_exposure(
        address: SocketAddr,
        tls: Option<&Self>,
        certificate: &str,
        insecure: bool,
    ) -> anyhow::Result<()> {
        let inside = tls.is_some() || insecure || address.ip().to_canonical().is_loopback();
        anyhow::ensure!(
            inside,
            "{address} is reached from other machines, and nothing on it is encrypted: either set {certificate}, for \
             which `reveille certificates DIRECTORY` makes files, or accept that with tls.insecure = true"
        );
        Ok(())
    }

    /// Performs the handshake; `None` if it fails or takes longer than `patience`.
    pub async fn accept<S>(&self, stream: S, patience: Duration) -> Option<AcceptedTls<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let content = self.0.content.current();
        let acceptor = TlsAcceptor::from(Arc::clone(&content.config));
        let shaken = timeout(patience, acceptor.accept(stream)).await;
        let shaken = shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match shaken {
            Ok(stream) => {
                let caller = content.parts.as_ref().map(|parts| verdict(parts, &stream));
                Some(AcceptedTls { certificate: certificate(&stream), stream, caller })
            }
            Err(error) => {
                self.0.refused(&error);
                None
            }
        }
    }
}

impl ListenerTls {
    fn refused(&self, error: &io::Error) {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let Some(tls) = tls else {
            // The client left or was silent, as checks of an open port do.
            tracing::debug!(%error, "TLS handshake not finished");
            return;
        };
        metrics::counter!(REFUSED).increment(1);
        let reason = match tls {
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                "the client does not speak TLS".to_owned()
            }
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                "the certificate of the client was signed by no authority that counts here".to_owned()
            }
            other => other.to_string(),
        };
        if self.may_warn() {
            tracing::warn!(reason, "TLS handshake refused; further ones within a minute are logged as debug");
        } else {
            tracing::debug!(reason, "TLS handshake refused");
        }
    }

    fn may_warn(&self) -> bool {
        let mut last = self.last_warning.lock();
        if last.is_some_and(|at| at.elapsed() < QUIET) {
            return false;
        }
        *last = Some(Instant::now());
        true
    }
}

fn verdict<S>(parts: &KnownParts, stream: &TlsStream<S>) -> CallerVerdict {
    let presented = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let identity = parts.policy.admit(presented.map(uri_names).as_deref());
    CallerVerdict(identity.map(|identity| Arc::new(parts.directory.named(identity))))
}

fn certificate<S>(stream: &TlsStream<S>) -> Option<ClientCertificate> {
    let presented = stream.get_ref().1.peer_certificates().and_then(<[_]>::first)?;
    Some(ClientCertificate(presented.as_ref().into()))
}

fn open_config(files: &CertificateFiles) -> anyhow::Result<Arc<ServerConfig>> {
    let own = files.read()?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(own.chain, own.key)
        .context("certificate and key do not fit")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn client_config(
    files: &CertificateFiles,
    authorities: &ClientAuthorities,
) -> anyhow::Result<Arc<ServerConfig>> {
    let own = files.read()?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(ListenerVerifier::new(authorities.clone())))
        .with_single_cert(own.chain, own.key)
        .context("certificate and key do not fit")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session would skip the verification of a certificate that has ended, or whose authority is gone.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn mesh_content(settings: &TlsSettings, rules: CallTable) -> anyhow::Result<ServerContent> {
    let MeshContent { own, identity, roots, policy } = MeshContent::read(settings)?;
    let directory = CallerDirectory::new(rules, &identity, &settings.names);
    let directory = directory.map_err(|fault| anyhow!("tls.names.{fault}"))?;
    let provider = provider();
    // A client without certificate gets a reason, and probes need none; see `serve::callers`.
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .context("tls.ca_file")?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(own.chain, own.key)
        .context("tls.certificate and tls.key do not fit")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(ServerContent { config: Arc::new(config), parts: Some(KnownParts { policy, directory }) })
}
