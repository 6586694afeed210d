//! A component registry that keeps its records in memory and applies the rules to reports.

use std::{collections::BTreeMap, sync::Arc};

use chassis::{
    Context, Server,
    kinds::{component, options, trouble},
    process::clock,
};
use domain::{
    boot::{
        bos::options::Options,
        component::{Component, report},
    },
    core::id::ComponentId,
};
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use proto::{
    Encoded,
    component::{
        ApplyStagedRequest, ApplyStagedResponse, AssignSessionRequest, AssignSessionResponse,
        DeleteComponentRequest, DeleteComponentResponse, GetComponentRequest, GetComponentResponse,
        ListComponentsRequest, ListComponentsResponse, PatchComponentsRequest, PatchComponentsResponse,
        PutComponentsRequest, PutComponentsResponse, ReportActionsRequest, ReportActionsResponse,
        ReportPreparationsRequest, ReportPreparationsResponse, ReportStatusesRequest, ReportStatusesResponse,
        WatchComponentsRequest, WatchComponentsResponse,
        component_service_server::{ComponentService, ComponentServiceServer},
        report_service_server::{ReportService, ReportServiceServer},
    },
    option::{
        GetOptionsRequest, GetOptionsResponse, OptionsRecord, UpdateOptionsRequest, UpdateOptionsResponse,
        WatchOptionsRequest, WatchOptionsResponse,
        options_service_server::{OptionsService, OptionsServiceServer},
    },
};
use tokio::{net::TcpListener, sync::watch};
use tonic::{Request, Response, Status, async_trait};

/// Registry. Clones share it.
#[derive(Clone)]
pub(crate) struct FakeRegistry {
    world: Arc<watch::Sender<RegistryWorld>>,
    reports: Arc<Mutex<Vec<report::ActionReport>>>,
}

#[derive(Clone, Default)]
struct RegistryWorld {
    revision: u64,
    components: BTreeMap<String, Component>,
    options: Options,
    /// Whether the options are withheld from all readers.
    keeps_options: bool,
    /// Component whose reports are held.
    held: String,
}

type Responses<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl FakeRegistry {
    /// Serves on an address of its own until the context ends, and returns that address.
    pub(crate) async fn start(context: &Context, options: Options) -> (Self, String) {
        let world = RegistryWorld { revision: 1, options, ..RegistryWorld::default() };
        let registry = Self { world: Arc::new(watch::Sender::new(world)), reports: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = Server::default();
        server.add(ComponentServiceServer::new(registry.clone()));
        server.add(ReportServiceServer::new(registry.clone()));
        server.add(OptionsServiceServer::new(registry.clone()));
        chassis::serve(context, "registry", listener, server).await.unwrap().now();
        (registry, url)
    }

    pub(crate) fn get(&self, id: &str) -> Component {
        self.world.borrow().components[id].clone()
    }

    /// Stores components as they are, under new revisions and all at once.
    pub(crate) fn put(&self, components: impl IntoIterator<Item = Component>) {
        self.world.send_modify(|world| components.into_iter().for_each(|component| world.put(component)));
    }

    /// Changes a component.
    pub(crate) fn change(&self, id: &str, change: impl FnOnce(&mut Component)) {
        let mut component = self.get(id);
        change(&mut component);
        self.put([component]);
    }

    /// Withholds the options from later readers, or releases them to all that wait.
    pub(crate) fn keep_options(&self, keep: bool) {
        self.world.send_modify(|world| world.keeps_options = keep);
    }

    /// Holds the reports about this component, and releases those about others.
    pub(crate) fn hold_reports(&self, id: &str) {
        self.world.send_modify(|world| id.clone_into(&mut world.held));
    }

    /// Returns the reports so far, one line each.
    pub(crate) fn reports(&self) -> Vec<String> {
        let line = |one: &report::ActionReport| {
            let failed = if one.failed { " failed" } else { "" };
            format!(
                "{} {} {}{failed} '{}'",
                one.id,
                one.action.word(),
                one.attempt,
                trouble::text_to_wire(one.trouble.as_deref())
            )
        };
        self.reports.lock().iter().map(line).collect()
    }
}

impl RegistryWorld {
    fn put(&mut self, component: Component) {
        self.revision += 1;
        let component = Component { revision: self.revision, ..component };
        self.components.insert(component.id.as_str().to_owned(), component);
    }

    fn report(&mut self, report: &report::ActionReport) -> bool {
        let Some(component) = self.components.get(report.id.as_str()) else { return false };
        match report::action(component, report, clock::now()) {
            Ok(Some(changed)) => {
                self.put(changed);
                true
            }
            Ok(None) => true,
            Err(report::Stale) => false,
        }
    }

    fn components_since(&self, revision: u64, synced: bool) -> WatchComponentsResponse {
        let changed = self.components.values().filter(|one| one.revision > revision);
        WatchComponentsResponse {
            components: changed.map(component::to_wire).collect(),
            deletions: Vec::new(),
            revision: self.revision,
            synced,
        }
    }
}

#[async_trait]
impl ComponentService for FakeRegistry {
    type ListComponentsStream = Responses<ListComponentsResponse>;
    type WatchComponentsStream = Responses<Encoded<WatchComponentsResponse>>;

    async fn watch_components(
        &self,
        _: Request<WatchComponentsRequest>,
    ) -> Result<Response<Self::WatchComponentsStream>, Status> {
        let mut changes = self.world.subscribe();
        changes.mark_changed();
        let responses = stream::unfold((changes, None), |(mut changes, told)| async move {
            changes.changed().await.ok()?;
            let response = changes.borrow_and_update().components_since(told.unwrap_or(0), told.is_none());
            let revision = response.revision;
            Some((Ok(response.into()), (changes, Some(revision))))
        });
        Ok(Response::new(responses.boxed()))
    }

    async fn list_components(
        &self,
        _: Request<ListComponentsRequest>,
    ) -> Result<Response<Self::ListComponentsStream>, Status> {
        Err(unused())
    }

    async fn get_component(
        &self,
        _: Request<GetComponentRequest>,
    ) -> Result<Response<GetComponentResponse>, Status> {
        Err(unused())
    }

    async fn put_components(
        &self,
        _: Request<PutComponentsRequest>,
    ) -> Result<Response<PutComponentsResponse>, Status> {
        Err(unused())
    }

    async fn patch_components(
        &self,
        _: Request<PatchComponentsRequest>,
    ) -> Result<Response<PatchComponentsResponse>, Status> {
        Err(unused())
    }

    async fn delete_component(
        &self,
        _: Request<DeleteComponentRequest>,
    ) -> Result<Response<DeleteComponentResponse>, Status> {
        Err(unused())
    }
}

#[async_trait]
impl ReportService for FakeRegistry {
    async fn report_actions(
        &self,
        request: Request<ReportActionsRequest>,
    ) -> Result<Response<ReportActionsResponse>, Status> {
        let mut stale_ids = Vec::new();
        let reports = request.into_inner().reports;
        let is_held = |world: &RegistryWorld| reports.iter().any(|report| report.id == world.held);
        drop(self.world.subscribe().wait_for(|world| !is_held(world)).await);
        for wire in reports {
            let report = report::ActionReport {
                id: ComponentId::parse(&wire.id).unwrap(),
                generation: wire.generation,
                action: component::action_from_wire(wire.action).unwrap(),
                attempt: wire.attempt,
                trouble: trouble::from_wire(wire.error_kind, wire.error).map(Arc::new),
                failed: wire.failed,
            };
            self.world.send_modify(|world| {
                if !world.report(&report) {
                    stale_ids.push(wire.id);
                }
            });
            self.reports.lock().push(report);
        }
        Ok(Response::new(ReportActionsResponse { stale_ids }))
    }

    async fn assign_session(
        &self,
        _: Request<AssignSessionRequest>,
    ) -> Result<Response<AssignSessionResponse>, Status> {
        Err(unused())
    }

    async fn apply_staged(
        &self,
        _: Request<ApplyStagedRequest>,
    ) -> Result<Response<ApplyStagedResponse>, Status> {
        Err(unused())
    }

    async fn report_statuses(
        &self,
        _: Request<ReportStatusesRequest>,
    ) -> Result<Response<ReportStatusesResponse>, Status> {
        Err(unused())
    }

    async fn report_preparations(
        &self,
        _: Request<ReportPreparationsRequest>,
    ) -> Result<Response<ReportPreparationsResponse>, Status> {
        Err(unused())
    }
}

#[async_trait]
impl OptionsService for FakeRegistry {
    type WatchOptionsStream = Responses<Encoded<WatchOptionsResponse>>;

    async fn watch_options(
        &self,
        _: Request<WatchOptionsRequest>,
    ) -> Result<Response<Self::WatchOptionsStream>, Status> {
        let tell = |told: Option<&RegistryWorld>| {
            let record = |world: &RegistryWorld| {
                let options = Some(options::to_wire(world.options.clone()));
                OptionsRecord { options, revision: world.revision }
            };
            let (records, revision) =
                (told.map(record).into_iter().collect(), told.map_or(0, |world| world.revision));
            Ok(WatchOptionsResponse { records, revision, synced: true }.into())
        };
        let mut world = self.world.subscribe();
        let now = tell(Some(&*world.borrow()).filter(|world| !world.keeps_options));
        let later = async move {
            match world.wait_for(|world| !world.keeps_options).await {
                Ok(world) => tell(Some(&*world)),
                Err(_) => Err(Status::unavailable("the registry is gone")),
            }
        };
        Ok(Response::new(stream::iter([now]).chain(stream::once(later)).chain(stream::pending()).boxed()))
    }

    async fn get_options(
        &self,
        _: Request<GetOptionsRequest>,
    ) -> Result<Response<GetOptionsResponse>, Status> {
        Err(unused())
    }

    async fn update_options(
        &self,
        _: Request<UpdateOptionsRequest>,
    ) -> Result<Response<UpdateOptionsResponse>, Status> {
        Err(unused())
    }
}

fn unused() -> Status {
    Status::unimplemented("the power controller does not need it")
}
