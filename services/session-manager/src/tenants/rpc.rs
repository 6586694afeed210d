//! Calls about tenants.

use std::{collections::BTreeSet, sync::Arc};

use chassis::{Fault, mesh::time};
use domain::core::id::{ComponentId, Tenant};
use proto::tenant::{GetTenantRequest, GetTenantResponse, Nodes, tenant_service_server::TenantService};
use tonic::{Request, Response, Status};

use super::TenantLookup;

pub(crate) struct TenantRpc {
    pub(crate) tenants: Arc<TenantLookup>,
}

#[tonic::async_trait]
impl TenantService for TenantRpc {
    async fn get_tenant(
        &self,
        request: Request<GetTenantRequest>,
    ) -> Result<Response<GetTenantResponse>, Status> {
        let GetTenantRequest { name, among } = request.into_inner();
        let tenant = Tenant::parse(&name).map_err(Fault::Invalid)?;
        let nodes = self.tenants.nodes_in_time(&tenant).await?;
        let nodes = nodes.map(|own| {
            let among: BTreeSet<String> = among.into_iter().collect();
            let wanted = |id: &&ComponentId| among.is_empty() || among.contains(id.as_str());
            let own_ids = own.elements.iter().filter(wanted).map(|id| id.as_str().to_owned()).collect();
            let in_doubt = own.in_doubt.iter().filter(|(id, _)| wanted(id));
            let (in_doubt_ids, since): (Vec<_>, Vec<_>) =
                in_doubt.map(|(id, since)| (id.as_str().to_owned(), *since)).unzip();
            let in_doubt_since = since.into_iter().min().map(time::to_wire);
            Nodes { ids: own_ids, in_doubt_ids, in_doubt_since }
        });
        Ok(Response::new(GetTenantResponse { nodes }))
    }
}
