//! The handle of systems that run in this process.

use std::{
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use serde_json::Value;
use simulator::{node::PowerCommand, reporter::ReportSender};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    bss::BootRequest,
    cfs::ConfigurationRequest,
    command::{IdCollection, MachineSummary, NodeChange, NodeView, PowerEvent, UnknownNode},
    counters::{CallCount, SeenCall},
    history::NodeEvent,
    images::StoredImage,
    notifier,
    plan::MachinePlan,
    serve,
    service::Service,
    state::MachineState,
    trouble::ServiceTrouble,
    wire::CuttableListener,
    world::LiveMachine,
};

/// Notifications that may wait for subscribers.
const MOST_WAITING: usize = 4096;

/// The systems around a machine, running. Dropping it stops them without waiting.
pub struct Upstreams {
    world: Arc<LiveMachine>,
    address: SocketAddr,
    tasks: TaskTracker,
    running: DropGuard,
}

impl Upstreams {
    /// Starts the machine of `plan` and serves its systems.
    ///
    /// # Errors
    /// When the plan cannot be played or its gateway's address cannot be used.
    pub fn start(plan: MachinePlan, listener: TcpListener) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("local address")?;
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (reports, inbox) = mpsc::unbounded_channel();
        if !plan.gateway_url.is_empty() {
            let reporter =
                ReportSender::new(&plan.gateway_url, Path::new(""), plan.speed).context("gateway_url")?;
            tasks.spawn(reporter.run(inbox, shutdown.clone()));
        }
        let (deliveries, outbox) = mpsc::channel(MOST_WAITING);
        let client = reqwest::Client::builder().no_proxy().build().context("HTTP client")?;
        tasks.spawn(notifier::run(client, outbox, shutdown.clone()));

        let seed = plan.seed;
        let state = MachineState::new(plan, SystemTime::now())?;
        let world = LiveMachine::new(state, seed, reports, deliveries, shutdown.clone());
        tasks.spawn(world.clone().run());
        tasks.spawn(serve::run(world.clone(), CuttableListener(listener)));
        tasks.close();
        Ok(Self { world, address, tasks, running: shutdown.drop_guard() })
    }

    /// Returns the address of all systems.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Base URL of all systems: their paths begin behind it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Base URL of one system as a client of it expects it, version included.
    pub fn url_of(&self, service: Service) -> String {
        let prefix = match service {
            Service::Hsm => "/apis/smd/hsm/v2",
            Service::Pcs => "/apis/power-control/v1",
            Service::Bss => "/apis/bss/boot/v1",
            Service::Cfs => "/apis/cfs/v3",
            Service::Ims => "/apis/ims/v3",
            Service::S3 => "",
            Service::Tapms => "/apis/tapms/v1alpha3",
        };
        format!("{}{prefix}", self.url())
    }

    /// Stops everything and waits until it has.
    pub async fn stop(self) {
        let Self { tasks, running, .. } = self;
        drop(running);
        tasks.wait().await;
    }

    /// Ids of all nodes, in order.
    pub fn ids(&self) -> Vec<String> {
        self.world.with(|state| {
            let nodes =
                state.inventory.order.iter().map(|position| state.inventory.nodes[*position].id.clone());
            nodes.collect()
        })
    }

    /// Returns the state of the machine in numbers.
    pub fn summary(&self) -> MachineSummary {
        self.world.with(|state| state.summary())
    }

    /// Everything about one node.
    ///
    /// # Errors
    /// When the machine does not have it.
    pub fn node(&self, id: &str) -> Result<NodeView, UnknownNode> {
        self.world.with(|state| {
            let positions = state.positions(&[id.to_owned()])?;
            Ok(state.view(positions[0]))
        })
    }

    /// Events of one node, oldest first.
    ///
    /// # Errors
    /// When the machine does not have it.
    pub fn history(&self, id: &str) -> Result<Vec<NodeEvent>, UnknownNode> {
        self.world.with(|state| state.history_of(id))
    }

    /// Changes nodes, all if `ids` is empty: faults, locks, roles and so on. Subscribers are notified.
    ///
    /// # Errors
    /// When the machine does not have one of them; then no node is changed.
    pub fn change(&self, ids: &[String], change: &NodeChange) -> Result<(), UnknownNode> {
        self.world.with(|state| {
            let positions = state.positions(ids)?;
            state.change(&positions, change);
            Ok(())
        })
    }

    /// Presses the power button of nodes, all if `ids` is empty, past the power service.
    ///
    /// # Errors
    /// When the machine does not have one of them; then no button is pressed.
    pub fn press(&self, command: PowerCommand, ids: &[String]) -> Result<(), UnknownNode> {
        self.world.with(|state| {
            let positions = state.positions(ids)?;
            state.press(command, &positions);
            Ok(())
        })
    }

    /// Requests a transition of nodes, such as `Soft-Off`, as an administrator beside the mesh, and returns its id.
    ///
    /// # Errors
    /// When the power service has no such operation.
    pub fn foreign_transition(&self, operation: &str, ids: &[String]) -> anyhow::Result<String> {
        let id = self.world.with(|state| state.ask_for_power(operation, ids));
        id.with_context(|| format!("{operation} is no operation"))
    }

    /// Returns the time until the power service reads the hardware again; zero where it knows at once.
    pub fn until_reading(&self) -> Duration {
        self.world.with(|state| state.until_reading())
    }

    /// Makes the power service suffer this event.
    pub fn power_service(&self, event: PowerEvent) {
        self.world.power_service(event);
    }

    /// Adds trouble and returns its number.
    pub fn trouble(&self, trouble: ServiceTrouble) -> u64 {
        self.world.trouble(trouble)
    }

    /// Ends one trouble; whether there was one.
    pub fn clear_trouble(&self, number: u64) -> bool {
        self.world.troubles.lock().clear(number)
    }

    /// Ends all trouble of a system, or of all systems.
    pub fn clear_troubles(&self, service: Option<Service>) {
        self.world.clear_troubles(service);
    }

    /// Returns the number of calls of each operation.
    pub fn counts(&self) -> Vec<CallCount> {
        self.world.counters.lock().list()
    }

    /// Returns the number of calls of one operation, such as `POST /transitions`.
    pub fn requests(&self, service: Service, operation: &str) -> u64 {
        let counts = self.counts().into_iter();
        let mut own = counts.filter(|count| count.service == service && count.operation == operation);
        own.next().map_or(0, |count| count.requests)
    }

    /// The latest requests, oldest first.
    pub fn log(&self) -> Vec<SeenCall> {
        self.world.counters.lock().log()
    }

    /// Resets the counters and forgets the requests.
    pub fn reset_counts(&self) {
        self.world.counters.lock().reset();
    }

    /// The latest boot data that were accepted, oldest first.
    pub fn boot_requests(&self) -> Vec<BootRequest> {
        self.world.with(|state| state.boot_requests())
    }

    /// The latest changes of configuration that were accepted, oldest first.
    pub fn configuration_requests(&self) -> Vec<ConfigurationRequest> {
        self.world.with(|state| state.configuration_requests())
    }

    /// Seconds between the power service's checks of a transition; 0: results show at once.
    pub fn confirm_seconds(&self) -> f64 {
        let plan = self.world.with(|state| state.power.plan.clone());
        if plan.prompt_results || plan.confirm_period.as_secs() == 0 {
            return 0.0;
        }
        plan.confirm_period.as_secs_f64()
    }

    /// All transitions with their tasks as the power service shows them, oldest first.
    pub fn transitions(&self) -> Value {
        self.world.with(|state| state.transitions_json())
    }

    /// Sets a group, a partition or a tenant; `None` removes it.
    pub fn set_collection(&self, kind: IdCollection, name: &str, ids: Option<Vec<String>>) {
        self.world.with(|state| state.set_collection(kind, name, ids));
    }

    /// Makes an image special; `None` resets it to the default.
    pub fn set_image(&self, id: &str, image: Option<StoredImage>) {
        self.world.with(|state| state.set_image(id, image));
    }
}
