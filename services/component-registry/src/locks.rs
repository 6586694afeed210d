//! Keeps the locks of the inventory in the records: polls while nodes are enabled, and applies the locks that other
//! callers read.
//!
//! [`LockBelief`] says when a lock counts, and when its end does.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Fault,
    lease::Term,
    process::{clock, pause::FailureStreak},
    store::{ledger::Draft, resource::Resource},
};
use domain::{
    boot::component::{Component, lock_belief::LockBelief, report::inventory},
    core::confirmed_set::CONFIRMATION,
};
use futures_util::StreamExt;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{RegistryState, hints::LEAST_GAP, inventory::LockedIds};

/// Ids of components.
type ComponentIds = HashSet<Arc<str>>;

/// Follows the locks for ever: polls at once after a hint. The replica that holds the role also polls every `period`
/// while a component is enabled, and at once when one becomes enabled.
pub(crate) async fn run(registry: Arc<RegistryState>, period: Duration) -> anyhow::Result<Infallible> {
    let mut components = std::pin::pin!(registry.components.follow());
    let mut terms = std::pin::pin!(registry.role.terms());
    let mut polls = LockPolls::new(period);
    let mut locks = RecordedLocks::new(&registry);
    loop {
        let due = polls.due;
        let for_all = registry.role.is_held();
        tokio::select! {
            Some(batch) = components.next() => if for_all {
                polls.notice(&batch.changed, Instant::now());
            },
            Some(term) = terms.next() => {
                polls.stop();
                if term.is_some() {
                    polls.notice(&registry.components.view().all(), Instant::now());
                }
                locks.change_term(term);
            },
            () = registry.hints.locks.notified() => polls.poll_soon(Instant::now()),
            Ok(()) = locks.known.changed() => match locks.write().await {
                Ok(()) => polls.confirm(&locks.belief, Instant::now()),
                Err(fault) => polls.failed(&fault, Instant::now()),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                polls.begin(Instant::now());
                match locks.poll().await {
                    Ok(_) if !registry.role.is_held() => polls.stop(),
                    Ok(enabled) => {
                        polls.done(enabled);
                        polls.confirm(&locks.belief, Instant::now());
                    }
                    Err(fault) => polls.failed(&fault, Instant::now()),
                }
            }
        }
    }
}

/// Locks in the records of the registry.
struct RecordedLocks<'a> {
    registry: &'a RegistryState,
    /// The latest locks, whichever caller read them.
    known: watch::Receiver<Option<Arc<LockedIds>>>,
    belief: LockBelief,
    /// Term in which this replica judges absences.
    term: Option<Term>,
}

impl<'a> RecordedLocks<'a> {
    fn new(registry: &'a RegistryState) -> Self {
        Self { registry, known: registry.inventory.locked(), belief: LockBelief::default(), term: None }
    }

    fn change_term(&mut self, term: Option<Term>) {
        self.belief.change_term(term.is_some());
        self.term = term;
    }

    /// Polls the locks if a component is enabled, and returns the enabled components. One poll covers all of them.
    async fn poll(&mut self) -> Result<ComponentIds, Fault> {
        let components = self.registry.components.view().all();
        let enabled = components.iter().filter(|component| component.is_enabled());
        let enabled: ComponentIds = enabled.map(|component| component.shared_key()).collect();
        if !enabled.is_empty() {
            self.registry.inventory.poll_locks().await?;
        }
        self.write().await?;
        Ok(enabled)
    }

    /// Writes an answer to the components that differ, once. Before the first answer the records stay unchanged.
    ///
    /// A lock that is seen is written by any replica. Releases are decided by the holder of the role, and are fenced.
    async fn write(&mut self) -> Result<(), Fault> {
        let Some(answer) = self.known.borrow_and_update().clone() else { return Ok(()) };
        let components = self.registry.components.view().all();
        self.belief.believe(&answer, &components, clock::now());
        let Some(changes) = self.belief.changes(&components) else { return Ok(()) };
        let records = &self.registry.components;
        if !changes.locked.is_empty() {
            let written = records.write(setting(changes.locked, true)).await?;
            tracing::info!(changed = written.0, "nodes locked by the inventory");
        }
        if let Some(term) = self.term.as_ref().filter(|_| !changes.released.is_empty()) {
            let written = records.write_fenced(term.fence(), setting(changes.released, false)).await?;
            tracing::info!(changed = written.0, "nodes no longer locked by the inventory");
        }
        self.belief.note_written();
        Ok(())
    }
}

/// Returns the change that records whether the components `ids` are `locked`, and counts those that were not so before.
pub(crate) fn setting(
    ids: Vec<Arc<str>>,
    locked: bool,
) -> impl FnOnce(&mut Draft<'_, Component>) -> Result<usize, Fault> + Send + 'static {
    move |draft| {
        let components = ids.iter().filter_map(|id| draft.get(id));
        let changed: Vec<_> = components.filter_map(|one| inventory::lock(&one, locked)).collect();
        let count = changed.len();
        changed.into_iter().for_each(|component| draft.put(component));
        Ok(count)
    }
}

/// Schedule of lock polls.
#[derive(Debug)]
struct LockPolls {
    period: Duration,
    /// Beginning of the latest poll.
    began: Option<Instant>,
    /// Time of the next poll; `None` while no component is enabled.
    due: Option<Instant>,
    /// Components whose locks were polled since they became enabled.
    covered: ComponentIds,
    /// Failed polls in a row.
    failures: FailureStreak,
}

impl LockPolls {
    fn new(period: Duration) -> Self {
        Self {
            period,
            began: None,
            due: None,
            covered: ComponentIds::new(),
            failures: FailureStreak::default(),
        }
    }

    /// Applies changes of components: a newly enabled component makes a poll due.
    fn notice(&mut self, changed: &[Arc<Component>], now: Instant) {
        let (enabled, disabled): (Vec<_>, Vec<_>) = changed.iter().partition(|one| one.is_enabled());
        for component in disabled {
            self.covered.remove(component.key());
        }
        if enabled.iter().any(|component| !self.covered.contains(component.key())) {
            self.poll_soon(now);
        }
    }

    /// Makes a poll due without delay, but no sooner than the least gap, and not before the pause after a failure has
    /// ended.
    fn poll_soon(&mut self, now: Instant) {
        if self.failures.lasts() {
            return;
        }
        let earliest = self.began.map_or(now, |began| now.max(began + LEAST_GAP));
        self.due = Some(self.due.map_or(earliest, |due| due.min(earliest)));
    }

    /// Makes the next poll due in time to confirm an answer that lacks locks, if polls go on.
    fn confirm(&mut self, belief: &LockBelief, now: Instant) {
        if belief.is_in_doubt() {
            self.due = self.due.map(|due| due.min(now + CONFIRMATION));
        }
    }

    /// Stops polling: another replica polls for all.
    fn stop(&mut self) {
        self.due = None;
        self.failures.end();
        self.covered.clear();
    }

    fn begin(&mut self, now: Instant) {
        self.began = Some(now);
        self.due = None;
    }

    fn done(&mut self, enabled: ComponentIds) {
        if let Some(failures) = self.failures.end() {
            tracing::info!(failures, "inventory locks polled again after failures");
        }
        let next = self.began.map(|began| began + self.period);
        self.due = next.filter(|_| !enabled.is_empty());
        self.covered = enabled;
    }

    fn failed(&mut self, fault: &Fault, now: Instant) {
        if self.failures.add() {
            tracing::warn!(%fault, "cannot poll inventory locks, known locks stay in force");
        }
        self.due = Some(now + self.failures.pause());
    }
}

#[cfg(test)]
mod tests {
    use domain::core::id::ComponentId;

    use super::*;

    fn component(id: &str, enabled: bool) -> Arc<Component> {
        let component = Component::new(ComponentId::parse(id).unwrap());
        Arc::new(component.with(|one| one.wish.enabled = Some(enabled)))
    }

    fn ids(text: &str) -> ComponentIds {
        text.split_whitespace().map(Arc::from).collect()
    }

    const PERIOD: Duration = Duration::from_secs(10);

    /// Plays the words, one second each, and returns the seconds at which polls began. `a+` enables a, `a-` disables
    /// it, `hint` sends a hint, `outage` and `mended` set the result of polls, `.` is an idle second.
    fn play(words: &str) -> Vec<u64> {
        let start = Instant::now();
        let mut polls = LockPolls::new(PERIOD);
        let mut enabled = ComponentIds::new();
        let mut up = true;
        let mut began = Vec::new();
        for (second, word) in words.split_whitespace().enumerate() {
            let now = start + Duration::from_secs(second as u64);
            match (word, word.split_at(1)) {
                ("hint", _) => polls.poll_soon(now),
                ("outage", _) => up = false,
                ("mended", _) => up = true,
                (".", _) => {}
                (_, (id, on)) => {
                    match on {
                        "+" => enabled.insert(id.into()),
                        _ => enabled.remove(id),
                    };
                    polls.notice(&[component(id, on == "+")], now);
                }
            }
            if polls.due.is_some_and(|due| due <= now) {
                polls.begin(now);
                match up {
                    true if enabled.is_empty() => polls.done(ComponentIds::new()),
                    true => {
                        began.push(second as u64);
                        polls.done(enabled.clone());
                    }
                    false => {
                        began.push(second as u64);
                        polls.failed(&Fault::unavailable("inventory", "gone"), now);
                    }
                }
            }
        }
        began
    }

    #[test]
    fn locks_are_polled_while_a_component_is_enabled() {
        let rows: [(&str, &[u64]); 6] = [
            (". hint . a- . . . . . . . . . .", &[]),
            (". a+ . . . . . . . . . . . . . . . . . . . . a- . . . . . . . . . .", &[1, 11, 21]),
            // A newly enabled component is polled without delay, a known one is not.
            ("a+ . . b+ a+ b+ . .", &[0, 3]),
            ("a+ . b+ b- . b+ . .", &[0, 2, 5]),
            ("a+ hint . hint . . . . . . . . . .", &[0, 1, 3, 13]),
            // The first pauses after failures are shorter than a second.
            ("a+ outage hint hint mended . . . . . . .", &[0, 2, 3, 4]),
        ];
        for (words, expected) in rows {
            assert_eq!(play(words), expected, "{words}");
        }
    }

    #[test]
    fn polls_keep_their_distance() {
        let start = Instant::now();
        let mut polls = LockPolls::new(PERIOD);
        polls.poll_soon(start);
        polls.begin(start);
        polls.done(ids("a"));
        for milliseconds in [1, 5, 900] {
            polls.poll_soon(start + Duration::from_millis(milliseconds));
            assert_eq!(polls.due, Some(start + LEAST_GAP));
        }
    }
}
