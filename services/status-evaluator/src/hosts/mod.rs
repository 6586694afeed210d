//! Decisions about bare-metal hosts: mirrors of hosts, companions, secrets and the news of drivers; slots; reports.
//!
//! [`domain::host::step`] decides. A decision about a host is made again whenever something that it rests on changes,
//! and at the time that it names. A registry that knows no hosts, or a host provisioner that is switched off, stops
//! nothing else: hosts wait.

mod convert;
mod counters;
mod evidence;
mod mirrors;
mod rounds;
#[cfg(test)]
mod tests;

use chassis::{Context, lease::Role, mesh::channel::LARGEST_MESSAGE, observe::work::WorkQueue};
use proto::host::host_report_service_client::HostReportServiceClient;

use mirrors::HostMirrors;
use rounds::HostRounds;

/// Starts to decide about hosts, while this replica has the role.
///
/// # Errors
/// The address of another service is invalid, or there are no slots.
pub(crate) fn start(context: &Context, role: Role) -> anyhow::Result<()> {
    anyhow::ensure!(context.settings.hosts.slots > 0, "hosts.slots: has to be above zero");
    counters::describe();
    let queue = WorkQueue::closed();
    let mirrors = HostMirrors::start(context, &queue)?;
    let registry = context.channel(&context.settings.component_registry.url)?;
    let registry = HostReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
    let rounds = HostRounds::new(mirrors.clone(), queue, registry, &context.settings.hosts);
    context.tasks.spawn_until_shutdown("host-evaluator", async move {
        // A host that has not arrived yet looks like one that does not exist.
        mirrors.subjects_reached().await;
        role.while_held(|term| rounds.clone().decide_all(term)).await
    });
    Ok(())
}
