//! Passing the inventory on, and hints that it has changed.

use std::sync::Arc;

use chassis::ledger::Responses;
use proto::inventory::{
    ListInventoryRequest, ListInventoryResponse, NotifyChangeRequest, NotifyChangeResponse,
    inventory_service_server::InventoryService,
};
use tonic::{Request, Response, Status, async_trait};

use crate::{Registry, inventory::Picture};

#[async_trait]
impl InventoryService for Registry {
    type ListInventoryStream = Responses<ListInventoryResponse>;

    async fn list_inventory(
        &self,
        _: Request<ListInventoryRequest>,
    ) -> Result<Response<Self::ListInventoryStream>, Status> {
        let picture = self.inventory.picture().await?;
        Ok(self.components.respond(parts(picture)))
    }

    async fn notify_change(
        &self,
        request: Request<NotifyChangeRequest>,
    ) -> Result<Response<NotifyChangeResponse>, Status> {
        self.take_hint(&request.into_inner().ids);
        Ok(Response::new(NotifyChangeResponse {}))
    }
}

/// The messages of a picture, each copied as it is sent: others may be sending the same picture.
fn parts(picture: Arc<Picture>) -> impl Iterator<Item = ListInventoryResponse> {
    (0..picture.parts.len()).map(move |part| picture.parts[part].clone())
}
