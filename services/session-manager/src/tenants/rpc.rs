//! The calls about tenants.

use std::sync::Arc;

use chassis::Fault;
use domain::id::{ComponentId, Tenant};
use proto::tenant::{GetTenantRequest, GetTenantResponse, Nodes, tenant_service_server::TenantService};
use tonic::{Request, Response, Status};

use super::Tenants;

pub(crate) struct TenantRpc {
    pub(crate) tenants: Arc<Tenants>,
}

#[tonic::async_trait]
impl TenantService for TenantRpc {
    async fn get_tenant(
        &self,
        request: Request<GetTenantRequest>,
    ) -> Result<Response<GetTenantResponse>, Status> {
        let GetTenantRequest { name, among } = request.into_inner();
        let tenant = Tenant::parse(&name).map_err(Fault::Invalid)?;
        let nodes = self.tenants.told(&tenant).await?;
        let nodes = nodes.map(|own| {
            let own_of = |mut among: Vec<String>| {
                among.retain(|id| own.contains(id.as_str()));
                among.sort_unstable();
                among.dedup();
                among
            };
            let all = || own.iter().map(ComponentId::as_str).map(str::to_owned).collect();
            Nodes { ids: if among.is_empty() { all() } else { own_of(among) } }
        });
        Ok(Response::new(GetTenantResponse { nodes }))
    }
}
