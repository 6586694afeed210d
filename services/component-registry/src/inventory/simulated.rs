//! Simulated fleet as an inventory.

use std::time::Duration;

use anyhow::Context as _;
use chassis::{Channel, Fault, mesh::channel::LARGEST_MESSAGE, settings::TlsSettings, within};
use proto::simulation::{ListHardwareRequest, fleet_service_client::FleetServiceClient};
use tonic::Status;

use super::{INVENTORY, InventorySnapshot};

/// Deadline for reading the whole inventory. Reading 100,000 nodes takes a few seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// gRPC client of the simulated fleet.
pub(crate) struct FleetClient(FleetServiceClient<Channel>);

impl FleetClient {
    /// Creates a client for the fleet at `url`.
    pub(super) fn new(tls: &TlsSettings, url: &str) -> anyhow::Result<Self> {
        let channel = chassis::channel(tls, url).context("simulator.url")?;
        Ok(Self(FleetServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE)))
    }

    pub(super) async fn snapshot(&self) -> Result<InventorySnapshot, Fault> {
        let read = within(DEADLINE, self.read()).await;
        read.map_err(|status| Fault::unavailable(INVENTORY, status.message()))
    }

    async fn read(&self) -> Result<InventorySnapshot, Status> {
        let mut client = self.0.clone();
        let mut messages = client.list_hardware(ListHardwareRequest {}).await?.into_inner();
        let mut hardware = Vec::new();
        let mut groups = Vec::new();
        let mut partitions = Vec::new();
        while let Some(message) = messages.message().await? {
            hardware.extend(message.hardware);
            groups.extend(message.groups);
            partitions.extend(message.partitions);
        }
        Ok(InventorySnapshot::new(hardware, groups, partitions))
    }
}
