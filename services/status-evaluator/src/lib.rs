//! The status evaluator: computes the status of every enabled component, with its reason.
//!
//! The evaluator joins the data of other services - components and options of the registry, observations of the power
//! controller and of the config coordinator - and [`domain::boot::evaluation`] decides. Changes are reported to the
//! registry.
//!
//! The evaluator owns no data, calls no external system, and has no state that a restart would lose. A component is
//! decided again when a part of its evidence changes, and at the time that its last decision names; there is no
//! periodic scan.
//!
//! Of replicas with a database one decides, and the others stand by. Without a database each replica decides all components,
//! which is harmless: a report about an outdated record changes nothing.

mod convert;
mod devices;
mod evaluator;
mod hosts;
mod mirrors;
mod rpc;

use chassis::{
    Context, Listener, Start,
    lease::{self, Role},
    mesh::channel::LARGEST_MESSAGE,
    observe::work::WorkQueue,
};
use domain::{access::calls::CALL_TABLE, boot::bos::compatibility::Compatibility};
use proto::{
    component::report_service_client::ReportServiceClient,
    evaluation::evaluation_service_server::EvaluationServiceServer,
};
use tokio::sync::broadcast;

use crate::{
    evaluator::EvaluatorPeers,
    mirrors::EvidenceMirrors,
    rpc::{Announced, EvaluationRpc},
};

/// Batches by which a subscriber may lag before its stream ends. Each batch is shared by all subscribers.
const BACKLOG: usize = 256;

/// Starts the evaluator and serves its explanations.
///
/// The service answers at once, and is ready when every mirror is complete.
///
/// # Errors
/// The address of another service is invalid, or the configured database cannot be used.
pub fn start(context: Context, listener: Listener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: Context, listener: Listener) -> anyhow::Result<()> {
    let role = role(&context).await?;
    let queue = WorkQueue::closed();
    let mirrors = EvidenceMirrors::start(&context, &queue)?;
    let registry = context.channel(&context.settings.component_registry.url)?;
    let registry = ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
    let announced: broadcast::Sender<Announced> = broadcast::Sender::new(BACKLOG);

    let mut server = chassis::Server::with_rules(CALL_TABLE);
    let compatibility = Compatibility { strict_bos: context.settings.compat.strict_bos };
    let rpc = EvaluationRpc::new(mirrors.clone(), announced.clone(), compatibility, context.tasks.shutdown());
    server.add(EvaluationServiceServer::new(rpc));
    let ready = chassis::serve(&context, "status-evaluator", listener, server).await?;

    hosts::start(&context, role.clone())?;
    devices::start(&context, role.clone())?;
    let peers = EvaluatorPeers { mirrors: mirrors.clone(), queue, registry, announced, compatibility };
    let complete = mirrors.clone();
    context.tasks.spawn_until_shutdown("evaluator-readiness", async move {
        complete.reached().await;
        ready.now();
        std::future::pending::<anyhow::Result<()>>().await
    });
    context.tasks.spawn_until_shutdown("evaluator", async move {
        // A component that has not arrived yet looks like one that does not exist.
        mirrors.subjects_reached().await;
        role.while_held(|term| peers.clone().evaluate(term)).await
    });
    Ok(())
}

/// Returns the role of the evaluator. Without a database every replica has it.
async fn role(context: &Context) -> anyhow::Result<Role> {
    let set = &context.settings.status_evaluator.database_url;
    if set.is_empty() {
        return Ok(Role::forever());
    }
    let url = context.database_url("status-evaluator", set)?;
    let database =
        chassis::store::database::connect_as::<lease::RoleMigrator>(&url, &context.settings.database).await?;
    Ok(Role::start(context, "status-evaluator", &database).await?)
}
