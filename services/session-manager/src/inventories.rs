//! Reads of the inventory, shared by concurrent session setups.

use std::{sync::Arc, time::Duration};

use chassis::{Channel, mesh::channel::LARGEST_MESSAGE, observe::single_flight::SingleFlight, within};
use domain::boot::session::inventory::Inventory;
use proto::inventory::{ListInventoryRequest, inventory_service_client::InventoryServiceClient};
use tonic::Status;

use crate::{
    convert::inventory::InventoryReader,
    dependency::{Dependency, DependencyError},
};

/// Reads of the inventory that begin after the question they answer.
pub(crate) struct InventoryReads {
    client: InventoryServiceClient<Channel>,
    pictures: SingleFlight<(), Arc<Inventory>, DependencyError>,
}

impl InventoryReads {
    /// Creates a reader for the registry behind `channel`.
    pub(crate) fn new(channel: Channel) -> Self {
        let client = InventoryServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self { client, pictures: SingleFlight::new(Duration::ZERO, DependencyError::is_outage) }
    }

    /// Returns an inventory whose read began after this call.
    ///
    /// # Errors
    /// The registry does not return the whole inventory within `deadline`.
    pub(crate) async fn read(&self, deadline: Duration) -> Result<Arc<Inventory>, DependencyError> {
        let take = || async {
            let picture = within(deadline, self.take()).await;
            picture.map(Arc::new).map_err(|status| DependencyError::from_mesh(Dependency::Inventory, status))
        };
        self.pictures.get((), take).await
    }

    async fn take(&self) -> Result<Inventory, Status> {
        let mut client = self.client.clone();
        let mut messages = client.list_inventory(ListInventoryRequest {}).await?.into_inner();
        let mut reader = InventoryReader::default();
        while let Some(message) = messages.message().await? {
            reader.read(message);
        }
        Ok(reader.finish())
    }
}
