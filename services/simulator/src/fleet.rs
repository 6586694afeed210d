//! The fleet in real time: a task advances the simulated time, and subscribers receive changes.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use proto::{
    configuration::ConfigurationReading,
    inventory::{Group, Hardware},
    power::PowerReading,
    simulation::{
        NodeConfiguration, NodeFault, NodePower, PutBootParametersRequest, WatchConfigurationsResponse,
        WatchPowerResponse,
    },
};
use tokio::{
    sync::{Notify, broadcast, mpsc},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    boot::BootData,
    faults::HardwareFault,
    hardware::NodeTiming,
    machine::{MachineChanges, SimulatedMachine},
    node::{PowerCommand, SimulatedNode, WantedConfiguration},
    reporter::NodeReport,
    topology::NODE,
    transitions::{MemberResult, RecordedTransition, TransitionLog},
};

/// Messages by which a subscriber may lag before it has to start over. Most messages have one node, so this is the
/// burst of a large fleet and less than a megabyte.
const BACKLOG: usize = 4096;

/// Nodes in one message to subscribers: well below the default limit of gRPC clients, 4 MiB.
const BATCH: usize = 1000;

/// Most events that are handled under one lock, so that calls get their turn in between.
const MOST_AT_ONCE: usize = 4096;

/// Parts of a fleet.
pub(crate) struct FleetBlueprint {
    pub(crate) hardware: Vec<Hardware>,
    pub(crate) groups: Vec<Group>,
    pub(crate) timing: NodeTiming,
    /// Faults by position among the nodes, without other hardware.
    pub(crate) faults: Vec<Option<HardwareFault>>,
    /// Whether the nodes are up at the start, with an image of unknown origin.
    pub(crate) up: bool,
}

/// Id that no node of the fleet has.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a node of the fleet")]
pub(crate) struct UnknownNode(pub(crate) String);

/// The simulated fleet, with its simulated upstreams.
pub(crate) struct SimulatedFleet {
    hardware: Vec<Hardware>,
    groups: Vec<Group>,
    started: Instant,
    state: Mutex<FleetState>,
    rescheduled: Notify,
    power: broadcast::Sender<WatchPowerResponse>,
    configurations: broadcast::Sender<WatchConfigurationsResponse>,
    reports: mpsc::UnboundedSender<NodeReport>,
}

struct FleetState {
    machine: SimulatedMachine,
    transitions: TransitionLog,
    /// Nodes that the power service cannot reach.
    unreachable: HashSet<String>,
    /// Nodes whose transitions are accepted but not executed yet.
    held: HashSet<String>,
    /// Commands of held nodes: transition, command, position of the node.
    late: Vec<(String, PowerCommand, usize)>,
}

/// Returns the hardware that can be turned on.
pub(crate) fn nodes(hardware: &[Hardware]) -> impl Iterator<Item = &Hardware> {
    hardware.iter().filter(|piece| piece.r#type == NODE)
}

impl SimulatedFleet {
    /// Creates a fleet at time zero. Booted nodes send their reports to `reports`, which holds at most one report per
    /// boot.
    pub(crate) fn new(blueprint: FleetBlueprint, reports: mpsc::UnboundedSender<NodeReport>) -> Self {
        let FleetBlueprint { hardware, groups, timing, faults, up } = blueprint;
        let node = |(index, (piece, fault)): (usize, (&Hardware, Option<HardwareFault>))| {
            SimulatedNode::new(piece.id.as_str().into(), timing.pace(index), fault, piece.locked, up)
        };
        let nodes = nodes(&hardware).zip(faults).enumerate().map(node).collect();
        let transitions = TransitionLog::default();
        let unreachable = HashSet::new();
        let held = HashSet::new();
        let late = Vec::new();
        let state =
            FleetState { machine: SimulatedMachine::new(nodes), transitions, unreachable, held, late };
        Self {
            hardware,
            groups,
            started: Instant::now(),
            state: Mutex::new(state),
            rescheduled: Notify::new(),
            power: broadcast::Sender::new(BACKLOG),
            configurations: broadcast::Sender::new(BACKLOG),
            reports,
        }
    }

    /// Advances the simulated time until `shutdown`.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        loop {
            let next = self.advance().map(|due| self.started + due);
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.rescheduled.notified() => {}
                () = sleep_until(next.unwrap_or(self.started)), if next.is_some() => {}
            }
        }
    }

    /// Handles due events and returns the time of the next one.
    fn advance(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        let changes = state.machine.advance(self.started.elapsed(), MOST_AT_ONCE);
        self.publish(&state.machine, changes);
        state.machine.next_due()
    }

    /// Sends changes to subscribers. The caller holds the lock, or an older reading could overtake a newer one. A
    /// send fails only if there are no subscribers, which is harmless.
    fn publish(&self, machine: &SimulatedMachine, changes: MachineChanges) {
        if self.power.receiver_count() > 0 {
            for batch in changes.power.chunks(BATCH) {
                let nodes = batch.iter().map(|&position| power(&machine.nodes()[position])).collect();
                let _ = self.power.send(WatchPowerResponse { nodes });
            }
        }
        if self.configurations.receiver_count() > 0 {
            for batch in changes.configuration.chunks(BATCH) {
                let nodes = batch.iter().map(|&position| configuration(&machine.nodes()[position])).collect();
                let _ = self.configurations.send(WatchConfigurationsResponse { nodes });
            }
        }
        for report in changes.reports {
            let _ = self.reports.send(report);
        }
    }

    pub(crate) fn hardware(&self) -> &[Hardware] {
        &self.hardware
    }

    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(crate) fn watch_power(&self) -> broadcast::Receiver<WatchPowerResponse> {
        self.power.subscribe()
    }

    pub(crate) fn watch_configurations(&self) -> broadcast::Receiver<WatchConfigurationsResponse> {
        self.configurations.subscribe()
    }

    /// Returns the power of `ids`, or of every node if `ids` is empty. Unknown ids are skipped.
    pub(crate) fn power(&self, ids: &[String]) -> Vec<NodePower> {
        self.read(ids, power)
    }

    /// Returns the configuration of `ids`, or of every node if `ids` is empty. Unknown ids are skipped.
    pub(crate) fn configurations(&self, ids: &[String]) -> Vec<NodeConfiguration> {
        self.read(ids, configuration)
    }

    /// Returns whether a node has power; `None`: there is no such node.
    pub(crate) fn is_on(&self, id: &str) -> Option<bool> {
        let state = self.state.lock();
        let position = state.machine.position(id)?;
        Some(state.machine.nodes()[position].is_on())
    }

    fn read<T>(&self, ids: &[String], read: impl Fn(&SimulatedNode) -> T) -> Vec<T> {
        let state = self.state.lock();
        if ids.is_empty() {
            return state.machine.nodes().iter().map(read).collect();
        }
        let positions = known(&state.machine, ids);
        positions.into_iter().map(|position| read(&state.machine.nodes()[position])).collect()
    }

    /// Accepts a transition of all `ids` and returns its id, or refuses the whole transition if one of them is
    /// unknown.
    pub(crate) fn start_transition(
        &self,
        command: PowerCommand,
        ids: &[String],
    ) -> Result<String, UnknownNode> {
        let mut state = self.state.lock();
        let mut positions = Vec::with_capacity(ids.len());
        for id in ids {
            positions.push(state.machine.position(id).ok_or_else(|| UnknownNode(id.clone()))?);
        }
        let is_reached =
            |position: &usize| !state.unreachable.contains(&*state.machine.nodes()[*position].id);
        let (reached, unreached): (Vec<_>, Vec<_>) = positions.iter().copied().partition(is_reached);
        let members = ids_of(&positions, &state.machine);
        let unreached = ids_of(&unreached, &state.machine);
        let id = uuid::Uuid::new_v4().to_string();
        let (created_at, began) = (SystemTime::now(), self.started.elapsed());
        let is_held = |position: &usize| state.held.contains(&*state.machine.nodes()[*position].id);
        let (late, reached): (Vec<_>, Vec<_>) = reached.into_iter().partition(is_held);
        state.late.extend(late.into_iter().map(|position| (id.clone(), command, position)));
        state.transitions.push(RecordedTransition {
            id: id.clone(),
            command,
            members,
            unreached,
            created_at,
            began,
        });
        let changes = state.machine.command(began, command, &reached);
        self.publish(&state.machine, changes);
        self.rescheduled.notify_one();
        Ok(id)
    }

    /// Sets whether the power service reaches a node.
    pub(crate) fn set_reachable(&self, id: &str, reachable: bool) {
        let mut state = self.state.lock();
        if reachable {
            state.unreachable.remove(id);
        } else {
            state.unreachable.insert(id.to_owned());
        }
    }

    /// Holds the transitions of these nodes: they are accepted and executed later. Executes the pending commands of
    /// other nodes.
    pub(crate) fn hold(&self, held: HashSet<String>) {
        let mut state = self.state.lock();
        let machine = &state.machine;
        let is_due = |position: usize| !held.contains(&*machine.nodes()[position].id);
        let (due, late): (Vec<_>, Vec<_>) =
            state.late.iter().cloned().partition(|(_, _, position)| is_due(*position));
        (state.late, state.held) = (late, held);
        for (_, command, position) in due {
            let changes = state.machine.command(self.started.elapsed(), command, &[position]);
            self.publish(&state.machine, changes);
        }
        self.rescheduled.notify_one();
    }

    /// Returns the result of a transition on each of its nodes; none if the transition was dropped.
    pub(crate) fn tasks(&self, transition: &str) -> Option<Vec<(Arc<str>, MemberResult)>> {
        let state = self.state.lock();
        let transition = state.transitions.get(transition)?;
        let age = self.started.elapsed();
        let task = |id: &Arc<str>| {
            let position = state.machine.position(id)?;
            let is_on = state.machine.nodes()[position].is_on();
            let is_late = state.late.iter().any(|(late, _, at)| *late == transition.id && *at == position);
            let task = if is_late { MemberResult::Pending } else { transition.task(id, is_on, age) };
            Some((Arc::clone(id), task))
        };
        Some(transition.members.iter().filter_map(task).collect())
    }

    /// Returns the transition of that id; none if it was dropped.
    pub(crate) fn transition(&self, id: &str) -> Option<RecordedTransition> {
        self.state.lock().transitions.get(id).cloned()
    }

    pub(crate) fn transitions_since(&self, since: SystemTime) -> Vec<RecordedTransition> {
        self.state.lock().transitions.since(since)
    }

    /// Sets the boot data for the next power-on of the hosts, and returns its token. Unknown hosts are skipped: the
    /// real server keeps data for any host.
    pub(crate) fn put_boot_parameters(&self, request: &PutBootParametersRequest) -> String {
        let data = Arc::new(BootData::accept(&request.params));
        let machine = &mut self.state.lock().machine;
        let positions = known(machine, &request.hosts);
        machine.set_boot_data(&data, &positions);
        data.token.to_string()
    }

    /// Sets the wanted configuration of `ids`. Unknown ids are skipped, as in the real service.
    pub(crate) fn configure(&self, wanted: &WantedConfiguration, ids: &[String]) {
        let mut state = self.state.lock();
        let positions = known(&state.machine, ids);
        let changes = state.machine.configure(self.started.elapsed(), wanted, &positions);
        self.publish(&state.machine, changes);
        self.rescheduled.notify_one();
    }

    pub(crate) fn faults(&self) -> Vec<NodeFault> {
        let state = self.state.lock();
        let mut faults = Vec::new();
        for node in state.machine.nodes() {
            faults.extend(
                node.fault.map(|fault| NodeFault { id: node.id.to_string(), fault: fault.word().to_owned() }),
            );
        }
        faults
    }
}

fn ids_of(positions: &[usize], machine: &SimulatedMachine) -> Vec<Arc<str>> {
    positions.iter().map(|&position| Arc::clone(&machine.nodes()[position].id)).collect()
}

fn known(machine: &SimulatedMachine, ids: &[String]) -> Vec<usize> {
    ids.iter().filter_map(|id| machine.position(id)).collect()
}

fn power(node: &SimulatedNode) -> NodePower {
    let reading = if node.is_on() { PowerReading::On } else { PowerReading::Off };
    NodePower { id: node.id.to_string(), reading: reading.into(), error: String::new() }
}

fn configuration(node: &SimulatedNode) -> NodeConfiguration {
    let (desired, status) = node.configuration();
    NodeConfiguration {
        id: node.id.to_string(),
        reading: ConfigurationReading::Known.into(),
        desired_configuration: Some(desired.to_owned()),
        status: status.word().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;

    use super::*;
    use crate::{faults::FleetFaults, topology};

    struct Stage {
        fleet: Arc<SimulatedFleet>,
        reports: mpsc::UnboundedReceiver<NodeReport>,
        ids: Vec<String>,
        _running: tokio_util::task::AbortOnDropHandle<()>,
    }

    /// A fleet without delays, with advancing time.
    fn stage(nodes: u32, faults: &str) -> Stage {
        let hardware = topology::generate(nodes);
        let faults: FleetFaults = faults.parse().expect("the test's own text");
        let (reports, inbox) = mpsc::unbounded_channel();
        let blueprint = FleetBlueprint {
            groups: topology::groups(&hardware),
            timing: NodeTiming::new(1, 0.0).expect("no delay is allowed"),
            faults: faults.assign(hardware.len(), 1).expect("the fleet is large enough"),
            up: false,
            hardware,
        };
        let ids = blueprint.hardware.iter().map(|node| node.id.clone()).collect();
        let fleet = Arc::new(SimulatedFleet::new(blueprint, reports));
        let running = fleet.clone();
        let running = tokio::spawn(async move { running.run(CancellationToken::new()).await });
        Stage { fleet, reports: inbox, ids, _running: tokio_util::task::AbortOnDropHandle::new(running) }
    }

    fn boot(stage: &Stage) -> String {
        let Stage { fleet, ids, .. } = stage;
        let token = fleet.put_boot_parameters(&PutBootParametersRequest {
            hosts: ids.clone(),
            params: "quiet".into(),
            ..Default::default()
        });
        let wanted = WantedConfiguration { name: "c1".into(), enabled: false, clear_state: true };
        fleet.configure(&wanted, ids);
        fleet.start_transition(PowerCommand::On, ids).expect("every node is known");
        token
    }

    /// Numbers of nodes by power and configuration.
    fn summary(fleet: &SimulatedFleet) -> String {
        let mut counts = BTreeMap::new();
        for (power, configuration) in fleet.power(&[]).into_iter().zip(fleet.configurations(&[])) {
            let state = (power.reading().as_str_name(), configuration.status);
            *counts.entry(state).or_insert(0) += 1;
        }
        format!("{counts:?}")
    }

    /// Waits for the expected summary.
    async fn settles(fleet: &SimulatedFleet, expected: &str) {
        let mut changes = fleet.watch_configurations();
        let settled = async {
            while summary(fleet) != expected {
                changes.recv().await.expect("the fleet lives as long as the test");
            }
        };
        let outcome = tokio::time::timeout(Duration::from_secs(20), settled).await;
        assert!(outcome.is_ok(), "looks like {} and not like {expected}", summary(fleet));
    }

    #[tokio::test]
    async fn a_fleet_boots_reports_and_gets_configured() {
        let mut stage = stage(5000, "0");
        let token = boot(&stage);
        settles(&stage.fleet, r#"{("POWER_READING_ON", "configured"): 5000}"#).await;
        let mut reported = Vec::new();
        while let Ok(report) = stage.reports.try_recv() {
            assert_eq!(*report.boot.token, token);
            reported.push(report.id.to_string());
        }
        reported.sort();
        stage.ids.sort();
        assert_eq!(reported, stage.ids);
    }

    #[tokio::test]
    async fn the_requested_number_of_nodes_is_faulty() {
        let mut stage = stage(96, "stuck-off=2,ignores-graceful-off=3,never-reports=4,configuration-fails=5");
        boot(&stage);
        let expected = r#"{("POWER_READING_OFF", "pending"): 2, ("POWER_READING_ON", "configured"): 89, ("POWER_READING_ON", "failed"): 5}"#;
        settles(&stage.fleet, expected).await;
        let mut reports = 0;
        while stage.reports.try_recv().is_ok() {
            reports += 1;
        }
        assert_eq!(reports, 96 - 2 - 4);
        assert_eq!(stage.fleet.faults().len(), 14);
    }

    #[tokio::test]
    async fn subscribers_receive_every_later_change() {
        let stage = stage(2500, "0");
        stage.fleet.start_transition(PowerCommand::On, &stage.ids[..1]).expect("known");
        let mut first = stage.fleet.watch_power();
        let heard = tokio::time::timeout(Duration::from_secs(20), first.recv()).await;
        assert_eq!(heard.expect("in time").expect("alive").nodes[0].id, stage.ids[0]);

        let mut later = stage.fleet.watch_power();
        stage.fleet.start_transition(PowerCommand::On, &stage.ids).expect("known");
        let mut heard = Vec::new();
        while heard.len() < stage.ids.len() - 1 {
            let batch = tokio::time::timeout(Duration::from_secs(20), later.recv()).await;
            let batch = batch.expect("in time").expect("alive").nodes;
            assert!(batch.len() <= BATCH);
            heard.extend(batch.into_iter().map(|node| node.id));
        }
        assert_eq!(heard, stage.ids[1..]);
    }

    #[tokio::test]
    async fn a_transition_with_an_unknown_node_is_refused_whole() {
        let stage = stage(4, "0");
        let ids = [stage.ids[0].clone(), "x9c0s0b0n0".to_owned()];
        let refused = stage.fleet.start_transition(PowerCommand::On, &ids).expect_err("one is unknown");
        expect!["x9c0s0b0n0 is not a node of the fleet"].assert_eq(&refused.to_string());
        assert!(stage.fleet.transitions_since(SystemTime::UNIX_EPOCH).is_empty());
    }

    #[tokio::test]
    async fn answers_leave_unknown_nodes_out() {
        let stage = stage(4, "0");
        let ids = ["x9c0s0b0n0".to_owned(), stage.ids[1].clone()];
        expect![[r#"
            (
                [
                    NodePower {
                        id: "x1000c0s0b0n1",
                        reading: Off,
                        error: "",
                    },
                ],
                [
                    NodeConfiguration {
                        id: "x1000c0s0b0n1",
                        reading: Known,
                        desired_configuration: Some(
                            "",
                        ),
                        status: "unconfigured",
                    },
                ],
            )
        "#]]
        .assert_debug_eq(&(stage.fleet.power(&ids), stage.fleet.configurations(&ids)));
    }

    #[tokio::test]
    async fn accepted_transitions_can_be_found_again() {
        let stage = stage(4, "0");
        let before = SystemTime::now();
        let id = stage.fleet.start_transition(PowerCommand::ForceOff, &stage.ids).expect("known");
        let found = stage.fleet.transitions_since(before);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&found[0].id, found[0].command, found[0].members.len()),
            (&id, PowerCommand::ForceOff, 4)
        );
    }
}
