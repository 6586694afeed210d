//! Passing the inventory on.

use chassis::ledger::Responses;
use futures_util::stream;
use proto::inventory::{
    ListInventoryRequest, ListInventoryResponse, inventory_service_server::InventoryService,
};
use tonic::{Request, Response, Status, async_trait};

use crate::Registry;

#[async_trait]
impl InventoryService for Registry {
    type ListInventoryStream = Responses<ListInventoryResponse>;

    async fn list_inventory(
        &self,
        _: Request<ListInventoryRequest>,
    ) -> Result<Response<Self::ListInventoryStream>, Status> {
        let parts = self.inventory.read().await?;
        Ok(Response::new(Box::pin(stream::iter(parts.into_iter().map(Ok)))))
    }
}
