//! Fakes of the registry and the simulated fleet, as far as the session manager calls them.

use std::{collections::BTreeMap, sync::Arc};

use chassis::Fault;
use futures_util::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use proto::{
    Encoded,
    component::{
        component_service_server::{ComponentService, ComponentServiceServer},
        report_service_server::{ReportService, ReportServiceServer},
        *,
    },
    inventory::{
        Group, Hardware, ListInventoryRequest, ListInventoryResponse, NotifyChangeRequest,
        NotifyChangeResponse,
        inventory_service_server::{InventoryService, InventoryServiceServer},
    },
    option::{
        options_service_server::{OptionsService, OptionsServiceServer},
        *,
    },
    simulation::{
        fleet_service_server::{FleetService, FleetServiceServer},
        *,
    },
};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};
use uuid::Uuid;

type Responses<T> = BoxStream<'static, Result<T, Status>>;

/// Peers of one world. Clones share them.
#[derive(Clone)]
pub struct Peers {
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<u64>>,
    /// Whether calls of the image store are held, and how many wait.
    images: Arc<watch::Sender<(bool, usize)>>,
    /// Whether calls of the inventory are held.
    inventory_held: Arc<watch::Sender<bool>>,
    /// Whether the watches of components and options are held.
    watches_held: Arc<watch::Sender<bool>>,
    shutdown: CancellationToken,
}

struct State {
    components: BTreeMap<String, Component>,
    options: Options,
    options_revision: u64,
    assignments: Vec<AssignSessionRequest>,
    applications: Vec<ApplyStagedRequest>,
    inventory_answers: bool,
    /// Whether the inventory lists no hardware, although it has groups.
    inventory_is_empty: bool,
    /// Nodes that the inventory lacks.
    unlisted: Vec<String>,
    /// Whether the inventory lacks its groups.
    lacks_groups: bool,
    /// Number of lists of the inventory.
    listings: usize,
    images_answer: bool,
    assigning: Assigning,
    /// Members of the group `blue`.
    blue: Vec<String>,
    /// Components that the registry lists after a restore, before its watches show them.
    restored: Option<BTreeMap<String, Component>>,
    /// Number of lists of components by the registry.
    lists: usize,
    /// Number of the history of the components.
    incarnation: u128,
}

impl State {
    fn incarnation(&self) -> String {
        Uuid::from_u128(self.incarnation).to_string()
    }
}

/// Metadata of a watch that name its history.
const INCARNATION: &str = "reveille-incarnation";

/// Behaviour of calls that assign members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assigning {
    /// Assigns and answers.
    Answers,
    /// Assigns and never answers.
    FallsSilent,
    /// Neither assigns nor answers.
    Ignores,
}

impl Peers {
    /// Peers that know `n0` to `n9` and serve at the address that is returned. The inventory also lists
    /// `stranger`, which is no component.
    pub async fn start() -> (Self, String) {
        let components = (0..10).map(|n| format!("n{n}"));
        let components = components.zip(1..).map(|(id, revision)| {
            (id.clone(), Component { id, revision, enabled: Some(false), ..Component::default() })
        });
        let state = State {
            components: components.collect(),
            options: Options::default(),
            options_revision: 1,
            assignments: Vec::new(),
            applications: Vec::new(),
            inventory_answers: true,
            inventory_is_empty: false,
            unlisted: Vec::new(),
            lacks_groups: false,
            listings: 0,
            images_answer: true,
            assigning: Assigning::Answers,
            blue: vec!["n0".to_owned(), "n1".to_owned()],
            restored: None,
            lists: 0,
            incarnation: 1,
        };
        let peers = Self {
            state: Arc::new(Mutex::new(state)),
            changed: Arc::new(watch::Sender::new(10)),
            images: Arc::default(),
            inventory_held: Arc::default(),
            watches_held: Arc::default(),
            shutdown: CancellationToken::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = tonic::transport::Server::builder()
            .add_service(ComponentServiceServer::new(peers.clone()))
            .add_service(ReportServiceServer::new(peers.clone()))
            .add_service(InventoryServiceServer::new(peers.clone()))
            .add_service(OptionsServiceServer::new(peers.clone()))
            .add_service(FleetServiceServer::new(peers.clone()));
        let shutdown = peers.shutdown.clone();
        tokio::spawn(served.serve_with_incoming_shutdown(
            tokio_stream::wrappers::TcpListenerStream::new(listener),
            shutdown.cancelled_owned(),
        ));
        (peers, url)
    }

    /// Changes one component like the evaluator of a node that reached its target.
    pub fn settle(&self, id: &str) {
        self.change(id, |component| component.enabled = Some(false));
    }

    pub fn change(&self, id: &str, change: impl FnOnce(&mut Component)) {
        let mut state = self.state.lock();
        let revision = state.next_revision();
        let component = state.components.get_mut(id).unwrap();
        change(component);
        component.revision = revision;
        self.changed.send_replace(revision);
    }

    pub fn component(&self, id: &str) -> Component {
        self.state.lock().components[id].clone()
    }

    /// Freezes the list of the registry at its current components, whatever its watches show.
    pub fn restore(&self) {
        let mut state = self.state.lock();
        state.restored = Some(state.components.clone());
    }

    /// Begins another history of the registry, in which no session has these components.
    pub fn lose_assignments(&self, ids: &[&str]) {
        self.state.lock().incarnation += 1;
        self.changed.send_modify(|_| {});
        for id in ids {
            self.change(id, |one| (one.session, one.enabled) = (None, Some(false)));
        }
    }

    /// Makes the list of the registry equal to its watches again.
    pub fn show_restored(&self) {
        self.state.lock().restored = None;
    }

    /// Returns the number of lists of components by the registry.
    pub fn lists(&self) -> usize {
        self.state.lock().lists
    }

    pub fn set_options(&self, options: Options) {
        let mut state = self.state.lock();
        state.options = options;
        state.options_revision += 1;
        self.changed.send_modify(|_| {});
    }

    pub fn inventory_answers(&self, answers: bool) {
        self.state.lock().inventory_answers = answers;
    }

    pub fn inventory_is_empty(&self, is_empty: bool) {
        self.state.lock().inventory_is_empty = is_empty;
    }

    /// Makes the inventory lack these nodes, and its groups or not.
    pub fn inventory_lacks(&self, nodes: &[&str], lacks_groups: bool) {
        let mut state = self.state.lock();
        state.unlisted = nodes.iter().map(|&id| id.to_owned()).collect();
        state.lacks_groups = lacks_groups;
    }

    /// Returns the number of lists of the inventory.
    pub fn listings(&self) -> usize {
        self.state.lock().listings
    }

    /// Holds or releases calls of the inventory. A session whose setup waits was created before all later events.
    pub fn hold_inventory(&self, hold: bool) {
        self.inventory_held.send_replace(hold);
    }

    pub fn hold_watches(&self, hold: bool) {
        self.watches_held.send_replace(hold);
    }

    pub fn assigning(&self, assigning: Assigning) {
        self.state.lock().assigning = assigning;
    }

    /// Changes the members of the group `blue`.
    pub fn paint_blue(&self, ids: &[&str]) {
        self.state.lock().blue = ids.iter().map(|&id| id.to_owned()).collect();
    }

    pub fn images_answer(&self, answer: bool) {
        self.state.lock().images_answer = answer;
    }

    /// Holds or releases calls of the image store.
    pub fn hold_images(&self, hold: bool) {
        self.images.send_modify(|images| images.0 = hold);
    }

    /// Waits until a call waits for the image store.
    pub async fn images_asked(&self) {
        let mut images = self.images.subscribe();
        images.wait_for(|(_, waiting)| *waiting > 0).await.unwrap();
    }

    /// Waits for that many calls that assign members.
    pub async fn assignments_asked(&self, count: usize) {
        let mut changed = self.changed.subscribe();
        while self.assignments().len() < count {
            changed.changed().await.unwrap();
        }
    }

    /// The calls that assigned members so far.
    pub fn assignments(&self) -> Vec<AssignSessionRequest> {
        self.state.lock().assignments.clone()
    }

    /// The calls so far that applied staged states.
    pub fn applications(&self) -> Vec<ApplyStagedRequest> {
        self.state.lock().applications.clone()
    }

    /// Assigns components to the sessions that staged a state for them, once all these sessions are known.
    fn apply(&self, request: ApplyStagedRequest) -> ApplyStagedResponse {
        let mut state = self.state.lock();
        state.applications.push(request.clone());
        let known = |reference: &SessionReference| {
            request.sessions.iter().find(|known| known.reference.as_ref() == Some(reference))
        };
        let named = request.ids.iter().filter_map(|id| staged_by(state.components.get(id)?));
        let mut answer = ApplyStagedResponse::default();
        for reference in named.filter(|reference| known(reference).is_none()) {
            if !answer.unknown.contains(&reference) {
                answer.unknown.push(reference);
            }
        }
        for id in request.ids.iter().filter(|_| answer.unknown.is_empty()) {
            let revision = state.next_revision();
            let component = state.components.get_mut(id);
            let standing = component.as_deref().and_then(staged_by).and_then(|named| known(&named));
            match (component, standing.map(|known| known.standing.clone())) {
                (Some(component), Some(Some(staged_session::Standing::Own(own)))) => {
                    component.session = component.staged_state.take().and_then(|staged| staged.session);
                    component.assignment = own.assignment_id;
                    component.enabled = Some(true);
                    component.revision = revision;
                    answer.succeeded_ids.push(id.clone());
                }
                (Some(_), Some(None)) => answer.failed_ids.push(id.clone()),
                _ => answer.ignored_ids.push(id.clone()),
            }
        }
        answer.revision = state.revision();
        self.changed.send_replace(answer.revision);
        answer
    }

    fn assign(&self, request: &AssignSessionRequest) -> AssignSessionResponse {
        let mut state = self.state.lock();
        let mut assigned_ids = Vec::new();
        for id in request.assignments.iter().flat_map(|assignment| &assignment.ids) {
            let revision = state.next_revision();
            let Some(component) = state.components.get_mut(id) else { continue };
            assigned_ids.push(id.clone());
            if request.stage {
                component.staged_state = Some(StagedState {
                    session: Some(request.session.clone()),
                    tenant: Some(request.tenant.clone()),
                    assignment: request.assignment_id.clone(),
                    ..StagedState::default()
                });
                component.revision = revision;
            } else if component.assignment != request.assignment_id {
                component.session = Some(request.session.clone());
                component.assignment = request.assignment_id.clone();
                component.enabled = Some(true);
                component.revision = revision;
            }
        }
        assigned_ids.sort_unstable();
        let revision = state.revision();
        self.changed.send_replace(revision);
        AssignSessionResponse { assigned_ids, revision }
    }

    /// Streams the result of `read` after every change.
    fn follow<T: Send + 'static>(
        &self,
        read: impl Fn(&State) -> T + Send + 'static,
    ) -> impl Stream<Item = T> + Send + 'static {
        let mut changed = self.changed.subscribe();
        changed.mark_changed();
        let state = Arc::clone(&self.state);
        let ended = self.shutdown.clone().cancelled_owned();
        let held = self.watches_held.subscribe();
        let values =
            stream::unfold((changed, state, read, held), |(mut changed, state, read, mut held)| async move {
                changed.changed().await.ok()?;
                held.wait_for(|held| !held).await.ok()?;
                let value = read(&state.lock());
                Some((value, (changed, state, read, held)))
            });
        values.take_until(ended)
    }
}

fn staged_by(component: &Component) -> Option<SessionReference> {
    let staged = component.staged_state.as_ref()?;
    let name = staged.session.clone().filter(|name| !name.is_empty())?;
    Some(SessionReference { name, tenant: staged.tenant.clone(), id: staged.assignment.clone() })
}

impl State {
    fn revision(&self) -> u64 {
        self.components.values().map(|component| component.revision).max().unwrap_or_default()
    }

    fn next_revision(&self) -> u64 {
        self.revision() + 1
    }
}

#[async_trait]
impl ReportService for Peers {
    async fn assign_session(
        &self,
        request: Request<AssignSessionRequest>,
    ) -> Result<Response<AssignSessionResponse>, Status> {
        let (request, assigning) = (request.into_inner(), self.state.lock().assigning);
        self.state.lock().assignments.push(request.clone());
        if assigning == Assigning::Ignores {
            self.changed.send_modify(|_| {});
            return std::future::pending().await;
        }
        let answer = self.assign(&request);
        match assigning {
            Assigning::Answers => Ok(Response::new(answer)),
            Assigning::FallsSilent | Assigning::Ignores => std::future::pending().await,
        }
    }

    async fn apply_staged(
        &self,
        request: Request<ApplyStagedRequest>,
    ) -> Result<Response<ApplyStagedResponse>, Status> {
        Ok(Response::new(self.apply(request.into_inner())))
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
        _: Request<ReportPreparationsRequest>,
    ) -> Result<Response<ReportPreparationsResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[async_trait]
impl ComponentService for Peers {
    type ListComponentsStream = Responses<ListComponentsResponse>;
    type WatchComponentsStream = Responses<Encoded<WatchComponentsResponse>>;

    async fn watch_components(
        &self,
        request: Request<WatchComponentsRequest>,
    ) -> Result<Response<Self::WatchComponentsStream>, Status> {
        let incarnation = self.state.lock().incarnation();
        let resumed = request.metadata().get(INCARNATION).cloned();
        let mut sent = request.into_inner().resume_revision;
        if sent > 0 && resumed.is_some_and(|resumed| resumed != incarnation) {
            return Err(Fault::ResumeExpired(sent).into());
        }
        let mut synced = true;
        let batches = self.follow(|state| (state.incarnation(), state.components.clone(), state.revision()));
        let own = incarnation.clone();
        let batches = batches.take_while(move |(incarnation, ..)| std::future::ready(*incarnation == own));
        let responses = batches.map(move |(_, components, revision)| {
            let mut components: Vec<_> = components.into_values().filter(|one| one.revision > sent).collect();
            components.sort_unstable_by_key(|component| component.revision);
            sent = revision;
            let synced = std::mem::take(&mut synced);
            Ok(WatchComponentsResponse { components, deletions: Vec::new(), revision, synced }.into())
        });
        let mut response = Response::new(responses.boxed());
        response.metadata_mut().insert(INCARNATION, incarnation.parse().unwrap());
        Ok(response)
    }

    /// The first component, with the revision.
    async fn list_components(
        &self,
        request: Request<ListComponentsRequest>,
    ) -> Result<Response<Self::ListComponentsStream>, Status> {
        let filter = request.into_inner().filter.unwrap_or_default();
        let mut state = self.state.lock();
        state.lists += 1;
        let staged = |one: &Component| one.staged_state.as_ref().and_then(|staged| staged.session.clone());
        let is_wanted = |one: &&Component| {
            filter.enabled.is_none_or(|enabled| one.enabled == Some(enabled))
                && (filter.session.is_none() || filter.session == one.session)
                && (filter.staged_session.is_none() || filter.staged_session == staged(one))
        };
        let registered = state.restored.as_ref().unwrap_or(&state.components);
        let components = registered.values().filter(is_wanted).cloned().collect();
        let message = ListComponentsResponse { components, revision: state.revision() };
        Ok(Response::new(stream::iter([Ok(message)]).boxed()))
    }

    async fn get_component(
        &self,
        _: Request<GetComponentRequest>,
    ) -> Result<Response<GetComponentResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn put_components(
        &self,
        _: Request<PutComponentsRequest>,
    ) -> Result<Response<PutComponentsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    /// Patches the components of a session that are in the scope.
    async fn patch_components(
        &self,
        request: Request<PatchComponentsRequest>,
    ) -> Result<Response<PatchComponentsResponse>, Status> {
        let PatchComponentsRequest { selection, scope, .. } = request.into_inner();
        let Some(patch_components_request::Selection::Many(many)) = selection else {
            return Err(Status::unimplemented(""));
        };
        let patch = many.patch.unwrap();
        for id in scope.unwrap().ids {
            let is_own = self.component(&id).session.as_deref() == Some(&many.session);
            if is_own {
                self.change(&id, |one| (one.enabled, one.error) = (patch.enabled, patch.error.clone()));
            }
        }
        Ok(Response::new(PatchComponentsResponse::default()))
    }

    async fn delete_component(
        &self,
        _: Request<DeleteComponentRequest>,
    ) -> Result<Response<DeleteComponentResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[async_trait]
impl InventoryService for Peers {
    type ListInventoryStream = Responses<ListInventoryResponse>;

    async fn list_inventory(
        &self,
        _: Request<ListInventoryRequest>,
    ) -> Result<Response<Self::ListInventoryStream>, Status> {
        drop(self.inventory_held.subscribe().wait_for(|held| !held).await.unwrap());
        let mut state = self.state.lock();
        state.listings += 1;
        if !state.inventory_answers {
            return Err(Fault::unavailable("inventory", "it is being serviced").into());
        }
        let ids = state.components.keys().map(String::as_str).chain(["stranger"]);
        let ids = ids.filter(|id| !state.unlisted.iter().any(|unlisted| unlisted == id));
        let hardware = ids.map(|id| Hardware {
            id: id.to_owned(),
            r#type: "Node".to_owned(),
            role: "Compute".to_owned(),
            arch: "X86".to_owned(),
            enabled: true,
            ..Hardware::default()
        });
        let blue = Group { label: "blue".to_owned(), ids: state.blue.clone() };
        let groups = Some(blue).filter(|_| !state.lacks_groups).into_iter().collect();
        let hardware = hardware.filter(|_| !state.inventory_is_empty).collect();
        let message = ListInventoryResponse { hardware, groups, partitions: Vec::new() };
        Ok(Response::new(stream::iter([Ok(message)]).boxed()))
    }

    async fn notify_change(
        &self,
        _: Request<NotifyChangeRequest>,
    ) -> Result<Response<NotifyChangeResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[async_trait]
impl OptionsService for Peers {
    type WatchOptionsStream = Responses<Encoded<WatchOptionsResponse>>;

    async fn watch_options(
        &self,
        _: Request<WatchOptionsRequest>,
    ) -> Result<Response<Self::WatchOptionsStream>, Status> {
        let mut synced = true;
        let records = self.follow(|state| OptionsRecord {
            options: Some(state.options.clone()),
            revision: state.options_revision,
        });
        let responses = records.map(move |record| {
            let revision = record.revision;
            let synced = std::mem::take(&mut synced);
            Ok(WatchOptionsResponse { records: vec![record], revision, synced }.into())
        });
        Ok(Response::new(responses.boxed()))
    }

    async fn get_options(
        &self,
        _: Request<GetOptionsRequest>,
    ) -> Result<Response<GetOptionsResponse>, Status> {
        let state = self.state.lock();
        let record = OptionsRecord { options: Some(state.options.clone()), revision: state.options_revision };
        Ok(Response::new(GetOptionsResponse { record: Some(record) }))
    }

    async fn update_options(
        &self,
        _: Request<UpdateOptionsRequest>,
    ) -> Result<Response<UpdateOptionsResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[async_trait]
impl FleetService for Peers {
    type ListHardwareStream = Responses<ListHardwareResponse>;
    type WatchPowerStream = Responses<WatchPowerResponse>;
    type WatchConfigurationsStream = Responses<WatchConfigurationsResponse>;

    async fn get_image(
        &self,
        request: Request<GetImageRequest>,
    ) -> Result<Response<GetImageResponse>, Status> {
        let path = request.into_inner().path;
        self.images.send_modify(|images| images.1 += 1);
        let mut images = self.images.subscribe();
        drop(images.wait_for(|(held, _)| !*held).await.unwrap());
        self.images.send_modify(|images| images.1 -= 1);
        if !self.state.lock().images_answer {
            return Err(Fault::unavailable("images", "the store is full").into());
        }
        if !path.ends_with("/manifest.json") {
            return Err(Fault::not_found("image manifest", &path).into());
        }
        let object = |name: &str| Some(path.replace("manifest.json", name));
        let (kernel, initrd) = (object("kernel"), object("initrd"));
        Ok(Response::new(GetImageResponse { kernel, initrd, ..GetImageResponse::default() }))
    }

    async fn list_hardware(
        &self,
        _: Request<ListHardwareRequest>,
    ) -> Result<Response<Self::ListHardwareStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_power(&self, _: Request<GetPowerRequest>) -> Result<Response<GetPowerResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn watch_power(
        &self,
        _: Request<WatchPowerRequest>,
    ) -> Result<Response<Self::WatchPowerStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn create_transition(
        &self,
        _: Request<CreateTransitionRequest>,
    ) -> Result<Response<CreateTransitionResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_transitions(
        &self,
        _: Request<ListTransitionsRequest>,
    ) -> Result<Response<ListTransitionsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_transition(
        &self,
        _: Request<GetTransitionRequest>,
    ) -> Result<Response<GetTransitionResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn put_boot_parameters(
        &self,
        _: Request<PutBootParametersRequest>,
    ) -> Result<Response<PutBootParametersResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_configurations(
        &self,
        _: Request<GetConfigurationsRequest>,
    ) -> Result<Response<GetConfigurationsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn watch_configurations(
        &self,
        _: Request<WatchConfigurationsRequest>,
    ) -> Result<Response<Self::WatchConfigurationsStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn set_configurations(
        &self,
        _: Request<SetConfigurationsRequest>,
    ) -> Result<Response<SetConfigurationsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_faults(
        &self,
        _: Request<ListFaultsRequest>,
    ) -> Result<Response<ListFaultsResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}
