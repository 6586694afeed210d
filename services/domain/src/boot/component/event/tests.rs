use expect_test::{Expect, expect};

use super::*;
use crate::{
    boot::component::{
        BegunBoot, BootPreparation, EventStats, LastAction, NumberedToken, StagedState, Status,
        view::{artifacts, bare},
    },
    core::{time::Timestamp, trouble::TroubleKind},
};

const EVALUATOR: Actor = Actor::Service("status-evaluator");
const CONTROLLER: Actor = Actor::Service("power-controller");
const COORDINATOR: Actor = Actor::Service("config-coordinator");
const SESSIONS: Actor = Actor::Service("session-manager");
const REGISTRY: Actor = Actor::Service("component-registry");

/// The events of one change, each in a line.
fn shown(before: &Component, after: &Component, actor: Actor, reason: &str) -> String {
    let lines = events(Some(before), Some(after), actor, reason).into_iter().map(|event| {
        let EventContent { kind, reason, text, details, session: _ } = event.content();
        assert!(KINDS.contains(&kind), "{kind}");
        let mut line = format!("    {kind}");
        for part in [&*reason, &*text].into_iter().filter(|part| !part.is_empty()) {
            line.push_str(&format!(" '{part}'"));
        }
        details.iter().for_each(|(name, value)| line.push_str(&format!(" {name}={value}")));
        line + "\n"
    });
    let lines: String = lines.collect();
    if lines.is_empty() { "    nothing\n".to_owned() } else { lines }
}

type Change = fn(&mut Component);

/// Makes each change to the result of the one before.
fn story(rows: &[(&str, Actor, &str, Change)], expected: &Expect) {
    let mut component = bare();
    let mut lines = String::new();
    for (name, actor, reason, change) in rows {
        let mut changed = component.clone();
        change(&mut changed);
        lines.push_str(&format!("{name}\n{}", shown(&component, &changed, *actor, reason)));
        component = changed;
    }
    expected.assert_eq(&lines);
}

fn wish(component: &mut Component, id: &str, kernel: &str) {
    component.wish.assignment = id.into();
    component.wish.session = Some(format!("session {id}").into());
    component.generation += 1;
    component.wish.enabled = Some(true);
    component.wish.desired_state = Some(DesiredState {
        boot_artifacts: Some(artifacts(kernel)),
        configuration: Some("c".into()),
        ..DesiredState::default()
    });
    begin(component, Action::SessionSetup);
    component.power.event_stats = Some(EventStats::zeros());
    decide(component, Phase::None, "on_hold");
}

fn begin(component: &mut Component, action: Action) {
    component.power.last_action =
        Some(LastAction { action: Some(action), failed: Some(false), last_updated: None });
}

fn fail(component: &mut Component) {
    component.power.last_action.iter_mut().for_each(|last| last.failed = Some(true));
}

fn attempt(component: &mut Component, number: u32) {
    begin(component, Action::PoweringOn);
    component.power.event_stats.get_or_insert_with(EventStats::zeros).power_on_attempts = Some(number);
    let token = NumberedToken { token: "t".into(), number: number.into() };
    component.reported.boot =
        Some(BegunBoot { generation: 1, attempt: number, token, reported: false }.into());
}

fn report(component: &mut Component, kernel: &str) {
    component.reported.actual_state =
        Some(ActualState { boot_artifacts: Some(artifacts(kernel)), ..ActualState::default() });
    component.reported.boot.iter_mut().for_each(|boot| boot.reported = true);
}

fn decide(component: &mut Component, phase: Phase, word: &str) {
    component.evaluation.status = Some(Status { phase: Some(phase), status_override: Some(word.into()) });
}

fn show(component: &mut Component, trouble: Option<Trouble>) {
    let before = component.evaluation.clone();
    component.evaluation.error_kind = trouble.as_ref().map_or_else(TroubleKind::default, Trouble::kind);
    component.evaluation.error = trouble.map(|trouble| Arc::clone(trouble.text()));
    component.evaluation.note_begin(&before, Timestamp(0));
}

fn prepare(component: &mut Component, trouble: Option<Trouble>) {
    let trouble = trouble.map(Arc::new);
    component.preparation.outcome = Some(BootPreparation { generation: 1, attempt: 1, trouble });
}

#[test]
fn a_boot_is_a_story() {
    story(
        &[
            ("session", SESSIONS, "", |one| wish(one, "1", "k p i")),
            ("decision", EVALUATOR, "power_on_needed", |one| decide(one, Phase::PoweringOn, "")),
            ("preparation", COORDINATOR, "", |one| prepare(one, None)),
            ("power-on", CONTROLLER, "", |one| attempt(one, 1)),
            ("report", Actor::Client, "", |one| report(one, "k p i")),
            ("repeated report", Actor::Client, "", |one| {
                one.reported
                    .actual_state
                    .iter_mut()
                    .for_each(|state| state.last_updated = Some(Timestamp(9)));
            }),
            ("end", EVALUATOR, "booted", |one| {
                decide(one, Phase::None, "");
                one.wish.enabled = Some(false);
                one.power.event_stats = Some(EventStats::zeros());
            }),
            ("expiry", REGISTRY, "", |one| {
                one.reported.actual_state = None;
                one.reported.actual_state = Some(ActualState::default());
                begin(one, Action::ActualStateCleanup);
            }),
        ],
        &expect![[r#"
            session
                desired_state_set 'session_setup' configuration=c initrd=i kernel=k kernel_parameters=p session=session 1
                enabled
            decision
                decided 'power_on_needed' phase=powering_on
            preparation
                prepared attempt=1
            power-on
                power_action_began 'powering_on' attempt=1
            report
                boot_reported 'as_desired' initrd=i kernel=k kernel_parameters=p
            repeated report
                nothing
            end
                decided 'booted'
                disabled 'booted'
            expiry
                report_forgotten
        "#]],
    );
}

#[test]
fn failures_name_their_reason() {
    story(
        &[
            ("session", SESSIONS, "", |one| wish(one, "1", "k p i")),
            ("refused preparation", COORDINATOR, "", |one| prepare(one, Trouble::failed("no such kernel"))),
            ("refused power-on", CONTROLLER, "", |one| {
                attempt(one, 1);
                fail(one);
                one.power.trouble = Trouble::failed("no permission").map(Arc::new);
            }),
            ("power-on without effect", EVALUATOR, "power_on_without_effect", |one| {
                attempt(one, 2);
                fail(one);
                one.power.trouble = None;
            }),
            ("exhausted", EVALUATOR, "retries_exhausted", |one| {
                decide(one, Phase::None, "failed");
                show(one, Some(Trouble::own(TroubleKind::Exhausted, "no attempt is left")));
                one.wish.enabled = Some(false);
            }),
        ],
        &expect![[r#"
            session
                desired_state_set 'session_setup' configuration=c initrd=i kernel=k kernel_parameters=p session=session 1
                enabled
            refused preparation
                preparation_failed 'failed' 'no such kernel' attempt=1
            refused power-on
                power_action_began 'powering_on' attempt=1
                power_action_failed 'powering_on' 'no permission' attempt=1
            power-on without effect
                power_action_began 'powering_on' attempt=2
                power_action_failed 'powering_on' attempt=2
            exhausted
                decided 'retries_exhausted' status_override=failed
                disabled 'retries_exhausted'
                trouble_began 'exhausted' 'no attempt is left' since=1970-01-01T00:00:00Z
        "#]],
    );
}

#[test]
fn a_trouble_begins_and_ends_once() {
    story(
        &[
            ("outage", EVALUATOR, "awaiting_power", |one| show(one, Some(Trouble::waiting_for("PCS")))),
            ("another error of the outage", EVALUATOR, "awaiting_power", |one| {
                show(one, Some(Trouble::waiting_for("PCS (since noon)")));
            }),
            ("refusal", EVALUATOR, "power_on_needed", |one| show(one, Trouble::failed("no"))),
            ("another refusal", EVALUATOR, "power_on_needed", |one| show(one, Trouble::failed("never"))),
            ("nothing new", EVALUATOR, "power_on_needed", |one| show(one, Trouble::failed("never"))),
            ("end", EVALUATOR, "power_on_needed", |one| show(one, None)),
        ],
        &expect![[r#"
            outage
                trouble_began 'waiting' 'waiting for PCS' since=1970-01-01T00:00:00Z
            another error of the outage
                nothing
            refusal
                trouble_ended 'waiting' 'waiting for PCS' since=1970-01-01T00:00:00Z
                trouble_began 'failed' 'no' since=1970-01-01T00:00:00Z
            another refusal
                trouble_ended 'failed' 'no' since=1970-01-01T00:00:00Z
                trouble_began 'failed' 'never' since=1970-01-01T00:00:00Z
            nothing new
                nothing
            end
                trouble_ended 'failed' 'never' since=1970-01-01T00:00:00Z
        "#]],
    );
}

#[test]
fn writes_of_clients_name_what_was_written() {
    story(
        &[
            ("enabled", Actor::Client, "", |one| one.wish.enabled = Some(true)),
            ("desired state", Actor::Client, "", |one| {
                one.wish.desired_state = Some(DesiredState {
                    boot_artifacts: Some(artifacts("k2 . .")),
                    ..DesiredState::default()
                });
            }),
            ("empty artifacts for none", Actor::Client, "", |one| {
                one.reported.actual_state = Some(ActualState {
                    boot_artifacts: Some(Arc::new(BootArtifacts::empty())),
                    ..ActualState::default()
                });
            }),
            ("other members", Actor::Client, "", |one| {
                one.wish.retry_policy = Some(7);
                one.wish.session = Some("s".into());
            }),
            ("the same by a service", SESSIONS, "", |one| one.wish.retry_policy = Some(8)),
            ("error", Actor::Client, "", |one| show(one, Trouble::failed("broken fan"))),
            ("stage", Actor::Client, "", |one| {
                let staged = StagedState { session: Some("later".into()), ..StagedState::default() };
                one.wish.staged_state = Some(staged.into());
            }),
            ("stage cleared", Actor::Client, "", |one| {
                one.wish.staged_state = Some(StagedState::default().into());
            }),
            ("disabled", Actor::Client, "", |one| one.wish.enabled = Some(false)),
            ("override, which begins a generation", Actor::Client, "", |one| {
                one.generation += 1;
                decide(one, Phase::None, "fenced");
            }),
            ("enabled and held", Actor::Client, "", |one| {
                one.generation += 1;
                one.wish.enabled = Some(true);
                decide(one, Phase::None, "on_hold");
            }),
            ("the same again", Actor::Client, "", |one| one.generation += 1),
        ],
        &expect![[r#"
            enabled
                enabled
            desired state
                desired_state_set kernel=k2
            empty artifacts for none
                nothing
            other members
                written members=session,retry_policy
            the same by a service
                nothing
            error
                trouble_began 'failed' 'broken fan' since=1970-01-01T00:00:00Z
            stage
                staged session=later
            stage cleared
                stage_cleared session=later
            disabled
                disabled
            override, which begins a generation
                decided status_override=fenced
            enabled and held
                enabled
            the same again
                written
        "#]],
    );
}

#[test]
fn inventory_is_part_of_the_story() {
    story(
        &[
            ("lock", REGISTRY, "", |one| one.inventory.locked = true),
            ("unlock", REGISTRY, "", |one| one.inventory.locked = false),
            ("doubt", REGISTRY, "", |one| {
                one.inventory.presence = InventoryPresence::Doubtful { since: Timestamp(1) };
            }),
            ("absence", REGISTRY, "", |one| {
                one.inventory.presence = InventoryPresence::Absent { since: Timestamp(1) };
            }),
            ("return", REGISTRY, "", |one| one.inventory.presence = InventoryPresence::Listed),
        ],
        &expect![[r#"
            lock
                locked
            unlock
                unlocked
            doubt
                nothing
            absence
                not_listed
            return
                nothing
        "#]],
    );
}

#[test]
fn records_begin_and_end() {
    let one = bare();
    assert_eq!(events(None, Some(&one), REGISTRY, ""), [ComponentEvent::Created]);
    assert_eq!(events(Some(&one), None, Actor::Client, ""), [ComponentEvent::Deleted]);
    let broken = one.clone().with(|one| show(one, Trouble::failed("broken fan")));
    let trouble = || broken.evaluation.recorded_trouble().unwrap();
    assert_eq!(
        events(None, Some(&broken), Actor::Client, ""),
        [ComponentEvent::Created, ComponentEvent::TroubleBegan(trouble())]
    );
    assert_eq!(
        events(Some(&broken), None, Actor::Client, ""),
        [ComponentEvent::TroubleEnded(trouble()), ComponentEvent::Deleted]
    );
    assert_eq!(events(Some(&one), Some(&one), Actor::Client, ""), []);
    assert_eq!(events(None, None, Actor::Client, ""), []);
}
