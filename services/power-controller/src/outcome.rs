//! The outcome of a transition on its nodes. Values in, values out.

use std::collections::{HashMap, HashSet};

use domain::boot::power::transition::{PowerTransition, TaskOutcome, TransitionMember};

use crate::driver::progress::{TaskState, TransitionProgress};

/// New results of one poll of a transition.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NewResults {
    /// Members that have reached the requested power.
    pub(crate) succeeded: Vec<TransitionMember>,
    /// Members on which the action began and ended without the effect, with the upstream's words.
    pub(crate) failed: Vec<TransitionMember>,
    /// Failed members whose node was asked, and did not follow in time.
    pub(crate) asked: HashSet<String>,
    /// Members on which the action was not begun, with the upstream's words.
    pub(crate) refused: Vec<TransitionMember>,
    /// Refused members that another transition has reserved.
    pub(crate) reserved: HashSet<String>,
    /// Reserved members, once their holders were searched for: their attempt is made later.
    pub(crate) held: Vec<TransitionMember>,
    /// Members that were reserved before and that the upstream works on now: the time of their attempt begins.
    pub(crate) freed: Vec<TransitionMember>,
}

impl NewResults {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { succeeded, failed, asked: _, refused, reserved: _, held, freed } = self;
        [succeeded, failed, refused, held, freed].into_iter().all(Vec::is_empty)
    }
}

/// Learns the outcomes of members from the upstream's tasks. The first result of a node stays; tasks of other nodes
/// mean nothing, and of several tasks for one node the last counts.
pub(crate) fn learn(transition: &mut PowerTransition, progress: TransitionProgress) -> NewResults {
    let mut states: HashMap<_, _> = progress.tasks.into_iter().map(|task| (task.id, task.state)).collect();
    let mut results = NewResults::default();
    for member in transition.members.iter_mut().filter(|member| is_unresolved(member)) {
        let state = states.remove(&member.id);
        let was_asked = matches!(state, Some(TaskState::TimedOut(_)));
        match state {
            Some(TaskState::Succeeded) => {
                member.outcome = TaskOutcome::Succeeded;
                results.succeeded.push(member.clone());
            }
            Some(TaskState::Failed(error) | TaskState::TimedOut(error)) => {
                member.outcome = TaskOutcome::Failed;
                member.error = error;
                results.failed.push(member.clone());
                if was_asked {
                    results.asked.insert(member.id.clone());
                }
            }
            Some(TaskState::Refused { words, reserved }) => {
                member.outcome = TaskOutcome::Refused;
                member.error = words;
                member.reservations = if reserved { member.reservations.saturating_add(1) } else { 0 };
                results.refused.push(member.clone());
                if reserved {
                    results.reserved.insert(member.id.clone());
                }
            }
            Some(TaskState::Begun) if member.reservations > 0 => {
                member.reservations = 0;
                results.freed.push(member.clone());
            }
            Some(TaskState::Pending | TaskState::Begun) | None => {}
        }
    }
    results
}

/// Returns whether the upstream may have begun the action on the member.
pub(crate) fn may_have_begun(member: &TransitionMember) -> bool {
    member.outcome != TaskOutcome::Refused
}

/// Returns whether `progress` has the first results of the transition.
pub(crate) fn is_first(transition: &PowerTransition, progress: &TransitionProgress) -> bool {
    transition.members.iter().all(is_unresolved)
        && progress.tasks.iter().any(|task| !matches!(task.state, TaskState::Pending | TaskState::Begun))
}

/// Returns whether the end of the action leaves the power of a member open: the power may have changed, and the
/// upstream does not report to which state.
pub(crate) fn leaves_power_open(member: &TransitionMember) -> bool {
    match member.outcome {
        TaskOutcome::Unspecified | TaskOutcome::Failed => true,
        TaskOutcome::Succeeded | TaskOutcome::Refused => false,
    }
}

/// Returns whether another transition holds the node of a member. That says nothing about the node: the attempt is made
/// later.
pub(crate) fn is_held(member: &TransitionMember) -> bool {
    let is_reserved = member.outcome == TaskOutcome::Refused && member.reservations > 0;
    is_reserved || !member.held_by.is_empty()
}

/// Returns whether a member has no outcome yet.
pub(crate) fn is_unresolved(member: &TransitionMember) -> bool {
    match member.outcome {
        TaskOutcome::Unspecified => true,
        TaskOutcome::Succeeded | TaskOutcome::Failed | TaskOutcome::Refused => false,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::driver::progress::{UpstreamRecord, UpstreamTask};

    fn tasks(words: &str) -> TransitionProgress {
        let tasks = words.split_whitespace().map(|word| {
            let (id, state) = word.split_once(':').unwrap();
            let state = match state {
                "pending" => TaskState::Pending,
                "begun" => TaskState::Begun,
                "succeeded" => TaskState::Succeeded,
                "timeout" => TaskState::TimedOut(state.to_owned()),
                "reserved" => TaskState::Refused { words: state.to_owned(), reserved: true },
                error => TaskState::Failed(error.to_owned()),
            };
            UpstreamTask { id: id.to_owned(), state }
        });
        TransitionProgress { tasks: tasks.collect(), ended: false, record: UpstreamRecord::NotKept }
    }

    fn names(members: &[TransitionMember]) -> String {
        let names = members.iter().map(|member| match member.error.as_str() {
            "" => member.id.clone(),
            error => format!("{} ({error})", member.id),
        });
        names.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn every_node_gets_the_first_result_of_its_own_task() {
        let member = |id: &str| TransitionMember { id: id.to_owned(), ..TransitionMember::default() };
        let mut transition = PowerTransition {
            members: ["x1", "x2", "x3", "x4", "x5"].map(member).to_vec(),
            ..PowerTransition::default()
        };
        let mut rows = String::new();
        for look in [
            "",
            "x1:pending x2:pending x3:pending",
            "x1:succeeded x2:pending x9:succeeded",
            "x1:succeeded x2:locked",
            "x1:failed-later x2:succeeded x3:pending",
            "x3:gone x3:succeeded",
            "x4:reserved",
            "x5:timeout",
        ] {
            let first = if is_first(&transition, &tasks(look)) { ", the first" } else { "" };
            let results = learn(&mut transition, tasks(look));
            let [on, no, refused] =
                [&results.succeeded, &results.failed, &results.refused].map(|members| names(members));
            let (reserved, asked) = (results.reserved.len(), results.asked.len());
            rows += &format!(
                "{look}: on [{on}] no [{no}], {asked} asked, refused [{refused}], {reserved} reserved{first}\n"
            );
        }
        expect![[r#"
            : on [] no [], 0 asked, refused [], 0 reserved
            x1:pending x2:pending x3:pending: on [] no [], 0 asked, refused [], 0 reserved
            x1:succeeded x2:pending x9:succeeded: on [x1] no [], 0 asked, refused [], 0 reserved, the first
            x1:succeeded x2:locked: on [] no [x2 (locked)], 0 asked, refused [], 0 reserved
            x1:failed-later x2:succeeded x3:pending: on [] no [], 0 asked, refused [], 0 reserved
            x3:gone x3:succeeded: on [x3] no [], 0 asked, refused [], 0 reserved
            x4:reserved: on [] no [], 0 asked, refused [x4 (reserved)], 1 reserved
            x5:timeout: on [] no [x5 (timeout)], 1 asked, refused [], 0 reserved
        "#]]
        .assert_eq(&rows);
        assert_eq!(transition.members.iter().filter(|member| is_unresolved(member)).count(), 0);
    }

    #[test]
    fn wait_for_a_reservation_ends_once_the_upstream_works_on_the_node() {
        let member = TransitionMember { id: "x1".into(), reservations: 3, ..TransitionMember::default() };
        let mut transition = PowerTransition { members: vec![member], ..PowerTransition::default() };
        for (look, freed) in [("x1:pending", 0), ("x1:begun", 1), ("x1:begun", 0)] {
            assert_eq!(learn(&mut transition, tasks(look)).freed.len(), freed, "{look}");
        }
    }
}
