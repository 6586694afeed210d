//! Which components have to do with which session, kept as components change.
//!
//! The work per change is that of the change: nothing here looks at every component or every session.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use chassis::mirror::Change;
use domain::{
    completion::{Stake, Stakes, stake},
    component::Component,
    id::ComponentId,
    session::Session,
};
use parking_lot::Mutex;

use crate::record::SessionRecord;

/// The components of every session, and what keeps each running session from being over.
#[derive(Default)]
pub(crate) struct Members {
    index: Mutex<Index>,
}

#[derive(Default)]
struct Index {
    /// Whether a stage that was applied and is kept holds its session no longer.
    complete_applied: bool,
    /// Components by each session that they name, as their owner or in their staged state. Whether a session
    /// of that name exists does not matter: it may be told later.
    named: HashMap<String, HashMap<ComponentId, Arc<Component>>>,
    /// Running sessions by name and key; those of different tenants may have the same name.
    running: HashMap<String, BTreeMap<Arc<str>, Running>>,
    /// Name of each running session by its key.
    names: HashMap<Arc<str>, String>,
}

struct Running {
    session: Session,
    stakes: Stakes,
}

impl Members {
    /// No components and no sessions yet. With `complete_applied` a stage that was applied and is kept holds its
    /// session no longer.
    pub(crate) fn new(complete_applied: bool) -> Self {
        Self { index: Mutex::new(Index { complete_applied, ..Index::default() }) }
    }

    /// Takes in changes of components. Gives the keys of the running sessions that nothing keeps any more.
    pub(crate) fn apply(&self, changes: &[Change<Component>]) -> Vec<Arc<str>> {
        let mut index = self.index.lock();
        let mut over = Vec::new();
        for change in changes {
            index.apply(change, &mut over);
        }
        over
    }

    /// Follows a running session from now on, in place of what was known under its key.
    pub(crate) fn follow(&self, record: &SessionRecord) {
        let mut index = self.index.lock();
        index.forget(&record.key);
        index.follow(record);
    }

    /// Follows the session of that key no longer.
    pub(crate) fn forget(&self, key: &str) {
        self.index.lock().forget(key);
    }

    /// Follows no session any more.
    pub(crate) fn forget_all(&self) {
        let mut index = self.index.lock();
        index.running.clear();
        index.names.clear();
    }

    /// What keeps the running session of that key, if it is followed.
    pub(crate) fn stakes(&self, key: &str) -> Option<Stakes> {
        let index = self.index.lock();
        let running = index.running.get(index.names.get(key)?)?;
        running.get(key).map(|running| running.stakes)
    }

    /// The components that name that session, in no order.
    pub(crate) fn named(&self, session: &str) -> Vec<Arc<Component>> {
        let index = self.index.lock();
        index.named.get(session).into_iter().flat_map(HashMap::values).cloned().collect()
    }

    /// The components in which `session` has a stake, in no order.
    pub(crate) fn held_by(&self, session: &Session) -> Vec<(ComponentId, Stake)> {
        let index = self.index.lock();
        let named = index.named.get(&session.name).into_iter().flat_map(HashMap::values);
        let stake = |one| stake(one, session, index.complete_applied);
        named.filter_map(|one| Some((one.id.clone(), stake(one)?))).collect()
    }
}

impl Index {
    fn apply(&mut self, change: &Change<Component>, over: &mut Vec<Arc<str>>) {
        let (before, after) = (change.previous.as_ref(), change.current.as_ref());
        let mut names: Vec<&str> = before.into_iter().chain(after).flat_map(|one| sessions(one)).collect();
        names.sort_unstable();
        names.dedup();
        let complete_applied = self.complete_applied;
        for name in names {
            self.place(name, before, after);
            for (key, running) in self.running.get_mut(name).into_iter().flatten() {
                let was_kept = !running.stakes.is_complete();
                let session = &running.session;
                let stake = |one: Option<&Arc<Component>>| stake(one?, session, complete_applied);
                let (old, new) = (stake(before), stake(after));
                running.stakes.change(old, new);
                if was_kept && running.stakes.is_complete() {
                    over.push(Arc::clone(key));
                }
            }
        }
    }

    /// Has the component under `name` exactly if it names that session now.
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

    /// Counts from this index and not from the mirror, which may already have what is applied here next.
    fn follow(&mut self, record: &SessionRecord) {
        let session = record.session.clone();
        let components = self.named.get(&session.name).into_iter().flat_map(HashMap::values);
        let stakes =
            components.filter_map(|component| stake(component, &session, self.complete_applied)).collect();
        self.names.insert(Arc::clone(&record.key), session.name.clone());
        let namesakes = self.running.entry(session.name.clone()).or_default();
        namesakes.insert(Arc::clone(&record.key), Running { session, stakes });
    }

    fn forget(&mut self, key: &str) {
        let Some(name) = self.names.remove(key) else { return };
        let Some(running) = self.running.get_mut(&name) else { return };
        running.remove(key);
        if running.is_empty() {
            self.running.remove(&name);
        }
    }
}

/// The sessions that a component names.
fn sessions(component: &Component) -> impl Iterator<Item = &str> {
    let staged = component.staged_state.as_ref().and_then(|staged| staged.session.as_deref());
    [component.session_name(), staged.unwrap_or_default()].into_iter().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use domain::{
        component::StagedState,
        id::Tenant,
        session::{NewSession, Operation, create},
    };
    use expect_test::expect;

    use super::*;

    fn component(id: &str, enabled: bool, owner: &str, assignment: &str, staged: &str) -> Arc<Component> {
        Arc::new(Component {
            enabled: Some(enabled),
            session: Some(owner.into()),
            assignment: assignment.into(),
            staged_state: Some(StagedState { session: Some(staged.into()), ..StagedState::default() }.into()),
            ..Component::new(ComponentId::parse(id).unwrap())
        })
    }

    /// A session whose id is tenant and name.
    fn record(tenant: &str, name: &str) -> SessionRecord {
        let wish = NewSession {
            name: name.to_owned(),
            tenant: Tenant::parse(tenant).unwrap(),
            operation: Operation::Boot,
            template_name: "t".to_owned(),
            limit: String::new(),
            stage: false,
            include_disabled: false,
        };
        let id = format!("{tenant}/{name}");
        SessionRecord::new(
            create(wish, &Default::default(), Default::default(), id, Default::default()).unwrap(),
        )
    }

    /// Applies changes one by one, each given as a component's new state or the id of one that is deleted, and
    /// tells after each what keeps the sessions and which ones nothing keeps any more.
    fn check(members: &Members, changes: &[(&str, Result<Arc<Component>, &str>)]) -> String {
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
        let members = Members::default();
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
        assert!(members.index.lock().named.len() == 1, "names that nobody bears any more are kept");
    }

    #[test]
    fn a_session_that_is_followed_late_counts_what_was_there() {
        let members = Members::default();
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
