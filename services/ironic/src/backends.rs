//! The Ironics of the settings.

use anyhow::Context as _;
use chassis::settings::HostOperationSettings;
use tokio::sync::Semaphore;
use upstream::{CredentialUse, PeerGroup};

use crate::IronicBackend;

/// Returns the Ironics of the settings, by name. None is called yet.
///
/// # Errors
/// Names the setting that cannot be used.
pub fn backends(settings: &HostOperationSettings) -> anyhow::Result<Vec<IronicBackend>> {
    let ironic = &settings.ironic;
    let section = "host_operations.ironic";
    anyhow::ensure!(!ironic.backends.is_empty(), "{section}.backends: no Ironic is named");
    let slots = usize::try_from(settings.calls_in_flight)?.clamp(1, Semaphore::MAX_PERMITS);
    let group = PeerGroup::new("ironic", &ironic.calls).with_context(|| format!("{section}.calls"))?;
    let mut backends = Vec::new();
    for (name, backend) in &ironic.backends {
        let section = format!("{section}.backends.{name}");
        let peer = group
            .peer(format!("Ironic {name}"), &backend.url, &backend.credentials)
            .with_context(|| section.clone())?;
        if !backend.credentials.is_empty() {
            peer.check_credentials(&section, CredentialUse::Header);
        }
        backends.push(IronicBackend::new(name, peer, slots));
    }
    Ok(backends)
}
