//! The HTTP client of a peer, made anew when the authorities that it trusts change.

use std::time::Duration;

use chassis::settings;
use parking_lot::Mutex;
use reqwest::{Certificate, Client, redirect, retry};

use crate::{PeerError, watched::WatchedFile};

/// Idle connections are given up before servers do so: common ones wait 5 s, and a call that meets the end
/// of its connection is one of which nobody knows whether it arrived.
const IDLE: Duration = Duration::from_secs(4);

/// Clients with the TLS settings of one kind of peer.
pub(crate) struct Clients {
    connect: Duration,
    verify: bool,
    state: Mutex<State>,
}

struct State {
    /// File with the authorities, if they are not the system's.
    authorities: Option<WatchedFile>,
    encrypted: Option<Client>,
    plain: Option<Client>,
}

/// Whose certificates are taken.
enum Trust {
    /// Those of authorities that the system trusts.
    System,
    /// Those of these authorities.
    Only(Vec<Certificate>),
    /// Everybody's.
    Anybody,
}

impl Clients {
    /// Checks the settings, and reads the authorities if there is a file with them. Otherwise no client is made
    /// before one is asked for, since loading the authorities of the system takes a while.
    pub(crate) fn new(label: &str, settings: &settings::Peer, connect: Duration) -> Result<Self, PeerError> {
        let path = Some(settings.ca_file.clone()).filter(|path| !path.as_os_str().is_empty());
        let own = path.is_some();
        if !settings.verify_tls {
            tracing::warn!(peer = label, "certificates are not checked: verify_tls is false");
        }
        let state = State { authorities: path.map(WatchedFile::new), encrypted: None, plain: None };
        let clients = Self { connect, verify: settings.verify_tls, state: Mutex::new(state) };
        if own {
            clients.current(true).map_err(|reason| PeerError { field: "ca_file", reason })?;
        }
        Ok(clients)
    }

    /// The client to be used now.
    pub(crate) fn current(&self, encrypted: bool) -> Result<Client, String> {
        let mut state = self.state.lock();
        if encrypted {
            return self.encrypted(&mut state);
        }
        let client = match state.plain.take() {
            Some(client) => client,
            None => self.build(Trust::Only(Vec::new()))?,
        };
        Ok(state.plain.insert(client).clone())
    }

    /// A file that was replaced by one that cannot be used changes nothing: it may be half written.
    fn encrypted(&self, state: &mut State) -> Result<Client, String> {
        if let Some(file) = &mut state.authorities
            && let Some(news) = file.news()
        {
            match news.and_then(|pem| self.trusting(&pem)) {
                Ok(client) => state.encrypted = Some(client),
                Err(reason) if state.encrypted.is_none() => {
                    return Err(format!("{}: {reason}", file.shown()));
                }
                Err(reason) => {
                    tracing::warn!(file = %file.shown(), reason, "authorities cannot be used, those before stay");
                }
            }
        }
        let client = match (state.encrypted.take(), &state.authorities) {
            (Some(client), _) => client,
            (None, Some(file)) => return Err(format!("{}: no authority was read", file.shown())),
            (None, None) => self.build(if self.verify { Trust::System } else { Trust::Anybody })?,
        };
        Ok(state.encrypted.insert(client).clone())
    }

    fn trusting(&self, pem: &str) -> Result<Client, String> {
        let authorities = Certificate::from_pem_bundle(pem.as_bytes())
            .map_err(|error| format!("not a PEM file with certificates: {error}"))?;
        if authorities.is_empty() {
            return Err("holds no certificate".into());
        }
        self.build(if self.verify { Trust::Only(authorities) } else { Trust::Anybody })
    }

    fn build(&self, trust: Trust) -> Result<Client, String> {
        let builder = Client::builder()
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.connect)
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never());
        let builder = match trust {
            Trust::System => builder,
            Trust::Only(authorities) => builder.tls_certs_only(authorities),
            Trust::Anybody => builder.tls_danger_accept_invalid_certs(true),
        };
        builder
            .build()
            .map_err(|error| format!("TLS cannot be set up: {}", crate::exchange::innermost(&error)))
    }
}
