//! Reads of the inventory, shared by the sessions that are set up at the same time.

use std::{sync::Arc, time::Duration};

use chassis::{Channel, channel::LARGEST_MESSAGE, within};
use domain::inventory::Inventory;
use proto::inventory::{ListInventoryRequest, inventory_service_client::InventoryServiceClient};
use tonic::Status;

use crate::{answers::Answers, convert::inventory::Reader, setback::Setback};

/// Who cannot be asked, in texts for people.
const INVENTORY: &str = "inventory";

/// Pictures of the machine, none older than the question that it answers.
pub(crate) struct Inventories {
    client: InventoryServiceClient<Channel>,
    pictures: Answers<(), Arc<Inventory>>,
}

impl Inventories {
    /// Pictures taken through the registry behind `channel`.
    pub(crate) fn new(channel: Channel) -> Self {
        let client = InventoryServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self { client, pictures: Answers::new(Duration::ZERO) }
    }

    /// A picture that was begun after this call.
    ///
    /// # Errors
    /// When the inventory is not told within `deadline` once it is asked.
    pub(crate) async fn read(&self, deadline: Duration) -> Result<Arc<Inventory>, Setback> {
        let take = || async {
            let picture = within(deadline, self.take()).await;
            picture.map(Arc::new).map_err(|status| Setback::from_mesh(INVENTORY, status))
        };
        self.pictures.get((), take).await
    }

    async fn take(&self) -> Result<Inventory, Status> {
        let mut client = self.client.clone();
        let mut messages = client.list_inventory(ListInventoryRequest {}).await?.into_inner();
        let mut reader = Reader::default();
        while let Some(message) = messages.message().await? {
            reader.read(message);
        }
        Ok(reader.finish())
    }
}
