//! Keeps the locks of the inventory in the records: polls while nodes are enabled, and applies the locks that other
//! callers read.
//!
//! A lock counts at once, whichever replica sees it. That a node is unlocked counts only once two answers ten seconds
//! apart agree, which the holder of the role judges: an inventory that restarts lists no locks for a moment, and a node
//! may be locked because people work on it.

use std::{
    collections::{BTreeSet, HashSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use chassis::{
    Fault,
    lease::Term,
    process::{clock, pause::FailureStreak},
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

use crate::{RegistryState, hints::LEAST_GAP, inventory::LockedIds};

/// Ids of components.
type ComponentIds = HashSet<Arc<str>>;

/// Receiver of the latest locks, whichever caller read them.
type LockReceiver = watch::Receiver<Option<Arc<LockedIds>>>;

/// Follows the locks for ever: polls at once after a hint. The replica that holds the role also polls every `period`
/// while a component is enabled, and at once when one becomes enabled.
pub(crate) async fn run(registry: Arc<RegistryState>, period: Duration) -> anyhow::Result<Infallible> {
    let mut components = std::pin::pin!(registry.components.follow());
    let mut known = registry.inventory.locked();
    let mut terms = std::pin::pin!(registry.role.terms());
    let mut polls = LockPolls::new(period);
    let mut belief = LockBelief::new();
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
                belief.change_term(term);
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
    registry: &RegistryState,
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

/// Writes an answer to the components that differ, once. Before the first answer the records stay unchanged.
///
/// A lock that is seen is written by any replica. Releases are decided by the holder of the role, and are fenced.
async fn write(
    registry: &RegistryState,
    known: &mut LockReceiver,
    belief: &mut LockBelief,
) -> Result<(), Fault> {
    let Some(answer) = known.borrow_and_update().clone() else { return Ok(()) };
    let components = registry.components.view().all();
    belief.believe(&answer, &components, clock::now());
    if belief.is_written {
        return Ok(());
    }
    let changes = LockChanges::new(&components, &answer, &belief.absences.gone);
    if !changes.locked.is_empty() {
        let written = registry.components.write(setting(changes.locked, true)).await?;
        tracing::info!(changed = written.0, "nodes locked by the inventory");
    }
    if let Some(term) = belief.judge.as_ref().filter(|_| !changes.released.is_empty()) {
        let release = setting(changes.released, false);
        let written = registry.components.write_fenced(term.fence(), release).await?;
        tracing::info!(changed = written.0, "nodes no longer locked by the inventory");
    }
    belief.note_written();
    Ok(())
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

/// Components whose records differ from an answer of the inventory.
#[derive(Default)]
struct LockChanges {
    /// Components that the answer has, and whose records say unlocked.
    locked: Vec<Arc<str>>,
    /// Components whose records say locked, and whose absence is confirmed.
    released: Vec<Arc<str>>,
}

impl LockChanges {
    fn new(components: &[Arc<Component>], answer: &LockedIds, gone: &BTreeSet<Arc<str>>) -> Self {
        let mut changes = Self::default();
        for component in components {
            match component.inventory.locked {
                false if answer.contains(component.key()) => changes.locked.push(component.shared_key()),
                true if gone.contains(component.key()) => changes.released.push(component.shared_key()),
                false | true => {}
            }
        }
        changes
    }
}

/// Belief about the absence of locks that are on record.
struct LockBelief<J = Term> {
    /// Right to judge absences, which the holder of the role has: two replicas that judged for themselves could each
    /// write what the other one has ended.
    judge: Option<J>,
    /// The last answer. It is judged once, however often its write is tried.
    answer: Option<Arc<LockedIds>>,
    /// Whether the last answer is written. An answer that is written again could undo what other replicas wrote since.
    is_written: bool,
    absences: ConfirmedSet<Arc<str>>,
}

impl<J> LockBelief<J> {
    /// Creates the belief of a replica that has seen no answer and has no role.
    fn new() -> Self {
        Self { judge: None, answer: None, is_written: false, absences: ConfirmedSet::default() }
    }

    /// Begins or ends a term of the role. A doubt of an earlier term counts no more.
    fn change_term(&mut self, judge: Option<J>) {
        self.judge = judge;
        self.absences = ConfirmedSet::default();
    }

    /// Judges an `answer` at `now`. The locks in the records of `components` are expected in it and no others, whatever
    /// this process saw earlier: another replica may have written since.
    fn believe(&mut self, answer: &Arc<LockedIds>, components: &[Arc<Component>], now: Timestamp) {
        if self.answer.as_ref().is_some_and(|last| Arc::ptr_eq(last, answer)) {
            return;
        }
        self.answer = Some(Arc::clone(answer));
        self.is_written = false;
        if self.judge.is_some() {
            let recorded = components.iter().filter(|one| one.inventory.locked).map(|one| one.shared_key());
            let ids = answer.iter().map(|id| Arc::from(id.as_str())).collect();
            self.absences.elements.clear();
            self.absences = self.absences.believe(SetAnswer::Elements(ids), recorded, now);
        }
    }

    /// Notes that the last answer is written. A lock whose release is written is new when it is on record again.
    fn note_written(&mut self) {
        self.is_written = true;
        self.absences.gone.clear();
    }

    /// Returns whether the last answer lacks locks, and this is not confirmed yet.
    fn is_in_doubt(&self) -> bool {
        self.absences.in_doubt_since().is_some()
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
    use std::collections::BTreeMap;

    use domain::core::id::ComponentId;
    use expect_test::expect;

    use super::*;

    fn component(id: &str, enabled: bool, locked: bool) -> Arc<Component> {
        let component = Component::new(ComponentId::parse(id).unwrap());
        Arc::new(component.with(|one| {
            one.wish.enabled = Some(enabled);
            one.inventory.locked = locked;
        }))
    }

    fn ids(text: &str) -> ComponentIds {
        text.split_whitespace().map(Arc::from).collect()
    }

    /// Plays steps on the records of two nodes, all at a second: `holds` and `loses` are about the role of this replica,
    /// `+node` and `-node` are writes of another replica, `same` writes the last answer again, and each other text is
    /// an answer. Returns the locks on record after each step.
    fn replay(steps: &[(i64, &str)]) -> String {
        let mut records = BTreeMap::from([("a", false), ("b", false)]);
        let mut belief = LockBelief::<()>::new();
        let mut last: Arc<LockedIds> = Arc::default();
        let mut rows = String::new();
        for &(second, step) in steps {
            match step.split_at_checked(1) {
                Some(("+" | "-", id)) => *records.get_mut(id).unwrap() = step.starts_with('+'),
                _ if step == "holds" => belief.change_term(Some(())),
                _ if step == "loses" => belief.change_term(None),
                _ => {
                    if step != "same" {
                        last = Arc::new(step.split_whitespace().map(str::to_owned).collect());
                    }
                    apply(&mut belief, &last, &mut records, Timestamp(second * 1000));
                }
            }
            let locked: Vec<&str> =
                records.iter().filter(|(_, locked)| **locked).map(|(id, _)| *id).collect();
            let doubt = if belief.is_in_doubt() { " in doubt" } else { "" };
            rows += &format!("{second} {step:6} | {}{doubt}\n", locked.join(" "));
        }
        rows
    }

    fn apply(
        belief: &mut LockBelief<()>,
        answer: &Arc<LockedIds>,
        records: &mut BTreeMap<&str, bool>,
        now: Timestamp,
    ) {
        let components: Vec<_> = records.iter().map(|(id, locked)| component(id, true, *locked)).collect();
        belief.believe(answer, &components, now);
        if belief.is_written {
            return;
        }
        let changes = LockChanges::new(&components, answer, &belief.absences.gone);
        for (ids, locked) in [(changes.locked, true), (changes.released, false)] {
            for id in ids {
                *records.get_mut(&*id).unwrap() = locked;
            }
        }
        belief.note_written();
    }

    #[test]
    fn release_counts_only_when_the_holder_confirms_it() {
        expect![[r#"
            0 holds  | 
            0 +b     | b
            0 a x    | a b in doubt
            5 a b    | a b
            6        | a b in doubt
            15        | a b in doubt
            16 same   | a b in doubt
            17 a      | a
            18        | a in doubt
            27        | a in doubt
            28        | 
        "#]]
        .assert_eq(&replay(&[
            (0, "holds"),
            (0, "+b"),
            (0, "a x"),
            (5, "a b"),
            (6, ""),
            (15, ""),
            (16, "same"),
            (17, "a"),
            (18, ""),
            (27, ""),
            (28, ""),
        ]));
    }

    #[test]
    fn lone_odd_answers_hours_apart_release_no_lock() {
        expect![[r#"
            0 holds  | 
            0 a      | a
            1        | a in doubt
            7200        | a in doubt
            7210        | 
        "#]]
        .assert_eq(&replay(&[(0, "holds"), (0, "a"), (1, ""), (7200, ""), (7210, "")]));
    }

    #[test]
    fn standby_writes_no_released_lock_back() {
        expect![[r#"
            0 a      | a
            10 -a     | 
            11 same   | 
            12 b      | b
            20        | b
            40        | b
            41 holds  | b
            41        | b in doubt
            51        | 
        "#]]
        .assert_eq(&replay(&[
            (0, "a"),
            (10, "-a"),
            (11, "same"),
            (12, "b"),
            (20, ""),
            (40, ""),
            (41, "holds"),
            (41, ""),
            (51, ""),
        ]));
    }

    #[test]
    fn lock_that_another_replica_wrote_needs_a_confirmation_of_its_own() {
        expect![[r#"
            0 holds  | 
            0 a      | a
            1        | a in doubt
            11        | 
            12 +a     | a
            12 same   | a
            13        | a in doubt
            14 loses  | a
            23        | a
            24 holds  | a
            24        | a in doubt
            34        | 
        "#]]
        .assert_eq(&replay(&[
            (0, "holds"),
            (0, "a"),
            (1, ""),
            (11, ""),
            (12, "+a"),
            (12, "same"),
            (13, ""),
            (14, "loses"),
            (23, ""),
            (24, "holds"),
            (24, ""),
            (34, ""),
        ]));
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
