//! Logins at the BMCs of hosts, read from their secrets in the registry.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Weak},
    time::Duration,
};

use chassis::{Channel, within};
use parking_lot::Mutex;
use proto::host::{
    Host, ReadSecretValuesRequest, SecretName, host_secret_service_client::HostSecretServiceClient,
};
use tonic::{Code, Status};
use upstream::SecretText;

/// Most time of an answer of the registry.
const DEADLINE: Duration = Duration::from_secs(10);

/// Login at a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcLogin {
    /// Name of the user.
    pub username: String,
    /// Password of the user.
    pub password: SecretText,
}

/// Name and version of the secret with the login of a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoginName {
    namespace: String,
    secret: String,
    /// Version that the driver is to use.
    version: String,
}

impl LoginName {
    /// Returns the secret with the login of `host`; `None`: the host names none.
    pub fn of(host: &Host) -> Option<Self> {
        let namespace = host.meta.as_ref()?.namespace.clone();
        let secret = host.spec.as_ref()?.bmc.as_ref()?.credentials_name.clone();
        let tried = host.status.as_ref().and_then(|status| status.tried_credentials.as_ref());
        let version = tried.map_or("", |tried| &tried.version).to_owned();
        (!secret.is_empty()).then_some(Self { namespace, secret, version })
    }
}

/// Logins that were read, until their hosts are gone or name another version.
pub struct LoginReader {
    registry: HostSecretServiceClient<Channel>,
    known: Mutex<KnownLogins>,
}

/// Logins in memory: one for all hosts that name the same version of a secret.
#[derive(Default)]
struct KnownLogins {
    of_hosts: HashMap<Box<str>, Arc<KnownLogin>>,
    by_name: HashMap<LoginName, Weak<KnownLogin>>,
}

struct KnownLogin {
    name: LoginName,
    login: BmcLogin,
}

impl KnownLogins {
    fn get(&mut self, host: &str, name: &LoginName) -> Option<BmcLogin> {
        if let Some(known) = self.of_hosts.get(host).filter(|known| known.name == *name) {
            return Some(known.login.clone());
        }
        // Without a version, the values may have changed since.
        let known = self.by_name.get(name).filter(|_| !name.version.is_empty())?.upgrade()?;
        let login = known.login.clone();
        self.keep(host, known);
        Some(login)
    }

    fn put(&mut self, host: &str, name: LoginName, login: BmcLogin) {
        let known = Arc::new(KnownLogin { name: name.clone(), login });
        self.by_name.insert(name, Arc::downgrade(&known));
        self.keep(host, known);
    }

    fn keep(&mut self, host: &str, known: Arc<KnownLogin>) {
        let before = self.of_hosts.insert(host.into(), known);
        before.into_iter().for_each(|before| self.release(before));
    }

    fn forget(&mut self, host: &str) {
        let known = self.of_hosts.remove(host);
        known.into_iter().for_each(|known| self.release(known));
    }

    /// Forgets a login that was the last host's. The name may be that of a login that was read again.
    fn release(&mut self, known: Arc<KnownLogin>) {
        let name = known.name.clone();
        drop(known);
        if self.by_name.get(&name).is_some_and(|known| known.strong_count() == 0) {
            self.by_name.remove(&name);
        }
    }
}

impl LoginReader {
    /// Creates a reader of secrets of `registry`.
    pub fn new(registry: Channel) -> Self {
        Self { registry: HostSecretServiceClient::new(registry), known: Mutex::default() }
    }

    /// Returns the login of the host of that key; `None`: the secret does not exist or lacks a value.
    ///
    /// # Errors
    /// The registry does not answer.
    pub async fn read(&self, host: &str, name: LoginName) -> Result<Option<BmcLogin>, Status> {
        if let Some(login) = self.known.lock().get(host, &name) {
            return Ok(Some(login));
        }
        let secret = SecretName { namespace: name.namespace.clone(), name: name.secret.clone() };
        let values = match self.values(secret).await {
            Ok(values) => values,
            Err(status) if status.code() == Code::NotFound => return Ok(None),
            Err(status) => return Err(status),
        };
        let Some(login) = login(&values) else { return Ok(None) };
        self.known.lock().put(host, name, login.clone());
        Ok(Some(login))
    }

    /// Reads the values of a secret.
    ///
    /// # Errors
    /// The registry does not answer, or has no such secret.
    pub async fn values(&self, secret: SecretName) -> Result<BTreeMap<String, Vec<u8>>, Status> {
        let mut registry = self.registry.clone();
        let request = ReadSecretValuesRequest { name: Some(secret) };
        Ok(within(DEADLINE, registry.read_secret_values(request)).await?.into_inner().values)
    }

    /// Forgets the login of a host that is gone.
    pub fn forget(&self, host: &str) {
        self.known.lock().forget(host);
    }
}

/// Returns the login of a secret, without the white space around it that editors leave there.
fn login(values: &BTreeMap<String, Vec<u8>>) -> Option<BmcLogin> {
    let value = |name| Some(std::str::from_utf8(values.get(name)?).ok()?.trim().to_owned());
    Some(BmcLogin { username: value("username")?, password: SecretText::new(value("password")?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(version: &str) -> LoginName {
        LoginName { namespace: "m".to_owned(), secret: "bmc".to_owned(), version: version.to_owned() }
    }

    fn login(password: &str) -> BmcLogin {
        BmcLogin { username: "admin".to_owned(), password: SecretText::new(password) }
    }

    #[test]
    fn hosts_share_the_login_of_a_version() {
        let mut known = KnownLogins::default();
        known.put("m/a", name("1"), login("old"));
        assert_eq!(known.get("m/b", &name("1")), Some(login("old")));
        assert_eq!(known.get("m/b", &name("2")), None);
        assert!(Arc::ptr_eq(&known.of_hosts["m/a"], &known.of_hosts["m/b"]));
    }

    #[test]
    fn login_without_a_version_is_of_one_host() {
        let mut known = KnownLogins::default();
        known.put("m/a", name(""), login("old"));
        assert_eq!(known.get("m/a", &name("")), Some(login("old")));
        assert_eq!(known.get("m/b", &name("")), None);
    }

    #[test]
    fn login_goes_with_its_last_host() {
        let mut known = KnownLogins::default();
        known.put("m/a", name("1"), login("old"));
        known.get("m/b", &name("1"));
        known.put("m/a", name("2"), login("new"));
        assert_eq!(known.by_name.len(), 2);
        known.forget("m/b");
        assert_eq!(known.by_name.keys().collect::<Vec<_>>(), [&name("2")]);
        known.forget("m/a");
        assert!(known.by_name.is_empty() && known.of_hosts.is_empty());
    }
}
