//! Belief about the inventory's locks: a lock counts at once, whichever replica sees it. That a node is unlocked counts
//! only once two answers ten seconds apart agree, which the holder of the role judges: an inventory that restarts lists no
//! locks for a moment, and a node may be locked because people work on it.

use std::{collections::HashSet, sync::Arc};

use crate::{
    boot::component::Component,
    core::{
        confirmed_set::{ConfirmedSet, SetAnswer},
        time::Timestamp,
    },
};

/// Belief of one replica about the absence of locks that are on record.
#[derive(Debug, Default)]
pub struct LockBelief {
    /// Right to judge absences, which the holder of the role has: two replicas that judged for themselves could each
    /// write what the other one has ended.
    is_judge: bool,
    /// The last answer. It is judged once, however often its write is tried.
    answer: Option<Arc<HashSet<String>>>,
    /// Whether the last answer is written. An answer that is written again could undo what other replicas wrote since.
    is_written: bool,
    absences: ConfirmedSet<Arc<str>>,
}

/// Components whose records differ from an answer of the inventory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LockChanges {
    /// Components that the answer has, and whose records say unlocked.
    pub locked: Vec<Arc<str>>,
    /// Components whose records say locked, and whose absence is confirmed.
    pub released: Vec<Arc<str>>,
}

impl LockBelief {
    /// Begins or ends a term of the role. A doubt of an earlier term counts no more.
    pub fn change_term(&mut self, is_judge: bool) {
        self.is_judge = is_judge;
        self.absences = ConfirmedSet::default();
    }

    /// Judges an `answer`, the ids of locked nodes, at `now`. The locks in the records of `components` are expected in
    /// it and no others, whatever this process saw earlier: another replica may have written since.
    pub fn believe(&mut self, answer: &Arc<HashSet<String>>, components: &[Arc<Component>], now: Timestamp) {
        if self.answer.as_ref().is_some_and(|last| Arc::ptr_eq(last, answer)) {
            return;
        }
        self.answer = Some(Arc::clone(answer));
        self.is_written = false;
        if self.is_judge {
            let recorded = components.iter().filter(|one| one.inventory.locked).map(|one| one.id.shared());
            let ids = answer.iter().map(|id| Arc::from(id.as_str())).collect();
            self.absences.elements.clear();
            self.absences = self.absences.believe(SetAnswer::Elements(ids), recorded, now);
        }
    }

    /// Returns the changes of the records that the last answer leads to; `None`: it is written, or there is none.
    pub fn changes(&self, components: &[Arc<Component>]) -> Option<LockChanges> {
        let answer = self.answer.as_ref().filter(|_| !self.is_written)?;
        let mut changes = LockChanges::default();
        for component in components {
            let id = component.id.as_str();
            match component.inventory.locked {
                false if answer.contains(id) => changes.locked.push(component.id.shared()),
                true if self.absences.gone.contains(id) => changes.released.push(component.id.shared()),
                false | true => {}
            }
        }
        Some(changes)
    }

    /// Notes that the last answer is written. A lock whose release is written is new when it is on record again.
    pub fn note_written(&mut self) {
        self.is_written = true;
        self.absences.gone.clear();
    }

    /// Returns whether the last answer lacks locks, and this is not confirmed yet.
    pub fn is_in_doubt(&self) -> bool {
        self.absences.in_doubt_since().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;

    use super::*;
    use crate::core::id::ComponentId;

    fn component(id: &str, locked: bool) -> Arc<Component> {
        let component = Component::new(ComponentId::parse(id).unwrap());
        Arc::new(component.with(|one| one.inventory.locked = locked))
    }

    /// Plays steps on the records of two nodes, all at a second: `holds` and `loses` are about the role of this replica,
    /// `+node` and `-node` are writes of another replica, `same` writes the last answer again, and each other text is
    /// an answer. Returns the locks on record after each step.
    fn replay(steps: &[(i64, &str)]) -> String {
        let mut records = BTreeMap::from([("a", false), ("b", false)]);
        let mut belief = LockBelief::default();
        let mut last: Arc<HashSet<String>> = Arc::default();
        let mut rows = String::new();
        for &(second, step) in steps {
            match step.split_at_checked(1) {
                Some(("+" | "-", id)) => *records.get_mut(id).unwrap() = step.starts_with('+'),
                _ if step == "holds" => belief.change_term(true),
                _ if step == "loses" => belief.change_term(false),
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
        belief: &mut LockBelief,
        answer: &Arc<HashSet<String>>,
        records: &mut BTreeMap<&str, bool>,
        now: Timestamp,
    ) {
        let components: Vec<_> = records.iter().map(|(id, locked)| component(id, *locked)).collect();
        belief.believe(answer, &components, now);
        let Some(changes) = belief.changes(&components) else { return };
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
}
