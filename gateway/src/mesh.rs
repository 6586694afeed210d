//! The services behind the gateway, and how they are called.

use std::{future::Future, ops::Deref, sync::Arc, time::Duration};

use chassis::{Fault, Settings, capacity::Capacity, channel::LARGEST_MESSAGE};
use proto::{
    boot::boot_script_service_client::BootScriptServiceClient,
    component::component_service_client::ComponentServiceClient,
    inventory::inventory_service_client::InventoryServiceClient,
    option::options_service_client::OptionsServiceClient,
    session::session_service_client::SessionServiceClient,
    template::session_template_service_client::SessionTemplateServiceClient,
    tenant::tenant_service_client::TenantServiceClient,
};
use tonic::{Code, Request, Response, Status};

use crate::{admission::Doors, again::Again};

/// How long a service may take to answer. BOS gave up on a request after 30 seconds (BOS reference, appendix
/// B), so clients expect an answer, good or bad, within that time.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// How a service is reached: any replica of it answers.
pub(crate) type Channel = Again<chassis::Channel>;

/// What the component registry is called in errors.
pub(crate) const REGISTRY: &str = "component registry";
/// What the session manager is called in errors.
pub(crate) const SESSIONS: &str = "session manager";

/// What the config coordinator is called in errors about boot scripts.
pub(crate) const BOOT_SCRIPTS: &str = "config coordinator";

/// The mesh as every request sees it. Clones share it: each request is given several, and of the clients in it it needs
/// one.
#[derive(Clone)]
pub(crate) struct Mesh(Arc<Services>);

impl Deref for Mesh {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.0
    }
}

/// Clients of the services, of which every call takes a clone; how closely to follow BOS, and how long to wait for
/// whoever asks.
pub(crate) struct Services {
    /// Components, at the component registry.
    pub components: ComponentServiceClient<Channel>,
    /// Options, at the component registry.
    pub options: OptionsServiceClient<Channel>,
    /// Hints about the inventory, for the component registry.
    pub inventory: InventoryServiceClient<Channel>,
    /// The component registry, for how it is.
    pub registry: Channel,
    /// Sessions, at the session manager.
    pub sessions: SessionServiceClient<Channel>,
    /// Session templates, at the session manager.
    pub templates: SessionTemplateServiceClient<Channel>,
    /// What tenants have, at the session manager.
    pub tenants: TenantServiceClient<Channel>,
    /// The session manager, for how it is.
    pub manager: Channel,
    /// Boot scripts, at the config coordinator.
    pub boot_scripts: BootScriptServiceClient<Channel>,
    /// Repeat surprising answers of BOS.
    pub strict: bool,
    /// How much is passed on at a time.
    pub doors: Doors,
}

impl Mesh {
    /// Clients of the services at the addresses in the settings. They connect when they are used.
    ///
    /// # Errors
    /// When an address cannot be read.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        let registry = Again(chassis::channel(&settings.component_registry.url)?);
        let manager = Again(chassis::channel(&settings.session_manager.url)?);
        let coordinator = Again(chassis::channel(&settings.config_coordinator.url)?);
        let services = Services {
            components: ComponentServiceClient::new(registry.clone())
                .max_decoding_message_size(LARGEST_MESSAGE),
            options: OptionsServiceClient::new(registry.clone()),
            inventory: InventoryServiceClient::new(registry.clone()),
            registry,
            sessions: SessionServiceClient::new(manager.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            templates: SessionTemplateServiceClient::new(manager.clone())
                .max_decoding_message_size(LARGEST_MESSAGE),
            tenants: TenantServiceClient::new(manager.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            manager,
            boot_scripts: BootScriptServiceClient::new(coordinator),
            strict: settings.compat.strict_bos,
            doors: Doors::new(&settings.gateway, &Capacity::of_process(settings)),
        };
        Ok(Self(Arc::new(services)))
    }
}

/// Waits for the answer of `part` to a call.
///
/// # Errors
/// What the service says, or that it did not answer in time.
pub(crate) async fn answer<T>(
    part: &'static str,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Fault> {
    answer_within(DEADLINE, part, call).await
}

/// As [`answer`], for calls that are only useful when they are quick.
///
/// # Errors
/// As [`answer`].
pub(crate) async fn answer_within<T>(
    deadline: Duration,
    part: &'static str,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Fault> {
    let outcome = tokio::time::timeout(deadline, call).await;
    let outcome = outcome.unwrap_or_else(|_| Err(Status::deadline_exceeded("")));
    outcome.map(Response::into_inner).map_err(|status| fault(part, status))
}

/// What a status of `part` means.
pub(crate) fn fault(part: &'static str, status: Status) -> Fault {
    if status.code() == Code::DeadlineExceeded {
        return Fault::unavailable(part, "did not answer in time");
    }
    match Fault::from(status) {
        // A connection does not know what is at its other end.
        Fault::Unavailable { what, reason } if what == "service" => Fault::unavailable(part, reason),
        other => other,
    }
}

/// A call that its service may give up on once nobody waits for it any more.
pub(crate) fn call<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    request
}
