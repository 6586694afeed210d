//! Decisions that time and fleets bring about edge devices: an agent falls silent, or is seen again; a fleet has another
//! template.
//!
//! [`domain::device::evaluation`] decides. The registry evaluates a device with every write to it, as far as no fleet is
//! needed. Here a device is decided about again when it changes, when its agent is seen, at the moment at which the last
//! sign becomes too old, and when the version of its fleet changes. While its fleet is not known, a device that a fleet owns
//! keeps its updated status.

mod mirrors;
mod rounds;
#[cfg(test)]
mod tests;

use chassis::{Context, lease::Role, mesh::channel::LARGEST_MESSAGE, observe::work::WorkQueue};
use proto::device::device_report_service_client::DeviceReportServiceClient;

use mirrors::DeviceMirrors;
use rounds::DeviceRounds;

/// Starts to decide about devices, while this replica has the role.
///
/// # Errors
/// The address of the registry is invalid, or every device would always be silent.
pub(crate) fn start(context: &Context, role: Role) -> anyhow::Result<()> {
    let timeout = context.settings.devices.disconnect_timeout();
    anyhow::ensure!(!timeout.is_zero(), "devices.disconnect_seconds: has to be above zero");
    let queue = WorkQueue::closed();
    let mirrors = DeviceMirrors::start(context, &queue)?;
    let registry = context.channel(&context.settings.component_registry.url)?;
    let registry = DeviceReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
    let rounds = DeviceRounds { mirrors: mirrors.clone(), queue, registry, timeout };
    context.tasks.spawn_until_shutdown("device-evaluator", async move {
        // A sight that has not arrived yet looks like an agent that was never seen.
        mirrors.reached().await;
        role.while_held(|term| rounds.clone().decide_all(term)).await
    });
    Ok(())
}
