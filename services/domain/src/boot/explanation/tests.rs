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
            BegunBoot, BootPreparation, Component, EventStats, InventoryPresence, LastAction, NumberedToken,
            PauseMark, Phase, StagedState, Status,
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
    script: ScriptEvidence,
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
        script: ScriptEvidence::NotOffered,
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
                script: &self.script,
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

fn pause_mark() -> PauseMark {
    PauseMark { by: "alice".into(), since: at(300) }
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
<<<<<<< HEAD
=======

/// Nodes by topic. The number is that of the topic; rows of a topic with several causes share it.
fn topics() -> Vec<(&'static str, Node)> {
    let staged =
        StagedState { session: Some("later".into()), last_updated: Some(at(10)), ..StagedState::default() };
    let lost = |node: &mut Node, trouble: Trouble| node.evaluated.power_trouble = Some(trouble);
    vec![
        (
            "1 inventory away",
            node().with(|node| {
                let trouble = "HSM at hsm (failing since 10:02: 500)".into();
                node.component.inventory.presence = InventoryPresence::Unknown { trouble };
            }),
        ),
        (
            "1 not in the inventory",
            node().with(|node| {
                node.component.inventory.presence = InventoryPresence::Absent { since: at(60) };
            }),
        ),
        (
            "5 staged",
            node().ended(5, Reason::Booted).with(|node| {
                node.component.wish.staged_state = Some(Arc::new(staged));
            }),
        ),
        (
            "7 configuration service refuses the question",
            node().with(|node| {
                node.evaluated.power = PowerObservation::On;
                node.evaluated.configuration = ConfigurationObservation::Unknown;
                node.evaluated.configuration_trouble = Some(waiting("CFS at cfs (400 response size)"));
            }),
        ),
        (
            "9 power unknown",
            node().with(|node| {
                node.evaluated.power = PowerObservation::Undefined { error: "no BMC data".into() };
            }),
        ),
        (
            "10 left out by the power service",
            node().with(|node| node.evaluated.power = PowerObservation::Missing),
        ),
        (
            "13 image refused",
            node()
                .then(80, HistoryChange::PreparationFailed { attempt: 1, words: "rootfs has no etag".into() })
                .ended(90, Reason::RetriesExhausted),
        ),
        (
            "18 silent image",
            node()
                .switched_on(100, 1)
                .requested(150, 150, 1)
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        ("paused", node().with(|node| node.component.wish.pause = Some(pause_mark().into()))),
        (
            "paused while its boot is awaited",
            node()
                .switched_on(500, 1)
                .on()
                .with(|node| node.component.wish.pause = Some(pause_mark().into())),
        ),
        (
            "19 locked",
            node().then(70, HistoryChange::Locked).with(|node| node.component.inventory.locked = true),
        ),
        (
            "19 refused for a lock",
            node()
                .switched_on(100, 1)
                .failed_to_switch(101, Action::PoweringOn, 1, "Unable to reserve component")
                .with(|node| {
                    node.transitions = vec![refused(TaskOutcome::Refused, "Unable to reserve component")]
                })
                .ended(102, Reason::RetriesExhausted),
        ),
        (
            "22 never came on",
            node()
                .switched_on(100, 1)
                .failed_to_switch(220, Action::PoweringOn, 1, "")
                .with(|node| {
                    node.transitions = vec![refused(TaskOutcome::Failed, "Timeout waiting for transition")]
                })
                .ended(220, Reason::RetriesExhausted),
        ),
        (
            "22 never came on, no words",
            node()
                .switched_on(100, 1)
                .failed_to_switch(220, Action::PoweringOn, 1, "")
                .ended(220, Reason::RetriesExhausted),
        ),
        (
            "23 three causes",
            node()
                .switched_on(100, 1)
                .failed_to_switch(120, Action::PoweringOn, 1, "BMC busy")
                .switched_on(130, 2)
                .switched_off(300, Action::PoweringOffGracefully)
                .switched_on(320, 3)
                .then(380, HistoryChange::BootReported { as_desired: false })
                .switched_off(390, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        ("24 boot takes long", node().switched_on(100, 1).on()),
        ("25-27 no request yet", node().switched_on(100, 1).not_requested().on()),
        (
            "25-27 never asked",
            node()
                .switched_on(100, 1)
                .not_requested()
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        (
            "28 booted from other data",
            node()
                .switched_on(100, 1)
                .then(200, HistoryChange::BootReported { as_desired: false })
                .ended(500, Reason::RetriesExhausted),
        ),
        (
            "28 never restarted",
            node()
                .switched_on(100, 1)
                .then(130, HistoryChange::EarlierBootReported)
                .ended(500, Reason::RetriesExhausted),
        ),
        (
            "29 power service away",
            node().with(|node| {
                node.evaluated.power = PowerObservation::Unknown;
                lost(node, waiting("PCS at pcs (failing since 10:02: timeout)"));
            }),
        ),
        (
            "31 asks again and again",
            node()
                .switched_on(100, 1)
                .requested(150, 380, 9)
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        ("31 asks again and again, in time", node().switched_on(100, 1).requested(150, 380, 9).on()),
        ("35 between report and script", node().switched_on(100, 1).requested(150, 150, 1).on()),
        (
            "35 no source of scripts",
            node()
                .switched_on(100, 1)
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        ("36 as wanted", node().switched_on(100, 1).booted().ended(300, Reason::Configured)),
        (
            "36 switched off outside",
            node().switched_on(100, 1).booted().ended(300, Reason::Configured).with(|node| {
                node.power = Some(PowerSight {
                    reading: PowerReading::Off,
                    observed_at: Some(at(590)),
                    is_current: true,
                });
            }),
        ),
        (
            "36 never enabled",
            node().with(|node| {
                node.component.wish.enabled = Some(false);
                node.history = Some(Vec::new());
            }),
        ),
        (
            "36 never wanted",
            node().with(|node| {
                node.component = bare();
                node.history = Some(Vec::new());
            }),
        ),
        (
            "19 locked and not enabled",
            node().with(|node| {
                node.component.wish.enabled = Some(false);
                node.component.inventory.locked = true;
            }),
        ),
        (
            "21 enabled without attempts left",
            node()
                .switched_on(100, 1)
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted)
                .then(550, HistoryChange::Enabled)
                .ended(551, Reason::RetriesExhausted)
                .with(|node| node.component.inventory.locked = true),
        ),
        (
            "37 history lost",
            node().ended(300, Reason::RetriesExhausted).with(|node| {
                node.history = None;
                node.component.evaluation.error = Some("the retry limit was reached".into());
            }),
        ),
        ("configuration under way", node().switched_on(100, 1).booted().configured_as("pending")),
        ("configuration not begun", node().switched_on(100, 1).booted().configured_as("")),
        ("configuration failed", node().switched_on(100, 1).booted().ended(300, Reason::ConfigurationFailed)),
        (
            "configuration refused",
            node().switched_on(100, 1).booted().with(|node| {
                node.evaluated.configuration = ConfigurationObservation::Known {
                    desired: Some("old".into()),
                    status: "configured".into(),
                };
                node.evaluated.configuration_trouble =
                    Some(Trouble::own(TroubleKind::ConfigurationRefused, "no such configuration"));
            }),
        ),
        (
            "cannot be switched off",
            node()
                .on()
                .switched_off(100, Action::PoweringOffGracefully)
                .switched_off(200, Action::PoweringOffForcefully)
                .failed_to_switch(300, Action::PoweringOffForcefully, 1, "")
                .ended(300, Reason::RetriesExhausted),
        ),
        (
            "second attempt waits for a peer",
            node().switched_on(100, 1).failed_to_switch(220, Action::PoweringOn, 1, "").with(|node| {
                node.component.power.last_action.iter_mut().for_each(|last| last.failed = Some(true));
                node.evaluated.configuration_trouble = Some(waiting("BSS at bss (503)"));
            }),
        ),
        (
            "first attempt failed, second is due",
            node().switched_on(100, 1).failed_to_switch(220, Action::PoweringOn, 1, "").with(|node| {
                node.component.power.last_action.iter_mut().for_each(|last| last.failed = Some(true));
                node.component.preparation.outcome =
                    Some(BootPreparation { generation: 1, attempt: 2, trouble: None });
            }),
        ),
    ]
}

#[test]
fn topics_are_named_by_their_evidence() {
    let told: String =
        topics().iter().map(|(name, node)| format!("{name}\n  {}", shown(&node.explained()))).collect();
    expect![[r#"
        1 inventory away
          waiting: upstream_unavailable [- > prepared]
            x1 is held up by the inventory: HSM at hsm (failing since 10:02: 500).
            Mend that peer; the work then goes on by itself, and no attempt is lost. | reveille status
        1 not in the inventory
          held: unknown_to_inventory [prepared > power_accepted]
            x1 is not listed by the inventory since 1970-01-12T13:47:40Z, so its power is left alone.
            Have the inventory discover the node, or remove it from the template. | cray hsm state components describe x1
        5 staged
          waiting: stage_waiting [- > prepared]
            x1 waits since 1970-01-12T13:46:50Z for the state that session later staged to be applied.
            Apply the staged state. | curl -X POST "${REVEILLE_URL:-http://127.0.0.1:7700}/v2/applystaged" -H 'Content-Type: application/json' -d '{"xnames": ["x1"]}'
        7 configuration service refuses the question
          waiting: upstream_unavailable [- > prepared]
            x1 is held up by the configuration service: waiting for CFS at cfs (400 response size).
            Mend that peer; the work then goes on by itself, and no attempt is lost. | reveille status
        9 power unknown
          waiting: power_state_unknown [power_accepted > power_on]
            x1 has no known power: no BMC data.
            Check the BMC of the node: no power state is read from it. | cray power status list --xnames x1
        10 left out by the power service
          held: unknown_to_power [prepared > power_accepted]
            x1 is left out by the power service, so it is held.
            Have the power service learn of the node: discover its BMC again. | cray power status list --xnames x1
        13 image refused
          failed: boot_data_refused [- > prepared]
            x1 was not prepared for its boot, seen at 1970-01-12T13:48:00Z (attempt 1 of 3): rootfs has no etag.
            Correct what the words name, in the image or at the service, then have it tried again. | reveille enable x1
        18 silent image
          failed: report_missing [script_requested > reported]
            x1 fetched its boot script and never reported its boot after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Look at its console: kernel, root file system, identity or the reporter of the image fails. | cray console interact x1
        paused
          held: session_paused [- > -]
            Nothing begins for x1: session s is paused by alice since 1970-01-12T13:51:40Z.
            Resume the session once its nodes may go on. | reveille session resume s
        paused while its boot is awaited
          progressing: boot_awaited [power_on > reported]
            x1 is on and has not reported its boot yet after it was switched on at 1970-01-12T13:55:00Z (attempt 1 of 3).
            Wait until the time of the attempt is over. | reveille explain x1
        19 locked
          held: node_locked [prepared > power_accepted]
            x1 is locked in the inventory since 1970-01-12T13:47:50Z, so its power is left alone.
            Unlock the node if it may be switched. | cray hsm locks unlock create --component-ids x1
        19 refused for a lock
          failed: power_on_refused [prepared > power_accepted]
            x1 was not switched on: the power service refused, seen at 1970-01-12T13:48:21Z (attempt 1 of 3): Unable to reserve component.
            Remove the obstacle that the words name, then have it tried again. | reveille enable x1
        22 never came on
          failed: power_on_timed_out [power_accepted > power_on]
            x1 never came on after it was switched on, seen at 1970-01-12T13:50:20Z (attempt 1 of 3): Timeout waiting for transition.
            Check its BMC and the power of its slot, then have it tried again. | cray power status list --xnames x1
        22 never came on, no words
          failed: power_on_timed_out [power_accepted > power_on]
            x1 never came on after it was switched on, seen at 1970-01-12T13:50:20Z (attempt 1 of 3).
            Check its BMC and the power of its slot, then have it tried again. | cray power status list --xnames x1
        23 three causes
          failed: other_boot_reported < boot_unreported < power_on_refused [power_on > reported]
            x1 reported another boot than the wanted one, seen at 1970-01-12T13:53:00Z (attempt 3 of 3).
            Compare what it booted with what the boot script service holds for it. | cray bss bootparameters list --name x1
        24 boot takes long
          progressing: boot_awaited [power_on > reported]
            x1 is on and has not reported its boot yet after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Wait until the time of the attempt is over. | reveille explain x1
        25-27 no request yet
          progressing: boot_script_awaited [power_on > script_requested]
            x1 is on and has not asked for its boot script yet after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Wait: its firmware may still be at work. Its console shows how far it is. | cray console interact x1
        25-27 never asked
          failed: boot_script_not_requested [power_on > script_requested]
            x1 was on and never asked for its boot script after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Look at its console: DHCP, the boot program, the boot order or the cable of its boot interface fails. | cray console interact x1
        28 booted from other data
          failed: other_boot_reported [power_on > reported]
            x1 reported another boot than the wanted one, seen at 1970-01-12T13:50:00Z (attempt 1 of 3).
            Compare what it booted with what the boot script service holds for it. | cray bss bootparameters list --name x1
        28 never restarted
          failed: earlier_boot_reported [power_on > reported]
            x1 reported an earlier boot, seen at 1970-01-12T13:48:50Z (attempt 1 of 3).
            Check that it was restarted, and that the boot script service holds the new data. | cray bss bootparameters list --name x1
        29 power service away
          waiting: upstream_unavailable [prepared > power_accepted]
            x1 is held up by the power service: waiting for PCS at pcs (failing since 10:02: timeout).
            Mend that peer; the work then goes on by itself, and no attempt is lost. | reveille status
        31 asks again and again
          failed: artifact_fetch_failing [script_requested > reported]
            x1 asked for its boot script again and again and reported nothing after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Check that kernel and initrd of the image exist and that the node can fetch them. | reveille get components x1 -o wide
        31 asks again and again, in time
          progressing: artifact_fetch_failing [script_requested > reported]
            x1 asked for its boot script again and again and reported nothing after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Check that kernel and initrd of the image exist and that the node can fetch them. | reveille get components x1 -o wide
        35 between report and script
          progressing: boot_report_awaited [script_requested > reported]
            x1 fetched its boot script and has not reported its boot yet (attempt 1 of 3).
            Wait: the kernel is starting. | reveille explain x1
        35 no source of scripts
          failed: boot_unreported [power_on > reported]
            x1 was on and never reported its boot after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Look at its console for the last stage that it reached. | cray console interact x1
        36 as wanted
          as_wanted: as_wanted [configured > -]
            x1 is as wanted since 1970-01-12T13:51:40Z.
            Nothing is to be done. | reveille get components x1 -o wide
        36 switched off outside
          held: power_changed_outside [power_accepted > power_on]
            x1 was as wanted and is off since 1970-01-12T13:56:30Z, and Reveille did not switch it.
            Find who switched it off, then begin a session with it, or enable it again. | cray power status list --xnames x1
        36 never enabled
          held: not_enabled [- > prepared]
            x1 is not enabled, so nothing is done about it.
            Enable it, or begin a session with it. | reveille enable x1
        36 never wanted
          held: nothing_wanted [- > -]
            x1 is not enabled, and no session has set a state for it.
            Begin a session with a template that has it. | reveille get templates
        19 locked and not enabled
          held: node_locked < not_enabled [prepared > power_accepted]
            x1 is locked in the inventory, so its power is left alone.
            Unlock the node if it may be switched. | cray hsm locks unlock create --component-ids x1
        21 enabled without attempts left
          failed: boot_unreported < node_locked [power_on > reported]
            x1 was on and never reported its boot after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Look at its console for the last stage that it reached. | cray console interact x1
        37 history lost
          failed: retries_exhausted [- > -]
            x1 was given up: the retry limit was reached.
            Read its events, then have it tried again. | reveille events x1
        configuration under way
          progressing: configuration_pending [reported > configured]
            x1 has booted and is being configured since 1970-01-12T13:50:00Z.
            Wait: the configuration service is at work, which has no time limit. | cray cfs v3 components describe x1
        configuration not begun
          waiting: configuration_not_started [reported > configured]
            x1 has booted and its configuration has not begun since 1970-01-12T13:50:00Z.
            Check that the configuration service runs its batches and that the node asked for its configuration. | cray cfs v3 components describe x1
        configuration failed
          failed: configuration_failed [reported > configured]
            x1 has booted and its configuration failed, seen at 1970-01-12T13:51:40Z.
            Read the log of its last configuration session, correct the layer, then have it tried again. | cray cfs v3 components describe x1
        configuration refused
          held: configuration_refused [reported > configured]
            x1 has booted and its configuration is refused: no such configuration.
            Create that configuration, or correct its name in the template. | cray cfs v3 configurations list
        cannot be switched off
          failed: power_off_timed_out < power_off_timed_out [prepared > power_accepted]
            x1 stayed on after it was switched off, seen at 1970-01-12T13:51:40Z (attempt 1 of 3).
            Check its BMC, cut its power there, then have it tried again. | cray power status list --xnames x1
        second attempt waits for a peer
          waiting: upstream_unavailable < power_on_timed_out [- > prepared]
            x1 is held up by a service that prepares its boot: waiting for BSS at bss (503).
            Mend that peer; the work then goes on by itself, and no attempt is lost. | reveille status
        first attempt failed, second is due
          progressing: power_on_timed_out < power_action_due [power_accepted > power_on]
            x1 never came on after it was switched on, seen at 1970-01-12T13:50:20Z (attempt 1 of 3).
            Check its BMC and the power of its slot, then have it tried again. | cray power status list --xnames x1
    "#]].assert_eq(&told);
}

#[test]
fn explanations_always_have_a_sentence_and_a_step() {
    for reason in CauseReason::ALL {
        let cause = ExplainedCause::new(reason);
        let sentence = wording::sentence(&cause, "x1");
        let step = wording::next_step(&cause, "x1", SiteTools::Csm);
        for text in [&sentence, &step.text, &step.command] {
            assert!(!text.is_empty(), "{reason:?}");
            assert!(!text.contains("{since}") && !text.contains("{node}"), "{text}");
        }
    }
}

#[test]
fn sites_without_the_tools_get_commands_of_reveille() {
    let cause = ExplainedCause::new(CauseReason::NodeLocked);
    let command = |tools| wording::next_step(&cause, "x1", tools).command;
    assert_eq!(command(SiteTools::Csm), "cray hsm locks unlock create --component-ids x1");
    assert!(command(SiteTools::Own).starts_with("reveille "), "{}", command(SiteTools::Own));
}

#[test]
fn commands_never_carry_what_a_shell_would_read() {
    let cause = ExplainedCause::new(CauseReason::NotEnabled);
    assert_eq!(wording::next_step(&cause, "x1'; rm -rf /", SiteTools::Csm).command, "");
    let words = cause.saying("{node} {since}");
    assert_eq!(
        wording::sentence(&words, "x1"),
        "x1 is not enabled, so nothing is done about it: {node} {since}.",
        "values are not filled in again"
    );
}

fn pause_mark() -> PauseMark {
    PauseMark { by: "alice".into(), since: at(300) }
}

fn session(progress: Progress, members: Vec<SessionMember>) -> SessionEvidence {
    SessionEvidence {
        name: "s".into(),
        progress,
        pause: None,
        waiting_for: String::new(),
        error: String::new(),
        trouble_since: None,
        started_at: at(0),
        ended_at: (progress == Progress::Complete).then(|| at(600)),
        members,
        left_out: Some(Vec::new()),
        tools: SiteTools::Own,
    }
}

fn member(id: &str, node: Node) -> SessionMember {
    SessionMember::of(id.to_owned(), node.explained())
}

#[test]
fn sessions_name_the_causes_of_their_nodes_once() {
    let well = || node().switched_on(100, 1).booted().ended(300, Reason::Configured);
    let dead = || {
        node()
            .switched_on(100, 1)
            .failed_to_switch(220, Action::PoweringOn, 1, "")
            .ended(220, Reason::RetriesExhausted)
    };
    let locked = || node().with(|node| node.component.inventory.locked = true);
    let left_out = |id: &str, reason| LeftOutNode { id: id.to_owned(), reason: Some(reason) };
    let rows = [
        (
            "waits for the inventory",
            SessionEvidence {
                waiting_for: "HSM at hsm (failing since 10:02: 500)".into(),
                ..session(Progress::Pending, Vec::new())
            },
        ),
        ("is next", session(Progress::Pending, Vec::new())),
        (
            "paused",
            SessionEvidence {
                pause: Some(pause_mark()),
                ..session(Progress::Running, vec![member("x1", well())])
            },
        ),
        ("under way", session(Progress::Running, vec![member("x1", well()), member("x2", locked())])),
        (
            "under way, nobody is behind",
            SessionEvidence {
                left_out: Some(vec![left_out("x9", LeftOutReason::NotInLimit)]),
                ..session(Progress::Running, vec![member("x1", node())])
            },
        ),
        (
            "two failed",
            session(
                Progress::Complete,
                vec![member("x1", dead()), member("x2", well()), member("x3", dead())],
            ),
        ),
        ("all well", session(Progress::Complete, vec![member("x1", well())])),
        ("taken over", session(Progress::Complete, vec![SessionMember::taken_over("x1".into())])),
        (
            "nobody",
            SessionEvidence {
                left_out: Some(vec![
                    left_out("x1", LeftOutReason::Locked),
                    left_out("x2", LeftOutReason::Locked),
                    left_out("green", LeftOutReason::UnknownGroup),
                ]),
                ..session(Progress::Complete, Vec::new())
            },
        ),
        (
            "broken template",
            SessionEvidence {
                error: "the template has no boot sets".into(),
                ..session(Progress::Complete, Vec::new())
            },
        ),
    ];
    let told: String = rows
        .iter()
        .map(|(name, evidence)| format!("{name}\n  {}", shown(&explain_session(evidence))))
        .collect();
    expect![[r#"
        waits for the inventory
          waiting: upstream_unavailable [- > -]
            s is held up by a peer: HSM at hsm (failing since 10:02: 500).
            Mend that peer; the work then goes on by itself, and no attempt is lost. | reveille status
        is next
          progressing: session_setup_due [- > -]
            Session s is about to select its nodes.
            Wait: it begins within seconds. | reveille explain session s
        paused
          held: session_paused [- > -]
            Nothing begins for s: session s is paused by alice since 1970-01-12T13:51:40Z.
            Resume the session once its nodes may go on. | reveille session resume s
        under way
          progressing: session_under_way < node_locked [- > -]
            Session s is under way since 1970-01-12T13:46:40Z: 1 of 2 nodes as wanted, 1 held.
            Unlock the node if it may be switched. | reveille events x2
        under way, nobody is behind
          progressing: session_under_way < power_action_due < not_selected [- > -]
            Session s is under way since 1970-01-12T13:46:40Z: 0 of 1 nodes as wanted, 1 under way.
            Wait, or follow the causes of the nodes that are behind. | reveille explain session s
        two failed
          failed: members_failed < power_on_timed_out [- > -]
            Session s is over since 1970-01-12T13:56:40Z: 1 of 3 nodes as wanted, 2 failed.
            Check its BMC and the power of its slot, then have it tried again. | reveille events x1
        all well
          as_wanted: session_as_wanted [- > -]
            Session s is over since 1970-01-12T13:56:40Z and its nodes are as wanted.
            Nothing is to be done. | reveille session get s
        taken over
          held: session_superseded < superseded [- > -]
            Session s is over since 1970-01-12T13:56:40Z: others took over all of its nodes.
            Look at who took its nodes; nothing is to be done for this session. | reveille get sessions
        nobody
          failed: nothing_to_act_on < node_locked < group_unknown [- > -]
            Session s selected no node since 1970-01-12T13:56:40Z.
            Unlock the node if it may be switched. | reveille events x1
        broken template
          failed: session_failed [- > -]
            Session s could not do its work since 1970-01-12T13:56:40Z: the template has no boot sets.
            Correct what the words name, then create the session again. | reveille events --session s
    "#]]
    .assert_eq(&told);
}

#[test]
fn missing_answers_are_no_negative_ones() {
    let silent = node().switched_on(100, 1).switched_off(400, Action::PoweringOffGracefully);
    let silent = silent.ended(500, Reason::RetriesExhausted);
    let since = |seconds| ScriptEvidence::Known { recorded_since: at(seconds), requests: None };
    for (name, script, expected) in [
        ("no source", ScriptEvidence::NotOffered, CauseReason::BootUnreported),
        ("no answer", ScriptEvidence::Unknown, CauseReason::BootUnreported),
        ("on record only since the attempt", since(200), CauseReason::BootUnreported),
        ("on record before the attempt", since(99), CauseReason::BootScriptNotRequested),
    ] {
        let explained = silent.clone().with(|node| node.script = script).explained();
        assert_eq!(explained.causes[0].reason, expected, "{name}");
    }
}
>>>>>>> steer
