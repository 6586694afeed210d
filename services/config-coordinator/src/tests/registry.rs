//! A component registry that stores components, applies the rules to preparations, and refuses everything else; and a
//! power controller that has read the power of all nodes.

use std::{collections::BTreeMap, sync::Arc};

use chassis::{
    Context, Server,
    kinds::{self, trouble},
    process::clock,
};
use domain::{
    boot::{
        bos::options::Options,
        component::{
            Component, EventStats, InventoryPresence, Phase,
            report::{self, PreparationReport},
        },
    },
    core::id::ComponentId,
};
use futures_util::{StreamExt, stream, stream::BoxStream};
use parking_lot::Mutex;
use proto::{
    Encoded,
    component::{
        ApplyStagedRequest, ApplyStagedResponse, AssignSessionRequest, AssignSessionResponse, BootToken,
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
    power::{
        AbandonTransitionRequest, AbandonTransitionResponse, ListPowerStatesRequest, ListPowerStatesResponse,
        ListTransitionsRequest, ListTransitionsResponse, PowerReading, PowerState, WatchPowerStatesRequest,
        WatchPowerStatesResponse,
        power_service_server::{PowerService, PowerServiceServer},
    },
};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};

#[derive(Clone)]
pub(crate) struct PlayedRegistry {
    kept: Arc<Mutex<RegistryRecords>>,
    revision: Arc<watch::Sender<u64>>,
    options: Arc<watch::Sender<Options>>,
    shutdown: CancellationToken,
}

#[derive(Default)]
struct RegistryRecords {
    components: BTreeMap<String, Component>,
    tokens: Vec<BootToken>,
    reports: usize,
    /// Power of nodes that differs from the usual one of their phase.
    power: BTreeMap<String, PowerReading>,
}

impl RegistryRecords {
    /// Returns the current power state of a component. A node that waits to be switched on is usually off.
    fn power_of(&self, component: &Component, revision: u64) -> PowerState {
        let usual = match component.phase() {
            Phase::PoweringOn => PowerReading::Off,
            Phase::None | Phase::PoweringOff | Phase::Configuring => PowerReading::On,
        };
        let id = component.id.as_str().to_owned();
        PowerState {
            reading: self.power.get(&id).copied().unwrap_or(usual).into(),
            generation: component.generation,
            spent_power_ons: component.spent_power_ons(),
            revision,
            id,
            ..PowerState::default()
        }
    }
}

impl PlayedRegistry {
    pub(crate) async fn serve(options: Options, context: &Context, listener: TcpListener) -> Self {
        let revision = Arc::new(watch::Sender::new(1));
        let options = Arc::new(watch::Sender::new(options));
        let registry = Self { kept: Arc::default(), revision, options, shutdown: context.tasks.shutdown() };
        let mut server = Server::default();
        server.add(ComponentServiceServer::new(registry.clone()));
        server.add(OptionsServiceServer::new(registry.clone()));
        server.add(ReportServiceServer::new(registry.clone()));
        server.add(PowerServiceServer::new(registry.clone()));
        chassis::serve(context, "registry", listener, server).await.unwrap().now();
        registry
    }

    /// Puts a component.
    pub(crate) fn put(&self, component: Component) {
        self.put_all(vec![component]);
    }

    /// Puts several components at once.
    pub(crate) fn put_all(&self, components: Vec<Component>) {
        self.change(|kept, revision| {
            let components = components.into_iter().map(|one| Component { revision, ..one });
            kept.components.extend(components.map(|one| (one.id.as_str().to_owned(), one)));
        });
    }

    /// Sets the power that is read of a node from now on.
    pub(crate) fn set_power(&self, id: &str, reading: PowerReading) {
        self.change(|kept, _| kept.power.insert(id.to_owned(), reading));
    }

    /// Sets the options.
    pub(crate) fn set_options(&self, options: Options) {
        self.options.send_replace(options);
    }

    pub(crate) fn get(&self, id: &str) -> Component {
        self.kept.lock().components[id].clone()
    }

    pub(crate) fn all(&self) -> Vec<Component> {
        self.kept.lock().components.values().cloned().collect()
    }

    pub(crate) fn tokens(&self) -> Vec<BootToken> {
        self.kept.lock().tokens.clone()
    }

    /// Returns the number of reports of preparations so far.
    pub(crate) fn reports(&self) -> usize {
        self.kept.lock().reports
    }

    fn change<A>(&self, change: impl FnOnce(&mut RegistryRecords, u64) -> A) -> A {
        let revision = *self.revision.borrow() + 1;
        let answer = change(&mut self.kept.lock(), revision);
        self.revision.send_replace(revision);
        answer
    }

    fn since(&self, resume: u64, synced: bool) -> WatchComponentsResponse {
        let revision = *self.revision.borrow();
        let kept = self.kept.lock();
        let changed = kept.components.values().filter(|component| component.revision > resume);
        let components = changed.map(kinds::component::to_wire).collect();
        WatchComponentsResponse { components, deletions: Vec::new(), revision, synced }
    }
}

/// Returns a component of generation 7 without a power-on attempt yet.
pub(crate) fn component(id: &str) -> Component {
    let mut component = Component::new(ComponentId::parse(id).unwrap());
    component.wish.enabled = Some(true);
    component.inventory.presence = InventoryPresence::Listed;
    component.generation = 7;
    component.power.event_stats = Some(EventStats::zeros());
    component.wish.session = Some("s1".into());
    component
}

#[async_trait]
impl ComponentService for PlayedRegistry {
    type ListComponentsStream = BoxStream<'static, Result<ListComponentsResponse, Status>>;
    type WatchComponentsStream = BoxStream<'static, Result<Encoded<WatchComponentsResponse>, Status>>;

    async fn list_components(
        &self,
        _: Request<ListComponentsRequest>,
    ) -> Result<Response<Self::ListComponentsStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_component(
        &self,
        _: Request<GetComponentRequest>,
    ) -> Result<Response<GetComponentResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn watch_components(
        &self,
        request: Request<WatchComponentsRequest>,
    ) -> Result<Response<Self::WatchComponentsStream>, Status> {
        let start = (self.clone(), self.revision.subscribe(), request.into_inner().resume_revision, true);
        let responses = stream::unfold(start, async |(registry, mut revision, resume, first)| {
            if !first {
                revision.changed().await.ok()?;
            }
            let response = registry.since(resume, first);
            let resume = response.revision;
            Some((Ok(response.into()), (registry, revision, resume, false)))
        });
        let shutdown = self.shutdown.clone().cancelled_owned();
        Ok(Response::new(responses.take_until(Box::pin(shutdown)).boxed()))
    }

    async fn put_components(
        &self,
        _: Request<PutComponentsRequest>,
    ) -> Result<Response<PutComponentsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn patch_components(
        &self,
        _: Request<PatchComponentsRequest>,
    ) -> Result<Response<PatchComponentsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn delete_component(
        &self,
        _: Request<DeleteComponentRequest>,
    ) -> Result<Response<DeleteComponentResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[async_trait]
impl OptionsService for PlayedRegistry {
    type WatchOptionsStream = BoxStream<'static, Result<Encoded<WatchOptionsResponse>, Status>>;

    async fn get_options(
        &self,
        _: Request<GetOptionsRequest>,
    ) -> Result<Response<GetOptionsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn update_options(
        &self,
        _: Request<UpdateOptionsRequest>,
    ) -> Result<Response<UpdateOptionsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn watch_options(
        &self,
        _: Request<WatchOptionsRequest>,
    ) -> Result<Response<Self::WatchOptionsStream>, Status> {
        let mut options = self.options.subscribe();
        options.mark_changed();
        let responses = stream::unfold((options, 1), async |(mut options, revision)| {
            options.changed().await.ok()?;
            let wire = Some(kinds::options::to_wire(options.borrow_and_update().clone()));
            let records = vec![OptionsRecord { options: wire, revision }];
            let response = WatchOptionsResponse { records, revision, synced: revision == 1 };
            Some((Ok(response.into()), (options, revision + 1)))
        });
        let shutdown = self.shutdown.clone().cancelled_owned();
        Ok(Response::new(responses.take_until(Box::pin(shutdown)).boxed()))
    }
}

#[async_trait]
impl ReportService for PlayedRegistry {
    async fn assign_session(
        &self,
        _: Request<AssignSessionRequest>,
    ) -> Result<Response<AssignSessionResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn apply_staged(
        &self,
        _: Request<ApplyStagedRequest>,
    ) -> Result<Response<ApplyStagedResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn report_statuses(
        &self,
        _: Request<ReportStatusesRequest>,
    ) -> Result<Response<ReportStatusesResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn report_actions(
        &self,
        _: Request<ReportActionsRequest>,
    ) -> Result<Response<ReportActionsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn report_preparations(
        &self,
        request: Request<ReportPreparationsRequest>,
    ) -> Result<Response<ReportPreparationsResponse>, Status> {
        let ReportPreparationsRequest { reports, tokens } = request.into_inner();
        let stale_ids = self.change(|kept, revision| {
            kept.tokens.extend(tokens);
            kept.reports += reports.len();
            let mut stale = Vec::new();
            for one in reports {
                let report = PreparationReport {
                    id: ComponentId::parse(&one.id).unwrap(),
                    generation: one.generation,
                    attempt: one.attempt,
                    token_number: 0,
                    bss_token: one.bss_token.into(),
                    trouble: trouble::from_wire(one.error_kind, one.error).map(Arc::new),
                    refused: one.refused,
                };
                match report::record(&kept.components[&one.id], &report, clock::now()) {
                    Ok(Some(prepared)) => {
                        kept.components.insert(one.id, Component { revision, ..prepared });
                    }
                    Ok(None) => {}
                    Err(_) => stale.push(one.id),
                }
            }
            stale
        });
        Ok(Response::new(ReportPreparationsResponse { stale_ids }))
    }
}

#[async_trait]
impl PowerService for PlayedRegistry {
    type ListPowerStatesStream = BoxStream<'static, Result<ListPowerStatesResponse, Status>>;
    type WatchPowerStatesStream = BoxStream<'static, Result<Encoded<WatchPowerStatesResponse>, Status>>;
    type ListTransitionsStream = BoxStream<'static, Result<ListTransitionsResponse, Status>>;

    async fn list_power_states(
        &self,
        _: Request<ListPowerStatesRequest>,
    ) -> Result<Response<Self::ListPowerStatesStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn watch_power_states(
        &self,
        _: Request<WatchPowerStatesRequest>,
    ) -> Result<Response<Self::WatchPowerStatesStream>, Status> {
        let start = (self.clone(), self.revision.subscribe(), true);
        let responses = stream::unfold(start, async |(registry, mut changes, first)| {
            if !first {
                changes.changed().await.ok()?;
            }
            let revision = *changes.borrow_and_update();
            let kept = registry.kept.lock();
            let power_states =
                kept.components.values().map(|component| kept.power_of(component, revision)).collect();
            drop(kept);
            let deletions = Vec::new();
            let response = WatchPowerStatesResponse { power_states, deletions, revision, synced: first };
            Some((Ok(response.into()), (registry, changes, false)))
        });
        let shutdown = self.shutdown.clone().cancelled_owned();
        Ok(Response::new(responses.take_until(Box::pin(shutdown)).boxed()))
    }

    async fn list_transitions(
        &self,
        _: Request<ListTransitionsRequest>,
    ) -> Result<Response<Self::ListTransitionsStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn abandon_transition(
        &self,
        _: Request<AbandonTransitionRequest>,
    ) -> Result<Response<AbandonTransitionResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}
