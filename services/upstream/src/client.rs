//! The HTTP client of a peer, rebuilt when its trusted certificate authorities change.

use std::time::Duration;

use chassis::{process::watched_file::WatchedFile, settings};
use parking_lot::Mutex;
use reqwest::{Certificate, Client, redirect, retry};

use crate::PeerError;

/// Idle connections are closed before servers close them: common servers wait 5 s, and a call sent while the server
/// closes its connection has an unknown outcome.
const IDLE: Duration = Duration::from_secs(4);

/// Clients with the TLS settings of one kind of peer.
pub(crate) struct HttpClients {
    connect: Duration,
    verify: bool,
    state: Mutex<ClientCache>,
}

struct ClientCache {
    /// File with the authorities; `None`: the authorities of the system.
    authorities: Option<WatchedFile>,
    encrypted: Option<Client>,
    plain: Option<Client>,
}

/// Certificates that are accepted.
enum TlsTrust {
    /// Certificates signed by an authority of the system.
    System,
    /// Certificates signed by one of these authorities.
    Only(Vec<Certificate>),
    /// All certificates.
    Anybody,
}

impl HttpClients {
    /// Checks the settings, and reads the file of authorities if there is one. Otherwise the first call builds the
    /// client, since loading the authorities of the system takes a while.
    pub(crate) fn new(settings: &settings::Peer, connect: Duration) -> Result<Self, PeerError> {
        let path = Some(settings.ca_file.clone()).filter(|path| !path.as_os_str().is_empty());
        let own = path.is_some();
        let state = ClientCache { authorities: path.map(WatchedFile::new), encrypted: None, plain: None };
        let clients = Self { connect, verify: settings.verify_tls, state: Mutex::new(state) };
        if own {
            clients.current(true).map_err(|reason| PeerError { field: "ca_file", reason })?;
        }
        Ok(clients)
    }

    /// The client to use now.
    pub(crate) fn current(&self, encrypted: bool) -> Result<Client, String> {
        let mut state = self.state.lock();
        if encrypted {
            return self.encrypted(&mut state);
        }
        let client = match state.plain.take() {
            Some(client) => client,
            None => self.build(TlsTrust::Only(Vec::new()))?,
        };
        Ok(state.plain.insert(client).clone())
    }

    /// Keeps the previous authorities if the replaced file cannot be used: the file may be half written.
    fn encrypted(&self, state: &mut ClientCache) -> Result<Client, String> {
        if let Some(file) = &mut state.authorities
            && let Some(content) = file.changed_content()
        {
            match content.and_then(|pem| self.trusting(&pem)) {
                Ok(client) => state.encrypted = Some(client),
                Err(reason) if state.encrypted.is_none() => {
                    return Err(format!("{}: {reason}", file.shown()));
                }
                Err(reason) => {
                    tracing::warn!(file = %file.shown(), reason, "certificate authorities cannot be used, the previous ones stay in use");
                }
            }
        }
        let client = match (state.encrypted.take(), &state.authorities) {
            (Some(client), _) => client,
            (None, Some(file)) => return Err(format!("{}: no authority was read", file.shown())),
            (None, None) => self.build(if self.verify { TlsTrust::System } else { TlsTrust::Anybody })?,
        };
        Ok(state.encrypted.insert(client).clone())
    }

    fn trusting(&self, pem: &str) -> Result<Client, String> {
        let authorities = Certificate::from_pem_bundle(pem.as_bytes())
            .map_err(|error| format!("not a PEM file with certificates: {error}"))?;
        if authorities.is_empty() {
            return Err("holds no certificate".into());
        }
        self.build(if self.verify { TlsTrust::Only(authorities) } else { TlsTrust::Anybody })
    }

    fn build(&self, trust: TlsTrust) -> Result<Client, String> {
        let builder = Client::builder()
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.connect)
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never());
        let builder = match trust {
            TlsTrust::System => builder,
            TlsTrust::Only(authorities) => builder.tls_certs_only(authorities),
            TlsTrust::Anybody => builder.tls_danger_accept_invalid_certs(true),
        };
        builder
            .build()
            .map_err(|error| format!("TLS cannot be set up: {}", crate::exchange::innermost(&error)))
    }
}
