//! Starts every service in one process.

use std::sync::Arc;

use anyhow::Context as _;
use chassis::{Context, Settings, Start, bind};
use tokio::net::TcpListener;

/// Listeners of all services. They are bound before any service starts, so that addresses are known, also with ports
/// that the system chooses, and a port in use is detected early.
pub struct MeshListeners {
    component_registry: TcpListener,
    session_manager: TcpListener,
    status_evaluator: TcpListener,
    power_controller: TcpListener,
    config_coordinator: TcpListener,
    host_provisioner: TcpListener,
    fleet_manager: TcpListener,
    insight: TcpListener,
    gateway: TcpListener,
    /// Present if the simulator is used.
    simulator: Option<TcpListener>,
}

impl MeshListeners {
    /// Binds a listener for every service and writes its address into `settings`.
    ///
    /// # Errors
    /// Names the setting and the address that cannot be listened on.
    pub async fn bind(settings: &mut Settings) -> anyhow::Result<Self> {
        let simulator = match settings.is_simulated() {
            true => Some(bind("simulator", settings.simulator.listen).await?),
            false => None,
        };
        let listeners = Self {
            component_registry: bind("component_registry", settings.component_registry.listen).await?,
            session_manager: bind("session_manager", settings.session_manager.listen).await?,
            status_evaluator: bind("status_evaluator", settings.status_evaluator.listen).await?,
            power_controller: bind("power_controller", settings.power_controller.listen).await?,
            config_coordinator: bind("config_coordinator", settings.config_coordinator.listen).await?,
            host_provisioner: bind("host_provisioner", settings.host_provisioner.listen).await?,
            fleet_manager: bind("fleet_manager", settings.fleet_manager.listen).await?,
            insight: bind("insight", settings.insight.listen).await?,
            gateway: bind("gateway", settings.gateway.listen).await?,
            simulator,
        };
        let scheme = scheme_of(settings.tls.is_set().map_err(anyhow::Error::msg)?);
        settings.component_registry.url = url(scheme, &listeners.component_registry)?;
        settings.session_manager.url = url(scheme, &listeners.session_manager)?;
        settings.status_evaluator.url = url(scheme, &listeners.status_evaluator)?;
        settings.power_controller.url = url(scheme, &listeners.power_controller)?;
        settings.config_coordinator.url = url(scheme, &listeners.config_coordinator)?;
        settings.host_provisioner.url = url(scheme, &listeners.host_provisioner)?;
        settings.fleet_manager.url = url(scheme, &listeners.fleet_manager)?;
        settings.insight.url = url(scheme, &listeners.insight)?;
        settings.gateway.url =
            url(scheme_of(!settings.gateway.certificate.as_os_str().is_empty()), &listeners.gateway)?;
        if let Some(simulator) = &listeners.simulator {
            settings.simulator.url = url(scheme, simulator)?;
        }
        Ok(listeners)
    }
}

fn scheme_of(encrypted: bool) -> &'static str {
    if encrypted { "https" } else { "http" }
}

fn url(scheme: &str, listener: &TcpListener) -> anyhow::Result<String> {
    let mut address = listener.local_addr().context("local address")?;
    if address.ip().is_unspecified() {
        // A listener on all addresses is reached over the loopback interface from within the process.
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    Ok(format!("{scheme}://{address}"))
}

/// Binds the listeners of the settings and starts every service.
///
/// # Errors
/// As [`MeshListeners::bind`] and [`start`].
pub async fn serve(context: Context) -> anyhow::Result<()> {
    let mut settings = (*context.settings).clone();
    let listeners = MeshListeners::bind(&mut settings).await?;
    let context = Context { settings: Arc::new(settings), ..context };
    start(&context, listeners).await
}

/// Starts every service, and the simulator if a driver needs it. The order does not matter; the gateway is ready when
/// all services are.
///
/// # Errors
/// Names the part that could not start, and the reason.
pub fn start(context: &Context, listeners: MeshListeners) -> Start {
    Box::pin(start_parts(context.clone(), listeners))
}

async fn start_parts(context: Context, listeners: MeshListeners) -> anyhow::Result<()> {
    let part = || context.of_another_part();
    if let Some(listener) = listeners.simulator {
        simulator::start(part(), listener.into()).await.context("simulator")?;
    }
    session_manager::start(part(), listeners.session_manager.into()).await.context("session manager")?;
    power_controller::start(part(), listeners.power_controller.into()).await.context("power controller")?;
    config_coordinator::start(part(), listeners.config_coordinator.into())
        .await
        .context("config coordinator")?;
    host_provisioner::start(part(), listeners.host_provisioner.into()).await.context("host provisioner")?;
    fleet_manager::start(part(), listeners.fleet_manager.into()).await.context("fleet manager")?;
    status_evaluator::start(part(), listeners.status_evaluator.into()).await.context("status evaluator")?;
    insight::start(part(), listeners.insight.into()).await.context("insight")?;
    // Started after the others, which wait for it: if their settings are invalid, no external system was called.
    component_registry::start(part(), listeners.component_registry.into())
        .await
        .context("component registry")?;
    gateway::start(part(), listeners.gateway).await.context("gateway")
}
