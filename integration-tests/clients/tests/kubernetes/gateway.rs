//! The gateway under test, a client of it, and objects.

use std::{fmt::Debug, time::Duration};

use k8s_openapi::api::core::v1::{Namespace as CoreNamespace, Secret};
use kube::{
    Api, Client, Config, Error,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ObjectMeta, PostParams},
};
use serde_json::json;

/// Variable with the URL of the gateway's port for clients of Kubernetes.
const GATEWAY: &str = "REVEILLE_TEST_KUBERNETES";

/// Variable with the file of that port's certificate.
const CERTIFICATE: &str = "REVEILLE_TEST_CERTIFICATE";

/// Time far above what a rack without delays takes.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Returns a client of the gateway, which trusts no other certificate.
///
/// # Panics
/// When the environment names no gateway.
pub fn client() -> Client {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} must be set"));
    let mut config = Config::new(variable(GATEWAY).parse().expect("a URL"));
    config.root_cert_file = Some(variable(CERTIFICATE).into());
    config.auth_info.token = Some("a-token".to_owned().into());
    Client::try_from(config).expect("a client")
}

/// Returns the kind of hosts.
pub fn resource() -> ApiResource {
    let gvk = GroupVersionKind::gvk("metal3.io", "v1alpha1", "BareMetalHost");
    ApiResource::from_gvk_with_plural(&gvk, "baremetalhosts")
}

/// Returns a host whose login is that of its namespace, with its number in the rack.
pub fn host(name: &str, number: u8) -> DynamicObject {
    let mut host = DynamicObject::new(name, &resource());
    let address = format!("redfish://10.0.0.{number}/redfish/v1/Systems/1");
    host.data = json!({ "spec": {
        "online": true, "bootMACAddress": format!("00:5c:52:31:00:{number:02x}"),
        "bmc": { "address": address, "credentialsName": "login" },
    } });
    host
}

/// Returns the code with which a call was refused.
///
/// # Panics
/// When the call was not refused.
pub fn code<T: Debug>(answer: Result<T, Error>) -> u16 {
    match answer {
        Err(Error::Api(status)) => status.code,
        other => panic!("not refused: {other:?}"),
    }
}

/// Namespace of a test, with a login.
pub struct Namespace {
    /// Name of the namespace.
    pub name: String,
    client: Client,
}

impl Namespace {
    /// Creates a namespace with the login that every BMC of the rack takes.
    ///
    /// # Panics
    /// When it cannot be created.
    pub async fn create(name: &str) -> Self {
        let client = client();
        let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = CoreNamespace { metadata: named(name), ..CoreNamespace::default() };
        let namespaces: Api<CoreNamespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace");
        let values = [("username", "admin"), ("password", "password")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let secret =
            Secret { metadata: named("login"), string_data: Some(values.into()), ..Secret::default() };
        let secrets: Api<Secret> = Api::namespaced(client.clone(), name);
        secrets.create(&PostParams::default(), &secret).await.expect("a secret");
        Self { name: name.to_owned(), client }
    }

    /// Returns the hosts of the namespace.
    pub fn hosts(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.name, &resource())
    }

    /// Deletes the namespace.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn delete(self) {
        let namespaces: Api<CoreNamespace> = Api::all(self.client);
        namespaces.delete(&self.name, &DeleteParams::default()).await.expect("an accepted deletion");
    }
}
