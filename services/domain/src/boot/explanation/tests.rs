//! Topics of troubleshooting guides, by the evidence that tells them apart.

mod sentences;
mod sessions;
mod topics;

use std::sync::Arc;

use expect_test::expect;

use super::*;
use crate::{
    boot::{
        bos::options::Options,
        component::{
            ActualState, BegunBoot, BootPreparation, Component, EventStats, InventoryPresence, LastAction,
            NumberedToken, PauseMark, Phase, PowerTurns, StagedState, Status,
            view::{artifacts, bare},
        },
        configuration::ConfigurationObservation,
        evaluation::{Evidence, Reason},
        power::{PowerObservation, PowerReading},
        session::{Progress, membership::LeftOutReason},
    },
    core::trouble::{Trouble, TroubleKind},
};

/// Begin of the stories, in milliseconds.
const START: i64 = 1_000_000_000;
const NOW: Timestamp = Timestamp(START + 600_000);

/// Evidence about a node, from that of one that waits to be switched on.
#[derive(Clone)]
struct Node {
    component: Component,
    evaluated: Evidence,
    power: Option<PowerSight>,
    history: Option<Vec<HistoryEvent>>,
    transitions: Vec<TransitionResult>,
    holder: Option<HolderSight>,
    script: ScriptEvidence,
    batch: Option<BatchSight>,
    tools: SiteTools,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp(START + seconds * 1000)
}

fn waiting(peer: &str) -> Trouble {
    Trouble::waiting_for(peer)
}

/// A node that is wanted on, off, enabled, prepared and not acted on yet.
fn node() -> Node {
    let mut component = bare();
    component.generation = 1;
    component.wish.enabled = Some(true);
    component.wish.session = Some("s".into());
    component.wish.desired_state = Some(crate::boot::component::DesiredState {
        boot_artifacts: Some(artifacts("k p i")),
        configuration: Some("c".into()),
        ..Default::default()
    });
    component.power.event_stats = Some(EventStats::zeros());
    component.power.last_action = Some(LastAction {
        action: Some(Action::SessionSetup),
        failed: Some(false),
        last_updated: Some(at(0)),
    });
    Node {
        component,
        evaluated: Evidence {
            power: PowerObservation::Off,
            begun_actions: 3,
            configuration: ConfigurationObservation::Known {
                desired: Some("c".into()),
                status: "pending".into(),
            },
            power_trouble: None,
            configuration_trouble: None,
        },
        power: Some(PowerSight { reading: PowerReading::Off, observed_at: Some(at(500)), is_current: true }),
        history: Some(vec![
            event(0, HistoryChange::WishSet { session: "s".into() }),
            event(0, HistoryChange::Enabled),
        ]),
        transitions: Vec::new(),
        holder: None,
        script: ScriptEvidence::NotOffered,
        batch: None,
        tools: SiteTools::Csm,
    }
}

fn event(seconds: i64, change: HistoryChange) -> HistoryEvent {
    HistoryEvent { at: at(seconds), change }
}

impl Node {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn then(self, seconds: i64, change: HistoryChange) -> Self {
        self.with(|node| node.history.get_or_insert_default().push(event(seconds, change)))
    }

    /// The power-on of that attempt began.
    fn switched_on(self, seconds: i64, attempt: u32) -> Self {
        self.then(seconds, HistoryChange::ActionBegan { action: Action::PoweringOn, attempt }).with(|node| {
            node.component.power.event_stats.get_or_insert_with(EventStats::zeros).power_on_attempts =
                Some(attempt);
            node.component.power.last_action = Some(LastAction {
                action: Some(Action::PoweringOn),
                failed: Some(false),
                last_updated: Some(at(seconds)),
            });
            let token = NumberedToken { token: "t".into(), number: attempt.into() };
            node.component.reported.boot =
                Some(BegunBoot { generation: 1, attempt, token, reported: false }.into());
        })
    }

    fn failed_to_switch(self, seconds: i64, action: Action, attempt: u32, words: &str) -> Self {
        self.then(seconds, HistoryChange::ActionFailed { action, attempt, words: words.into() })
    }

    fn switched_off(self, seconds: i64, action: Action) -> Self {
        self.then(seconds, HistoryChange::ActionBegan { action, attempt: 1 })
    }

    fn on(self) -> Self {
        self.with(|node| {
            node.evaluated.power = PowerObservation::On;
            node.power =
                Some(PowerSight { reading: PowerReading::On, observed_at: Some(at(590)), is_current: true });
        })
    }

    /// The node reported the wanted boot.
    fn booted(self) -> Self {
        self.with(|node| {
            node.component.reported.actual_state = Some(crate::boot::component::ActualState {
                boot_artifacts: Some(artifacts("k p i")),
                bss_token: Some("t".into()),
                last_updated: Some(at(200)),
            });
            node.component.reported.boot.iter_mut().for_each(|boot| boot.reported = true);
        })
        .then(200, HistoryChange::BootReported { as_desired: true })
        .on()
    }

    fn configured_as(self, status: &str) -> Self {
        self.with(|node| {
            node.evaluated.configuration =
                ConfigurationObservation::Known { desired: Some("c".into()), status: status.to_owned() };
        })
    }

    /// The work ended for that reason, and so the component was disabled.
    fn ended(self, seconds: i64, reason: Reason) -> Self {
        self.then(seconds, HistoryChange::Disabled { reason: Some(reason) }).with(|node| {
            node.component.wish.enabled = Some(false);
            node.component.power.event_stats = Some(EventStats::zeros());
            if !reason.is_success() {
                node.component.evaluation.status =
                    Some(Status { phase: Some(Phase::PoweringOn), status_override: Some("failed".into()) });
            }
        })
    }

    fn requested(self, first: i64, last: i64, count: u32) -> Self {
        self.with(|node| {
            let requests = ScriptRequests { first_at: at(first), last_at: at(last), count };
            node.script = ScriptEvidence::Known { recorded_since: at(50), requests: Some(requests) };
        })
    }

    fn not_requested(self) -> Self {
        self.with(|node| node.script = ScriptEvidence::Known { recorded_since: at(50), requests: None })
    }

    fn explained(&self) -> Explanation {
        explain_component(
            &ComponentEvidence {
                component: &self.component,
                evaluated: &self.evaluated,
                options: &Options { max_boot_wait_time: 1200, ..Options::default() },
                power: self.power.clone(),
                configuration: None,
                history: self.history.as_deref(),
                transitions: Some(&self.transitions),
                holder: self.holder.as_ref(),
                script: &self.script,
                batch: self.batch.as_ref(),
                tools: self.tools,
            },
            NOW,
        )
    }
}

/// Row: outcome, causes, stages, sentence and next step.
fn shown(explanation: &Explanation) -> String {
    let causes: Vec<_> = explanation.causes.iter().map(|cause| cause.reason.word()).collect();
    let stage = |stage: Option<BootStage>| stage.map_or("-", BootStage::word);
    format!(
        "{}: {} [{} > {}]\n    {}\n    {} | {}\n",
        explanation.outcome.word(),
        causes.join(" < "),
        stage(explanation.last_stage),
        stage(explanation.missing_stage),
        explanation.sentence(&explanation.causes[0]),
        explanation.next_step.text,
        explanation.next_step.command
    )
}

fn held(seconds: i64, client: HolderClient) -> Option<HolderSight> {
    Some(HolderSight { id: "t-1".into(), created_at: Some(at(seconds)), client })
}

fn pause_mark() -> PauseMark {
    PauseMark::by("alice", at(300))
}

fn refused(outcome: TaskOutcome, words: &str) -> TransitionResult {
    TransitionResult {
        action: Some(Action::PoweringOn),
        attempt: 1,
        created_at: Some(at(100)),
        delivery: TransitionDelivery::Finished,
        outcome,
        words: words.into(),
    }
}
