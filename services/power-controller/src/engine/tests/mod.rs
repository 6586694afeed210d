//! The engine alone: each row is an event, followed by the commands that it leads to.

mod foreign;
mod stories;

use std::collections::{HashMap, HashSet};

use chassis::kinds::component::action_from_wire;
use domain::{
    boot::{
        component::{
            Action, BootPreparation, ComponentEvaluation, ComponentInventory, ComponentPower,
            ComponentPreparation, ComponentWish, EventStats, InventoryPresence, LastAction, Phase, Status,
        },
        power::TASK_DEADLINE,
    },
    core::id::ComponentId,
};
use proto::component::ActionReport;

use super::*;
use crate::{
    driver::{
        DriverFailure, ForeignAnswer, UpstreamTransition,
        progress::{TaskState, TransitionProgress, UpstreamRecord, UpstreamTask},
    },
    journal::JournalChanges,
};

/// Beginning of every test.
const START: Timestamp = Timestamp(1_732_119_000_000);

/// Engine with facts around it, and a log of its events and commands.
struct EngineScene {
    engine: PowerEngine,
    facts: TableFacts,
    /// Components whose reports the registry refuses.
    stale: HashSet<String>,
    now: PointInTime,
    /// Answer to the next look before transitions are sent; `None`: there is nothing of other clients.
    look: Option<Result<ForeignAnswer, DriverFailure>>,
    /// Ids of transitions, in the order in which they appeared.
    ids: Vec<String>,
    log: String,
}

struct TableFacts {
    components: HashMap<String, Arc<Component>>,
    power: PowerObservation,
    options: Options,
}

impl PowerFacts for TableFacts {
    fn component(&self, id: &str) -> Option<Arc<Component>> {
        self.components.get(id).cloned()
    }

    fn reading(&self, _: &Component) -> PowerObservation {
        self.power.clone()
    }

    fn options(&self) -> Option<Options> {
        Some(self.options.clone())
    }

    fn most_nodes(&self) -> usize {
        10
    }
}

impl EngineScene {
    /// Returns nodes that are off and are to be switched on.
    fn power_on(nodes: &[&str]) -> Self {
        Self::new(nodes, Phase::PoweringOn, PowerObservation::Off)
    }

    /// Returns nodes that are on and are to be switched off.
    fn power_off(nodes: &[&str]) -> Self {
        Self::new(nodes, Phase::PoweringOff, PowerObservation::On)
    }

    fn new(nodes: &[&str], phase: Phase, power: PowerObservation) -> Self {
        let upstream =
            UpstreamTraits { follows: true, aborts: true, lists: true, task_deadline: TASK_DEADLINE };
        let polls = PollSchedule::new(Duration::from_secs(1), Duration::from_secs(5), None);
        let mut engine = PowerEngine::new(&[], polls, upstream);
        engine.foreign = ForeignTransitions::none();
        let components = nodes.iter().map(|id| ((*id).to_owned(), Arc::new(node(id, phase)))).collect();
        Self {
            engine,
            facts: TableFacts { components, power, options: Options::default() },
            now: PointInTime { at: START, instant: Instant::now() },
            stale: HashSet::new(),
            look: None,
            ids: Vec::new(),
            log: String::new(),
        }
    }

    fn pass(&mut self, seconds: u64) {
        let time = Duration::from_secs(seconds);
        self.now = PointInTime { at: self.now.at.plus(time), instant: self.now.instant + time };
    }

    /// Tells of the event, answers for registry and journal, and logs the commands.
    fn tell(&mut self, name: &str, event: EngineEvent) {
        let row = format!("{name}:\n");
        self.log += &row;
        let mut events = std::collections::VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for command in self.engine.apply(event, &self.facts, self.now) {
                self.note(&command);
                match command {
                    EngineCommand::Begin(wanted) => {
                        events.push_back(EngineEvent::Begun { begun: wanted.clone(), wanted });
                    }
                    EngineCommand::Announce { reports, announcement } => {
                        reports.iter().for_each(|report| self.count(report));
                        events.push_back(EngineEvent::Announced { announcement, stale: self.stale.clone() });
                    }
                    EngineCommand::Tell(event) => events.push_back(event),
                    EngineCommand::Ask(UpstreamCall::Look { ids, asked_at }) => {
                        let answer = self.look.take();
                        let outcome = answer
                            .as_ref()
                            .map_or(Ok(()), |answer| answer.as_ref().map(drop).map_err(Clone::clone));
                        events.extend(answer.map(EngineEvent::ForeignFound));
                        events.push_back(EngineEvent::Looked { ids, asked_at, outcome });
                    }
                    EngineCommand::Report(reports) => reports.iter().for_each(|report| self.count(report)),
                    _ => {}
                }
            }
        }
    }

    /// Changes a component as the registry does after a report.
    fn count(&mut self, report: &ActionReport) {
        let Some(action) = action_from_wire(report.action) else { return };
        let (now, at) = (self.now.at, report.id.clone());
        let change = |component: &mut Component| {
            let last = component.power.last_action.get_or_insert_default();
            (last.action, last.failed) = (Some(action), Some(report.failed));
            last.last_updated = Some(now);
            let stats = component.power.event_stats.get_or_insert_default();
            match action {
                Action::PoweringOn => stats.power_on_attempts = Some(report.attempt),
                _ => stats.power_off_graceful_attempts = Some(report.attempt),
            }
            component.power.trouble =
                chassis::kinds::trouble::from_wire(report.error_kind, report.error.clone()).map(Arc::new);
        };
        self.change(&at, change);
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Component)) {
        if let Some(component) = self.facts.components.get_mut(id) {
            change(Arc::make_mut(component));
        }
    }

    /// Decides on all nodes.
    fn decide(&mut self) {
        let mut ids: Vec<_> = self.facts.components.values().map(|component| component.id.clone()).collect();
        ids.sort_unstable();
        self.tell("nodes changed", EngineEvent::Changed(ids));
    }

    fn due(&mut self, number: usize) {
        let id = self.id(number);
        self.tell(&format!("T{number} is due"), EngineEvent::Due(vec![id]));
    }

    /// Takes the first transition to the upstream, which accepts it.
    fn accepted(&mut self) {
        self.decide();
        self.due(1);
        self.pass(1);
        self.answer(1, Ok("t-1".to_owned()));
        self.log.clear();
    }

    fn answer(&mut self, number: usize, answer: Result<String, DriverFailure>) {
        let name = format!("T{number} is answered {answer:?}");
        self.tell(&name, EngineEvent::Started { id: self.id(number), answer });
    }

    /// Polls the transition and processes the answer.
    fn poll(&mut self, number: usize, answer: Result<TransitionProgress, DriverFailure>) {
        let id = self.id(number);
        self.tell(&format!("T{number} is due for a poll"), EngineEvent::PollDue(Arc::clone(&id)));
        let (began, asked_at) = (self.now.instant, self.now.at);
        let answer = PollAnswer { id, began, asked_at, clock: None, answer };
        let commands = self.engine.apply(EngineEvent::Polled(answer), &self.facts, self.now);
        let heard = commands.into_iter().filter_map(|command| match command {
            EngineCommand::Collect(answer) => Some(answer),
            _ => None,
        });
        let heard = heard.collect();
        self.tell("the answer is processed", EngineEvent::Heard(heard));
    }

    fn id(&self, number: usize) -> TransitionId {
        self.ids[number - 1].as_str().into()
    }

    fn transition(&self, number: usize) -> PowerTransition {
        self.engine.transitions.get(&self.id(number)).unwrap().clone()
    }

    fn note(&mut self, command: &EngineCommand) {
        let text = self.text(command);
        if !text.is_empty() {
            self.log += &format!("    {text}\n");
        }
    }

    fn name(&mut self, id: &str) -> String {
        let known = self.ids.iter().position(|known| known == id);
        let number = known.unwrap_or_else(|| {
            self.ids.push(id.to_owned());
            self.ids.len() - 1
        });
        format!("T{}", number + 1)
    }

    fn names(&mut self, ids: &[TransitionId]) -> String {
        let names: Vec<_> = ids.iter().map(|id| self.name(id)).collect();
        names.join(" ")
    }

    /// Returns the command in words; empty: it does nothing.
    fn text(&mut self, command: &EngineCommand) -> String {
        match command {
            EngineCommand::Begin(begun) => {
                let begun: Vec<_> = begun.iter().map(|one| self.state(one)).collect();
                format!("begin {}", begun.join("; "))
            }
            EngineCommand::Announce { reports, .. } => format!("announce {}", told(reports)),
            EngineCommand::Report(reports) if reports.is_empty() => String::new(),
            EngineCommand::Report(reports) => format!("report {}", told(reports)),
            EngineCommand::Write(JournalChanges { put, delete }) => {
                let put = put.iter().map(|one| self.state(one)).collect::<Vec<_>>();
                let delete = delete.iter().map(|id| format!("without {}", self.name(id))).collect::<Vec<_>>();
                let parts = [put, delete].concat();
                if parts.is_empty() { String::new() } else { format!("write {}", parts.join("; ")) }
            }
            EngineCommand::Ask(UpstreamCall::Start { nodes, action, .. }) => {
                format!("ask for {} of {}", action.word(), nodes.join(" "))
            }
            EngineCommand::Ask(UpstreamCall::Search { ids, .. }) => format!("search for {}", self.names(ids)),
            EngineCommand::Ask(UpstreamCall::Foreign { pause, .. }) => match pause {
                StepPause::Fixed(pause) => {
                    format!("ask for foreign transitions in {} s", pause.as_secs_f64())
                }
                StepPause::Backoff { failures } => {
                    format!("ask for foreign transitions after failure {failures}")
                }
            },
            EngineCommand::Ask(UpstreamCall::Look { ids, .. }) => match self.look {
                Some(_) => format!("look before {}", self.names(ids)),
                None => String::new(),
            },
            EngineCommand::Ask(UpstreamCall::Holders(_)) => "search for holders".to_owned(),
            EngineCommand::Ask(UpstreamCall::PollHolders { holders, .. }) => {
                format!("poll holders {holders:?}")
            }
            EngineCommand::Ask(UpstreamCall::Withdraw { upstream_id, .. }) => {
                format!("withdraw {upstream_id}")
            }
            EngineCommand::Ask(UpstreamCall::Poll { upstream_id, .. }) => format!("poll {upstream_id}"),
            EngineCommand::Tell(_) | EngineCommand::Collect(_) | EngineCommand::Rest(_) => String::new(),
            EngineCommand::Step { ids, pause } => match pause {
                _ if ids.is_empty() => String::new(),
                StepPause::Fixed(pause) => format!("step {} in {} s", self.names(ids), pause.as_secs_f64()),
                StepPause::Backoff { failures } => {
                    format!("step {} after failure {failures}", self.names(ids))
                }
            },
            EngineCommand::Poll { ids, at, failures } => {
                let at = at.saturating_duration_since(self.now.instant).as_secs_f64();
                format!("poll {} in {at} s, failure {failures}", self.names(ids))
            }
            EngineCommand::Decide { ids, .. } | EngineCommand::Read(ids) if ids.is_empty() => String::new(),
            EngineCommand::Decide { ids, pause } => {
                format!("decide on {} in {} s", list(ids), pause.as_secs_f64())
            }
            EngineCommand::Read(ids) => format!("read {}", list(ids)),
            EngineCommand::ShowPower(shown) => {
                let shown = shown.iter().map(|ShownPower { state, is_inherited }| {
                    let once = if *is_inherited { ", or was once" } else { "" };
                    format!("{} is {:?}{once}", state.id, state.reading())
                });
                shown.collect::<Vec<_>>().join(", ")
            }
            EngineCommand::GiveUp(upstream_id) => format!("give up {upstream_id}"),
        }
    }

    fn state(&mut self, transition: &PowerTransition) -> String {
        let members = transition.members.iter().map(|member| {
            let outcome = match crate::outcome::is_unresolved(member) {
                true => String::new(),
                false => format!(" {:?}", member.outcome),
            };
            let held = if member.held_by.is_empty() {
                String::new()
            } else {
                format!(" held by {}", member.held_by)
            };
            let tried = if member.reservations == 0 {
                String::new()
            } else {
                format!(" reserved {}", member.reservations)
            };
            format!("{}{outcome}{held}{tried}", member.id)
        });
        let members = members.collect::<Vec<_>>().join(", ");
        let withdrawn = if transition.withdrawn_at.is_some() { ", withdrawn" } else { "" };
        format!("{} {:?} [{members}]{withdrawn}", self.name(&transition.id), transition.delivery)
    }
}

fn list(ids: &[ComponentId]) -> String {
    ids.iter().map(ComponentId::as_str).collect::<Vec<_>>().join(" ")
}

fn told(reports: &[ActionReport]) -> String {
    let told = reports.iter().map(|report| {
        let failed = if report.failed { " failed" } else { "" };
        let error = if report.error.is_empty() { String::new() } else { format!(" '{}'", report.error) };
        format!("{} attempt {}{failed}{error}", report.id, report.attempt)
    });
    told.collect::<Vec<_>>().join(", ")
}

/// Returns a node in the phase, in its first generation, without any action yet.
fn node(id: &str, phase: Phase) -> Component {
    Component {
        generation: 1,
        wish: ComponentWish { enabled: Some(true), ..ComponentWish::default() }.into(),
        evaluation: ComponentEvaluation {
            status: Some(Status { phase: Some(phase), status_override: Some("".into()) }),
            ..ComponentEvaluation::default()
        }
        .into(),
        power: ComponentPower {
            last_action: Some(LastAction {
                action: Some(Action::SessionSetup),
                failed: Some(false),
                last_updated: Some(START),
            }),
            event_stats: Some(EventStats::zeros()),
            ..ComponentPower::default()
        }
        .into(),
        preparation: ComponentPreparation {
            outcome: Some(BootPreparation { generation: 1, attempt: 1, trouble: None }),
            ..ComponentPreparation::default()
        }
        .into(),
        inventory: ComponentInventory {
            presence: InventoryPresence::Listed,
            ..ComponentInventory::default()
        }
        .into(),
        ..Component::new(ComponentId::parse(id).unwrap())
    }
}

/// Returns the progress of a transition with these results: `x1:succeeded x2:reserved x3:words`.
fn progress(results: &str, ended: bool) -> TransitionProgress {
    let tasks = results.split_whitespace().map(|result| {
        let (id, state) = result.split_once(':').unwrap();
        let state = match state {
            "pending" => TaskState::Pending,
            "succeeded" => TaskState::Succeeded,
            "reserved" => TaskState::Refused { words: "reserved".to_owned(), reserved: true },
            words => TaskState::Failed(words.to_owned()),
        };
        UpstreamTask { id: id.to_owned(), state }
    });
    TransitionProgress { tasks: tasks.collect(), ended, record: UpstreamRecord::NotKept }
}

/// Returns the upstream's record of a transition.
fn record(id: &str, action: Action, nodes: &[&str], complete: bool) -> UpstreamTransition {
    UpstreamTransition {
        id: id.to_owned(),
        action: Some(action),
        ids: nodes.iter().map(|id| (*id).to_owned()).collect(),
        complete,
        at: START,
        resolution: Duration::ZERO,
        open: true,
    }
}
