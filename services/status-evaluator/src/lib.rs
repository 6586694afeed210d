//! The status evaluator: says where every enabled component stands, and why.
//!
//! It joins what others know - records and options of the component registry, power as the power controller
//! saw it, configuration as the config coordinator saw it - and lets [`domain::evaluation`] decide. What a
//! decision changes goes back to the registry.
//!
//! It owns nothing: no data, no upstream, no state that a restart would lose. It decides again whenever
//! a part of the evidence changes and at the moment that the last decision named, never by scanning.
//!
//! Several of them share the work where they have a database for their leases. Where they have none each decides on
//! everything, which does no harm: a report about what is the past by then changes nothing.

mod convert;
mod evaluator;
mod mirrors;
mod rpc;

use chassis::{
    Context, Listener,
    channel::LARGEST_MESSAGE,
    lease::{self, Leases},
    work::WorkQueue,
};
use domain::compatibility::Compatibility;
use proto::{
    component::report_service_client::ReportServiceClient,
    evaluation::evaluation_service_server::EvaluationServiceServer,
};
use tokio::sync::broadcast;

use crate::{
    evaluator::Evaluator,
    mirrors::Mirrors,
    rpc::{Announced, EvaluationRpc},
};

/// Batches of decisions that a subscriber may be behind before its stream ends. Each is shared by all.
const BACKLOG: usize = 256;

/// Starts the evaluator and serves its explanations.
///
/// It serves at once and is ready when every kind of evidence has been copied.
///
/// # Errors
/// When a part's address is not one, or a database is set that cannot be used.
pub async fn start(context: Context, listener: impl Into<Listener>) -> anyhow::Result<()> {
    let leases = leases(&context).await?;
    let queue = WorkQueue::default();
    let mirrors = Mirrors::start(&context, &queue)?;
    let registry = chassis::channel(&context.settings.component_registry.url)?;
    let registry = ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
    let announced: broadcast::Sender<Announced> = broadcast::Sender::new(BACKLOG);

    let mut server = chassis::Server::default();
    let compatibility = Compatibility { strict_bos: context.settings.compat.strict_bos };
    let rpc = EvaluationRpc::new(mirrors.clone(), announced.clone(), compatibility, context.tasks.shutdown());
    server.add(EvaluationServiceServer::new(rpc));
    let ready = chassis::serve(&context, "status-evaluator", listener, server).await?;

    let evaluator = Evaluator::new(mirrors.clone(), queue, leases, registry, announced, compatibility);
    context.tasks.spawn_until_shutdown("evaluator", async move {
        // Evidence that has not been copied yet looks like evidence that does not exist.
        mirrors.reached().await;
        ready.now();
        evaluator.run().await;
        Ok(())
    });
    Ok(())
}

/// What this replica decides on.
async fn leases(context: &Context) -> anyhow::Result<Leases> {
    let set = &context.settings.status_evaluator.database_url;
    if set.is_empty() {
        return Ok(Leases::everything());
    }
    let url = context.database_url("status-evaluator", set)?;
    let database = chassis::database::connect_as::<lease::Migrator>(&url, &context.settings.database).await?;
    Ok(Leases::start(context, "status-evaluator", &database).await?)
}
