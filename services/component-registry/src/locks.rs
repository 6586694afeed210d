//! Keeps the locks of the inventory in the records: polls while nodes are enabled, and applies the locks that other
//! callers read.
//!
//! A lock counts at once. That a node is unlocked counts only once two answers ten seconds apart agree: an inventory that
//! restarts lists no locks for a moment, and a node may be locked because people work on it.

use std::{
    collections::{BTreeSet, HashSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use chassis::{
    Fault,
    process::{clock, pause},
    store::{ledger::Draft, resource::Resource},
};
use domain::{
    boot::component::{Component, report::inventory},
    core::{
        confirmed_set::{CONFIRMATION, ConfirmedSet, SetAnswer},
        time::Timestamp,
    },
};
use futures_util::StreamExt;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{Registry, hints::LEAST_GAP, inventory::LockedIds};

/// Ids of components.
type ComponentIds = HashSet<Arc<str>>;

/// Receiver of the latest locks, whichever caller read them.
type LockReceiver = watch::Receiver<Option<Arc<LockedIds>>>;

/// Follows the locks for ever: polls at once after a hint. The replica that holds the role also polls every `period`
/// while a component is enabled, and at once when one becomes enabled.
pub(crate) async fn run(registry: Arc<Registry>, period: Duration) -> anyhow::Result<Infallible> {
    let mut components = std::pin::pin!(registry.components.follow());
    let mut known = registry.inventory.locked();
    let mut terms = std::pin::pin!(registry.role.terms());
    let mut polls = LockPolls::new(period);
    let mut belief = LockBelief::default();
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
            },
            () = registry.hints.locks.notified() => polls.poll_soon(Instant::now()),
            Ok(()) = known.changed() => match write(&registry, &mut known, &mut belief).await {
                Ok(()) => polls.confirm(&belief, Instant::now()),
                Err(fault) => polls.failed(&fault, Instant::now()),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                polls.begin(Instant::now());
                match poll(&registry, &mut known, &mut belief).await {
                    Ok(_) if !registry.role.is_held() => polls.stop(),
                    Ok(enabled) => {
                        polls.done(enabled);
                        polls.confirm(&belief, Instant::now());
                    }
                    Err(fault) => polls.failed(&fault, Instant::now()),
                }
            }
        }
    }
}

/// Polls the locks if a component is enabled, and returns the enabled components. One poll covers all of them.
async fn poll(
    registry: &Registry,
    known: &mut LockReceiver,
    belief: &mut LockBelief,
) -> Result<ComponentIds, Fault> {
    let components = registry.components.view().all();
    let enabled = components.iter().filter(|component| component.is_enabled());
    let enabled: ComponentIds = enabled.map(|component| component.shared_key()).collect();
    if !enabled.is_empty() {
        registry.inventory.poll_locks().await?;
    }
    write(registry, known, belief).await?;
    Ok(enabled)
}

/// Writes the known locks to the components that differ. Before the first answer the records stay unchanged.
async fn write(registry: &Registry, known: &mut LockReceiver, belief: &mut LockBelief) -> Result<(), Fault> {
    let Some(answer) = known.borrow_and_update().clone() else { return Ok(()) };
    let components = registry.components.view().all();
    belief.believe(answer, &components, clock::now());
    let differing = differing(&components, &belief.locked.elements);
    if differing.is_empty() {
        return Ok(());
    }
    let locked = belief.locked.elements.clone();
    let lock = move |draft: &mut Draft<'_, Component>| {
        let components = differing.iter().filter_map(|id| draft.get(id));
        let changed: Vec<_> = components
            .filter_map(|component| inventory::lock(&component, locked.contains(component.id.as_str())))
            .collect();
        let count = changed.len();
        changed.into_iter().for_each(|component| draft.put(component));
        Ok(count)
    };
    let (changed, _) = registry.components.write(lock).await?;
    tracing::info!(changed, "inventory locks changed");
    Ok(())
}

/// Returns the components whose record differs from the known locks.
fn differing(components: &[Arc<Component>], locked: &BTreeSet<Arc<str>>) -> Vec<Arc<str>> {
    let mut differing = Vec::new();
    for component in components {
        if component.locked != locked.contains(component.key()) {
            differing.push(component.shared_key());
        }
    }
    differing
}

/// Locks as far as the answers of the inventory are confirmed.
#[derive(Default)]
struct LockBelief {
    /// The last answer. It is judged once, however often it is written.
    answer: Option<Arc<LockedIds>>,
    locked: ConfirmedSet<Arc<str>>,
}

impl LockBelief {
    /// Judges an `answer` at `now`. The locks in the records of `components` are expected in it, also by a process that
    /// has just started.
    fn believe(&mut self, answer: Arc<LockedIds>, components: &[Arc<Component>], now: Timestamp) {
        if self.answer.as_ref().is_some_and(|last| Arc::ptr_eq(last, &answer)) {
            return;
        }
        let recorded = components.iter().filter(|one| one.locked).map(|one| one.shared_key());
        let ids = answer.iter().map(|id| Arc::from(id.as_str())).collect();
        self.locked = self.locked.believe(SetAnswer::Elements(ids), recorded, now);
        self.answer = Some(answer);
    }

    /// Returns whether the last answer lacks locks, and this is not confirmed yet.
    fn is_in_doubt(&self) -> bool {
        self.locked.in_doubt_since().is_some()
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
    failures: u32,
}

impl LockPolls {
    fn new(period: Duration) -> Self {
        Self { period, began: None, due: None, covered: ComponentIds::new(), failures: 0 }
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
        if self.failures > 0 {
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
        self.failures = 0;
        self.covered.clear();
    }

    fn begin(&mut self, now: Instant) {
        self.began = Some(now);
        self.due = None;
    }

    fn done(&mut self, enabled: ComponentIds) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "inventory locks polled again after failures");
        }
        self.failures = 0;
        let next = self.began.map(|began| began + self.period);
        self.due = next.filter(|_| !enabled.is_empty());
        self.covered = enabled;
    }

    fn failed(&mut self, fault: &Fault, now: Instant) {
        self.failures += 1;
        self.due = Some(now + pause::after(self.failures));
        if self.failures == 1 {
            tracing::warn!(%fault, "cannot poll inventory locks, known locks stay in force");
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::core::id::ComponentId;
    use expect_test::expect;

    use super::*;

    fn component(id: &str, enabled: bool, locked: bool) -> Arc<Component> {
        let component = Component::new(ComponentId::parse(id).unwrap());
        Arc::new(Component { enabled: Some(enabled), locked, ..component })
    }

    fn ids(text: &str) -> ComponentIds {
        text.split_whitespace().map(Arc::from).collect()
    }

    #[test]
    fn only_records_with_other_locks_differ() {
        let components = [
            component("free", true, false),
            component("newly-locked", false, false),
            component("still-locked", true, true),
            component("unlocked", true, true),
        ];
        let locked = ["newly-locked", "still-locked", "stranger"].map(Arc::from).into();
        let differing = differing(&components, &locked);
        assert_eq!(differing.iter().map(|id| &**id).collect::<Vec<_>>(), ["newly-locked", "unlocked"]);
    }

    #[test]
    fn release_counts_only_when_confirmed() {
        let components = [component("recorded", true, true), component("free", true, false)];
        let mut belief = LockBelief::default();
        let mut last = Arc::default();
        let mut rows = String::new();
        for (second, answer) in [
            (0, "free"),
            (5, "recorded free"),
            (6, ""),
            (15, ""),
            (16, "same"),
            (17, "free"),
            (18, ""),
            (27, ""),
            (28, ""),
        ] {
            if answer != "same" {
                last = Arc::new(answer.split_whitespace().map(str::to_owned).collect::<LockedIds>());
            }
            belief.believe(Arc::clone(&last), &components, Timestamp(second * 1000));
            let locked: Vec<&str> = belief.locked.elements.iter().map(|id| &**id).collect();
            let doubt = if belief.is_in_doubt() { " in doubt" } else { "" };
            rows += &format!("{second:>2} {answer:13} | {}{doubt}\n", locked.join(" "));
        }
        expect![[r#"
             0 free          | free recorded in doubt
             5 recorded free | free recorded
             6               | free recorded in doubt
            15               | free recorded in doubt
            16 same          | free recorded in doubt
            17 free          | free
            18               | free in doubt
            27               | free in doubt
            28               | 
        "#]]
        .assert_eq(&rows);
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
                    polls.notice(&[component(id, on == "+", false)], now);
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
