//! Transitions in virtual time: results and reservations, second by second.

use std::{
    fmt::Write,
    time::{Duration, SystemTime},
};

use expect_test::expect;
use simulator::{faults::HardwareFault, hardware::NodePace};

use super::transition::{PowerOperation, TaskDeadline, TaskStatus};
use crate::{
    node_faults::NodeFaults,
    plan::{MachinePlan, PowerService},
    state::MachineState,
};

const A: &str = "x1000c0s0b0n0";
const B: &str = "x1000c0s0b0n1";
const C: &str = "x1000c0s0b1n0";

const PACE: NodePace = NodePace {
    soft_off: Duration::from_secs(20),
    force_off: Duration::from_secs(2),
    power_on: Duration::from_secs(10),
    boot: Duration::from_secs(200),
    configuration: Duration::from_secs(100),
};

/// A machine in virtual time, and the visible changes of its transitions, one line per second with a change.
struct TimelineStory {
    state: MachineState,
    shown: String,
    lines: String,
}

impl TimelineStory {
    fn new(up: bool, sampling: u64, prompt_results: bool) -> Self {
        let power = PowerService {
            sampling_period: Duration::from_secs(sampling),
            prompt_results,
            ..PowerService::as_shipped()
        };
        Self::of(power, up, PACE)
    }

    fn of(power: PowerService, up: bool, pace: NodePace) -> Self {
        let plan = MachinePlan { pace: Some(pace), power, up, ..MachinePlan::quick(4) };
        let state = MachineState::new(plan, SystemTime::UNIX_EPOCH).expect("a plan");
        let story = Self { state, shown: String::new(), lines: String::new() };
        Self { shown: story.look(), ..story }
    }

    /// Sets a node's faults before the story begins.
    fn with(mut self, id: &str, faults: NodeFaults) -> Self {
        let position = self.state.machine.position(id).expect("known");
        self.state.set_faults(position, faults);
        self
    }

    fn at(mut self, second: u64, act: impl FnOnce(&mut MachineState)) -> Self {
        self.pass(second);
        act(&mut self.state);
        self
    }

    fn ask(self, second: u64, operation: PowerOperation, minutes: u32, ids: &[&str]) -> Self {
        let deadline = match minutes {
            0 => TaskDeadline::NotAwaited,
            minutes => TaskDeadline::After(Duration::from_secs(60) * minutes),
        };
        let ids = ids.iter().map(ToString::to_string).collect();
        self.at(second, |state| drop(state.accept(operation, deadline, ids)))
    }

    fn pass(&mut self, until: u64) {
        let from = self.state.now.as_secs();
        for second in from..=until {
            self.state.advance(Duration::from_secs(second), usize::MAX);
            let shown = self.look();
            if shown != self.shown {
                writeln!(self.lines, "{second:<4}{shown}").expect("a string");
                self.shown = shown;
            }
        }
    }

    /// Every transition and its tasks, and which nodes are reserved.
    fn look(&self) -> String {
        let transition = |transition: &super::PowerTransition| {
            let tasks = transition.tasks.iter().map(|task| match (&task.error, task.task_status) {
                (error, TaskStatus::Failed | TaskStatus::Unsupported) => error.to_string(),
                (_, status) => status.word().to_owned(),
            });
            let tasks: Vec<_> = tasks.collect();
            format!("{} {}: {}", transition.operation.word(), transition.status.word(), tasks.join(", "))
        };
        let transitions: Vec<_> = self.state.power.transitions().map(transition).collect();
        format!("{} | {} reserved", transitions.join(" | "), self.state.inventory.reservations.len())
    }

    /// The first transition's id.
    fn id(&self) -> std::sync::Arc<str> {
        self.state.power.transitions().next().expect("one").id.clone()
    }

    fn told(mut self) -> String {
        self.pass(1000);
        self.lines
    }
}

#[test]
fn results_show_at_once_and_reservations_last_until_the_check() {
    let story = TimelineStory::new(false, 0, true).ask(1, PowerOperation::On, 1, &[A, B]);
    expect![[r#"
        1   On in-progress: in-progress, in-progress | 2 reserved
        11  On in-progress: succeeded, succeeded | 2 reserved
        16  On completed: succeeded, succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn without_prompt_results_they_show_when_the_service_looks() {
    let story = TimelineStory::new(false, 0, false).ask(1, PowerOperation::On, 1, &[A]);
    expect![[r#"
        1   On in-progress: in-progress | 1 reserved
        16  On completed: succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn old_reading_delays_results_and_hides_changes() {
    // Off at 51, which the reading at 60 shows; the service checks 15 s after each beginning.
    let story = TimelineStory::new(true, 30, true).ask(31, PowerOperation::SoftOff, 1, &[A]).ask(
        55,
        PowerOperation::SoftOff,
        1,
        &[A],
    );
    expect![[r#"
        31  Soft-Off in-progress: in-progress | 1 reserved
        55  Soft-Off in-progress: in-progress | Soft-Off completed: Unable to reserve component | 1 reserved
        60  Soft-Off in-progress: succeeded | Soft-Off completed: Unable to reserve component | 1 reserved
        61  Soft-Off completed: succeeded | Soft-Off completed: Unable to reserve component | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn reserved_node_alone_fails_an_overlapping_power_on() {
    let story = TimelineStory::new(true, 0, true)
        .at(0, |state| state.press(simulator::node::PowerCommand::ForceOff, &[2]))
        .ask(3, PowerOperation::SoftOff, 1, &[A, B])
        .ask(24, PowerOperation::On, 1, &[A, C])
        .at(25, |_| ());
    let records = |story: &TimelineStory| {
        let of = |position: usize| story.state.power.records[position].clone();
        format!("{:?}\n{:?}\n", of(0), of(2))
    };
    let seen = records(&story);
    expect![[r#"
        3   Soft-Off in-progress: in-progress, in-progress | 2 reserved
        23  Soft-Off in-progress: succeeded, succeeded | 2 reserved
        24  Soft-Off in-progress: succeeded, succeeded | On in-progress: Unable to reserve component, in-progress | 3 reserved
        33  Soft-Off completed: succeeded, succeeded | On in-progress: Unable to reserve component, in-progress | 1 reserved
        34  Soft-Off completed: succeeded, succeeded | On in-progress: Unable to reserve component, succeeded | 1 reserved
        39  Soft-Off completed: succeeded, succeeded | On completed: Unable to reserve component, succeeded | 0 reserved
        PowerRecord { on: 1, soft_off: 1, force_off: 0, restart: 0, crossings: 0, overlaps: 0, refused_reservations: 1 }
        PowerRecord { on: 1, soft_off: 0, force_off: 0, restart: 0, crossings: 0, overlaps: 0, refused_reservations: 0 }
    "#]].assert_eq(&(story.told() + &seen));
}

#[test]
fn opposite_request_before_the_result_is_a_crossing() {
    let story = TimelineStory::new(true, 0, true).ask(1, PowerOperation::SoftOff, 1, &[A]).ask(
        5,
        PowerOperation::On,
        1,
        &[A],
    );
    assert_eq!((story.state.power.records[0].crossings, story.state.power.records[0].overlaps), (1, 0));
    let story = story.ask(6, PowerOperation::ForceOff, 1, &[A]);
    assert_eq!((story.state.power.records[0].crossings, story.state.power.records[0].overlaps), (1, 1));
}

#[test]
fn impossible_task_fails_at_once_in_the_service_s_words() {
    let story = TimelineStory::new(false, 0, true)
        .with(C, NodeFaults { hsm_missing: true, ..NodeFaults::default() })
        .with(B, NodeFaults { pcs_task_fails: Some("BMC says 500".into()), ..NodeFaults::default() })
        .at(0, |state| state.set_locked(&[0], true))
        .ask(1, PowerOperation::On, 1, &[A, B, C, "x9c0s0b0n0", "nid1"])
        .ask(2, PowerOperation::SoftOff, 1, &[A]);
    expect![[r#"
        1   On completed: Unable to reserve component, BMC says 500, Xname not found in HSM, Missing xname, Invalid xname | 0 reserved
        2   On completed: Unable to reserve component, BMC says 500, Xname not found in HSM, Missing xname, Invalid xname | Soft-Off completed: succeeded | 0 reserved
    "#]].assert_eq(&story.told());
}

#[test]
fn ineffective_task_fails_at_its_deadline() {
    let stuck = NodeFaults::hardware(Some(HardwareFault::StuckOff));
    let story = TimelineStory::new(false, 0, true).with(A, stuck).ask(0, PowerOperation::On, 1, &[A, B]);
    expect![[r#"
        0   On in-progress: in-progress, in-progress | 2 reserved
        10  On in-progress: in-progress, succeeded | 2 reserved
        60  On completed: Timeout waiting for transition, on., succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn off_forces_nodes_that_ignore_a_graceful_shutdown() {
    let stubborn = NodeFaults::hardware(Some(HardwareFault::IgnoresGracefulOff));
    let story = TimelineStory::new(true, 0, true).with(A, stubborn).ask(0, PowerOperation::Off, 1, &[A, B]);
    expect![[r#"
        0   Off in-progress: in-progress, in-progress | 2 reserved
        20  Off in-progress: in-progress, succeeded | 2 reserved
        62  Off in-progress: succeeded, succeeded | 2 reserved
        75  Off completed: succeeded, succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_restart_turns_everything_on_again() {
    let story = TimelineStory::new(true, 0, true).ask(0, PowerOperation::HardRestart, 1, &[A]);
    expect![[r#"
        0   Hard-Restart in-progress: in-progress | 1 reserved
        40  Hard-Restart in-progress: succeeded | 1 reserved
        45  Hard-Restart completed: succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn transition_without_deadline_awaits_no_result() {
    let story = TimelineStory::new(true, 0, true).ask(0, PowerOperation::SoftOff, 0, &[A]);
    expect![[r#"
        0   Soft-Off completed: succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn abort_shows_at_the_next_check_and_releases_nodes() {
    let stuck = NodeFaults::hardware(Some(HardwareFault::StuckOff));
    let story = TimelineStory::new(false, 0, true).with(A, stuck).ask(0, PowerOperation::On, 1, &[A, B]).at(
        20,
        |state| {
            let id = state.power.transitions().next().expect("one").id.clone();
            assert_eq!([state.signal_abort(&id), state.signal_abort("none")], [Some(true), None]);
        },
    );
    expect![[r#"
        0   On in-progress: in-progress, in-progress | 2 reserved
        10  On in-progress: in-progress, succeeded | 2 reserved
        20  On abort-signaled: in-progress, succeeded | 2 reserved
        30  On aborted: Transition aborted, succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

/// Seconds that a power-off of a node takes, and a power-on that follows at once, by when the first begins.
fn as_shipped(begun: u64) -> [u64; 2] {
    let step = Duration::from_secs(2);
    let pace = NodePace { soft_off: step, power_on: step, ..PACE };
    let mut story = TimelineStory::of(PowerService::as_shipped(), true, pace);
    let mut took = |begun, operation| {
        story.state.advance(Duration::from_secs(begun), usize::MAX);
        drop(story.state.accept(operation, TaskDeadline::After(Duration::from_secs(300)), vec![A.into()]));
        let ended = |state: &MachineState| state.power.transitions().all(|one| one.status.is_over());
        let seconds = (begun..).find(|second| {
            story.state.advance(Duration::from_secs(*second), usize::MAX);
            *second > begun && ended(&story.state)
        });
        seconds.expect("it ends") - begun
    };
    let off = took(begun, PowerOperation::SoftOff);
    [off, took(begun + off, PowerOperation::On)]
}

#[test]
fn transitions_as_shipped_end_after_15_30_or_45_seconds() {
    let rows = [0, 10, 13, 15, 20, 27, 28, 29].map(|begun| (begun, as_shipped(begun)));
    expect![[r#"
        [
            "(0, [30, 30])",
            "(10, [30, 30])",
            "(13, [30, 30])",
            "(15, [15, 30])",
            "(20, [15, 30])",
            "(27, [15, 30])",
            "(28, [45, 30])",
            "(29, [45, 30])",
        ]
    "#]]
    .assert_debug_eq(&rows.map(|row| format!("{row:?}")));
}

#[test]
fn worker_that_dies_first_performs_a_minute_later() {
    let story = TimelineStory::new(true, 0, false).ask(10, PowerOperation::SoftOff, 1, &[A]).at(10, |_| {});
    let id = story.id();
    let story = story.at(10, |state| state.kill_worker(&id));
    let never_began = TimelineStory::new(true, 0, false).at(10, |state| {
        let id = state.accept(
            PowerOperation::SoftOff,
            TaskDeadline::After(Duration::from_secs(60)),
            vec![A.into()],
        );
        state.kill_worker(&id);
    });
    expect![[r#"
        10  Soft-Off in-progress: in-progress | 1 reserved
        60  Soft-Off completed: succeeded | 0 reserved
        10  Soft-Off new: new | 0 reserved
        60  Soft-Off in-progress: in-progress | 1 reserved
        90  Soft-Off completed: succeeded | 0 reserved
    "#]]
    .assert_eq(&format!("{}{}", story.told(), never_began.told()));
}

#[test]
fn restart_keeps_reservations_until_they_lapse() {
    let story = TimelineStory::new(true, 0, false)
        .ask(1, PowerOperation::SoftOff, 5, &[A, B])
        .at(3, |state| state.restart_power_service(Duration::from_secs(20)))
        .ask(30, PowerOperation::On, 5, &[A])
        .ask(70, PowerOperation::ForceOff, 5, &[A]);
    expect![[r#"
        1   Soft-Off in-progress: in-progress, in-progress | 2 reserved
        30  Soft-Off in-progress: in-progress, in-progress | On completed: Unable to reserve component | 2 reserved
        63  Soft-Off in-progress: in-progress, in-progress | On completed: Unable to reserve component | 0 reserved
        70  Soft-Off in-progress: in-progress, in-progress | On completed: Unable to reserve component | Force-Off completed: succeeded | 0 reserved
        83  Soft-Off completed: succeeded, succeeded | On completed: Unable to reserve component | Force-Off completed: succeeded | 0 reserved
    "#]].assert_eq(&story.told());
}

#[test]
fn resumed_transition_sends_nothing_twice() {
    let story = TimelineStory::new(false, 0, false)
        .ask(1, PowerOperation::On, 5, &[A])
        .at(2, |state| state.kill_workers())
        .at(13, |state| state.press(simulator::node::PowerCommand::ForceOff, &[0]));
    let stuck = story.at(40, |_| {});
    expect![[r#"
        1   On in-progress: in-progress | 1 reserved
        360 On completed: Timeout waiting for transition, on. | 0 reserved
    "#]]
    .assert_eq(&stuck.told());
}

#[test]
fn abort_after_the_last_step_comes_too_late() {
    let story = TimelineStory::new(false, 0, false).ask(0, PowerOperation::On, 5, &[A]);
    let id = story.id();
    let story = story.at(12, |state| assert_eq!(state.signal_abort(&id), Some(true)));
    expect![[r#"
        0   On in-progress: in-progress | 1 reserved
        12  On abort-signaled: in-progress | 1 reserved
        15  On completed: succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn old_transitions_are_aborted_or_forgotten_and_texts_cut() {
    let power = PowerService {
        kept_for: Duration::from_secs(100),
        longest_text: Some(4),
        sampling_period: Duration::ZERO,
        ..PowerService::as_shipped()
    };
    let stuck = NodeFaults::hardware(Some(HardwareFault::StuckOff));
    let story = TimelineStory::of(power, false, PACE)
        .with(A, stuck)
        .ask(0, PowerOperation::On, 10, &[A])
        .ask(1, PowerOperation::On, 10, &[B, "x9c0s0b0n0"]);
    expect![[r#"
        0   On in-progress: in-progress | 1 reserved
        1   On in-progress: in-progress | On in-progress: in-progress, Missing xname | 2 reserved
        16  On in-progress: in-progress | On completed: succeeded, Miss... | 1 reserved
        120 On aborted: Tran... | 0 reserved
        180  | 0 reserved
    "#]]
    .assert_eq(&story.told());
}
