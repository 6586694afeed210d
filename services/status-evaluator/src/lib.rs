//! The status evaluator: says where every enabled component stands, and why.
//!
//! It joins what others know - records and options of the component registry, power as the power controller
//! saw it, configuration as the config coordinator saw it - and lets [`domain::evaluation`] decide. What a
//! decision changes goes back to the registry.
//!
//! It owns nothing: no database, no upstream, no state that a restart would lose. It decides again whenever
//! a part of the evidence changes and at the moment that the last decision named, never by scanning.

mod convert;
mod evaluator;
mod mirrors;
mod rpc;

use chassis::{Context, channel::LARGEST_MESSAGE, work::WorkQueue};
use domain::compatibility::Compatibility;
use proto::{
    component::report_service_client::ReportServiceClient,
    evaluation::evaluation_service_server::EvaluationServiceServer,
};
use tokio::{net::TcpListener, sync::broadcast};

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
/// When a part's address is not one.
pub async fn start(context: Context, listener: TcpListener) -> anyhow::Result<()> {
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

    let evaluator = Evaluator::new(mirrors.clone(), queue, registry, announced, compatibility);
    context.tasks.spawn_until_shutdown("evaluator", async move {
        // Evidence that has not been copied yet looks like evidence that does not exist.
        mirrors.reached().await;
        ready.now().await;
        evaluator.run().await;
        Ok(())
    });
    Ok(())
}
