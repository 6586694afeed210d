//! The machine: the nodes of the simulator and the upstreams around them, with their faults.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use chassis::{Context, Listener, mesh::channel::LARGEST_MESSAGE, simulation::PlantedDefect};
use futures_util::{StreamExt, stream::BoxStream};
use parking_lot::Mutex;
use proto::{
    component::{
        Action, ActualState, Component, PatchComponentsRequest, PatchEach,
        component_service_client::ComponentServiceClient, patch_components_request::Selection,
    },
    power::{PowerReading, TaskOutcome},
    simulation::{
        AcceptedTransition, CreateTransitionRequest, CreateTransitionResponse, GetConfigurationsRequest,
        GetConfigurationsResponse, GetImageRequest, GetImageResponse, GetPowerRequest, GetPowerResponse,
        GetTransitionRequest, GetTransitionResponse, ListFaultsRequest, ListFaultsResponse,
        ListHardwareRequest, ListHardwareResponse, ListTransitionsRequest, ListTransitionsResponse,
        NodeConfiguration, NodePower, NodeTask, PutBootParametersRequest, PutBootParametersResponse,
        SetConfigurationsRequest, SetConfigurationsResponse, TransitionOperation, WatchConfigurationsRequest,
        WatchConfigurationsResponse, WatchPowerRequest, WatchPowerResponse,
        fleet_service_server::{FleetService, FleetServiceServer},
    },
};
use rand::Rng;
use simulator::{FleetRpc, reporter::NodeReport};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tonic::{Request, Response, Status};

use crate::{
    invariants, trace,
    trouble::{Concern, Oddity},
    world::{Part, Replica, World},
};

mod taken;

use taken::Taken;

/// Age of a stale power state.
const STALE: Duration = Duration::from_secs(30);

/// Delay of late calls: longer than the knowledge counts that they rest on.
const LATE: Duration = Duration::from_secs(60);

/// Starts the machine.
///
/// # Errors
/// When the settings of the simulator cannot be used.
pub async fn start(context: Context, listener: Listener, world: Arc<World>) -> anyhow::Result<()> {
    let (fleet, reports) = simulator::fleet(&context)?;
    let registry =
        context.channel(&context.settings.component_registry.url).context("component_registry.url")?;
    let reporting = report(registry, reports, Arc::clone(&world));
    let upstreams = Upstreams {
        fleet,
        world,
        before: Arc::default(),
        taken: Arc::default(),
        waiting: Arc::default(),
        last_told: Arc::default(),
    };
    let late = perform_late(upstreams.clone());
    let powers = note_powers(upstreams.clone());
    let mut server = chassis::Server::default();
    server.add(FleetServiceServer::new(upstreams).max_decoding_message_size(LARGEST_MESSAGE));
    let ready = chassis::serve(&context, "simulator", listener, server).await?;
    context.tasks.spawn_until_shutdown("node-reports", reporting);
    context.tasks.spawn_until_shutdown("late-workers", late);
    context.tasks.spawn_until_shutdown("powers", powers);
    ready.now();
    Ok(())
}

/// Lets the workers of the power service die and resume, and shows the journal which nodes other clients hold.
async fn perform_late(upstreams: Upstreams) -> anyhow::Result<Infallible> {
    let Upstreams { fleet, world, .. } = &upstreams;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fleet.hold(world.trouble.odd(Oddity::Late).collect());
        if world.tells_results() {
            upstreams.note_ends().await;
            world.journal.note_foreign(upstreams.held_by_others());
        }
    }
}

/// Shows the journal when nodes go off and on.
async fn note_powers(upstreams: Upstreams) -> anyhow::Result<Infallible> {
    let watch = upstreams.fleet.watch_power(Request::new(WatchPowerRequest {})).await?;
    let mut changes = watch.into_inner();
    while let Some(message) = changes.next().await {
        for node in message?.nodes {
            upstreams.world.journal.note_power(&node.id, node.reading() == PowerReading::On);
        }
    }
    std::future::pending().await
}

/// Lets every node that booted report it repeatedly, as long as it is up.
async fn report(
    registry: chassis::Channel,
    mut reports: mpsc::UnboundedReceiver<NodeReport>,
    world: Arc<World>,
) -> anyhow::Result<()> {
    while let Some(report) = reports.recv().await {
        world.journal.booted(&report.id, &report.boot.token);
        let registry = ComponentServiceClient::new(registry.clone());
        if world.trouble.is(&report.id, Oddity::Echoes) {
            let after = world.trouble.draw(|chance| chance.random_range(5..200));
            world.trouble.count("report delivered once more");
            let (mut registry, report) = (registry.clone(), report.clone());
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(after)).await;
                trace::note(|| format!("a report of {} of {after} s ago arrives", report.id));
                registry.patch_components(patch(&report)).await.map(drop)
            });
        }
        tokio::spawn(async move {
            let ended = report.ended.clone();
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = repeat(registry, report) => {}
            }
        });
    }
    std::future::pending().await
}

/// Returns the report of a node that has booted.
fn patch(report: &NodeReport) -> PatchComponentsRequest {
    let actual_state = ActualState { bss_token: Some(report.boot.token.to_string()), ..Default::default() };
    let patch =
        Component { id: report.id.to_string(), actual_state: Some(actual_state), ..Default::default() };
    PatchComponentsRequest {
        selection: Some(Selection::Each(PatchEach { patches: vec![patch] })),
        guard_actual_state: true,
        ..Default::default()
    }
}

async fn repeat(mut registry: ComponentServiceClient<chassis::Channel>, report: NodeReport) {
    let mut refusals = 0;
    loop {
        let call = registry.patch_components(patch(&report));
        let pause = match chassis::within(Duration::from_secs(30), call).await {
            Ok(_) => {
                trace::note(|| format!("{} has reported", report.id));
                refusals = 0;
                report.boot.report_period
            }
            Err(status) => {
                trace::note(|| format!("{} reports in vain: {}", report.id, status.message()));
                refusals += 1;
                Duration::from_secs(u64::from(u32::min(refusals * 2, 30)))
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Upstreams of the fleet, with their present faults.
#[derive(Clone)]
struct Upstreams {
    fleet: FleetRpc,
    world: Arc<World>,
    /// Powers of nodes with their times, oldest first, for late readings.
    before: Arc<Mutex<BTreeMap<String, Readings>>>,
    /// Every transition that was taken.
    taken: Arc<Mutex<Vec<Taken>>>,
    /// Id of a transition whose caller is to get another one's.
    waiting: Arc<Mutex<Option<HeldAnswer>>>,
    /// Id that a caller got last.
    last_told: Arc<Mutex<Option<String>>>,
}

/// Id of a transition, and the channel to its caller for the id of another one.
type HeldAnswer = (String, oneshot::Sender<String>);

/// Text of a power service that cannot reserve a node.
const HELD: &str = "Unable to reserve component";

/// Metadata key of a call by another client.
pub const FOREIGN: &str = "foreign";

/// Time for which a caller waits for the id of another one's transition.
const SWAP: Duration = Duration::from_secs(2);

/// Readings with their times, oldest first.
type Readings = Vec<(Instant, PowerReading)>;

type Stream<T> = BoxStream<'static, Result<T, Status>>;

impl Upstreams {
    /// Makes a call with the present behaviour of the upstream.
    async fn take<T>(
        &self,
        concern: Concern,
        what: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<Response<T>, Status> {
        self.world.trouble.before(concern).await?;
        let answer = what.await?;
        self.world.trouble.after(concern).await?;
        Ok(answer)
    }

    /// Kills the host of a caller before it gets the answer.
    async fn unless_dead(&self, caller: Option<Replica>, what: &'static str) {
        if let Some(caller) = caller.filter(|_| self.world.trouble.caller_dies()) {
            self.world.trouble.count(what);
            self.world.crash(caller, self.world.trouble.downtime());
            std::future::pending().await
        }
    }

    /// Takes a transition of the power controller.
    async fn start(
        &self,
        request: Request<CreateTransitionRequest>,
        action: Action,
    ) -> Result<Response<CreateTransitionResponse>, Status> {
        let ids = request.get_ref().ids.clone();
        for id in &ids {
            let fails = self.odd(id, Oddity::Unreachable);
            self.fleet.set_reachable(id, !fails);
            if fails {
                self.world.trouble.count("one node of a transition fails");
            }
        }
        let (held, free) = self.split_by_holders(&ids).await;
        let answer = if free.is_empty() {
            let number: u64 = self.world.trouble.draw(|chance| chance.random());
            Response::new(CreateTransitionResponse { transition_id: format!("refused-{number:016x}") })
        } else {
            let wish = CreateTransitionRequest { ids: free.clone(), ..request.into_inner() };
            self.fleet.create_transition(Request::new(wish)).await?
        };
        let id = &answer.get_ref().transition_id;
        trace::note(|| format!("machine takes {action:?} of {free:?} as {id}; held: {held:?}"));
        for (node, holder) in &held {
            self.world.trouble.count("node of a transition held by a foreign one");
            self.world.journal.asked_although_held(node, action, holder);
        }
        if self.world.tells_results() {
            self.world.journal.took(id, action, &ids);
        }
        self.world.journal.accepted(id, action, &free);
        if self.world.tells_results() {
            self.world.journal.shuts_down(action, &free);
        }
        self.judge_held(id, action, &free);
        let refused = held.into_keys().collect();
        self.take_note(Taken { refused, ..Taken::new(id, action, free) });
        Ok(answer)
    }

    fn take_note(&self, taken: Taken) {
        self.taken.lock().push(taken);
    }

    /// Takes a transition of another client.
    async fn start_foreign(
        &self,
        request: Request<CreateTransitionRequest>,
        action: Action,
    ) -> Result<Response<CreateTransitionResponse>, Status> {
        self.note_ends().await;
        let ids = request.get_ref().ids.clone();
        if self.taken.lock().iter().any(|one| ids.iter().any(|node| one.reserves(node))) {
            return Err(Status::failed_precondition(HELD));
        }
        let answer = self.fleet.create_transition(request).await?;
        self.world.trouble.count("foreign transition");
        let id = &answer.get_ref().transition_id;
        trace::note(|| format!("machine takes {action:?} of {ids:?} from somebody else as {id}"));
        if self.world.tells_results() {
            self.world.journal.took(id, action, &ids);
        }
        self.take_note(Taken { is_foreign: true, ..Taken::new(id, action, ids) });
        Ok(answer)
    }

    /// Returns those of `nodes` that foreign transitions hold, each with its holder, and the others.
    async fn split_by_holders(&self, nodes: &[String]) -> (BTreeMap<String, String>, Vec<String>) {
        self.note_ends().await;
        let taken = self.taken.lock();
        let holder = |node: &String| {
            let foreign = taken.iter().find(|one| one.is_foreign && one.holds(node))?;
            Some((node.clone(), foreign.id.clone()))
        };
        let held: BTreeMap<_, _> = nodes.iter().filter_map(holder).collect();
        let free = nodes.iter().filter(|node| !held.contains_key(*node)).cloned().collect();
        (held, free)
    }

    /// Notes which tasks have ended. Later actions on a node do not change that.
    async fn note_ends(&self) {
        let open: Vec<_> = self.taken.lock().iter().filter(|one| one.is_open()).cloned().collect();
        for one in open {
            let request = GetTransitionRequest { transition_id: one.id.clone() };
            let Ok(answer) = self.fleet.get_transition(Request::new(request)).await else { continue };
            let tasks = answer.into_inner().tasks.into_iter();
            let ended = tasks.filter(|task| task.outcome() != TaskOutcome::Unspecified).map(|task| task.id);
            let mut taken = self.taken.lock();
            if let Some(taken) = taken.iter_mut().find(|taken| taken.id == one.id) {
                taken.ended.extend(ended);
            }
        }
    }

    /// Returns the nodes that transitions of other clients hold, each with its transition and the time of its beginning.
    fn held_by_others(&self) -> Vec<(String, String, Instant)> {
        let taken = self.taken.lock();
        let foreign = taken.iter().filter(|one| one.is_foreign);
        let held = foreign.flat_map(|one| {
            let nodes = one.nodes.iter().filter(|node| one.holds(node));
            nodes.map(|node| (node.clone(), one.id.clone(), one.began))
        });
        held.collect()
    }

    /// Has a node switched by another client, right after transitions were listed.
    async fn let_rival_begin(&self) {
        let Some(node) = self.world.trouble.rival() else { return };
        let operations =
            [TransitionOperation::On, TransitionOperation::SoftOff, TransitionOperation::ForceOff];
        let operation = self.world.trouble.draw(|chance| operations[chance.random_range(0..3)]);
        let wish = CreateTransitionRequest { operation: operation.into(), ids: vec![node] };
        self.world.trouble.count("foreign transition right after a list");
        // The service refuses it where the node is held.
        let _refused = self.start_foreign(Request::new(wish), action(operation)).await;
    }

    /// I2: judges that no action is requested for a node while the power service holds an opposite transition of it.
    fn judge_held(&self, id: &str, action: Action, nodes: &[String]) {
        // A service that tells no results tells nobody of open transitions. The power of a node is all there is to see.
        if !self.world.tells_results() {
            return;
        }
        let is_on = |action: Action| action == Action::PoweringOn;
        for one in self.taken.lock().iter().filter(|one| is_on(one.action) != is_on(action)) {
            let pending: Vec<_> = nodes.iter().filter(|node| one.holds(node)).cloned().collect();
            if let Err(what) = invariants::nothing_held(id, action, &one.id, &pending) {
                self.world.journal.violated("I2", what);
            }
        }
    }

    /// Returns the id for a caller: that of another call, where replies are swapped or repeated.
    async fn told_id(&self, own: String) -> String {
        let before = self.last_told.lock().replace(own.clone());
        if !self.world.trouble.swaps() {
            return own;
        }
        if let Some(before) = before.filter(|_| self.world.trouble.draw(|chance| chance.random_bool(0.2))) {
            self.world.trouble.count("reply of an earlier call");
            return before;
        }
        let waiting = self.waiting.lock().take();
        if let Some((other, swap)) = waiting {
            if swap.send(own.clone()).is_ok() {
                self.world.trouble.count("replies of two calls swapped");
                return other;
            }
            return own;
        }
        let (swap, swapped) = oneshot::channel();
        *self.waiting.lock() = Some((own.clone(), swap));
        match tokio::time::timeout(SWAP, swapped).await {
            Ok(Ok(other)) => other,
            Ok(Err(_)) | Err(_) => {
                self.waiting.lock().take_if(|(waiting, _)| *waiting == own);
                own
            }
        }
    }

    fn odd(&self, node: &str, oddity: Oddity) -> bool {
        self.world.trouble.is(node, oddity)
    }

    /// Returns the answer about the power of a node; `None`: it is left out.
    fn told(&self, node: NodePower) -> Option<NodePower> {
        let late = self.late(&node);
        if self.odd(&node.id, Oddity::Omitted) {
            self.world.trouble.count("power left out");
            return None;
        }
        if self.odd(&node.id, Oddity::Undefined) {
            self.world.trouble.count("power undefined");
            let reading = PowerReading::Undefined.into();
            return Some(NodePower { reading, error: "no route to the BMC".to_owned(), ..node });
        }
        // A service without results reads the nodes themselves.
        if self.world.tells_results() && self.odd(&node.id, Oddity::Stale) {
            self.world.trouble.count("power stale");
            return late.map(|reading| NodePower { reading: reading.into(), ..node });
        }
        Some(node)
    }

    /// Remembers the power of a node and returns its power a while ago.
    fn late(&self, node: &NodePower) -> Option<PowerReading> {
        let mut before = self.before.lock();
        let readings = before.entry(node.id.clone()).or_default();
        if readings.last().is_none_or(|(_, reading)| *reading != node.reading()) {
            readings.push((Instant::now(), node.reading()));
        }
        while readings.get(1).is_some_and(|(since, _)| since.elapsed() >= STALE) {
            readings.remove(0);
        }
        readings.first().map(|(_, reading)| *reading)
    }

    fn told_of(&self, node: NodeConfiguration) -> Option<NodeConfiguration> {
        let word = match &node.id {
            id if self.odd(id, Oddity::Unconfigurable) => {
                self.world.trouble.count("configuration left out");
                return None;
            }
            id if self.odd(id, Oddity::OddWord) => "flabbergasted".to_owned(),
            id if self.odd(id, Oddity::NoWord) => String::new(),
            _ if PlantedDefect::EndlessConfigurations.is_planted() => "pending".to_owned(),
            _ => return Some(node),
        };
        self.world.trouble.count(format!("configuration is {word:?}"));
        Some(NodeConfiguration { status: word, ..node })
    }
}

#[tonic::async_trait]
impl FleetService for Upstreams {
    type ListHardwareStream = Stream<ListHardwareResponse>;
    type WatchPowerStream = Stream<WatchPowerResponse>;
    type WatchConfigurationsStream = Stream<WatchConfigurationsResponse>;

    async fn list_hardware(
        &self,
        request: Request<ListHardwareRequest>,
    ) -> Result<Response<Self::ListHardwareStream>, Status> {
        let pages = self.take(Concern::Inventory, self.fleet.list_hardware(request)).await?.into_inner();
        let world = Arc::clone(&self.world);
        let pages = pages.map(move |page| {
            let mut page = page?;
            page.hardware.retain(|piece| {
                let is_listed = !world.trouble.is(&piece.id, Oddity::Unlisted);
                if !is_listed {
                    world.trouble.count("left out of the inventory");
                    if !PlantedDefect::HalfLists.is_planted() {
                        world.journal.left_out(&piece.id);
                    }
                }
                is_listed
            });
            for piece in &mut page.hardware {
                if world.trouble.is(&piece.id, Oddity::Locked) {
                    world.trouble.count("locked");
                    piece.locked = true;
                }
            }
            Ok(page)
        });
        Ok(Response::new(pages.boxed()))
    }

    async fn get_power(
        &self,
        request: Request<GetPowerRequest>,
    ) -> Result<Response<GetPowerResponse>, Status> {
        let mut answer = self.take(Concern::PowerStatus, self.fleet.get_power(request)).await?;
        let nodes = std::mem::take(&mut answer.get_mut().nodes);
        answer.get_mut().nodes = nodes.into_iter().filter_map(|node| self.told(node)).collect();
        Ok(answer)
    }

    async fn watch_power(
        &self,
        request: Request<WatchPowerRequest>,
    ) -> Result<Response<Self::WatchPowerStream>, Status> {
        let readings = self.take(Concern::PowerStatus, self.fleet.watch_power(request)).await?.into_inner();
        let itself = self.clone();
        let readings = readings.map(move |message| {
            let nodes = message?.nodes.into_iter().filter_map(|node| itself.told(node)).collect();
            Ok(WatchPowerResponse { nodes })
        });
        Ok(Response::new(readings.boxed()))
    }

    async fn create_transition(
        &self,
        request: Request<CreateTransitionRequest>,
    ) -> Result<Response<CreateTransitionResponse>, Status> {
        self.world.trouble.before(Concern::Power).await?;
        let (action, ids) = (action(request.get_ref().operation()), request.get_ref().ids.clone());
        if let Some(unknown) = ids.iter().find(|id| self.odd(id, Oddity::Unknown)) {
            self.world.trouble.count("batch with an unknown node refused");
            return Err(Status::invalid_argument(format!("ids: {unknown} is not a node of the fleet")));
        }
        if request.metadata().contains_key(FOREIGN) {
            return self.start_foreign(request, action).await;
        }
        if PlantedDefect::LateCalls.is_planted() {
            let itself = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(LATE).await;
                itself.start(request, action).await.map(drop)
            });
            return std::future::pending().await;
        }
        if PlantedDefect::RepeatedCalls.is_planted() {
            self.start(Request::new(request.get_ref().clone()), action).await?;
        }
        let asked = self.world.journal.asked(action, &ids);
        let caller = asked.and_then(|_| self.world.holder(Part::Power));
        let mut answer = self.start(request, action).await?;
        let own = answer.get_ref().transition_id.clone();
        answer.get_mut().transition_id = self.told_id(own).await;
        if PlantedDefect::OwnInitiative.is_planted() {
            let operation = TransitionOperation::ForceOff.into();
            let own = CreateTransitionRequest { operation, ids };
            self.start(Request::new(own), Action::PoweringOffForcefully).await?;
        }
        self.unless_dead(caller, "power controller dies after acceptance").await;
        self.world.trouble.after(Concern::Power).await?;
        Ok(answer)
    }

    async fn list_transitions(
        &self,
        request: Request<ListTransitionsRequest>,
    ) -> Result<Response<ListTransitionsResponse>, Status> {
        let answer = self.take(Concern::PowerRecords, self.fleet.list_transitions(request));
        let mut answer = answer.await?;
        let listed = &mut answer.get_mut().transitions;
        if PlantedDefect::HiddenTransitions.is_planted() {
            let foreign: BTreeSet<String> =
                self.taken.lock().iter().filter(|one| one.is_foreign).map(|one| one.id.clone()).collect();
            listed.retain(|one| !foreign.contains(&one.transition_id));
        }
        for taken in self.taken.lock().iter().filter(|taken| !taken.refused.is_empty()) {
            match listed.iter_mut().find(|one| one.transition_id == taken.id) {
                Some(one) => one.ids.extend(taken.refused.iter().cloned()),
                None => listed.push(AcceptedTransition {
                    transition_id: taken.id.clone(),
                    operation: operation(taken.action).into(),
                    ids: taken.refused.clone(),
                    created_at: Some(taken.at.into()),
                }),
            }
        }
        self.let_rival_begin().await;
        Ok(answer)
    }

    async fn get_transition(
        &self,
        request: Request<GetTransitionRequest>,
    ) -> Result<Response<GetTransitionResponse>, Status> {
        let id = &request.get_ref().transition_id;
        let taken = self.taken.lock().iter().find(|taken| taken.id == *id).cloned();
        let nowhere = taken.as_ref().filter(|taken| taken.nodes.is_empty()).map(begun_nowhere);
        let refused = taken.map(|taken| taken.refused).unwrap_or_default();
        let answer = async {
            match nowhere {
                Some(answer) => Ok(Response::new(answer)),
                None => self.fleet.get_transition(request).await,
            }
        };
        let mut answer = self.take(Concern::PowerRecords, answer).await?;
        answer.get_mut().tasks.extend(refused.into_iter().map(|id| NodeTask {
            id,
            outcome: TaskOutcome::Refused.into(),
            error: HELD.to_owned(),
            ..NodeTask::default()
        }));
        let failed = answer.get_mut().tasks.iter_mut().filter(|task| !task.error.is_empty());
        let failed = failed.filter(|_| PlantedDefect::WrongNode.is_planted());
        failed.for_each(|task| task.error.push('9'));
        if PlantedDefect::UnreadReplies.is_planted() {
            answer.get_mut().created_at = None;
        }
        if PlantedDefect::EarlyEnds.is_planted() {
            let answer = answer.get_mut();
            answer.ended = true;
            answer.tasks.iter_mut().for_each(|task| task.set_outcome(TaskOutcome::Succeeded));
        }
        Ok(answer)
    }

    async fn put_boot_parameters(
        &self,
        request: Request<PutBootParametersRequest>,
    ) -> Result<Response<PutBootParametersResponse>, Status> {
        self.world.trouble.before(Concern::Boot).await?;
        let PutBootParametersRequest { hosts, kernel, params, .. } = request.get_ref().clone();
        if self.world.trouble.refuses(&kernel) {
            self.world.trouble.count("boot data of one group refused");
            return Err(Status::unavailable("no space left on device"));
        }
        let answer = self.fleet.put_boot_parameters(request).await?;
        let token = &answer.get_ref().referral_token;
        trace::note(|| format!("machine takes boot data {kernel} of {hosts:?} as {token}"));
        if !PlantedDefect::LostBootData.is_planted() {
            self.world.journal.prepared(&hosts, &kernel, &params, token);
        }
        let caller = self.world.holder(Part::Configuration);
        self.unless_dead(caller, "config coordinator dies after boot data were taken").await;
        self.world.trouble.after(Concern::Boot).await?;
        Ok(answer)
    }

    async fn get_configurations(
        &self,
        request: Request<GetConfigurationsRequest>,
    ) -> Result<Response<GetConfigurationsResponse>, Status> {
        let mut answer = self.take(Concern::Configuration, self.fleet.get_configurations(request)).await?;
        let nodes = std::mem::take(&mut answer.get_mut().nodes);
        answer.get_mut().nodes = nodes.into_iter().filter_map(|node| self.told_of(node)).collect();
        Ok(answer)
    }

    async fn watch_configurations(
        &self,
        request: Request<WatchConfigurationsRequest>,
    ) -> Result<Response<Self::WatchConfigurationsStream>, Status> {
        let readings =
            self.take(Concern::Configuration, self.fleet.watch_configurations(request)).await?.into_inner();
        let itself = self.clone();
        let readings = readings.map(move |message| {
            let nodes = message?.nodes.into_iter().filter_map(|node| itself.told_of(node)).collect();
            Ok(WatchConfigurationsResponse { nodes })
        });
        Ok(Response::new(readings.boxed()))
    }

    async fn set_configurations(
        &self,
        request: Request<SetConfigurationsRequest>,
    ) -> Result<Response<SetConfigurationsResponse>, Status> {
        self.world.trouble.before(Concern::Configuration).await?;
        let (ids, name) = (request.get_ref().ids.clone(), request.get_ref().desired_configuration.clone());
        if PlantedDefect::LostConfigurations.is_planted() {
            return Ok(Response::new(SetConfigurationsResponse {}));
        }
        let answer = self.fleet.set_configurations(request).await?;
        trace::note(|| format!("machine takes configuration {name:?} of {ids:?}"));
        self.world.journal.configured(&ids, &name);
        self.world.trouble.after(Concern::Configuration).await?;
        Ok(answer)
    }

    async fn get_image(
        &self,
        request: Request<GetImageRequest>,
    ) -> Result<Response<GetImageResponse>, Status> {
        self.take(Concern::Images, self.fleet.get_image(request)).await
    }

    async fn list_faults(
        &self,
        request: Request<ListFaultsRequest>,
    ) -> Result<Response<ListFaultsResponse>, Status> {
        self.fleet.list_faults(request).await
    }
}

/// Returns the answer about a transition that was begun on no node.
fn begun_nowhere(taken: &Taken) -> GetTransitionResponse {
    let (operation, created_at) = (operation(taken.action).into(), Some(taken.at.into()));
    GetTransitionResponse { tasks: Vec::new(), ended: true, operation, created_at }
}

fn operation(action: Action) -> TransitionOperation {
    match action {
        Action::PoweringOn => TransitionOperation::On,
        Action::PoweringOffGracefully => TransitionOperation::SoftOff,
        Action::PoweringOffForcefully => TransitionOperation::ForceOff,
        _ => TransitionOperation::Unspecified,
    }
}

fn action(operation: TransitionOperation) -> Action {
    match operation {
        TransitionOperation::Unspecified => Action::Unspecified,
        TransitionOperation::On => Action::PoweringOn,
        TransitionOperation::SoftOff => Action::PoweringOffGracefully,
        TransitionOperation::ForceOff => Action::PoweringOffForcefully,
    }
}
