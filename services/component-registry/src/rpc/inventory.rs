//! Inventory lists, and hints of changes.

use std::sync::Arc;

use chassis::store::ledger::Responses;
use proto::inventory::{
    ListInventoryRequest, ListInventoryResponse, NotifyChangeRequest, NotifyChangeResponse,
    inventory_service_server::InventoryService,
};
use tonic::{Request, Response, Status, async_trait};

use crate::{RegistryState, inventory::InventorySnapshot};

#[async_trait]
impl InventoryService for RegistryState {
    type ListInventoryStream = Responses<ListInventoryResponse>;

    async fn list_inventory(
        &self,
        _: Request<ListInventoryRequest>,
    ) -> Result<Response<Self::ListInventoryStream>, Status> {
        let snapshot = self.inventory.snapshot().await?;
        Ok(self.components.respond(parts(snapshot)))
    }

    async fn notify_change(
        &self,
        request: Request<NotifyChangeRequest>,
    ) -> Result<Response<NotifyChangeResponse>, Status> {
        self.take_hint(&request.into_inner().ids);
        Ok(Response::new(NotifyChangeResponse {}))
    }
}

/// Returns the messages of a snapshot, each copied when it is sent: several calls may send the same snapshot.
fn parts(snapshot: Arc<InventorySnapshot>) -> impl Iterator<Item = ListInventoryResponse> {
    (0..snapshot.parts.len()).map(move |part| snapshot.parts[part].clone())
}
