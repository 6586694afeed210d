//! The effect of the inventory's answers on a component: locks and listing.

use std::sync::Arc;

use crate::{
    boot::component::{Component, InventoryPresence},
    core::time::Timestamp,
};

/// Weight of an answer of the inventory about its locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAnswer {
    /// The answer is believed as far as each lock allows.
    Counts,
    /// The answer counts only if a listing of the same inventory has hardware.
    NeedsListing,
    /// The answer is not believed: the inventory has lost its records, the locks among them.
    Lost,
}

/// Judges an answer about locks. An answer without any lock would end every recorded one, so it counts only while the
/// same inventory lists hardware. `lists_hardware`: `None` if the inventory was asked about its locks alone.
pub fn judge_locks(has_locks: bool, is_lock_recorded: bool, lists_hardware: Option<bool>) -> LockAnswer {
    match lists_hardware {
        _ if has_locks || !is_lock_recorded => LockAnswer::Counts,
        Some(true) => LockAnswer::Counts,
        Some(false) => LockAnswer::Lost,
        None => LockAnswer::NeedsListing,
    }
}

/// Records whether the inventory locks the node; `None`: the record is unchanged.
pub fn lock(component: &Component, locked: bool) -> Option<Component> {
    (component.locked != locked).then(|| Component { locked, ..component.clone() })
}

/// Records an answer about `component`, which was requested alone or in a round; `None`: the record is unchanged.
pub fn answered(component: &Component, is_listed: bool, now: Timestamp) -> Option<Component> {
    let presence = component.presence.after(is_listed, now);
    (presence != component.presence).then(|| Component { presence, ..component.clone() })
}

/// Records a complete listing of the inventory that was not requested for `component`: a listing that may have begun
/// earlier does not put a node in doubt that waits for its own answer.
pub fn listed(component: &Component, is_listed: bool, now: Timestamp) -> Option<Component> {
    let waits = matches!(component.presence, InventoryPresence::Unknown { .. });
    answered(component, is_listed, now).filter(|_| is_listed || !waits)
}

/// Records the trouble of an inventory that does not answer. Earlier answers stay.
pub fn unanswered(component: &Component, trouble: &Arc<str>) -> Option<Component> {
    let InventoryPresence::Unknown { trouble: shown } = &component.presence else { return None };
    let presence = InventoryPresence::Unknown { trouble: Arc::clone(trouble) };
    shown.is_empty().then(|| Component { presence, ..component.clone() })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::{bos::options::Options, component::view::bare};

    /// Plays answers, each as its second and `+` (listed), `-` (lacking), `!` (no answer); with an `L` those of
    /// listings: `L+`, `L-`. Returns the presence after each and the time of the next request.
    fn play(answers: &str) -> String {
        let mut component = Component { presence: InventoryPresence::default(), ..bare() };
        let mut rows = String::new();
        for answer in answers.split_whitespace() {
            let (second, answer) = answer.split_once(':').expect("second:answer");
            let now = Timestamp(second.parse::<i64>().expect("a number") * 1000);
            let changed = match answer {
                "!" => unanswered(&component, &"waiting for HSM".into()),
                "L+" | "L-" => listed(&component, answer == "L+", now),
                _ => answered(&component, answer == "+", now),
            };
            component = changed.unwrap_or(component);
            let ask = match component.presence.ask_in(&Options::default(), now) {
                Some(wait) => format!("ask in {wait:?}"),
                None => "ask in rounds".to_owned(),
            };
            assert_eq!(
                component.presence.is_queried_in_rounds(),
                ask == "ask in rounds",
                "{:?}",
                component.presence
            );
            rows += &format!("{second:>3} {answer:2} {:?} {ask}\n", component.presence);
        }
        rows
    }

    #[test]
    fn absence_is_confirmed_and_growth_counts_at_once() {
        expect![[r#"
              0 !  Unknown { trouble: "waiting for HSM" } ask in 1s
              0 L- Unknown { trouble: "waiting for HSM" } ask in 1s
              1 -  Doubtful { since: Timestamp(1000) } ask in 10s
              2 !  Doubtful { since: Timestamp(1000) } ask in 9s
             10 -  Doubtful { since: Timestamp(1000) } ask in 1s
             11 -  Absent { since: Timestamp(1000) } ask in 15s
             12 L- Absent { since: Timestamp(1000) } ask in 15s
             13 +  Listed ask in rounds
             14 !  Listed ask in rounds
             15 L- Doubtful { since: Timestamp(15000) } ask in 10s
             16 L+ Listed ask in rounds
             17 -  Doubtful { since: Timestamp(17000) } ask in 10s
             99 L- Doubtful { since: Timestamp(99000) } ask in 10s
            159 L- Absent { since: Timestamp(99000) } ask in 15s
            200 L+ Listed ask in rounds
        "#]]
        .assert_eq(&play("0:! 0:L- 1:- 2:! 10:- 11:- 12:L- 13:+ 14:! 15:L- 16:L+ 17:- 99:L- 159:L- 200:L+"));
    }

    #[test]
    fn answer_without_locks_counts_while_hardware_is_listed() {
        use LockAnswer::{Counts, Lost, NeedsListing};
        for (has_locks, is_lock_recorded, [alone, nothing_listed, listed]) in [
            (true, true, [Counts, Counts, Counts]),
            (true, false, [Counts, Counts, Counts]),
            (false, false, [Counts, Counts, Counts]),
            (false, true, [NeedsListing, Lost, Counts]),
        ] {
            for (lists, expected) in [(None, alone), (Some(false), nothing_listed), (Some(true), listed)] {
                let row = (has_locks, is_lock_recorded, lists);
                assert_eq!(judge_locks(has_locks, is_lock_recorded, lists), expected, "{row:?}");
            }
        }
    }

    #[test]
    fn locks_change_nothing_else() {
        let component = bare();
        let locked = lock(&component, true).expect("changed");
        assert_eq!(locked, Component { locked: true, ..component });
        assert_eq!(lock(&locked, true), None);
    }
}
