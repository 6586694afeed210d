//! Bare-metal hosts of the simulated rack, as people handle them over gRPC.

use chassis::Channel;
use proto::{
    host::{
        BmcDetails, CreateHostRequest, CreateHostSecretRequest, DeleteHostRequest, GetHostRequest, Host,
        HostName, HostSecret, HostSpec, ObjectMeta, SetHostPowerRequest, WatchHostsRequest,
        WatchHostsResponse, host_secret_service_client::HostSecretServiceClient,
        host_service_client::HostServiceClient,
    },
    simulation::{ListRackOperationsRequest, RackOperation, rack_service_client::RackServiceClient},
};
use tonic::{Code, Status, Streaming};

use crate::eventually_shown;

/// Namespace of all hosts.
const NAMESPACE: &str = "rack";

/// Secret with the login of every BMC of the rack.
const LOGIN: &str = "login";

/// Clients of the records of hosts, and of the rack that they stand in. Calls are repeated until they succeed, as the
/// parts may be away.
#[derive(Clone)]
pub struct RackHosts {
    hosts: HostServiceClient<Channel>,
    secrets: HostSecretServiceClient<Channel>,
    rack: RackServiceClient<Channel>,
}

impl RackHosts {
    /// Reaches the component registry and the simulator at these addresses.
    ///
    /// # Panics
    /// When one is none.
    #[must_use]
    pub fn at(registry: &str, simulator: &str) -> Self {
        let registry = chassis::plain_channel(registry).expect("an address");
        let rack = RackServiceClient::new(chassis::plain_channel(simulator).expect("an address"));
        Self {
            hosts: HostServiceClient::new(registry.clone()),
            secrets: HostSecretServiceClient::new(registry),
            rack,
        }
    }

    /// Stores the login that the BMCs of the rack take.
    ///
    /// # Panics
    /// When that does not succeed in time.
    pub async fn log_in(&self) {
        let values = [("username", "admin"), ("password", "password")];
        let values = values.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        let request = CreateHostSecretRequest {
            host_secret: Some(HostSecret { meta: Some(meta(LOGIN)), ..HostSecret::default() }),
            values: values.into(),
            validate_only: false,
        };
        eventually_shown("a login", async || {
            made(self.secrets.clone().create_host_secret(request.clone()).await)
        })
        .await;
    }

    /// Creates a host that is to be on.
    ///
    /// # Panics
    /// When that does not succeed in time.
    pub async fn create(&self, name: &str) {
        Box::pin(self.create_with(name, |_| {})).await;
    }

    /// Creates a host that is to be on, after `adjust` has edited the other wishes for it.
    ///
    /// # Panics
    /// When that does not succeed in time.
    pub async fn create_with(&self, name: &str, adjust: impl FnOnce(&mut HostSpec)) {
        let bmc = BmcDetails {
            address: format!("redfish-virtualmedia://{name}.bmc/redfish/v1/Systems/1"),
            credentials_name: LOGIN.to_owned(),
            ..BmcDetails::default()
        };
        let mut spec = HostSpec { bmc: Some(bmc), online: true, ..HostSpec::default() };
        adjust(&mut spec);
        let host = Host { meta: Some(meta(name)), spec: Some(spec), ..Host::default() };
        let request = CreateHostRequest { host: Some(host), validate_only: false };
        let create = async || made(Box::pin(self.hosts.clone().create_host(request.clone())).await);
        Box::pin(eventually_shown(&format!("a host {name}"), create)).await;
    }

    /// Waits until a host is available and on.
    ///
    /// # Panics
    /// When that takes too long.
    pub async fn is_available(&self, name: &str) {
        let is_there = async || {
            let status = self.host(name).await?.status.ok_or("no status")?;
            let state = status.provisioning.map(|provisioning| provisioning.state).unwrap_or_default();
            let shown = format!("{state}, on: {}, {}", status.powered_on, status.error_message);
            if state == "available" && status.powered_on { Ok(()) } else { Err(shown) }
        };
        Box::pin(eventually_shown(&format!("{name} to be available"), is_there)).await;
    }

    async fn host(&self, name: &str) -> Result<Host, String> {
        let request = GetHostRequest { name: host_name(name) };
        let answer = Box::pin(self.hosts.clone().get_host(request)).await;
        answer.map_err(|status| status.to_string())?.into_inner().host.ok_or_else(|| "no host".to_owned())
    }

    /// Has a host switched off.
    ///
    /// # Panics
    /// When the registry refuses it.
    pub async fn switch_off(&self, name: &str) {
        let request = SetHostPowerRequest { name: host_name(name), online: false };
        Box::pin(self.hosts.clone().set_host_power(request)).await.expect("a host that is to be off");
    }

    /// Begins to watch all hosts.
    ///
    /// # Panics
    /// When the registry refuses it.
    pub async fn watch(&self) -> Streaming<WatchHostsResponse> {
        let mut hosts = self.hosts.clone().max_decoding_message_size(usize::MAX);
        hosts.watch_hosts(WatchHostsRequest::default()).await.expect("a watch").into_inner()
    }

    /// Deletes a host and waits until it is gone.
    ///
    /// # Panics
    /// When that takes too long.
    pub async fn delete(&self, name: &str) {
        let request = DeleteHostRequest { name: host_name(name), ..DeleteHostRequest::default() };
        let delete = async || match Box::pin(self.hosts.clone().delete_host(request.clone())).await {
            Err(status) if status.code() == Code::NotFound => Ok(()),
            Ok(_) => Err("it is being deleted".to_owned()),
            Err(status) => Err(status.to_string()),
        };
        Box::pin(eventually_shown(&format!("{name} to be gone"), delete)).await;
    }

    /// Operations on a host that the rack has begun, in order.
    ///
    /// # Panics
    /// When the rack does not answer.
    pub async fn begun(&self, name: &str) -> Vec<RackOperation> {
        let key = format!("{NAMESPACE}/{name}");
        let answer = self.rack.clone().list_rack_operations(ListRackOperationsRequest {}).await;
        let operations = answer.expect("an answer").into_inner().operations.into_iter();
        operations.filter(|begun| begun.name == key).map(|begun| begun.operation()).collect()
    }

    /// Listings of the rack so far.
    ///
    /// # Panics
    /// When the rack does not answer.
    pub async fn listings(&self) -> u64 {
        let answer = self.rack.clone().list_rack_operations(ListRackOperationsRequest {}).await;
        answer.expect("an answer").into_inner().listings
    }
}

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta { namespace: NAMESPACE.to_owned(), name: name.to_owned(), ..ObjectMeta::default() }
}

fn host_name(name: &str) -> Option<HostName> {
    Some(HostName { namespace: NAMESPACE.to_owned(), name: name.to_owned() })
}

/// Returns whether a record was made, now or by an earlier try whose answer was lost.
fn made<M>(answer: Result<M, Status>) -> Result<(), String> {
    match answer {
        Ok(_) => Ok(()),
        Err(status) if status.code() == Code::AlreadyExists => Ok(()),
        Err(status) => Err(status.to_string()),
    }
}
