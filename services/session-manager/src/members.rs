//! Which components have to do with which session, kept as components change.
//!
//! The work per change is that of the change: nothing here looks at every component or every session.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use chassis::mirror::Change;
use domain::{
    completion::{Stakes, stake},
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
}

impl Index {
    fn apply(&mut self, change: &Change<Component>, over: &mut Vec<Arc<str>>) {
        let (before, after) = (change.previous.as_ref(), change.current.as_ref());
        let mut names: Vec<&str> = before.into_iter().chain(after).flat_map(|one| sessions(one)).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            self.place(name, before, after);
            for (key, running) in self.running.get_mut(name).into_iter().flatten() {
                let was_kept = !running.stakes.is_complete();
                let stake = |component: Option<&Arc<Component>>| stake(component?, &running.session, None);
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
        let stakes = components.filter_map(|component| stake(component, &session, None)).collect();
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
