//! Clients of BMCs: one for all hosts behind the same BMC with the same login.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use chassis::settings::Peer;
use domain::host::address::BmcAddress;
use futures_util::future::join_all;
use parking_lot::Mutex;
use redfish::BmcClient;
use tokio::{sync::Semaphore, time::timeout};
use upstream::{Credentials, PeerGroup, SecretText};

use crate::driver::{BmcLogin, HostTarget};

/// Clients of BMCs, with their sessions.
pub(super) struct BmcClients {
    verified: PeerGroup,
    unverified: PeerGroup,
    slots: Arc<Semaphore>,
    known: Mutex<HashMap<BmcIdentity, Arc<BmcClient>>>,
}

/// Everything that tells a client from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BmcIdentity {
    url: String,
    takes_any_certificate: bool,
    username: String,
    password: SecretText,
}

impl BmcClients {
    /// Creates clients with the settings of calls. Whether a call goes without TLS is said by each address.
    pub(super) fn new(settings: &Peer) -> anyhow::Result<Self> {
        let settings = Peer { plain_http: true, ..settings.clone() };
        let slots = usize::try_from(settings.calls_in_flight)?.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self {
            verified: PeerGroup::new("redfish", &settings).context("host_operations.redfish")?,
            unverified: PeerGroup::unverified("redfish", &settings).context("host_operations.redfish")?,
            slots: Arc::new(Semaphore::new(slots)),
            known: Mutex::default(),
        })
    }

    /// Returns the client of the BMC of `host`.
    ///
    /// # Errors
    /// When the host has no login, or the BMC cannot be called at its address.
    pub(super) fn client(&self, host: &HostTarget, address: &BmcAddress) -> Result<Arc<BmcClient>, String> {
        let login = host.login.as_ref().ok_or("the login of the BMC cannot be read")?;
        let mut known = self.known.lock();
        let identity = identity(host, login, address);
        if let Some(client) = known.get(&identity) {
            return Ok(Arc::clone(client));
        }
        let group = if identity.takes_any_certificate { &self.unverified } else { &self.verified };
        let BmcLogin { username, password } = login.clone();
        let credentials = Credentials::Password { username, password };
        let peer = group.peer_with(format!("BMC {}", address.host), &identity.url, credentials);
        let peer = peer.map_err(|error| format!("BMC {}: {error}", address.host))?;
        let client = Arc::new(BmcClient::new(peer, Arc::clone(&self.slots)));
        known.insert(identity, Arc::clone(&client));
        Ok(client)
    }

    /// Forgets the clients that none of `hosts` uses any more, and ends their sessions, as far as possible within
    /// `patience`: a BMC has only a few, and keeps them for half an hour otherwise.
    pub(super) async fn keep_only(&self, hosts: &[Arc<HostTarget>], patience: Duration) {
        log_out(self.take_unused(hosts), patience).await;
    }

    /// Forgets all clients, and ends their sessions, as far as possible within `patience`.
    pub(super) async fn close(&self, patience: Duration) {
        let all = std::mem::take(&mut *self.known.lock());
        log_out(all.into_values().collect(), patience).await;
    }

    fn take_unused(&self, hosts: &[Arc<HostTarget>]) -> Vec<Arc<BmcClient>> {
        let used: HashSet<_> = hosts
            .iter()
            .filter_map(|host| {
                Some(identity(host, host.login.as_ref()?, &BmcAddress::parse(&host.address).ok()?))
            })
            .collect();
        let is_unused = |identity: &BmcIdentity, client: &mut Arc<BmcClient>| {
            // A client that is called just now is one of a host that came after the listing began.
            Arc::strong_count(client) == 1 && !used.contains(identity)
        };
        self.known.lock().extract_if(is_unused).map(|(_, client)| client).collect()
    }
}

async fn log_out(bmcs: Vec<Arc<BmcClient>>, patience: Duration) {
    let log_outs = bmcs.iter().map(|bmc| timeout(patience, bmc.log_out()));
    let late = join_all(log_outs).await.into_iter().filter(Result::is_err).count();
    if late > 0 {
        tracing::info!(bmcs = late, "sessions not ended in time, the BMCs will end them");
    }
}

fn identity(host: &HostTarget, login: &BmcLogin, address: &BmcAddress) -> BmcIdentity {
    BmcIdentity {
        url: address.base_url(),
        takes_any_certificate: host.takes_any_certificate,
        username: login.username.clone(),
        password: login.password.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_clients_are_not_printed() {
        let identity = BmcIdentity {
            url: "https://b".to_owned(),
            takes_any_certificate: false,
            username: "admin".to_owned(),
            password: SecretText::new("s3cret"),
        };
        let printed = format!("{identity:?}");
        assert!(printed.contains("admin") && !printed.contains("s3cret"), "{printed}");
    }
}
