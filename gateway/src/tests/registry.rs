//! A component registry that records requests and gives fixed answers.

use std::sync::{Arc, Mutex};

use chassis::{Context, Fault, Server};
use futures_util::{StreamExt, future, stream, stream::BoxStream};
use proto::{
    Encoded,
    component::{
        Component, DeleteComponentRequest, DeleteComponentResponse, GetComponentRequest,
        GetComponentResponse, ListComponentsRequest, ListComponentsResponse, PatchComponentsRequest,
        PatchComponentsResponse, PutComponentsRequest, PutComponentsResponse, WatchComponentsRequest,
        WatchComponentsResponse,
        component_service_server::{ComponentService, ComponentServiceServer},
        patch_components_request::Selection,
    },
    option::{
        GetOptionsRequest, GetOptionsResponse, Options, OptionsRecord, UpdateOptionsRequest,
        UpdateOptionsResponse, WatchOptionsRequest, WatchOptionsResponse,
        options_service_server::{OptionsService, OptionsServiceServer},
    },
    tenant::{
        GetTenantRequest, GetTenantResponse, Nodes,
        tenant_service_server::{TenantService, TenantServiceServer},
    },
};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, async_trait};

#[derive(Clone, Default)]
pub(crate) struct Registry {
    said: Arc<Mutex<Vec<String>>>,
    request_id: Arc<Mutex<Option<String>>>,
    client: Arc<Mutex<Option<String>>>,
}

impl Registry {
    pub(crate) async fn serve(self, context: &Context, listener: TcpListener) {
        let mut server = Server::default();
        let largest = chassis::mesh::channel::LARGEST_MESSAGE;
        server.add(ComponentServiceServer::new(self.clone()).max_decoding_message_size(largest));
        server.add(OptionsServiceServer::new(self.clone()));
        server.add(TenantServiceServer::new(self));
        chassis::serve(context, "registry", listener, server).await.unwrap().now();
    }

    /// Returns the requests so far, one per line.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().iter().map(|line| format!("{line}\n")).collect()
    }

    pub(crate) fn last_client(&self) -> Option<String> {
        self.client.lock().unwrap().clone()
    }

    pub(crate) fn last_request_id(&self) -> Option<String> {
        self.request_id.lock().unwrap().clone()
    }

    fn hear<T: std::fmt::Debug>(&self, request: Request<T>) -> T {
        let id = request.metadata().get("x-request-id").map(|value| value.to_str().unwrap().to_owned());
        *self.request_id.lock().unwrap() = id;
        let client = request.metadata().get("x-reveille-client");
        *self.client.lock().unwrap() = client.map(|value| value.to_str().unwrap().to_owned());
        let message = request.into_inner();
        self.said.lock().unwrap().push(format!("{message:?}"));
        message
    }
}

fn component(id: &str) -> Component {
    Component { id: id.to_owned(), ..Default::default() }
}

fn page(ids: &[&str]) -> Result<ListComponentsResponse, Status> {
    Ok(ListComponentsResponse { components: ids.iter().map(|id| component(id)).collect(), revision: 1 })
}

#[async_trait]
impl ComponentService for Registry {
    type ListComponentsStream = BoxStream<'static, Result<ListComponentsResponse, Status>>;
    type WatchComponentsStream = BoxStream<'static, Result<Encoded<WatchComponentsResponse>, Status>>;

    async fn list_components(
        &self,
        request: Request<ListComponentsRequest>,
    ) -> Result<Response<Self::ListComponentsStream>, Status> {
        let gone = || Status::from(Fault::unavailable("database", "gone"));
        let session = self.hear(request).filter.unwrap_or_default().session;
        let pages = match session.as_deref() {
            Some("refused") => return Err(gone()),
            Some("refused-late") => vec![Err(gone())],
            Some("broken") => vec![page(&["a", "b"]), Err(gone())],
            Some("pages") => vec![page(&["a", "b"]), page(&[]), page(&["c"])],
            _ => vec![],
        };
        Ok(Response::new(stream::iter(pages).boxed()))
    }

    async fn get_component(
        &self,
        request: Request<GetComponentRequest>,
    ) -> Result<Response<GetComponentResponse>, Status> {
        match self.hear(request).id.as_str() {
            "nope" => Err(Fault::not_found("component", "nope").into()),
            id => Ok(Response::new(GetComponentResponse { component: Some(component(id)) })),
        }
    }

    async fn watch_components(
        &self,
        _: Request<WatchComponentsRequest>,
    ) -> Result<Response<Self::WatchComponentsStream>, Status> {
        Ok(Response::new(stream::once(future::pending()).boxed()))
    }

    async fn put_components(
        &self,
        request: Request<PutComponentsRequest>,
    ) -> Result<Response<PutComponentsResponse>, Status> {
        let components = self.hear(request).components;
        Ok(Response::new(PutComponentsResponse { components }))
    }

    async fn patch_components(
        &self,
        request: Request<PatchComponentsRequest>,
    ) -> Result<Response<PatchComponentsResponse>, Status> {
        let components = match self.hear(request).selection {
            Some(Selection::Each(each)) => each.patches,
            _ => vec![],
        };
        if components.iter().any(|component| component.id == "busy") {
            let locked = Fault::Locked {
                kind: "component".into(),
                name: "busy".into(),
                reason: "is powering off".into(),
            };
            return Err(locked.into());
        }
        Ok(Response::new(PatchComponentsResponse { components }))
    }

    async fn delete_component(
        &self,
        request: Request<DeleteComponentRequest>,
    ) -> Result<Response<DeleteComponentResponse>, Status> {
        self.hear(request);
        Ok(Response::new(DeleteComponentResponse {}))
    }
}

fn options() -> Options {
    Options {
        bss_read_timeout: Some(20),
        cfs_read_timeout: Some(20),
        hsm_read_timeout: Some(20),
        ims_read_timeout: Some(20),
        pcs_read_timeout: Some(20),
        cleanup_completed_session_ttl: Some("7d".into()),
        clear_stage: Some(false),
        component_actual_state_ttl: Some("4h".into()),
        default_retry_policy: Some(3),
        disable_components_on_completion: None,
        discovery_frequency: Some(300),
        ims_errors_fatal: Some(false),
        ims_images_must_exist: Some(false),
        logging_level: Some("INFO".into()),
        max_boot_wait_time: Some(1200),
        max_component_batch_size: Some(2800),
        max_power_off_wait_time: Some(300),
        max_power_on_wait_time: Some(120),
        polling_frequency: Some(15),
        reject_nids: Some(false),
        session_limit_required: Some(false),
    }
}

#[async_trait]
impl OptionsService for Registry {
    type WatchOptionsStream = BoxStream<'static, Result<Encoded<WatchOptionsResponse>, Status>>;

    async fn get_options(
        &self,
        _: Request<GetOptionsRequest>,
    ) -> Result<Response<GetOptionsResponse>, Status> {
        let record = OptionsRecord { options: Some(options()), revision: 1 };
        Ok(Response::new(GetOptionsResponse { record: Some(record) }))
    }

    async fn update_options(
        &self,
        request: Request<UpdateOptionsRequest>,
    ) -> Result<Response<UpdateOptionsResponse>, Status> {
        let change = request.into_inner().options.unwrap_or_default();
        if change.bss_read_timeout.is_some() {
            return Err(Status::invalid_argument("bss_read_timeout: 1 is not between 10 and 86400"));
        }
        let options = Options { clear_stage: change.clear_stage, ..options() };
        let record = OptionsRecord { options: Some(options), revision: 2 };
        Ok(Response::new(UpdateOptionsResponse { record: Some(record) }))
    }

    async fn watch_options(
        &self,
        _: Request<WatchOptionsRequest>,
    ) -> Result<Response<Self::WatchOptionsStream>, Status> {
        Ok(Response::new(stream::once(future::pending()).boxed()))
    }
}

/// The tenants of a session manager: `blue` has two nodes, and so has `shrinking`, one of them in doubt.
#[async_trait]
impl TenantService for Registry {
    async fn get_tenant(
        &self,
        request: Request<GetTenantRequest>,
    ) -> Result<Response<GetTenantResponse>, Status> {
        let GetTenantRequest { name, among } = self.hear(request);
        let ids = ["a", "b"].map(str::to_owned).into_iter();
        let ids = ids.filter(|id| among.is_empty() || among.contains(id)).collect();
        match name.as_str() {
            "blue" => {
                let nodes = Nodes { ids, ..Nodes::default() };
                Ok(Response::new(GetTenantResponse { nodes: Some(nodes) }))
            }
            "shrinking" => {
                let in_doubt_since = Some(prost_types::Timestamp { seconds: 1_732_119_012, nanos: 0 });
                let nodes = Nodes { ids, in_doubt_ids: vec!["b".to_owned()], in_doubt_since };
                Ok(Response::new(GetTenantResponse { nodes: Some(nodes) }))
            }
            "everything" => Ok(Response::new(GetTenantResponse { nodes: None })),
            "mute" => Err(Fault::unavailable("tenant service", "TAPMS at tapms.example: gone").into()),
            _ => Err(Fault::not_found("tenant", &name).into()),
        }
    }
}
