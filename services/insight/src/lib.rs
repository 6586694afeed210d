//! Insight: explains why a node, session, host or device is as it is, and what happened to it.
//!
//! Insight owns no data, decides nothing and calls no external system. It mirrors components, options, power states and
//! configuration states, asks the other services for events, transitions and sessions when a question comes, and
//! [`domain::boot::explanation`] joins them. A service that does not answer in time leaves its evidence unknown. Hosts and
//! devices are read when a question comes: their records tell nearly everything.
//! `timeline` joins the events of all services, and names the sessions behind them.
//!
//! Any number of replicas may run: each one answers any question.

mod convert;
mod members;
mod mirrors;
mod peers;
mod records;
mod rpc;
mod timeline;
mod traces;

use chassis::{
    Context, Listener, Start,
    settings::{InventoryDriver, PowerDriver},
};
use domain::{access::calls::CALL_TABLE, boot::explanation::SiteTools};
use proto::insight::{
    explain_service_server::ExplainServiceServer, timeline_service_server::TimelineServiceServer,
};

use crate::{
    mirrors::InsightMirrors,
    peers::InsightPeers,
    records::RecordPeers,
    rpc::ExplainRpc,
    timeline::{HistoryClients, TimelineRpc},
};

/// Starts insight and serves explanations and the timeline.
///
/// The service answers at once, and is ready when every mirror is complete.
///
/// # Errors
/// The address of another service is invalid.
pub fn start(context: Context, listener: Listener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: Context, listener: Listener) -> anyhow::Result<()> {
    let settings = &context.settings;
    let mirrors = InsightMirrors::start(&context)?;
    let peers = InsightPeers::new(settings)?;
    let is_csm =
        settings.power.driver == PowerDriver::Pcs && settings.inventory.driver == InventoryDriver::Hsm;
    let tools = if is_csm { SiteTools::Csm } else { SiteTools::Own };
    let rpc = ExplainRpc { mirrors: mirrors.clone(), peers, records: RecordPeers::new(settings)?, tools };
    let mut server = chassis::Server::with_rules(CALL_TABLE);
    server.add(ExplainServiceServer::new(rpc));
    server.add(TimelineServiceServer::new(TimelineRpc(HistoryClients::new(settings)?)));
    let ready = chassis::serve(&context, "insight", listener, server).await?;
    context.tasks.spawn_until_shutdown("insight-readiness", async move {
        mirrors.reached().await;
        ready.now();
        std::future::pending::<anyhow::Result<()>>().await
    });
    Ok(())
}
