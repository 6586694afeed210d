//! The machine in real time: calls go in, one task lets its time pass, and whoever subscribed hears of changes.

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
    faults::Fault,
    hardware::Timing,
    machine::{Changes, Machine},
    node::{Node, PowerCommand, WantedConfiguration},
    reporter::Report,
    topology::NODE,
    transitions::{Task, Transition, Transitions},
};

/// Messages that a subscriber may be behind before it is told to start over. Most have one node, so this is the
/// burst of a large fleet and less than a megabyte.
const BACKLOG: usize = 4096;

/// Nodes in one message to subscribers: well below the 4 MiB that gRPC clients take unless told otherwise.
const BATCH: usize = 1000;

/// Things that are done under one lock when much is due at once, so that calls get their turn in between.
const MOST_AT_ONCE: usize = 4096;

/// What a fleet is made of.
pub(crate) struct Blueprint {
    pub(crate) hardware: Vec<Hardware>,
    pub(crate) groups: Vec<Group>,
    pub(crate) timing: Timing,
    /// By position among the nodes, other hardware left out.
    pub(crate) faults: Vec<Option<Fault>>,
    /// Whether the nodes are up at the start, with some image of unknown origin.
    pub(crate) up: bool,
}

/// A node that the fleet does not have.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a node of the fleet")]
pub(crate) struct UnknownNode(pub(crate) String);

/// The simulated fleet and the upstreams that know it.
pub(crate) struct Fleet {
    hardware: Vec<Hardware>,
    groups: Vec<Group>,
    started: Instant,
    state: Mutex<State>,
    rescheduled: Notify,
    power: broadcast::Sender<WatchPowerResponse>,
    configurations: broadcast::Sender<WatchConfigurationsResponse>,
    reports: mpsc::UnboundedSender<Report>,
}

struct State {
    machine: Machine,
    transitions: Transitions,
    /// Nodes that the power service does not reach.
    unreachable: HashSet<String>,
    /// Nodes of which transitions are taken and not performed yet.
    held: HashSet<String>,
    /// Commands that wait until their node is not held any more: transition, command, position of the node.
    late: Vec<(String, PowerCommand, usize)>,
}

/// The members of the inventory that can be turned on.
pub(crate) fn nodes(hardware: &[Hardware]) -> impl Iterator<Item = &Hardware> {
    hardware.iter().filter(|piece| piece.r#type == NODE)
}

impl Fleet {
    /// A fleet at the beginning of its time. Nodes that booted send what they report to `reports`, which holds at most
    /// one report for each boot.
    pub(crate) fn new(blueprint: Blueprint, reports: mpsc::UnboundedSender<Report>) -> Self {
        let Blueprint { hardware, groups, timing, faults, up } = blueprint;
        let node = |(index, (piece, fault)): (usize, (&Hardware, Option<Fault>))| {
            Node::new(piece.id.as_str().into(), timing.pace(index), fault, piece.locked, up)
        };
        let nodes = nodes(&hardware).zip(faults).enumerate().map(node).collect();
        let (transitions, unreachable) = (Transitions::default(), HashSet::new());
        let (held, late) = (HashSet::new(), Vec::new());
        let state = State { machine: Machine::new(nodes), transitions, unreachable, held, late };
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

    /// Lets time pass until `shutdown`.
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

    /// Does what is due and answers when there is more to do.
    fn advance(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        let changes = state.machine.advance(self.started.elapsed(), MOST_AT_ONCE);
        self.publish(&state.machine, changes);
        state.machine.next_due()
    }

    /// Tells subscribers. Called with the lock held, or an older reading could overtake a newer one. A send fails only
    /// when nobody listens, which is nobody's loss.
    fn publish(&self, machine: &Machine, changes: Changes) {
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

    /// Power of `ids`, or of every node if there are none. Unknown ones are left out.
    pub(crate) fn power(&self, ids: &[String]) -> Vec<NodePower> {
        self.read(ids, power)
    }

    /// Configuration of `ids`, or of every node if there are none. Unknown ones are left out.
    pub(crate) fn configurations(&self, ids: &[String]) -> Vec<NodeConfiguration> {
        self.read(ids, configuration)
    }

    fn read<T>(&self, ids: &[String], read: impl Fn(&Node) -> T) -> Vec<T> {
        let state = self.state.lock();
        if ids.is_empty() {
            return state.machine.nodes().iter().map(read).collect();
        }
        let positions = known(&state.machine, ids);
        positions.into_iter().map(|position| read(&state.machine.nodes()[position])).collect()
    }

    /// Accepts a transition for all of `ids` or, if one of them is unknown, for none, and gives its id.
    pub(crate) fn start_transition(
        &self,
        command: PowerCommand,
        ids: &[String],
    ) -> Result<String, UnknownNode> {
        let mut state = self.state.lock();
        let position = |id: &String| state.machine.position(id).ok_or_else(|| UnknownNode(id.clone()));
        let positions = ids.iter().map(position).collect::<Result<Vec<_>, _>>()?;
        let ids = |positions: &[usize], machine: &Machine| {
            positions.iter().map(|&position| Arc::clone(&machine.nodes()[position].id)).collect::<Vec<_>>()
        };
        let is_reached =
            |position: &usize| !state.unreachable.contains(&*state.machine.nodes()[*position].id);
        let (reached, unreached): (Vec<_>, Vec<_>) = positions.iter().copied().partition(is_reached);
        let (members, unreached) = (ids(&positions, &state.machine), ids(&unreached, &state.machine));
        let id = uuid::Uuid::new_v4().to_string();
        let created_at = SystemTime::now();
        let is_held = |position: &usize| state.held.contains(&*state.machine.nodes()[*position].id);
        let (late, reached): (Vec<_>, Vec<_>) = reached.into_iter().partition(is_held);
        state.late.extend(late.into_iter().map(|position| (id.clone(), command, position)));
        state.transitions.push(Transition { id: id.clone(), command, members, unreached, created_at });
        let changes = state.machine.command(self.started.elapsed(), command, &reached);
        self.publish(&state.machine, changes);
        self.rescheduled.notify_one();
        Ok(id)
    }

    /// From now on the power service reaches a node, or does not.
    pub(crate) fn set_reachable(&self, id: &str, reachable: bool) {
        let mut state = self.state.lock();
        if reachable {
            state.unreachable.remove(id);
        } else {
            state.unreachable.insert(id.to_owned());
        }
    }

    /// From now on transitions of these nodes are taken and performed later. Performs what was put off for others.
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

    /// What became of a transition on each of its nodes; none if it was forgotten.
    pub(crate) fn tasks(&self, transition: &str) -> Option<Vec<(Arc<str>, Task)>> {
        let state = self.state.lock();
        let (transition, now) = (state.transitions.get(transition)?, SystemTime::now());
        let task = |id: &Arc<str>| {
            let position = state.machine.position(id)?;
            let is_on = state.machine.nodes()[position].is_on();
            let is_late = state.late.iter().any(|(late, _, at)| *late == transition.id && *at == position);
            let task = if is_late { Task::Pending } else { transition.task(id, is_on, now) };
            Some((Arc::clone(id), task))
        };
        Some(transition.members.iter().filter_map(task).collect())
    }

    /// The transition of that id; none if it was forgotten.
    pub(crate) fn transition(&self, id: &str) -> Option<Transition> {
        self.state.lock().transitions.get(id).cloned()
    }

    pub(crate) fn transitions_since(&self, since: SystemTime) -> Vec<Transition> {
        self.state.lock().transitions.since(since)
    }

    /// Sets what the hosts boot the next time they turn on, and gives the token that names it. Unknown hosts are
    /// passed over: the real server keeps data for any host.
    pub(crate) fn put_boot_parameters(&self, request: &PutBootParametersRequest) -> String {
        let data = Arc::new(BootData::accept(&request.params));
        let machine = &mut self.state.lock().machine;
        let positions = known(machine, &request.hosts);
        machine.set_boot_data(&data, &positions);
        data.token.to_string()
    }

    /// Tells the configuration service about `ids`. Unknown ones are passed over, as the real service does.
    pub(crate) fn configure(&self, wanted: &WantedConfiguration, ids: &[String]) {
        let mut state = self.state.lock();
        let positions = known(&state.machine, ids);
        let changes = state.machine.configure(self.started.elapsed(), wanted, &positions);
        self.publish(&state.machine, changes);
        self.rescheduled.notify_one();
    }

    pub(crate) fn faults(&self) -> Vec<NodeFault> {
        let state = self.state.lock();
        let fault = |node: &Node| {
            let fault = node.fault?.word().to_owned();
            Some(NodeFault { id: node.id.to_string(), fault })
        };
        state.machine.nodes().iter().filter_map(fault).collect()
    }
}

fn known(machine: &Machine, ids: &[String]) -> Vec<usize> {
    ids.iter().filter_map(|id| machine.position(id)).collect()
}

fn power(node: &Node) -> NodePower {
    let reading = if node.is_on() { PowerReading::On } else { PowerReading::Off };
    NodePower { id: node.id.to_string(), reading: reading.into(), error: String::new() }
}

fn configuration(node: &Node) -> NodeConfiguration {
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
    use crate::{faults::Faults, topology};

    struct Stage {
        fleet: Arc<Fleet>,
        reports: mpsc::UnboundedReceiver<Report>,
        ids: Vec<String>,
        _running: tokio_util::task::AbortOnDropHandle<()>,
    }

    /// A fleet without delays whose time passes.
    fn stage(nodes: u32, faults: &str) -> Stage {
        let hardware = topology::generate(nodes);
        let faults: Faults = faults.parse().expect("the test's own text");
        let (reports, inbox) = mpsc::unbounded_channel();
        let blueprint = Blueprint {
            groups: topology::groups(&hardware),
            timing: Timing::new(1, 0.0).expect("no delay is allowed"),
            faults: faults.assign(hardware.len(), 1).expect("the fleet is large enough"),
            up: false,
            hardware,
        };
        let ids = blueprint.hardware.iter().map(|node| node.id.clone()).collect();
        let fleet = Arc::new(Fleet::new(blueprint, reports));
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

    /// What the fleet looks like: how many nodes have which power and configuration.
    fn summary(fleet: &Fleet) -> String {
        let mut counts = BTreeMap::new();
        for (power, configuration) in fleet.power(&[]).into_iter().zip(fleet.configurations(&[])) {
            let state = (power.reading().as_str_name(), configuration.status);
            *counts.entry(state).or_insert(0) += 1;
        }
        format!("{counts:?}")
    }

    /// Waits until the fleet looks as expected.
    async fn settles(fleet: &Fleet, expected: &str) {
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
    async fn faults_spoil_as_many_nodes_as_were_asked_for() {
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
    async fn subscribers_hear_of_every_node_and_of_nothing_past() {
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
    async fn a_transition_with_an_unknown_node_is_refused_as_a_whole() {
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
