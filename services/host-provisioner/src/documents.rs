//! Documents for systems, read from their secrets in the registry.

use proto::host as wire;
use redfish::LoginReader;
use tonic::{Code, Status};
use upstream::SecretText;

use crate::{convert, driver::DeployDocuments};

/// Name of the network data in a secret.
const NETWORK_DATA: &str = "networkData";

/// Reads the documents that a host names. They are kept nowhere.
///
/// # Errors
/// The registry does not answer, or lacks one of them: a system without it would not be the wanted one.
pub(crate) async fn read(secrets: &LoginReader, host: &wire::Host) -> Result<DeployDocuments, Status> {
    let mut documents = DeployDocuments::default();
    for (member, key, secret) in [
        (&mut documents.user_data, "userData", convert::user_data_name(host)),
        (&mut documents.network_data, NETWORK_DATA, convert::network_data_name(host)),
        (&mut documents.meta_data, "metaData", convert::meta_data_name(host)),
    ] {
        let Some(secret) = secret else { continue };
        let values = match secrets.values(secret).await {
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
