//! Where the registry learns what the machine is made of.

use std::time::Duration;

use chassis::{Channel, Fault, channel::LARGEST_MESSAGE};
use proto::{
    inventory::ListInventoryResponse,
    simulation::{ListHardwareRequest, fleet_service_client::FleetServiceClient},
};
use tonic::Request;

/// Longest time to read the whole inventory. Reading 100,000 nodes takes a few seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// The upstream that lists hardware.
pub(crate) enum Driver {
    /// The simulated fleet.
    Simulated(FleetServiceClient<Channel>),
}

impl Driver {
    /// The simulated fleet at `url`.
    pub(crate) fn simulated(url: &str) -> anyhow::Result<Self> {
        let client =
            FleetServiceClient::new(chassis::channel(url)?).max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self::Simulated(client))
    }

    /// Reads everything, part by part. A part is not handed out before the whole was read: half an
    /// inventory would look like a smaller machine.
    pub(crate) async fn read(&self) -> Result<Vec<ListInventoryResponse>, Fault> {
        match self {
            Self::Simulated(client) => {
                let mut request = Request::new(ListHardwareRequest {});
                request.set_timeout(DEADLINE);
                let trouble = |status: tonic::Status| Fault::unavailable("inventory", status.message());
                let mut parts = client.clone().list_hardware(request).await.map_err(trouble)?.into_inner();
                let mut read = Vec::new();
                while let Some(part) = parts.message().await.map_err(trouble)? {
                    read.push(ListInventoryResponse {
                        hardware: part.hardware,
                        groups: part.groups,
                        partitions: part.partitions,
                    });
                }
                Ok(read)
            }
        }
    }
}
