//! Logins at BMCs, and documents for systems, read from their secrets in the registry.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use chassis::{Channel, within};
use parking_lot::Mutex;
use proto::host::{
    self as wire, ReadSecretValuesRequest, SecretName, host_secret_service_client::HostSecretServiceClient,
};
use tonic::{Code, Status};
use upstream::SecretText;

use crate::{
    convert::{self, LoginName},
    driver::{BmcLogin, DeployDocuments},
};

/// Most time of an answer of the registry.
const DEADLINE: Duration = Duration::from_secs(10);

/// Name of the network data in a secret.
const NETWORK_DATA: &str = "networkData";

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
        let values = match self.values(secret).await {
            Ok(values) => values,
            Err(status) if status.code() == Code::NotFound => return Ok(None),
            Err(status) => return Err(status),
        };
        let Some(login) = login(&values) else { return Ok(None) };
        self.known.lock().insert(host.to_owned(), KnownLogin { name, login: login.clone() });
        Ok(Some(login))
    }

    /// Reads the documents that a host names. They are kept nowhere.
    ///
    /// # Errors
    /// The registry does not answer, or lacks one of them: a system without it would not be the wanted one.
    pub(crate) async fn documents(&self, host: &wire::Host) -> Result<DeployDocuments, Status> {
        let mut documents = DeployDocuments::default();
        for (member, key, secret) in [
            (&mut documents.user_data, "userData", convert::user_data_name(host)),
            (&mut documents.network_data, NETWORK_DATA, convert::network_data_name(host)),
            (&mut documents.meta_data, "metaData", convert::meta_data_name(host)),
        ] {
            let Some(secret) = secret else { continue };
            let values = match self.values(secret).await {
                // Network data may be left to the image.
                Err(status) if status.code() == Code::NotFound && key == NETWORK_DATA => continue,
                values => values?,
            };
            let value = values.get(key).or_else(|| values.get("value"));
            *member = value.and_then(|value| Some(SecretText::new(std::str::from_utf8(value).ok()?)));
            if member.is_none() && key != NETWORK_DATA {
                return Err(Status::failed_precondition(format!("the secret has no {key}")));
            }
        }
        Ok(documents)
    }

    async fn values(&self, secret: SecretName) -> Result<BTreeMap<String, Vec<u8>>, Status> {
        let mut registry = self.registry.clone();
        let request = ReadSecretValuesRequest { name: Some(secret) };
        Ok(within(DEADLINE, registry.read_secret_values(request)).await?.into_inner().values)
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
