//! Edge devices: writes of people and agents, times at which agents were last seen, and reports of other parts.
//!
//! The rules about one device are pure functions of `domain::device`. A write applies one of them to the newest record
//! and evaluates the result in the same transaction, so that the answer shows every status that follows.
//!
//! - `ledgers`: writes and selections; `liveness`: when agents were last seen
//! - `polls`: agents that ask for a spec; `waits`: those that wait for one
//! - `people`, `agents`, `reports`: gRPC services

mod agents;
mod ledgers;
mod liveness;
mod people;
mod polls;
mod reports;
mod waits;

use std::sync::Arc;

use chassis::{Context, Server, mesh::channel::LARGEST_MESSAGE};
use proto::device::{
    device_agent_service_server::DeviceAgentServiceServer,
    device_report_service_server::DeviceReportServiceServer, device_service_server::DeviceServiceServer,
};
use sea_orm::DatabaseConnection;

pub(crate) use ledgers::DeviceLedgers;

/// Opens the ledgers of devices, and starts to store when agents were seen and to wake those that wait.
///
/// # Errors
/// A table cannot be read.
pub(crate) async fn start(context: &Context, database: DatabaseConnection) -> anyhow::Result<DeviceLedgers> {
    let ledgers = DeviceLedgers::open(context, database).await?;
    context.tasks.spawn_until_shutdown("device-sights", Arc::clone(&ledgers.liveness).run());
    context.tasks.spawn_until_shutdown("device-polls", ledgers.clone().follow());
    Ok(ledgers)
}

/// Serves devices, their agents, and the reports of other parts.
pub(crate) fn serve(server: &mut Server, ledgers: &DeviceLedgers) {
    let ledgers = || ledgers.clone();
    server.add(DeviceServiceServer::new(ledgers()).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(DeviceAgentServiceServer::new(ledgers()).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(DeviceReportServiceServer::new(ledgers()).max_decoding_message_size(LARGEST_MESSAGE));
}
