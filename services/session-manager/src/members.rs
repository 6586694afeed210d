//! Index of components by session, updated with each change of a component.
//!
//! The cost of an update depends on the change alone: no update iterates over all components or all sessions.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use chassis::{observe::mirror::Change, process::clock::now};
use domain::{
    boot::{
        component::Component,
        session::{
            Session,
            completion::{Stake, Stakes, owns, stages, stake},
            estimate::learned_duration,
            pause::{MarkChange, mark_change},
            rollout::outcome,
        },
    },
    core::{durations::DurationProfile, id::ComponentId, rollout::MemberOutcome, time::Timestamp},
};
use parking_lot::Mutex;

use crate::record::SessionRecord;

/// The components of every session, and the stakes that keep each running session.
#[derive(Default)]
pub(crate) struct SessionMembers {
    index: Mutex<MemberIndex>,
}

#[derive(Default)]
struct MemberIndex {
    /// Whether an applied stage that is kept releases its session.
    complete_applied: bool,
    /// Components by session name, as owner or in their staged state. The session may not exist, or may arrive later.
    named: HashMap<String, HashMap<ComponentId, Arc<Component>>>,
    /// Running sessions by name and key; sessions of different tenants may have the same name.
    running: HashMap<String, BTreeMap<Arc<str>, RunningSession>>,
    /// Name of each running session by its key.
    names: HashMap<Arc<str>, String>,
    /// Sessions for some of whose components nothing begins, by key: they are paused, or have closed batches.
    holding: HashMap<Arc<str>, Session>,
    /// Components that the registry lost for a running session, by the key of the session.
    lost: HashMap<Arc<str>, HashSet<ComponentId>>,
}

struct RunningSession {
    session: Session,
    stakes: Stakes,
    /// Time that members took until they were as wanted, while the session was followed.
    durations: DurationProfile,
}

impl RunningSession {
    /// Counts how long a member took that has become as wanted at `now`.
    fn note_success(&mut self, before: &Component, after: &Component, now: Timestamp) {
        let succeeded = |one| outcome(&self.session, Some(one)) == MemberOutcome::Succeeded;
        if succeeded(before) || !succeeded(after) {
            return;
        }
        if let Some(took) = learned_duration(&self.session, after, now) {
            self.durations.add(took);
        }
    }
}

impl SessionMembers {
    /// Creates an empty index. With `complete_applied` an applied stage that is kept releases its session.
    pub(crate) fn new(complete_applied: bool) -> Self {
        Self { index: Mutex::new(MemberIndex { complete_applied, ..MemberIndex::default() }) }
    }

    /// Applies changes of components. Returns the keys of running sessions that no component keeps any more.
    pub(crate) fn apply(&self, changes: &[Change<Component>]) -> Vec<Arc<str>> {
        let mut index = self.index.lock();
        let mut over = Vec::new();
        for change in changes {
            index.apply(change, &mut over);
        }
        over
    }

    /// Notes the components of running sessions that do not name their session any more after the registry lost commits.
    /// Called before [`Self::apply`] with the changes by which another incarnation replaced the mirror.
    pub(crate) fn note_losses(&self, changes: &[Change<Component>]) {
        let mut index = self.index.lock();
        changes.iter().for_each(|change| index.note_loss(change));
    }

    /// Returns the number of components that the registry lost for the session of that key.
    pub(crate) fn lost(&self, key: &str) -> usize {
        self.index.lock().lost.get(key).map_or(0, HashSet::len)
    }

    /// Follows a running session, and replaces the entry of its key.
    pub(crate) fn follow(&self, record: &SessionRecord) {
        let mut index = self.index.lock();
        let known = index.forget(&record.key).filter(|known| known.session.id == record.session.id);
        index.follow(record, known.map(|known| known.durations).unwrap_or_default());
    }

    /// Returns how long the members took that became as wanted while the session of that key was followed.
    pub(crate) fn durations(&self, key: &str) -> DurationProfile {
        let index = self.index.lock();
        let running = index.names.get(key).and_then(|name| index.running.get(name)?.get(key));
        running.map(|running| running.durations.clone()).unwrap_or_default()
    }

    /// Stops following the session of that key.
    pub(crate) fn forget(&self, key: &str) {
        let mut index = self.index.lock();
        index.forget(key);
        index.lost.remove(key);
    }

    /// Stops following all sessions.
    pub(crate) fn forget_all(&self) {
        let mut index = self.index.lock();
        index.running.clear();
        index.names.clear();
        index.holding.clear();
    }

    /// Follows whether nothing begins for components of a session. Returns its name if their marks may have to change: it is
    /// so now, or was until now.
    pub(crate) fn follow_holding(&self, record: &SessionRecord) -> Option<Arc<str>> {
        let session = &record.session;
        if !session.holds_components() {
            return self.forget_holding(&record.key);
        }
        self.index.lock().holding.insert(Arc::clone(&record.key), session.clone());
        Some(session.name.as_str().into())
    }

    /// Stops following whether nothing begins for components of the session of that key. Returns its name if it was so.
    pub(crate) fn forget_holding(&self, key: &str) -> Option<Arc<str>> {
        self.index.lock().holding.remove(key).map(|session| session.name.into())
    }

    /// Returns whether the session of that key was paused when it was last followed.
    pub(crate) fn is_paused(&self, key: &str) -> bool {
        self.index.lock().holding.get(key).is_some_and(|session| session.pause.is_some())
    }

    /// Returns the names of the sessions whose components in `changes` lack a mark, or have a wrong one.
    pub(crate) fn mismarked(&self, changes: &[Change<Component>]) -> Vec<Arc<str>> {
        let index = self.index.lock();
        let changed = changes.iter().filter_map(|change| change.current.as_deref());
        let is_mismarked = |one: &&Component| mark_change(one, index.holding.values()) != MarkChange::None;
        changed.filter(is_mismarked).map(|one| one.session_name().into()).collect()
    }

    /// Returns the keys of the sessions that roll out and have a member in `changes` with another outcome than before.
    pub(crate) fn rolled(&self, changes: &[Change<Component>]) -> Vec<Arc<str>> {
        let index = self.index.lock();
        let mut keys = Vec::new();
        for change in changes {
            let (before, after) = (change.previous.as_deref(), change.current.as_deref());
            let mut names: Vec<&str> = before.into_iter().chain(after).map(Component::session_name).collect();
            names.dedup();
            for (key, running) in names.into_iter().filter_map(|name| index.running.get(name)).flatten() {
                let session = &running.session;
                if session.is_rolling() && outcome(session, before) != outcome(session, after) {
                    keys.push(Arc::clone(key));
                }
            }
        }
        keys
    }

    /// Returns the names of the sessions for whose components nothing begins, and of those with marked components.
    pub(crate) fn holding_names(&self) -> Vec<Arc<str>> {
        let index = self.index.lock();
        let is_marked = |components: &HashMap<ComponentId, Arc<Component>>| {
            components.values().any(|component| component.is_paused())
        };
        let marked = index.named.iter().filter(|(_, components)| is_marked(components));
        let marked = marked.map(|(name, _)| name.as_str().into());
        index.holding.values().map(|session| session.name.as_str().into()).chain(marked).collect()
    }

    /// Returns the stakes of a followed session.
    pub(crate) fn stakes(&self, key: &str) -> Option<Stakes> {
        let index = self.index.lock();
        let running = index.running.get(index.names.get(key)?)?;
        running.get(key).map(|running| running.stakes)
    }

    /// Returns the components that name that session, in no order.
    pub(crate) fn named(&self, session: &str) -> Vec<Arc<Component>> {
        let index = self.index.lock();
        index.named.get(session).into_iter().flat_map(HashMap::values).cloned().collect()
    }

    /// Returns the components that `session` owns or has staged a state for, whether or not they keep it, in no order.
    pub(crate) fn last_of(&self, session: &Session) -> Vec<Arc<Component>> {
        let is_its_own = |one: &Arc<Component>| owns(session, one) || stages(session, one);
        self.named(&session.name).into_iter().filter(is_its_own).collect()
    }

    /// Returns the components in which `session` has a stake, in no order.
    pub(crate) fn held_by(&self, session: &Session) -> Vec<(ComponentId, Stake)> {
        let index = self.index.lock();
        let named = index.named.get(&session.name).into_iter().flat_map(HashMap::values);
        let mut held = Vec::new();
        for one in named {
            held.extend(stake(one, session, index.complete_applied).map(|stake| (one.id.clone(), stake)));
        }
        held
    }
}

impl MemberIndex {
    fn apply(&mut self, change: &Change<Component>, over: &mut Vec<Arc<str>>) {
        let before = change.previous.as_ref();
        let after = change.current.as_ref();
        let mut names: Vec<&str> = before.into_iter().chain(after).flat_map(|one| sessions(one)).collect();
        names.sort_unstable();
        names.dedup();
        let complete_applied = self.complete_applied;
        for name in names {
            self.place(name, before, after);
            for (key, running) in self.running.get_mut(name).into_iter().flatten() {
                let was_kept = !running.stakes.is_complete();
                let session = &running.session;
                let old = before.and_then(|one| stake(one, session, complete_applied));
                let new = after.and_then(|one| stake(one, session, complete_applied));
                running.stakes.change(old, new);
                if let (Some(before), Some(after)) = (before, after) {
                    running.note_success(before, after, now());
                }
                if was_kept && running.stakes.is_complete() {
                    over.push(Arc::clone(key));
                }
            }
        }
    }

    fn note_loss(&mut self, change: &Change<Component>) {
        let Some(before) = &change.previous else { return };
        let after = change.current.as_deref();
        for name in sessions(before) {
            for (key, running) in self.running.get(name).into_iter().flatten() {
                let names = |one: &Component| owns(&running.session, one) || stages(&running.session, one);
                if names(before) && !after.is_some_and(names) {
                    self.lost.entry(Arc::clone(key)).or_default().insert(before.id.clone());
                }
            }
        }
    }

    /// Indexes the component under `name` if and only if it names that session now.
    fn place(&mut self, name: &str, before: Option<&Arc<Component>>, after: Option<&Arc<Component>>) {
        if let Some(after) = after.filter(|after| sessions(after).any(|session| session == name)) {
            let components = self.named.entry(name.to_owned()).or_default();
            components.insert(after.id.clone(), Arc::clone(after));
            return;
        }
        let (Some(before), Some(components)) = (before, self.named.get_mut(name)) else { return };
        components.remove(&before.id);
        if components.is_empty() {
            self.named.remove(name);
        }
    }

    /// Counts the stakes in this index; the mirror may already include the next change to this index.
    fn follow(&mut self, record: &SessionRecord, durations: DurationProfile) {
        let session = record.session.clone();
        let components = self.named.get(&session.name).into_iter().flat_map(HashMap::values);
        let stakes =
            components.filter_map(|component| stake(component, &session, self.complete_applied)).collect();
        self.names.insert(Arc::clone(&record.key), session.name.clone());
        let namesakes = self.running.entry(session.name.clone()).or_default();
        namesakes.insert(Arc::clone(&record.key), RunningSession { session, stakes, durations });
    }

    /// Removes the running session of that key.
    fn forget(&mut self, key: &str) -> Option<RunningSession> {
        let name = self.names.remove(key)?;
        let running = self.running.get_mut(&name)?;
        let forgotten = running.remove(key);
        if running.is_empty() {
            self.running.remove(&name);
        }
        forgotten
    }
}

/// Returns the sessions that a component names.
fn sessions(component: &Component) -> impl Iterator<Item = &str> {
    let staged = component.wish.staged_state.as_ref().and_then(|staged| staged.session.as_deref());
    [component.session_name(), staged.unwrap_or_default()].into_iter().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{
        boot::{
            component::{
                Action, ComponentEvaluation, ComponentPower, ComponentWish, LastAction, StagedState, Status,
            },
            session::{NewSession, Progress, create},
            template::Operation,
        },
        core::id::Tenant,
    };
    use expect_test::expect;

    use super::*;

    fn component(id: &str, enabled: bool, owner: &str, assignment: &str, staged: &str) -> Arc<Component> {
        Arc::new(Component {
            wish: ComponentWish {
                enabled: Some(enabled),
                session: Some(owner.into()),
                assignment: assignment.into(),
                staged_state: Some(
                    StagedState { session: Some(staged.into()), ..StagedState::default() }.into(),
                ),
                ..ComponentWish::default()
            }
            .into(),
            ..Component::new(ComponentId::parse(id).unwrap())
        })
    }

    /// A session whose id is its tenant and name.
    fn record(tenant: &str, name: &str) -> SessionRecord {
        let wish = NewSession {
            name: name.to_owned(),
            tenant: Tenant::parse(tenant).unwrap(),
            operation: Operation::Boot,
            template_name: "t".to_owned(),
            limit: String::new(),
            stage: false,
            include_disabled: false,
            retry_of: None,
            plan: None,
            confirmed_nodes: None,
            rollout: None,
        };
        let id = format!("{tenant}/{name}");
        SessionRecord::new(
            create(wish, &Default::default(), Default::default(), id, Default::default()).unwrap(),
        )
    }

    /// Applies changes one by one; each is the new state of a component, or the id of a deleted one. Reports the
    /// stakes of the sessions after each change, and the sessions that are over.
    fn check(members: &SessionMembers, changes: &[(&str, Result<Arc<Component>, &str>)]) -> String {
        let mut held: HashMap<String, Arc<Component>> = HashMap::new();
        let mut rows = String::new();
        for (label, change) in changes {
            let change = match change {
                Ok(new) => Change {
                    previous: held.insert(new.id.to_string(), Arc::clone(new)),
                    current: Some(Arc::clone(new)),
                },
                Err(id) => Change { previous: held.remove(*id), current: None },
            };
            let over = members.apply(&[change]);
            let count = |key: &str| members.stakes(key).map(|stakes| (stakes.owned, stakes.staged)).unwrap();
            let counts = format!("s {:?}, a's s {:?}", count("\ts"), count("a\ts"));
            rows += &format!("{label}: {counts}, over {over:?}, named {}\n", members.named("s").len());
        }
        rows
    }

    #[test]
    fn counts_follow_changes() {
        let members = SessionMembers::default();
        members.follow(&record("", "s"));
        members.follow(&record("a", "s"));
        expect![[r#"
            assigned: s (1, 0), a's s (0, 0), over [], named 1
            another: s (2, 0), a's s (0, 0), over [], named 2
            namesake's: s (2, 0), a's s (1, 0), over [], named 3
            unrelated: s (2, 0), a's s (1, 0), over [], named 3
            nothing new: s (2, 0), a's s (1, 0), over [], named 3
            settled: s (1, 0), a's s (1, 0), over [], named 3
            taken over: s (0, 0), a's s (1, 0), over ["\ts"], named 2
            enabled by hand: s (1, 0), a's s (1, 0), over [], named 2
            staged by name: s (0, 1), a's s (1, 1), over [], named 2
            stage applied: s (1, 0), a's s (1, 0), over [], named 2
            deleted: s (0, 0), a's s (1, 0), over ["\ts"], named 1
            namesake's deleted: s (0, 0), a's s (0, 0), over ["a\ts"], named 0
        "#]]
        .assert_eq(&check(
            &members,
            &[
                ("assigned", Ok(component("n0", true, "s", "/s", ""))),
                ("another", Ok(component("n1", true, "s", "/s", ""))),
                ("namesake's", Ok(component("n2", true, "s", "a/s", ""))),
                ("unrelated", Ok(component("n3", true, "other", "/other", ""))),
                ("nothing new", Ok(component("n0", true, "s", "/s", ""))),
                ("settled", Ok(component("n0", false, "s", "/s", ""))),
                ("taken over", Ok(component("n1", true, "other", "/other", ""))),
                ("enabled by hand", Ok(component("n0", true, "s", "/s", ""))),
                ("staged by name", Ok(component("n0", true, "other", "/other", "s"))),
                ("stage applied", Ok(component("n0", true, "s", "/s", ""))),
                ("deleted", Err("n0")),
                ("namesake's deleted", Err("n2")),
            ],
        ));
        assert_eq!(members.named("other").len(), 2);
        assert!(members.index.lock().named.len() == 1, "unused session names are kept");
    }

    /// A node of session `s` that was switched on a minute after it began, in that status.
    fn switched(id: &str, enabled: bool, status: Option<Status>) -> Arc<Component> {
        let component = component(id, enabled, "s", "/s", "");
        let last = LastAction {
            action: Some(Action::PoweringOn),
            failed: None,
            last_updated: Some(BEGAN.plus(Duration::from_secs(60))),
        };
        let power = ComponentPower { last_action: Some(last), ..ComponentPower::default() };
        let evaluation = ComponentEvaluation { status, ..ComponentEvaluation::default() };
        Arc::new(Component {
            power: power.into(),
            evaluation: evaluation.into(),
            ..Component::clone(&component)
        })
    }

    const BEGAN: Timestamp = Timestamp(1_700_000_000_000);

    fn running(undisturbed_since: Option<Timestamp>) -> SessionRecord {
        let record = record("", "s");
        let session = Session { progress: Progress::Running, undisturbed_since, ..record.session.clone() };
        SessionRecord { session, ..record }
    }

    #[test]
    fn times_of_successes_are_counted_once_and_belong_to_one_session() {
        let members = SessionMembers::default();
        let learned = || members.durations("\ts").total();
        let apply = |previous: &Arc<Component>, current: &Arc<Component>| {
            let [previous, current] = [previous, current].map(|one| Some(Arc::clone(one)));
            members.apply(&[Change { previous, current }]);
        };
        let under_way = |id| switched(id, true, None);
        let stable = |id| switched(id, false, Some(Status::default()));
        let failed = |id| {
            let failed = Status { status_override: Some("failed".into()), ..Status::default() };
            switched(id, false, Some(failed))
        };
        members.follow(&running(Some(BEGAN)));
        apply(&under_way("n0"), &stable("n0"));
        assert_eq!(learned(), 1);
        apply(&stable("n0"), &stable("n0"));
        apply(&under_way("n1"), &failed("n1"));
        // It was as wanted, and was not switched.
        let idle = |status| {
            let evaluation = ComponentEvaluation { status, ..ComponentEvaluation::default() };
            let bare = component("n2", false, "s", "/s", "");
            Arc::new(Component { evaluation: evaluation.into(), ..Component::clone(&bare) })
        };
        apply(&idle(None), &idle(Some(Status::default())));
        assert_eq!(learned(), 1);
        members.follow(&running(Some(BEGAN)));
        assert_eq!(learned(), 1, "another change of the session");
        members.follow(&running(None));
        apply(&under_way("n3"), &stable("n3"));
        assert_eq!(learned(), 1, "a pause is no time of a node");
        let later = running(Some(BEGAN));
        let later =
            SessionRecord { session: Session { id: "later".into(), ..later.session.clone() }, ..later };
        members.follow(&later);
        assert_eq!(learned(), 0, "another session of that name");
        members.forget("\ts");
        assert_eq!(learned(), 0);
    }

    #[test]
    fn a_late_session_counts_existing_components() {
        let members = SessionMembers::default();
        let changes = [
            component("n0", true, "s", "/s", ""),
            component("n1", false, "s", "/s", ""),
            component("n2", false, "", "", "s"),
        ];
        let changes = changes.map(|current| Change { previous: None, current: Some(current) });
        assert!(members.apply(&changes).is_empty());
        members.follow(&record("", "s"));
        members.follow(&record("", "s"));
        assert_eq!(members.stakes("\ts"), Some(Stakes { owned: 1, staged: 1 }));
        members.forget("\ts");
        assert_eq!(members.stakes("\ts"), None);
        assert!(members.index.lock().running.is_empty());
    }
}
