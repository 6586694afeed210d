//! Transitions in virtual time: what shows when, and who has which node.

use std::{
    fmt::Write,
    time::{Duration, SystemTime},
};

use expect_test::expect;
use simulator::{faults::Fault, hardware::Pace};

use super::transition::{Deadline, Operation, TaskStatus};
use crate::{
    node_faults::NodeFaults,
    plan::{Plan, PowerService},
    state::State,
};

const A: &str = "x1000c0s0b0n0";
const B: &str = "x1000c0s0b0n1";
const C: &str = "x1000c0s0b1n0";

const PACE: Pace = Pace {
    soft_off: Duration::from_secs(20),
    force_off: Duration::from_secs(2),
    power_on: Duration::from_secs(10),
    boot: Duration::from_secs(200),
    configuration: Duration::from_secs(100),
};

/// A machine in virtual time, and what was seen of its transitions, a line per second in which something shows.
struct Story {
    state: State,
    shown: String,
    lines: String,
}

impl Story {
    fn new(up: bool, sampling: u64, prompt_results: bool) -> Self {
        let power = PowerService {
            sampling_period: Duration::from_secs(sampling),
            prompt_results,
            ..PowerService::at_speed(1.0)
        };
        let plan = Plan { pace: Some(PACE), power, up, ..Plan::generated(4) };
        let state = State::new(plan, SystemTime::UNIX_EPOCH).expect("a plan");
        let story = Self { state, shown: String::new(), lines: String::new() };
        Self { shown: story.look(), ..story }
    }

    /// Gives a node a fault before anything happens.
    fn with(mut self, id: &str, faults: NodeFaults) -> Self {
        let position = self.state.machine.position(id).expect("known");
        self.state.set_faults(position, faults);
        self
    }

    fn at(mut self, second: u64, act: impl FnOnce(&mut State)) -> Self {
        self.pass(second);
        act(&mut self.state);
        self
    }

    fn ask(self, second: u64, operation: Operation, minutes: u32, ids: &[&str]) -> Self {
        let deadline = match minutes {
            0 => Deadline::NotAwaited,
            minutes => Deadline::After(Duration::from_secs(60) * minutes),
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
        let transition = |transition: &super::Transition| {
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

    fn told(mut self) -> String {
        self.pass(1000);
        self.lines
    }
}

#[test]
fn results_show_as_they_come_and_reservations_last_until_a_look_finds_all_done() {
    let story = Story::new(false, 0, true).ask(1, Operation::On, 1, &[A, B]);
    expect![[r#"
        1   On in-progress: in-progress, in-progress | 2 reserved
        11  On in-progress: succeeded, succeeded | 2 reserved
        16  On completed: succeeded, succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn without_prompt_results_they_show_when_the_service_looks() {
    let story = Story::new(false, 0, false).ask(1, Operation::On, 1, &[A]);
    expect![[r#"
        1   On in-progress: in-progress | 1 reserved
        16  On completed: succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_reading_that_is_old_delays_results_and_hides_what_happened() {
    // Off at 51, which the reading at 60 shows; the service looks 15 s after each beginning.
    let story =
        Story::new(true, 30, true).ask(31, Operation::SoftOff, 1, &[A]).ask(55, Operation::SoftOff, 1, &[A]);
    expect![[r#"
        31  Soft-Off in-progress: in-progress | 1 reserved
        55  Soft-Off in-progress: in-progress | Soft-Off completed: Unable to reserve component | 1 reserved
        60  Soft-Off in-progress: succeeded | Soft-Off completed: Unable to reserve component | 1 reserved
        61  Soft-Off completed: succeeded | Soft-Off completed: Unable to reserve component | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn on_while_off_holds_the_node_fails_for_that_node_only() {
    let story = Story::new(true, 0, true)
        .at(0, |state| state.press(simulator::node::PowerCommand::ForceOff, &[2]))
        .ask(3, Operation::SoftOff, 1, &[A, B])
        .ask(24, Operation::On, 1, &[A, C])
        .at(25, |_| ());
    let records = |story: &Story| {
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
fn an_order_in_the_other_direction_before_the_result_is_a_crossing() {
    let story = Story::new(true, 0, true).ask(1, Operation::SoftOff, 1, &[A]).ask(5, Operation::On, 1, &[A]);
    assert_eq!((story.state.power.records[0].crossings, story.state.power.records[0].overlaps), (1, 0));
    let story = story.ask(6, Operation::ForceOff, 1, &[A]);
    assert_eq!((story.state.power.records[0].crossings, story.state.power.records[0].overlaps), (1, 1));
}

#[test]
fn what_cannot_be_done_fails_at_once_with_the_service_s_words() {
    let story = Story::new(false, 0, true)
        .with(C, NodeFaults { hsm_missing: true, ..NodeFaults::default() })
        .with(B, NodeFaults { pcs_task_fails: Some("BMC says 500".into()), ..NodeFaults::default() })
        .at(0, |state| state.set_locked(&[0], true))
        .ask(1, Operation::On, 1, &[A, B, C, "x9c0s0b0n0", "nid1"])
        .ask(2, Operation::SoftOff, 1, &[A]);
    expect![[r#"
        1   On completed: Unable to reserve component, BMC says 500, Xname not found in HSM, Missing xname, Invalid xname | 0 reserved
        2   On completed: Unable to reserve component, BMC says 500, Xname not found in HSM, Missing xname, Invalid xname | Soft-Off completed: succeeded | 0 reserved
    "#]].assert_eq(&story.told());
}

#[test]
fn what_has_no_effect_fails_when_its_time_is_up() {
    let stuck = NodeFaults::hardware(Some(Fault::StuckOff));
    let story = Story::new(false, 0, true).with(A, stuck).ask(0, Operation::On, 1, &[A, B]);
    expect![[r#"
        0   On in-progress: in-progress, in-progress | 2 reserved
        10  On in-progress: in-progress, succeeded | 2 reserved
        60  On completed: Timeout waiting for transition, on., succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn off_forces_what_ignores_a_graceful_shutdown() {
    let stubborn = NodeFaults::hardware(Some(Fault::IgnoresGracefulOff));
    let story = Story::new(true, 0, true).with(A, stubborn).ask(0, Operation::Off, 1, &[A, B]);
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
    let story = Story::new(true, 0, true).ask(0, Operation::HardRestart, 1, &[A]);
    expect![[r#"
        0   Hard-Restart in-progress: in-progress | 1 reserved
        40  Hard-Restart in-progress: succeeded | 1 reserved
        45  Hard-Restart completed: succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn nobody_waits_without_a_deadline() {
    let story = Story::new(true, 0, true).ask(0, Operation::SoftOff, 0, &[A]);
    expect![[r#"
        0   Soft-Off completed: succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn an_abort_shows_at_the_next_look_and_gives_back_the_nodes() {
    let stuck = NodeFaults::hardware(Some(Fault::StuckOff));
    let story = Story::new(false, 0, true).with(A, stuck).ask(0, Operation::On, 1, &[A, B]).at(20, |state| {
        let id = state.power.transitions().next().expect("one").id.clone();
        assert_eq!([state.signal_abort(&id), state.signal_abort("none")], [Some(true), None]);
    });
    expect![[r#"
        0   On in-progress: in-progress, in-progress | 2 reserved
        10  On in-progress: in-progress, succeeded | 2 reserved
        20  On abort-signaled: in-progress, succeeded | 2 reserved
        30  On aborted: Transition aborted, succeeded | 0 reserved
    "#]]
    .assert_eq(&story.told());
}
