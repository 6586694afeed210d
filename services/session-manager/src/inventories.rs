//! Reads of the inventory, shared by the sessions that are set up at the same time.

use std::{sync::Arc, time::Duration};

use chassis::{Channel, channel::LARGEST_MESSAGE, within};
use domain::inventory::Inventory;
use proto::inventory::{ListInventoryRequest, inventory_service_client::InventoryServiceClient};
use tokio::{sync::Mutex, time::Instant};
use tonic::Status;

use crate::{convert::inventory::Reader, setback::Setback};

/// Who cannot be asked, in texts for people.
const PEER: &str = "inventory";

type Picture = Result<Arc<Inventory>, Setback>;

/// Pictures of the machine, none older than the question that it answers.
pub(crate) struct Inventories {
    client: InventoryServiceClient<Channel>,
    /// The newest picture, or why there is none, and when its reading began. Whoever waits here for a reading
    /// to end takes what the next one brings, together with all others who wait.
    newest: Mutex<Option<(Instant, Picture)>>,
}

impl Inventories {
    /// Pictures taken through the registry behind `channel`.
    pub(crate) fn new(channel: Channel) -> Self {
        let client = InventoryServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self { client, newest: Mutex::new(None) }
    }

    /// A picture that was begun after this call.
    ///
    /// # Errors
    /// When the inventory is not told within `deadline` once it is asked.
    pub(crate) async fn read(&self, deadline: Duration) -> Picture {
        let asked = Instant::now();
        let mut newest = self.newest.lock().await;
        if let Some((began, picture)) = &*newest
            && *began >= asked
        {
            return picture.clone();
        }
        let began = Instant::now();
        let picture = within(deadline, self.take()).await;
        let picture = picture.map(Arc::new).map_err(|status| Setback::from_peer(PEER, status));
        *newest = Some((began, picture.clone()));
        picture
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
