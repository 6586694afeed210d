//! The registry and its three services, connected by messages that take time.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    ops::Range,
};

use domain::{
    boot::{
        bos::options::Options,
        component::{
            Component, report,
            status::{ComponentStatus, computed_status},
            write::KnownToken,
        },
    },
    core::time::Timestamp,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::{
    fault::Fault,
    world::{Event, Node, session},
};

/// Latest end of all work. The longest fault is a node that never reports: three boots of 1200 s each after a power-off
/// that may have to be forced, and perhaps a second session on top.
const BOUND: i64 = 3 * 3_600_000;
/// Latency of a message within the mesh, milliseconds.
pub(crate) const MESSAGE: Range<i64> = 1..50;
/// Time between requests to the upstreams about an enabled node, milliseconds.
pub(crate) const POLL: i64 = 10_000;
/// Time after which the power upstream and the controller give up on an action, milliseconds.
pub(crate) const DEADLINE: i64 = 60_000;

pub(crate) struct Outcome(BTreeMap<Fault, (u32, u32)>);

impl Outcome {
    /// Returns the numbers of nodes with `fault` that ended stable and failed.
    pub(crate) fn counts(&self, fault: Fault) -> (u32, u32) {
        self.0.get(&fault).copied().unwrap_or_default()
    }
}

/// Runs `count` nodes until no work is left.
pub(crate) fn run(seed: u64, count: usize) -> Outcome {
    let mut mesh = Mesh::new(seed, count);
    while let Some(Reverse((at, serial, node))) = mesh.queue.pop() {
        assert!(
            at < BOUND,
            "seed {seed}: {} is not done: {:?}",
            mesh.nodes[node].stored.id,
            mesh.nodes[node].stored
        );
        mesh.now = at;
        let event = mesh.events.remove(&serial).expect("queued once");
        mesh.handle(node, event);
    }
    let mut outcome = BTreeMap::new();
    for node in &mesh.nodes {
        let (stable, failed): &mut (u32, u32) = outcome.entry(node.hardware.fault).or_default();
        *if ends_stable(node) { stable } else { failed } += 1;
    }
    Outcome(outcome)
}

/// Checks that a node with the status stable runs the wanted artifacts at that moment: a report of an earlier boot is
/// not enough.
fn check_success(node: &Node, changed: &Component) {
    let is_stable = computed_status(changed) == ComponentStatus::STABLE && !changed.is_enabled();
    if is_stable && node.stored.is_enabled() && changed.kernel_wanted() {
        let running = node.hardware.running.as_ref();
        assert_eq!(running, changed.desired_artifacts(), "{changed:?} {:?}", node.hardware);
    }
}

/// Checks the end of `node`; returns false if it failed.
fn ends_stable(node: &Node) -> bool {
    let (component, hardware) = (&node.stored, &node.hardware);
    let wanted = node.assigned.as_ref().expect("every node has a session");
    assert_eq!(component.wish.enabled, Some(false), "{component:?} {hardware:?}");
    let off = !wanted.boot_artifacts.kernel_wanted();
    if computed_status(component) == ComponentStatus::Failed {
        assert!(hardware.fault.warrants_failure(off), "{component:?} {hardware:?}");
        assert_ne!(component.error_text(), "", "{component:?}");
        return false;
    }
    assert_eq!(computed_status(component), ComponentStatus::STABLE, "{component:?} {hardware:?}");
    assert_eq!(hardware.powered, !off, "{component:?} {hardware:?}");
    if !off {
        assert_eq!(hardware.running.as_ref(), Some(&*wanted.boot_artifacts), "{component:?} {hardware:?}");
        assert!(
            !wanted.clear_actual_state || hardware.boots > node.boots_before,
            "{component:?} {hardware:?}"
        );
        let configured = hardware.configuration.as_deref() == Some(&wanted.configuration)
            && (wanted.configuration.is_empty() || hardware.configuration_status == "configured");
        assert!(configured, "{component:?} {hardware:?}");
    }
    true
}

pub(crate) struct Mesh {
    pub(crate) now: i64,
    pub(crate) rng: SmallRng,
    pub(crate) options: Options,
    pub(crate) nodes: Vec<Node>,
    pub(crate) tokens: HashMap<String, KnownToken>,
    queue: BinaryHeap<Reverse<(i64, u64, usize)>>,
    events: HashMap<u64, Event>,
    serial: u64,
}

impl Mesh {
    fn new(seed: u64, count: usize) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let nodes = (0..count).map(|index| Node::new(index, &mut rng)).collect();
        let mut mesh = Self {
            now: 0,
            rng,
            options: Options::default(),
            nodes,
            tokens: HashMap::new(),
            queue: BinaryHeap::new(),
            events: HashMap::new(),
            serial: 0,
        };
        for node in 0..count {
            let first = session("first", &mut mesh.rng);
            mesh.after(node, 0..60_000, Event::Assign(first));
            if mesh.rng.random_bool(0.15) {
                let second = session("second", &mut mesh.rng);
                mesh.after(node, 60_000..2_000_000, Event::Assign(second));
            }
        }
        mesh
    }

    pub(crate) fn after(&mut self, node: usize, delay: Range<i64>, event: Event) {
        let at = self.now + self.rng.random_range(delay);
        self.at(node, at, event);
    }

    pub(crate) fn at(&mut self, node: usize, at: i64, event: Event) {
        self.serial += 1;
        self.queue.push(Reverse((at.max(self.now), self.serial, node)));
        self.events.insert(self.serial, event);
    }

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp(self.now)
    }

    fn handle(&mut self, node: usize, event: Event) {
        match event {
            Event::Assign(assignment) => self.assign(node, assignment),
            Event::Seen(service, component) => self.seen(node, service, component),
            Event::PowerSeen(reading) => {
                self.nodes[node].power_seen = Some(reading);
                self.evaluate(node);
                self.want_preparation(node);
            }
            Event::ConfigurationSeen(reading) => {
                self.nodes[node].configuration_seen = Some(reading);
                self.evaluate(node);
            }
            Event::StatusReported(statement) => {
                if let Ok(Some(changed)) = report::record(&self.nodes[node].stored, &statement, self.time()) {
                    check_success(&self.nodes[node], &changed);
                    self.store(node, changed);
                }
            }
            Event::ActionReported(transition) => self.begin(node, transition),
            Event::PreparationReported(statement) => self.preparation_reported(node, &statement),
            Event::Decide(service) => self.decide(node, service),
            Event::Poll => self.poll(node),
            Event::PowerAnswer { asked_at, answer } => {
                let known = &mut self.nodes[node];
                if asked_at >= known.power_asked_at && known.power != Some(answer) {
                    (known.power_asked_at, known.power) = (asked_at, Some(answer));
                    self.after(node, MESSAGE, Event::PowerSeen(answer));
                    self.act(node);
                }
            }
            Event::ConfigurationAnswer { asked_at, answer } => {
                let known = &mut self.nodes[node];
                if asked_at >= known.configuration_asked_at && known.configuration.as_ref() != Some(&answer) {
                    (known.configuration_asked_at, known.configuration) = (asked_at, Some(answer.clone()));
                    self.after(node, MESSAGE, Event::ConfigurationSeen(answer));
                    self.configure(node);
                }
            }
            Event::Prepare { generation } => self.prepare(node, generation),
            Event::SetConfiguration => self.set_configuration(node),
            Event::Deliver(transition) => self.deliver(node, transition),
            Event::Resolved(transition) => self.resolved(node, &transition),
            Event::PowerChanges { cycle } => self.power_changes(node, cycle),
            Event::Boots { cycle } => self.boots(node, cycle),
            Event::Reports { cycle, token } => self.node_reports(node, cycle, token),
            Event::ReportsAgain { token } => self.report_again(node, token),
            Event::ConfigurationRuns { run } => {
                let hardware = &mut self.nodes[node].hardware;
                if hardware.configuration_run == run {
                    hardware.configuration_status = hardware.configured().to_owned();
                }
            }
        }
    }
}
