//! The registry and its three services, joined by messages that take their time.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    ops::Range,
    rc::Rc,
};

use domain::{
    artifacts::BootArtifacts,
    component::{Action, ActualState, Component},
    configuration::{self, ConfigurationDecision},
    evaluation::{ConfigurationObservation, Decision, Evidence, PowerObservation, PowerReading, evaluate},
    options::Options,
    power::{self, PowerDecision},
    preparation::{self, Preparation, PreparationDecision},
    report::{self, ActionReport, Assignment, PreparationReport, StatusReport},
    status::{self, computed_status},
    time::Timestamp,
    write,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::{
    fault::Fault,
    world::{Event, Node, Service, Transition, session},
};

/// Everything has to be over by then. The longest fault is a node that never reports: three boots of 1200 s
/// each after a power-off that may have to be forced, and perhaps a second session on top.
const BOUND: i64 = 3 * 3_600_000;
/// How long a message within the mesh takes, milliseconds.
const MESSAGE: Range<i64> = 1..50;
/// How often the upstreams are asked about an enabled node, milliseconds.
const POLL: i64 = 10_000;
/// When the power upstream gives up on an action, and the controller with it, milliseconds.
const DEADLINE: i64 = 60_000;

pub(crate) struct Outcome(BTreeMap<Fault, (u32, u32)>);

impl Outcome {
    /// How many nodes with `fault` ended stable, and how many failed.
    pub(crate) fn counts(&self, fault: Fault) -> (u32, u32) {
        self.0.get(&fault).copied().unwrap_or_default()
    }
}

/// Runs `count` nodes until nothing is left to do.
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

/// Checks the end of `node`; false: it failed.
fn ends_stable(node: &Node) -> bool {
    let (component, hardware) = (&node.stored, &node.hardware);
    let wanted = node.assigned.as_ref().expect("every node has a session");
    assert_eq!(component.enabled, Some(false), "{component:?} {hardware:?}");
    let off = !wanted.boot_artifacts.kernel_wanted();
    if computed_status(component) == status::FAILED {
        assert!(hardware.fault.warrants_failure(off), "{component:?} {hardware:?}");
        assert_ne!(component.error_text(), "", "{component:?}");
        return false;
    }
    assert_eq!(computed_status(component), status::STABLE, "{component:?} {hardware:?}");
    assert_eq!(hardware.powered, !off, "{component:?} {hardware:?}");
    if !off {
        assert_eq!(hardware.running.as_ref(), Some(&wanted.boot_artifacts), "{component:?} {hardware:?}");
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

struct Mesh {
    now: i64,
    rng: SmallRng,
    options: Options,
    nodes: Vec<Node>,
    tokens: HashMap<String, BootArtifacts>,
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

    fn after(&mut self, node: usize, delay: Range<i64>, event: Event) {
        let at = self.now + self.rng.random_range(delay);
        self.at(node, at, event);
    }

    fn at(&mut self, node: usize, at: i64, event: Event) {
        self.serial += 1;
        self.queue.push(Reverse((at.max(self.now), self.serial, node)));
        self.events.insert(self.serial, event);
    }

    fn time(&self) -> Timestamp {
        Timestamp(self.now)
    }

    fn handle(&mut self, node: usize, event: Event) {
        match event {
            Event::Assign(assignment) => self.assign(node, assignment),
            Event::Seen(service, component) => self.seen(node, service, component),
            Event::PowerSeen(reading) => {
                self.nodes[node].power_seen = Some(reading);
                self.evaluate(node);
            }
            Event::ConfigurationSeen(reading) => {
                self.nodes[node].configuration_seen = Some(reading);
                self.evaluate(node);
            }
            Event::StatusReported(statement) => {
                if let Ok(Some(changed)) = report::status(&self.nodes[node].stored, &statement, self.time()) {
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
            Event::ConfigurationRuns { run } => {
                let hardware = &mut self.nodes[node].hardware;
                if hardware.configuration_run == run {
                    hardware.configuration_status = hardware.configured().to_owned();
                }
            }
        }
    }

    // The registry.

    fn assign(&mut self, node: usize, assignment: Assignment) {
        let changed =
            report::assign(&self.nodes[node].stored, &assignment, self.time()).expect("never stale");
        let assigned = changed.expect("each session comes once");
        self.nodes[node].boots_before = self.nodes[node].hardware.boots;
        self.nodes[node].assigned = Some(assignment);
        self.store(node, assigned);
    }

    fn store(&mut self, node: usize, mut changed: Component) {
        let stored = &mut self.nodes[node].stored;
        changed.revision = stored.revision + 1;
        assert!(changed.generation >= stored.generation);
        for action in [Action::PoweringOn, Action::PoweringOffGracefully, Action::PoweringOffForcefully] {
            assert!(changed.attempts(action) <= changed.retry_limit(&self.options), "{changed:?}");
        }
        *stored = changed.clone();
        let snapshot = Rc::new(changed);
        for service in [Service::Evaluator, Service::Controller, Service::Coordinator] {
            self.after(node, MESSAGE, Event::Seen(service, snapshot.clone()));
        }
    }

    fn begin(&mut self, node: usize, transition: Transition) {
        let stored = &self.nodes[node].stored;
        let statement = action_report(stored, &transition, "");
        let Ok(changed) = report::action(stored, &statement, self.time()) else {
            self.nodes[node].transition = None;
            self.nodes[node].begun.remove(&transition.key());
            return self.after(node, MESSAGE, Event::Decide(Service::Controller));
        };
        assert!(stored.is_enabled() && stored.status_override().is_empty(), "{stored:?}");
        let changed = changed.expect("the controller states the begin of an attempt once");
        self.store(node, changed);
        self.after(node, MESSAGE, Event::Deliver(transition));
    }

    fn preparation_reported(&mut self, node: usize, statement: &PreparationReport) {
        if let Ok(Some(changed)) = report::preparation(&self.nodes[node].stored, statement, self.time()) {
            self.store(node, changed);
        }
        self.nodes[node].preparing = false;
        // Longer than any message, so that the coordinator sees what it stated itself.
        self.after(node, 100..200, Event::Decide(Service::Coordinator));
    }

    fn seen(&mut self, node: usize, service: Service, component: Rc<Component>) {
        let known = &mut self.nodes[node];
        let mirror = match service {
            Service::Evaluator => &mut known.evaluator,
            Service::Controller => &mut known.controller,
            Service::Coordinator => &mut known.coordinator,
        };
        if component.revision <= mirror.revision {
            return;
        }
        let renewed = component.generation != mirror.generation;
        *mirror = component;
        match service {
            Service::Evaluator => {}
            Service::Controller => {
                if renewed {
                    self.ask_power(node);
                }
                if !std::mem::replace(&mut self.nodes[node].polling, true) {
                    self.after(node, 0..POLL, Event::Poll);
                }
            }
            Service::Coordinator => {
                if renewed {
                    self.ask_configuration(node);
                }
            }
        }
        self.decide(node, service);
    }

    fn decide(&mut self, node: usize, service: Service) {
        match service {
            Service::Evaluator => self.evaluate(node),
            Service::Controller => self.act(node),
            Service::Coordinator => {
                self.want_preparation(node);
                self.configure(node);
            }
        }
    }

    // The status evaluator.

    fn evaluate(&mut self, node: usize) {
        let known = &self.nodes[node];
        let component = known.evaluator.clone();
        let power = known.power_seen.map_or(PowerObservation::Unknown, |(reading, error, generation)| {
            PowerObservation::of(reading, error, generation, component.generation)
        });
        let configuration = match known.configuration_seen.clone() {
            Some((reading, generation)) => reading.of(generation, component.generation),
            None => ConfigurationObservation::Unknown,
        };
        let evidence = Evidence { power, configuration };
        let decision = evaluate(&component, &evidence, &self.options, self.time());
        check_caution(known, &decision);
        if let Some(until) = decision.until {
            assert!(until > self.time(), "a wait ends in the future");
            self.at(node, until.0, Event::Decide(Service::Evaluator));
        }
        if decision.changes(&component) {
            self.after(node, MESSAGE, Event::StatusReported(status_report(&component, decision)));
        }
    }

    // The power controller.

    fn act(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        let component = &known.controller;
        match power::decide(component, &self.options, Timestamp(self.now)) {
            PowerDecision::Act { action, attempt } => {
                let transition = Transition { generation: component.generation, action, attempt };
                if known.transition.is_none() && known.begun.insert(transition.key()) {
                    known.transition = Some(transition.clone());
                    self.after(node, MESSAGE, Event::ActionReported(transition));
                }
            }
            PowerDecision::Wait { until } => self.at(node, until.0, Event::Decide(Service::Controller)),
            PowerDecision::Nothing { .. } => {}
        }
    }

    fn deliver(&mut self, node: usize, transition: Transition) {
        let hardware = &mut self.nodes[node].hardware;
        if hardware.refuses() {
            return self.refused(node, transition);
        }
        if hardware.fault == Fault::RequestLost && self.rng.random_bool(0.5) {
            // The controller looks, finds nothing and asks again: the same attempt, unless it is outdated.
            let resend = transition.generation == self.nodes[node].controller.generation;
            let next = if resend { Event::Deliver(transition) } else { Event::Resolved(transition) };
            return self.after(node, 20_000..40_000, next);
        }
        self.take(node, transition);
    }

    fn refused(&mut self, node: usize, transition: Transition) {
        let stored = &self.nodes[node].stored;
        let statement = action_report(stored, &transition, "refused by the upstream");
        if let Ok(Some(changed)) = report::action(stored, &statement, self.time()) {
            self.store(node, changed);
        }
        self.after(node, MESSAGE, Event::Resolved(transition));
    }

    /// The power upstream takes an action.
    fn take(&mut self, node: usize, transition: Transition) {
        let known = &mut self.nodes[node];
        assert!(known.taken.insert(transition.key()), "{transition:?} was taken before");
        assert_eq!(known.hardware.changing, None, "{transition:?} crosses another action");
        if transition.action == Action::PoweringOn {
            let prepared = known.prepared.contains(&(transition.generation, transition.attempt));
            assert!(prepared, "{transition:?} was not prepared");
        }
        let takes = match transition.action {
            Action::PoweringOn => 2_000..20_000,
            Action::PoweringOffGracefully => 5_000..55_000,
            _ => 1_000..3_000,
        };
        let mut known_after = DEADLINE;
        if known.hardware.obeys(transition.action) {
            known.hardware.changing = Some(transition.action);
            let cycle = known.hardware.cycle;
            known_after = self.rng.random_range(takes);
            self.at(node, self.now + known_after, Event::PowerChanges { cycle });
        }
        if self.nodes[node].hardware.fault == Fault::AnswerLost {
            known_after = DEADLINE;
        }
        self.at(node, self.now + known_after, Event::Resolved(transition));
    }

    fn resolved(&mut self, node: usize, transition: &Transition) {
        let current = self.nodes[node].transition.take();
        assert_eq!(current.as_ref().map(Transition::key), Some(transition.key()));
        self.ask_power(node);
        self.act(node);
    }

    fn poll(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        known.polling = known.controller.is_enabled() || known.coordinator.is_enabled();
        if known.polling {
            self.ask_power(node);
            self.ask_configuration(node);
            self.at(node, self.now + POLL, Event::Poll);
        }
    }

    /// A reading for a generation is not taken while an action of an older one may still have its effect.
    fn ask_power(&mut self, node: usize) {
        let known = &self.nodes[node];
        let generation = known.controller.generation;
        if known.transition.as_ref().is_some_and(|transition| transition.generation != generation) {
            return;
        }
        let (reading, error) = known.hardware.power(self.now);
        let answer = (reading, error, generation);
        self.after(node, 5..500, Event::PowerAnswer { asked_at: self.now, answer });
    }

    // The config coordinator.

    fn ask_configuration(&mut self, node: usize) {
        let known = &self.nodes[node];
        if let Some(observation) = known.hardware.configuration(self.now) {
            let answer = (observation, known.coordinator.generation);
            self.after(node, 5..500, Event::ConfigurationAnswer { asked_at: self.now, answer });
        }
    }

    fn want_preparation(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        let generation = known.coordinator.generation;
        let PreparationDecision::Prepare(wanted) = preparation::decide(&known.coordinator) else { return };
        if known.preparing || known.prepared.contains(&(generation, wanted.attempt)) {
            return;
        }
        known.preparing = true;
        let pause = if wanted.retry { 10_000..30_000 } else { 500..2_000 };
        self.after(node, pause, Event::Prepare { generation });
    }

    fn prepare(&mut self, node: usize, generation: u64) {
        let known = &mut self.nodes[node];
        match preparation::decide(&known.coordinator) {
            PreparationDecision::Prepare(wanted) if known.coordinator.generation == generation => {
                let (bss_token, error) = self.give_boot_data(node, generation, &wanted);
                let id = self.nodes[node].stored.id.clone();
                let attempt = wanted.attempt;
                let statement = PreparationReport { id, generation, attempt, bss_token, error };
                self.after(node, MESSAGE, Event::PreparationReported(statement));
            }
            _ => {
                known.preparing = false;
                self.want_preparation(node);
            }
        }
    }

    /// Gives boot data and configuration to the upstreams; token and error of the outcome.
    fn give_boot_data(&mut self, node: usize, generation: u64, wanted: &Preparation) -> (String, String) {
        let known = &mut self.nodes[node];
        if !known.hardware.takes_boot_data(self.now) {
            return (String::new(), "no boot data taken".to_owned());
        }
        let token = format!("{}-{generation}-{}", known.stored.id, wanted.attempt);
        let artifacts = wanted.artifacts.clone().expect("something is booted");
        known.hardware.boot_data = Some((token.clone(), artifacts.clone()));
        known.hardware.set_configuration(&wanted.configuration);
        known.prepared.insert((generation, wanted.attempt));
        self.tokens.insert(token.clone(), artifacts);
        self.publish_configuration(node);
        (token, String::new())
    }

    /// What was just set is known without asking, and older answers no longer count.
    fn publish_configuration(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        known.configuration_asked_at = self.now;
        let observation = ConfigurationObservation::Known {
            desired: known.hardware.configuration.clone(),
            status: known.hardware.configuration_status.clone(),
        };
        let answer = (observation, known.coordinator.generation);
        self.at(node, self.now, Event::ConfigurationAnswer { asked_at: self.now, answer });
    }

    fn configure(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        let differs = matches!(known.configuration_decision(), ConfigurationDecision::Set { .. });
        if differs && !std::mem::replace(&mut known.setting, true) {
            self.after(node, 100..1_000, Event::SetConfiguration);
        }
    }

    fn set_configuration(&mut self, node: usize) {
        let known = &mut self.nodes[node];
        known.setting = false;
        let ConfigurationDecision::Set { configuration, .. } = known.configuration_decision() else { return };
        known.hardware.set_configuration(&configuration);
        self.run_configuration(node);
        self.publish_configuration(node);
    }

    // The node.

    fn power_changes(&mut self, node: usize, cycle: u32) {
        let hardware = &mut self.nodes[node].hardware;
        assert_eq!(hardware.cycle, cycle, "one action at a time");
        hardware.changing = None;
        hardware.cycle += 1;
        hardware.powered = !hardware.powered;
        hardware.running = None;
        if hardware.powered {
            hardware.boots += 1;
            // Boot data are read once, early; what is prepared later counts for the next boot.
            hardware.loaded = hardware.boot_data.clone();
            let cycle = hardware.cycle;
            self.after(node, 20_000..200_000, Event::Boots { cycle });
        }
    }

    fn boots(&mut self, node: usize, cycle: u32) {
        let hardware = &mut self.nodes[node].hardware;
        if hardware.cycle != cycle || !hardware.comes_up() {
            return;
        }
        let (token, artifacts) = hardware.loaded.clone().expect("nothing boots unprepared");
        hardware.running = Some(artifacts);
        self.after(node, 100..2_000, Event::Reports { cycle, token });
        if self.nodes[node].hardware.configuration.as_deref() != Some("") {
            self.run_configuration(node);
        }
    }

    fn run_configuration(&mut self, node: usize) {
        let run = self.nodes[node].hardware.configuration_run;
        self.after(node, 10_000..60_000, Event::ConfigurationRuns { run });
    }

    /// A node reports what its kernel command line says, again and again until it is heard.
    fn node_reports(&mut self, node: usize, cycle: u32, token: String) {
        let known = &self.nodes[node];
        if known.hardware.cycle != cycle {
            return;
        }
        if write::guard_actual_state(&known.stored).is_err() {
            return self.after(node, 20_000..40_000, Event::Reports { cycle, token });
        }
        let actual_state = Some(ActualState { bss_token: Some(token), ..ActualState::default() });
        let patch = Component { actual_state, ..Component::new(known.stored.id.clone()) };
        let tokens = |token: &str| self.tokens.get(token).cloned();
        let changed = write::patch(&known.stored, patch, tokens, self.time());
        self.store(node, changed);
    }
}

impl Node {
    fn configuration_decision(&self) -> ConfigurationDecision {
        let observation = match self.configuration.clone() {
            Some((reading, generation)) => reading.of(generation, self.coordinator.generation),
            None => ConfigurationObservation::Unknown,
        };
        configuration::decide(&self.coordinator, &observation)
    }
}

/// Without a usable reading of its generation a component stays where it is. Judged by what came over the
/// watches and not by what the domain made of it.
fn check_caution(node: &Node, decision: &Decision) {
    let component = &node.evaluator;
    let power_known = node.power_seen.is_some_and(|(reading, error, generation)| {
        let level = matches!(reading, PowerReading::On | PowerReading::Off) && error.is_empty();
        level && generation == component.generation
    });
    let (configuration_known, left_out) = match &node.configuration_seen {
        Some((reading, generation)) if *generation == component.generation => {
            (*reading != ConfigurationObservation::Unknown, *reading == ConfigurationObservation::Missing)
        }
        _ => (false, false),
    };
    if !power_known || left_out {
        assert_eq!(decision.phase, component.phase(), "{component:?} {decision:?}");
        assert!(!decision.settled && !decision.action_failed, "{component:?} {decision:?}");
    }
    if !configuration_known && decision.settled {
        let about_power = !component.kernel_wanted() || decision.status_override == status::FAILED;
        assert!(about_power, "{component:?} {decision:?}");
    }
}

fn status_report(component: &Component, decision: Decision) -> StatusReport {
    StatusReport {
        id: component.id.clone(),
        revision: component.revision,
        phase: decision.phase,
        status_override: decision.status_override,
        settled: decision.settled,
        action_failed: decision.action_failed,
        error: decision.error,
    }
}

fn action_report(component: &Component, transition: &Transition, error: &str) -> ActionReport {
    ActionReport {
        id: component.id.clone(),
        generation: transition.generation,
        action: transition.action,
        attempt: transition.attempt,
        error: error.to_owned(),
    }
}
