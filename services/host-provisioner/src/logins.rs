//! Logins at BMCs, read from their secrets in the registry.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use chassis::{Channel, within};
use parking_lot::Mutex;
use proto::host::{ReadSecretValuesRequest, SecretName, host_secret_service_client::HostSecretServiceClient};
use tonic::{Code, Status};
use upstream::SecretText;

use crate::{convert::LoginName, driver::BmcLogin};

/// Most time of an answer of the registry.
const DEADLINE: Duration = Duration::from_secs(10);

/// Logins that were read, until their hosts are gone or name another version.
pub(crate) struct LoginReader {
    registry: HostSecretServiceClient<Channel>,
    known: Mutex<HashMap<String, KnownLogin>>,
}

struct KnownLogin {
    name: LoginName,
    login: BmcLogin,
}

impl LoginReader {
    pub(crate) fn new(registry: Channel) -> Self {
        Self { registry: HostSecretServiceClient::new(registry), known: Mutex::default() }
    }

    /// Returns the login of the host of that key; `None`: the secret does not exist or lacks a value.
    ///
    /// # Errors
    /// The registry does not answer.
    pub(crate) async fn read(&self, host: &str, name: LoginName) -> Result<Option<BmcLogin>, Status> {
        if let Some(known) = self.known.lock().get(host).filter(|known| known.name == name) {
            return Ok(Some(known.login.clone()));
        }
        let secret = SecretName { namespace: name.namespace.clone(), name: name.secret.clone() };
        let mut registry = self.registry.clone();
        let request = ReadSecretValuesRequest { name: Some(secret) };
        let values = match within(DEADLINE, registry.read_secret_values(request)).await {
            Ok(answer) => answer.into_inner().values,
            Err(status) if status.code() == Code::NotFound => return Ok(None),
            Err(status) => return Err(status),
        };
        let Some(login) = login(&values) else { return Ok(None) };
        self.known.lock().insert(host.to_owned(), KnownLogin { name, login: login.clone() });
        Ok(Some(login))
    }

    /// Forgets the login of a host that is gone.
    pub(crate) fn forget(&self, host: &str) {
        self.known.lock().remove(host);
    }
}

/// Returns the login of a secret, without the white space around it that editors leave there.
fn login(values: &BTreeMap<String, Vec<u8>>) -> Option<BmcLogin> {
    let value = |name| Some(std::str::from_utf8(values.get(name)?).ok()?.trim().to_owned());
    Some(BmcLogin { username: value("username")?, password: SecretText::new(value("password")?) })
}
