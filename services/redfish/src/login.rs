//! Logins at the BMCs of hosts, read from their secrets in the registry.

use std::{
    collections::{BTreeMap, HashMap},
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
    known: Mutex<HashMap<String, KnownLogin>>,
}

struct KnownLogin {
    name: LoginName,
    login: BmcLogin,
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
        if let Some(known) = self.known.lock().get(host).filter(|known| known.name == name) {
            return Ok(Some(known.login.clone()));
        }
        let secret = SecretName { namespace: name.namespace.clone(), name: name.secret.clone() };
        let values = match self.values(secret).await {
            Ok(values) => values,
            Err(status) if status.code() == Code::NotFound => return Ok(None),
            Err(status) => return Err(status),
        };
        let Some(login) = login(&values) else { return Ok(None) };
        self.known.lock().insert(host.to_owned(), KnownLogin { name, login: login.clone() });
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
        self.known.lock().remove(host);
    }
}

/// Returns the login of a secret, without the white space around it that editors leave there.
fn login(values: &BTreeMap<String, Vec<u8>>) -> Option<BmcLogin> {
    let value = |name| Some(std::str::from_utf8(values.get(name)?).ok()?.trim().to_owned());
    Some(BmcLogin { username: value("username")?, password: SecretText::new(value("password")?) })
}
