//! The begun actions and their progress.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::driver::progress::{TaskState, TransitionProgress, UpstreamRecord, UpstreamTask};

use super::reset::ResetKind;

/// Time for which an ended action is remembered. Its follower polls about every second.
const REMEMBERED: Duration = Duration::from_secs(300);

/// Actions of this process that are under way or ended recently.
#[derive(Default)]
pub(super) struct RedfishActions {
    records: Mutex<ActionRecords>,
}

#[derive(Default)]
struct ActionRecords {
    actions: HashMap<String, ActionRecord>,
    /// Reset under way for each node, and the number of actions with it.
    under_way: HashMap<String, (ResetKind, usize)>,
}

struct ActionRecord {
    tasks: Vec<UpstreamTask>,
    /// Index of each node's task.
    places: HashMap<String, usize>,
    pending: usize,
    /// Time of the last result.
    ended: Option<Instant>,
}

impl RedfishActions {
    /// Begins an action and returns its id, and the nodes that it may be done to. The other nodes fail at once: the
    /// opposite action is under way on them, and the order of their effects is unknown.
    pub(super) fn begin(&self, reset: ResetKind, ids: Vec<String>) -> (String, Vec<String>) {
        let id = uuid::Uuid::new_v4().to_string();
        let mut records = self.records.lock();
        records.forget(Instant::now());
        let (mut tasks, mut places, mut taken) = (Vec::new(), HashMap::new(), Vec::new());
        for node in ids {
            let Entry::Vacant(place) = places.entry(node.clone()) else { continue };
            place.insert(tasks.len());
            let state = match records.claim(&node, reset) {
                Ok(()) => {
                    taken.push(node.clone());
                    TaskState::Pending
                }
                Err(other) => {
                    let words = format!("{} not begun: a {} is under way", reset.word(), other.word());
                    TaskState::Refused { words, reserved: false }
                }
            };
            tasks.push(UpstreamTask { id: node, state });
        }
        let ended = taken.is_empty().then(Instant::now);
        records.actions.insert(id.clone(), ActionRecord { tasks, places, pending: taken.len(), ended });
        (id, taken)
    }

    /// Records an action that ends as it begins, for the reason `text` on every node. Returns its id.
    pub(super) fn refuse(&self, ids: Vec<String>, text: &str) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        let refused =
            |id| UpstreamTask { id, state: TaskState::Refused { words: text.to_owned(), reserved: false } };
        let tasks = ids.into_iter().map(refused).collect();
        let ended = Some(Instant::now());
        let begun = ActionRecord { tasks, places: HashMap::new(), pending: 0, ended };
        let mut records = self.records.lock();
        records.forget(Instant::now());
        records.actions.insert(id.clone(), begun);
        id
    }

    /// Records the end of a task.
    pub(super) fn end(&self, id: &str, node: &str, state: TaskState) {
        let mut records = self.records.lock();
        let Some(task) = records.actions.get_mut(id).and_then(|begun| begun.pending_task(node)) else {
            return;
        };
        task.state = state;
        records.release(node);
        if let Some(begun) = records.actions.get_mut(id) {
            begun.pending -= 1;
            begun.ended = (begun.pending == 0).then(Instant::now);
        }
    }

    /// Returns whether the action is under way, or ended recently.
    pub(super) fn is_known(&self, id: &str) -> bool {
        self.records.lock().actions.contains_key(id)
    }

    /// Forgets an action that another owner continues, or that was given up.
    pub(super) fn abandon(&self, id: &str) {
        let mut records = self.records.lock();
        let Some(begun) = records.actions.remove(id) else { return };
        let pending = begun.tasks.iter().filter(|task| task.state == TaskState::Pending);
        pending.for_each(|task| records.release(&task.id));
    }

    /// Abandons every action that is not among `recorded`.
    pub(super) fn keep(&self, recorded: &HashSet<String>) {
        let known: Vec<_> = self.records.lock().actions.keys().cloned().collect();
        known.iter().filter(|id| !recorded.contains(*id)).for_each(|id| self.abandon(id));
    }

    /// Returns the progress of an action; `None` if it is not known.
    pub(super) fn progress(&self, id: &str) -> Option<TransitionProgress> {
        let mut records = self.records.lock();
        records.forget(Instant::now());
        let begun = records.actions.get(id)?;
        Some(TransitionProgress {
            tasks: begun.tasks.clone(),
            ended: begun.ended.is_some(),
            record: UpstreamRecord::NotKept,
        })
    }
}

impl ActionRecords {
    /// Claims the node for an action, unless the opposite action has claimed it.
    fn claim(&mut self, node: &str, reset: ResetKind) -> Result<(), ResetKind> {
        match self.under_way.get_mut(node) {
            Some((other, _)) if other.target() != reset.target() => Err(*other),
            Some((_, count)) => {
                *count += 1;
                Ok(())
            }
            None => {
                self.under_way.insert(node.to_owned(), (reset, 1));
                Ok(())
            }
        }
    }

    fn release(&mut self, node: &str) {
        if let Some((_, count)) = self.under_way.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(node);
            }
        }
    }

    fn forget(&mut self, now: Instant) {
        let fresh = |ended| now.saturating_duration_since(ended) < REMEMBERED;
        self.actions.retain(|_, begun| begun.ended.is_none_or(fresh));
    }
}

impl ActionRecord {
    fn pending_task(&mut self, node: &str) -> Option<&mut UpstreamTask> {
        let task = self.tasks.get_mut(*self.places.get(node)?)?;
        (task.state == TaskState::Pending).then_some(task)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|&id| id.to_owned()).collect()
    }

    #[test]
    fn an_action_ends_with_its_last_task() {
        let actions = RedfishActions::default();
        let (id, taken) = actions.begin(ResetKind::On, ids(&["x1", "x2", "x1"]));
        assert_eq!(taken, ["x1", "x2"]);
        actions.end(&id, "x2", TaskState::Failed("no fan".into()));
        assert!(!actions.progress(&id).unwrap().ended);
        actions.end(&id, "x1", TaskState::Succeeded);
        actions.end(&id, "x1", TaskState::Failed("told twice".into()));
        actions.end(&id, "x9", TaskState::Succeeded);
        expect![[r#"
            Some(
                TransitionProgress {
                    tasks: [
                        UpstreamTask {
                            id: "x1",
                            state: Succeeded,
                        },
                        UpstreamTask {
                            id: "x2",
                            state: Failed(
                                "no fan",
                            ),
                        },
                    ],
                    ended: true,
                    record: NotKept,
                },
            )
        "#]]
        .assert_debug_eq(&actions.progress(&id));
        assert_eq!(actions.progress("of another process"), None);
    }

    #[test]
    fn the_opposite_waits_for_the_end() {
        let actions = RedfishActions::default();
        let (off, _) = actions.begin(ResetKind::GracefulOff, ids(&["x1"]));
        let (forced, taken) = actions.begin(ResetKind::ForcedOff, ids(&["x1"]));
        assert_eq!(taken, ["x1"], "both switch it off");
        for ended in [&off, &forced] {
            let (on, taken) = actions.begin(ResetKind::On, ids(&["x1"]));
            assert!(taken.is_empty());
            let progress = actions.progress(&on).unwrap();
            let text = "power on not begun: a graceful power off is under way";
            let state = TaskState::Refused { words: text.into(), reserved: false };
            assert_eq!(progress.tasks, [UpstreamTask { id: "x1".into(), state }]);
            assert!(progress.ended);
            actions.end(ended, "x1", TaskState::Succeeded);
        }
        assert_eq!(actions.begin(ResetKind::On, ids(&["x1"])).1, ["x1"]);
    }

    #[test]
    fn an_abandoned_action_is_in_nobodys_way() {
        let actions = RedfishActions::default();
        let (off, _) = actions.begin(ResetKind::GracefulOff, ids(&["x1", "x2"]));
        actions.end(&off, "x1", TaskState::Succeeded);
        actions.abandon(&off);
        actions.abandon(&off);
        assert_eq!(actions.progress(&off), None);
        assert_eq!(actions.begin(ResetKind::On, ids(&["x1", "x2"])).1, ["x1", "x2"]);
    }

    #[test]
    fn what_is_not_on_record_is_abandoned() {
        let actions = RedfishActions::default();
        let (kept, _) = actions.begin(ResetKind::On, ids(&["x1"]));
        let (lost, _) = actions.begin(ResetKind::GracefulOff, ids(&["x2"]));
        actions.keep(&HashSet::from([kept.clone(), "of another process".to_owned()]));
        assert!(actions.is_known(&kept) && !actions.is_known(&lost));
        assert_eq!(actions.begin(ResetKind::ForcedOff, ids(&["x1"])).1, [""; 0], "under way");
        assert_eq!(actions.begin(ResetKind::On, ids(&["x2"])).1, ["x2"]);
    }

    #[test]
    fn ended_actions_are_forgotten_after_a_while() {
        let actions = RedfishActions::default();
        let (ended, _) = actions.begin(ResetKind::On, ids(&["x1"]));
        let (pending, _) = actions.begin(ResetKind::On, ids(&["x2"]));
        actions.end(&ended, "x1", TaskState::Succeeded);
        actions.records.lock().forget(Instant::now());
        assert!(actions.progress(&ended).is_some());
        actions.records.lock().forget(Instant::now() + REMEMBERED);
        assert!(actions.progress(&ended).is_none());
        assert!(actions.progress(&pending).is_some());
    }
}
