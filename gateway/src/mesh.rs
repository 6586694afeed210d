//! The services behind the gateway.

use std::{ops::Deref, sync::Arc};

use chassis::{Settings, mesh::channel::LARGEST_MESSAGE};
use proto::{
    boot::boot_script_service_client::BootScriptServiceClient,
    component::component_service_client::ComponentServiceClient,
    device::{
        device_agent_service_client::DeviceAgentServiceClient, device_service_client::DeviceServiceClient,
    },
    event::event_service_client::EventServiceClient,
    fleet::{enrolment_service_client::EnrolmentServiceClient, fleet_service_client::FleetServiceClient},
    host::{
        host_document_service_client::HostDocumentServiceClient,
        host_secret_service_client::HostSecretServiceClient, host_service_client::HostServiceClient,
    },
    insight::{explain_service_client::ExplainServiceClient, timeline_service_client::TimelineServiceClient},
    inventory::inventory_service_client::InventoryServiceClient,
    option::options_service_client::OptionsServiceClient,
    power::power_service_client::PowerServiceClient,
    session::{plan_service_client::PlanServiceClient, session_service_client::SessionServiceClient},
    template::session_template_service_client::SessionTemplateServiceClient,
    tenant::tenant_service_client::TenantServiceClient,
};

use tokio_util::sync::CancellationToken;

use crate::http::retry::RetryReads;

/// Connection to any replica of a service.
pub(crate) type MeshChannel = RetryReads<chassis::Channel>;

/// Client of the events of a service.
pub(crate) type EventClient = EventServiceClient<MeshChannel>;

/// Name of the component registry in errors.
pub(crate) const REGISTRY: &str = "component registry";
/// Name of the session manager in errors.
pub(crate) const SESSIONS: &str = "session manager";
/// Name of the fleet manager in errors.
pub(crate) const FLEETS: &str = "fleet manager";
/// Name of the power controller in errors.
pub(crate) const POWER: &str = "power controller";
/// Name of insight in errors.
pub(crate) const INSIGHT: &str = "insight";
/// Name of the config coordinator in errors.
pub(crate) const COORDINATOR: &str = "config coordinator";
/// Name of the status evaluator in probes.
const EVALUATOR: &str = "status evaluator";
/// Name of the host provisioner in probes.
const PROVISIONER: &str = "host provisioner";

/// Clients of the services, shared by every request: a request holds several clones, and needs one client of them.
#[derive(Clone)]
pub(crate) struct MeshHandle(Arc<MeshClients>);

impl Deref for MeshHandle {
    type Target = MeshClients;

    fn deref(&self) -> &MeshClients {
        &self.0
    }
}

/// A part of the mesh, for its health.
pub(crate) struct MeshPart {
    pub name: &'static str,
    pub channel: MeshChannel,
    /// Whether the gateway is not ready without it: the contract needs it.
    pub is_needed: bool,
}

/// Clients of the services. Every call takes a clone.
pub(crate) struct MeshClients {
    /// Components, at the component registry.
    pub components: ComponentServiceClient<MeshChannel>,
    /// Events of components, options, hosts and devices, at the component registry.
    pub component_events: EventClient,
    /// Options, at the component registry.
    pub options: OptionsServiceClient<MeshChannel>,
    /// Hints about the inventory, for the component registry.
    pub inventory: InventoryServiceClient<MeshChannel>,
    /// Bare-metal hosts, at the component registry.
    pub hosts: HostServiceClient<MeshChannel>,
    /// Companions of hosts and namespaces, at the component registry.
    pub host_documents: HostDocumentServiceClient<MeshChannel>,
    /// Secrets of hosts, at the component registry.
    pub host_secrets: HostSecretServiceClient<MeshChannel>,
    /// Edge devices, at the component registry.
    pub devices: DeviceServiceClient<MeshChannel>,
    /// Calls of the agents of devices, at the component registry.
    pub device_agents: DeviceAgentServiceClient<MeshChannel>,
    /// Sessions, at the session manager.
    pub sessions: SessionServiceClient<MeshChannel>,
    /// Plans of sessions, at the session manager.
    pub plans: PlanServiceClient<MeshChannel>,
    /// Events of sessions and session templates, at the session manager.
    pub session_events: EventClient,
    /// Session templates, at the session manager.
    pub templates: SessionTemplateServiceClient<MeshChannel>,
    /// Nodes of tenants, at the session manager.
    pub tenants: TenantServiceClient<MeshChannel>,
    /// Fleets of edge devices, at the fleet manager.
    pub fleets: FleetServiceClient<MeshChannel>,
    /// Enrolment of edge devices, at the fleet manager.
    pub enrolment: EnrolmentServiceClient<MeshChannel>,
    /// Power transitions, at the power controller.
    pub power: PowerServiceClient<MeshChannel>,
    /// Explanations, at insight.
    pub explanations: ExplainServiceClient<MeshChannel>,
    /// Events of all services as one history, at insight.
    pub timeline: TimelineServiceClient<MeshChannel>,
    /// Boot scripts, at the config coordinator.
    pub boot_scripts: BootScriptServiceClient<MeshChannel>,
    /// All parts behind the gateway, for their health.
    pub parts: Vec<MeshPart>,
    /// End of the process, at which streams without end have to end.
    pub shutdown: CancellationToken,
}

impl MeshHandle {
    /// Creates clients of the services at the addresses in the settings. They connect when they are used.
    ///
    /// # Errors
    /// When an address cannot be read.
    pub(crate) fn new(settings: &Settings, shutdown: CancellationToken) -> anyhow::Result<Self> {
        let channel = |url: &str| anyhow::Ok(RetryReads(chassis::channel(&settings.tls, url)?));
        let registry = channel(&settings.component_registry.url)?;
        let manager = channel(&settings.session_manager.url)?;
        let insight = channel(&settings.insight.url)?;
        let coordinator = channel(&settings.config_coordinator.url)?;
        let power = channel(&settings.power_controller.url)?;
        let fleets = channel(&settings.fleet_manager.url)?;
        let part =
            |name, channel: &MeshChannel, is_needed| MeshPart { name, channel: channel.clone(), is_needed };
        let parts = vec![
            part(REGISTRY, &registry, true),
            part(SESSIONS, &manager, true),
            part(EVALUATOR, &channel(&settings.status_evaluator.url)?, false),
            part(POWER, &power, false),
            part(COORDINATOR, &coordinator, false),
            part(PROVISIONER, &channel(&settings.host_provisioner.url)?, false),
            part(FLEETS, &fleets, false),
            part(INSIGHT, &insight, false),
        ];
        let clients = MeshClients {
            components: ComponentServiceClient::new(registry.clone())
                .max_decoding_message_size(LARGEST_MESSAGE),
            component_events: EventClient::new(registry.clone()),
            options: OptionsServiceClient::new(registry.clone()),
            inventory: InventoryServiceClient::new(registry.clone()),
            hosts: HostServiceClient::new(registry.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            host_documents: HostDocumentServiceClient::new(registry.clone())
                .max_decoding_message_size(LARGEST_MESSAGE),
            host_secrets: HostSecretServiceClient::new(registry.clone())
                .max_decoding_message_size(LARGEST_MESSAGE),
            devices: DeviceServiceClient::new(registry.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            device_agents: DeviceAgentServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE),
            sessions: SessionServiceClient::new(manager.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            plans: PlanServiceClient::new(manager.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            session_events: EventClient::new(manager.clone()),
            templates: SessionTemplateServiceClient::new(manager.clone())
                .max_decoding_message_size(LARGEST_MESSAGE),
            tenants: TenantServiceClient::new(manager).max_decoding_message_size(LARGEST_MESSAGE),
            fleets: FleetServiceClient::new(fleets.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            enrolment: EnrolmentServiceClient::new(fleets).max_decoding_message_size(LARGEST_MESSAGE),
            power: PowerServiceClient::new(power).max_decoding_message_size(LARGEST_MESSAGE),
            timeline: TimelineServiceClient::new(insight.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            explanations: ExplainServiceClient::new(insight).max_decoding_message_size(LARGEST_MESSAGE),
            boot_scripts: BootScriptServiceClient::new(coordinator),
            parts,
            shutdown,
        };
        Ok(Self(Arc::new(clients)))
    }
}
