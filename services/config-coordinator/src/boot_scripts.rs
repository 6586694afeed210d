//! The boot script service: serves our own boot scripts to the gateway.
//!
//! A node that is unknown, or without a preparation, has no script. Its firmware then continues with its next boot
//! device, as it does with other boot script services: a script that waits would keep nodes from booting from their
//! disks for ever, and a node that a session switches on has been prepared before.

use chassis::{Fault, mesh::time, process::clock};
use domain::core::invalid::Invalid;
use proto::boot::{
    GetBootScriptRequest, GetBootScriptResponse, ListScriptRequestsRequest, ListScriptRequestsResponse,
    ScriptRequests, boot_script_service_server::BootScriptService, get_boot_script_request::Node,
};
use tonic::{Request, Response, Status};

use crate::{
    script_requests::RequestNotes,
    store::BootScript,
    upstream::boot_parameters::{BootDataUpstream, built_in::NodeIdentity},
};

pub(crate) struct BootScriptRpc {
    pub(crate) boot_parameters: BootDataUpstream,
    pub(crate) requests: RequestNotes,
}

#[tonic::async_trait]
impl BootScriptService for BootScriptRpc {
    async fn get_boot_script(
        &self,
        request: Request<GetBootScriptRequest>,
    ) -> Result<Response<GetBootScriptResponse>, Status> {
        let BootDataUpstream::BuiltIn(scripts) = &self.boot_parameters else {
            return Err(Status::failed_precondition("boot scripts are served by another service"));
        };
        let (identity, name) = match request.into_inner().node {
            Some(Node::Id(id)) => (NodeIdentity::Id(id.clone()), id),
            Some(Node::Mac(mac)) => (NodeIdentity::Mac(mac.clone()), mac),
            Some(Node::Nid(nid)) => (NodeIdentity::Nid(nid), nid.to_string()),
            None => return Err(Fault::Invalid(Invalid::new("node", "is missing")).into()),
        };
        match scripts.script_for(identity) {
            Ok(Some((id, script))) => {
                self.requests.note(id, clock::now());
                tracing::info!(node = name, "boot script fetched");
                Ok(Response::new(GetBootScriptResponse { script }))
            }
            Ok(None) => Err(Fault::not_found("boot_script", &name).into()),
            Err(reason) => {
                tracing::warn!(node = name, %reason, "there is no boot script of what was prepared");
                Err(Fault::not_found("boot_script", &name).into())
            }
        }
    }

    async fn list_script_requests(
        &self,
        request: Request<ListScriptRequestsRequest>,
    ) -> Result<Response<ListScriptRequestsResponse>, Status> {
        let BootDataUpstream::BuiltIn(scripts) = &self.boot_parameters else {
            return Ok(Response::new(ListScriptRequestsResponse::default()));
        };
        let ids = request.into_inner().component_ids;
        let requests = ids.iter().filter_map(|id| scripts.kept(id)).map(|kept| to_wire(&kept)).collect();
        Ok(Response::new(ListScriptRequestsResponse { served_here: true, requests }))
    }
}

fn to_wire(kept: &BootScript) -> ScriptRequests {
    ScriptRequests {
        component_id: kept.id.as_str().to_owned(),
        prepared_at: kept.prepared_at.map(time::to_wire),
        first_at: kept.requests.map(|requests| time::to_wire(requests.first_at)),
        last_at: kept.requests.map(|requests| time::to_wire(requests.last_at)),
        count: kept.requests.map_or(0, |requests| requests.count),
    }
}
