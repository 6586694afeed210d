//! The simulated fleet as an inventory.

use std::time::Duration;

use anyhow::Context as _;
use chassis::{Channel, Fault, channel::LARGEST_MESSAGE, within};
use proto::simulation::{ListHardwareRequest, fleet_service_client::FleetServiceClient};
use tonic::Status;

use super::{INVENTORY, Picture};

/// Longest time to read the whole inventory. Reading 100,000 nodes takes a few seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// The simulated fleet, asked over gRPC.
pub(crate) struct Fleet(FleetServiceClient<Channel>);

impl Fleet {
    /// The fleet at `url`.
    pub(super) fn new(url: &str) -> anyhow::Result<Self> {
        let channel = chassis::channel(url).context("simulator.url")?;
        Ok(Self(FleetServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE)))
    }

    pub(super) async fn picture(&self) -> Result<Picture, Fault> {
        let trouble = |status: Status| Fault::unavailable(INVENTORY, status.message());
        within(DEADLINE, self.read()).await.map_err(trouble)
    }

    async fn read(&self) -> Result<Picture, Status> {
        let mut client = self.0.clone();
        let mut messages = client.list_hardware(ListHardwareRequest {}).await?.into_inner();
        let (mut hardware, mut groups, mut partitions) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(message) = messages.message().await? {
            hardware.extend(message.hardware);
            groups.extend(message.groups);
            partitions.extend(message.partitions);
        }
        Ok(Picture::new(hardware, groups, partitions))
    }
}
