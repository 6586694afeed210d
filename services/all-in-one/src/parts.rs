//! The parts of the mesh in the settings.

use std::net::SocketAddr;

use chassis::Settings;

/// Part with its settings.
pub(crate) struct PartPlace<'a> {
    /// Section of the settings.
    pub section: &'static str,
    pub listen: SocketAddr,
    /// Address under which others reach it.
    pub url: &'a str,
    /// Database; empty: a file in the data directory, or none.
    pub database_url: &'a str,
}

/// Returns the parts that the settings start. Those without a database come last, but for the gateway.
pub(crate) fn parts(settings: &Settings) -> Vec<PartPlace<'_>> {
    let of = |section, listen, url, database_url| PartPlace { section, listen, url, database_url };
    let mut parts = vec![of("gateway", settings.gateway.listen, settings.gateway.url.as_str(), "")];
    for (section, owner) in [
        ("component_registry", &settings.component_registry),
        ("session_manager", &settings.session_manager),
        ("status_evaluator", &settings.status_evaluator),
        ("power_controller", &settings.power_controller),
        ("config_coordinator", &settings.config_coordinator),
        ("host_provisioner", &settings.host_provisioner),
        ("fleet_manager", &settings.fleet_manager),
    ] {
        parts.push(of(section, owner.listen, &owner.url, &owner.database_url));
    }
    parts.push(of("insight", settings.insight.listen, &settings.insight.url, ""));
    if settings.is_simulated() {
        parts.push(of("simulator", settings.simulator.listen, &settings.simulator.url, ""));
    }
    parts
}
