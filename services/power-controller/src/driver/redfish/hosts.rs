//! The machines of bare-metal hosts, each behind the BMC of its host and with the login of its host: as the nodes that hosts
//! are, and for the power calls of the hosts themselves.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{
    Channel, Context,
    kinds::host::{HostRecord, parse_key, record},
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
    settings::Peer,
    store::resource::Resource as _,
};
use domain::host::{
    address::{AddressFlaw, BmcAddress},
    node::NodeIndex,
    record::HostKey,
};
use parking_lot::Mutex;
use proto::host::Host;
use redfish::{BmcClient, BmcLogin, LoginName, LoginReader};
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};
use tonic::Status;
use upstream::{Credentials, PeerGroup};

use super::{log_out, node::MachineNode};

/// Hosts that are taken from the queue at a time.
const MOST_KEYS: usize = 256;

/// Time until a login is read again that could not be read.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// Machines of hosts. A BMC whose address and login have not changed is kept, with its session.
pub(crate) struct HostFleet {
    verified: PeerGroup,
    unverified: PeerGroup,
    slots: Arc<Semaphore>,
    known: Mutex<KnownHosts>,
    /// Whether every host was read once.
    is_complete: watch::Sender<bool>,
}

/// Hosts whose machines were asked for, or that are nodes.
#[derive(Default)]
struct KnownHosts {
    machines: HashMap<HostKey, HostMachine>,
    /// Hosts by the nodes that they are.
    nodes: NodeIndex<HostKey>,
}

/// Machine of a host.
struct HostMachine {
    access: HostAccess,
    node: MachineNode,
}

/// Everything that the client of a BMC is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostAccess {
    host: String,
    address: String,
    takes_any_certificate: bool,
    login: Option<BmcLogin>,
}

impl HostFleet {
    /// Creates a fleet without nodes. Whether a call goes without TLS is said by each address.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &Peer) -> anyhow::Result<Self> {
        let settings = Peer { plain_http: true, ..settings.clone() };
        let slots = usize::try_from(settings.calls_in_flight)?.min(Semaphore::MAX_PERMITS);
        Ok(Self {
            verified: PeerGroup::new("redfish", &settings).context("power.redfish")?,
            unverified: PeerGroup::unverified("redfish", &settings).context("power.redfish")?,
            slots: Arc::new(Semaphore::new(slots)),
            known: Mutex::default(),
            is_complete: watch::Sender::new(false),
        })
    }

    /// Follows the hosts of the registry until the process ends.
    pub(super) fn follow(self: &Arc<Self>, context: &Context, registry: Channel) {
        let queue = WorkQueue::closed();
        let changed = queue.clone();
        let hosts = Mirror::start(context, registry.clone(), move |changes: &[Change<HostRecord>]| {
            changed.mark(changes.iter().map(|change| change.key().into()));
        });
        let logins = LoginReader::new(registry);
        let fleet = Arc::clone(self);
        context
            .tasks
            .spawn_until_shutdown("host-bmcs", async move { fleet.keep_current(hosts, logins, queue).await });
    }

    /// Waits until every host was read once: until then a node looks like one that does not exist.
    pub(super) async fn complete(&self) {
        let mut is_complete = self.is_complete.subscribe();
        let complete = is_complete.wait_for(|is_complete| *is_complete).await;
        drop(complete.expect("the fleet holds the sender"));
    }

    /// Returns the node of that id; `None`: no host is the node.
    pub(super) fn node(&self, id: &str) -> Option<MachineNode> {
        let known = self.known.lock();
        let machine = known.machines.get(known.nodes.get(id)?)?;
        Some(machine.node.clone())
    }

    /// Returns the BMCs that can be called.
    pub(super) fn bmcs(&self) -> Vec<Arc<BmcClient>> {
        let known = self.known.lock();
        known.machines.values().filter_map(|machine| machine.node.bmc.as_ref().ok().cloned()).collect()
    }

    /// Returns the machine of a host, whether the host is a node or not.
    ///
    /// # Errors
    /// The registry does not tell the login.
    pub(crate) async fn machine(
        &self,
        logins: &LoginReader,
        key: &str,
        host: &Host,
    ) -> Result<MachineNode, Status> {
        let login = read_login(logins, key, host).await?;
        Ok(self.put(&parse_key(key), HostAccess::of(key, host, login)))
    }

    /// Forgets a host that is gone.
    pub(crate) fn forget(&self, host: &HostKey) {
        let mut known = self.known.lock();
        known.machines.remove(host);
        known.nodes.remove(host);
    }

    /// Ends the sessions at the BMCs, as far as possible within `patience`. To be called last.
    pub(crate) async fn close(&self, patience: Duration) {
        log_out(self.bmcs(), patience).await;
    }

    async fn keep_current(
        &self,
        hosts: Mirror<HostRecord>,
        logins: LoginReader,
        queue: WorkQueue<Arc<str>>,
    ) -> anyhow::Result<Infallible> {
        hosts.reached(1).await;
        let _open = queue.open();
        for host in hosts.all() {
            self.attend(&hosts, &logins, &queue, host.shared_key()).await;
        }
        self.is_complete.send_replace(true);
        loop {
            for key in queue.next(MOST_KEYS).await {
                self.attend(&hosts, &logins, &queue, key).await;
            }
        }
    }

    /// Notes the newest record of a host, again later if its login cannot be read: no other host waits for it.
    async fn attend(
        &self,
        hosts: &Mirror<HostRecord>,
        logins: &LoginReader,
        queue: &WorkQueue<Arc<str>>,
        key: Arc<str>,
    ) {
        if let Err(status) = self.update(hosts, logins, &key).await {
            tracing::debug!(host = %key, %status, "login of the host not read, trying again");
            queue.mark_at(key, Instant::now() + AFTER_FAULT);
        }
    }

    /// Notes the newest record of a host. A host whose login cannot be read keeps its BMC if it has one; otherwise its node
    /// is known, and says so.
    ///
    /// # Errors
    /// The registry does not tell the login.
    async fn update(
        &self,
        hosts: &Mirror<HostRecord>,
        logins: &LoginReader,
        key: &Arc<str>,
    ) -> Result<(), Status> {
        let Some(record) = hosts.get(key) else {
            logins.forget(key);
            self.forget(&parse_key(key));
            return Ok(());
        };
        let host = record.message();
        let Some(node) = record::node(&host) else {
            self.known.lock().nodes.remove(&parse_key(key));
            return Ok(());
        };
        let login = read_login(logins, key, &host).await;
        if login.is_ok() || !self.known.lock().machines.contains_key(&node.host) {
            self.put(&node.host, HostAccess::of(key, &host, login.clone().unwrap_or_default()));
        }
        self.known.lock().nodes.put(&node, node.host.clone());
        login.map(drop)
    }

    fn put(&self, host: &HostKey, access: HostAccess) -> MachineNode {
        let mut known = self.known.lock();
        if let Some(machine) = known.machines.get(host).filter(|known| known.access == access) {
            return machine.node.clone();
        }
        let node = self.connect(&access);
        known.machines.insert(host.clone(), HostMachine { node: node.clone(), access });
        node
    }

    /// Creates the client of a BMC, which is not called yet.
    fn connect(&self, access: &HostAccess) -> MachineNode {
        let path = BmcAddress::parse(&access.address).map(|address| address.path).unwrap_or_default();
        MachineNode { bmc: self.client(access), system: path.into() }
    }

    fn client(&self, access: &HostAccess) -> Result<Arc<BmcClient>, String> {
        let flawed = |reason: &str| format!("host {}: {reason}", access.host);
        let address = BmcAddress::parse(&access.address).map_err(AddressFlaw::words).map_err(flawed)?;
        if !address.family.is_redfish() {
            return Err(flawed("the BMC address is of another protocol than Redfish"));
        }
        let Some(BmcLogin { username, password }) = access.login.clone() else {
            return Err(flawed("the login of the BMC cannot be read"));
        };
        let group = if access.takes_any_certificate { &self.unverified } else { &self.verified };
        let name = format!("BMC {} of host {}", address.host, access.host);
        let peer = group.peer_with(name, &address.base_url(), Credentials::Password { username, password });
        let peer = peer.map_err(|error| flawed(&error.to_string()))?;
        Ok(Arc::new(BmcClient::new(peer, Arc::clone(&self.slots))))
    }
}

async fn read_login(logins: &LoginReader, key: &str, host: &Host) -> Result<Option<BmcLogin>, Status> {
    match LoginName::of(host) {
        Some(name) => logins.read(key, name).await,
        None => Ok(None),
    }
}

impl HostAccess {
    fn of(key: &str, host: &Host, login: Option<BmcLogin>) -> Self {
        let bmc = host.spec.as_ref().and_then(|spec| spec.bmc.clone()).unwrap_or_default();
        Self {
            host: key.to_owned(),
            address: bmc.address,
            takes_any_certificate: bmc.disable_certificate_verification,
            login,
        }
    }
}

#[cfg(test)]
mod tests {
    use chassis::{Settings, settings::InventoryDriver};
    use proto::host::{BmcDetails, Host, HostSpec, HostStatus, ObjectMeta, ProvisioningStatus};
    use test_registry::TestRegistry;
    use tokio::time::timeout;

    use super::*;

    /// Makes a host that is a node.
    async fn make_node(registry: &TestRegistry, name: &str) {
        let bmc = BmcDetails {
            address: format!("redfish://{name}.bmc"),
            credentials_name: "login".to_owned(),
            ..BmcDetails::default()
        };
        let meta = ObjectMeta { namespace: "m".to_owned(), name: name.to_owned(), ..ObjectMeta::default() };
        let spec = HostSpec { bmc: Some(bmc), ..HostSpec::default() };
        registry.create_host(Host { meta: Some(meta), spec: Some(spec), ..Host::default() }).await;
        let provisioning =
            Some(ProvisioningStatus { state: "available".to_owned(), ..ProvisioningStatus::default() });
        let status = HostStatus { provisioning, ..HostStatus::default() };
        registry.decide_host(name, Some(status), None).await;
    }

    #[tokio::test]
    async fn an_unreadable_login_shows_on_its_node_alone() {
        let registry =
            TestRegistry::start_with(|settings| settings.inventory.driver = InventoryDriver::Hosts).await;
        let context = Context::new(Settings::default());
        for name in ["h1", "h2"] {
            Box::pin(make_node(&registry, name)).await;
        }

        let fleet = Arc::new(HostFleet::new(&context.settings.power.redfish).unwrap());
        let queue = WorkQueue::closed();
        let hosts = Mirror::start(&context, registry.channel(), |_: &[Change<HostRecord>]| {});
        let silent = LoginReader::new(chassis::plain_channel("http://127.0.0.1:9").unwrap());
        let following = Arc::clone(&fleet);
        let task = tokio::spawn(async move { following.keep_current(hosts, silent, queue).await });
        timeout(Duration::from_secs(30), fleet.complete()).await.expect("no host waits for another");
        for name in ["h1", "h2"] {
            let lack = fleet.node(name).unwrap().bmc.err().unwrap();
            assert_eq!(lack, format!("host m/{name}: the login of the BMC cannot be read"));
        }
        task.abort();
        context.tasks.shutdown().cancel();
        context.tasks.finished(Duration::from_secs(10)).await.unwrap();
    }
}
