//! The effect of the inventory's answers on a component: which of them stands beside the one on record.
//!
//! | arrives | while the presence on record is | then |
//! |---|---|---|
//! | any answer that was requested in an earlier generation | any | it stays: the generation has a request of its own |
//! | the node is listed, in whichever answer | any | listed |
//! | an answer about the node lacks it | unknown or listed | doubtful |
//! | an answer about the node lacks it | doubtful, for ten seconds to a minute | absent |
//! | an answer about the node lacks it | doubtful, for more than a minute | doubtful anew |
//! | a listing that was not requested for the node lacks it | unknown | it stays: the request about the node decides |
//! | a listing that was not requested for the node lacks it | any other | as an answer about the node |
//! | an answer without any node | any | it stays, unless the inventory lists other hardware |
//! | no answer | unknown, and no trouble is shown | unknown, with the trouble |
//! | no answer | any other | it stays |
//!
//! | arrives | while the node is on record as | then |
//! |---|---|---|
//! | the node is locked | unlocked | locked at once, whichever replica reads it |
//! | an answer lacks the lock | locked | unlocked once answers ten seconds apart agree, by the replica that acts ([`LockBelief`]) |
//! | an answer without any lock | locked | as above while the inventory lists hardware, else it stays ([`judge_locks`]) |
//! | no answer | any | it stays |
//!
//! A term of the role begins without doubts about locks.
//!
//! [`LockBelief`]: crate::boot::component::lock_belief::LockBelief

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
    let is_news = component.inventory.locked != locked;
    is_news.then(|| component.clone().with(|one| one.inventory.locked = locked))
}

/// Answer of the inventory about whether it lists a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresenceAnswer {
    /// Answer to a request about the node, alone or in a round.
    Requested {
        /// Whether the inventory lists the node.
        is_listed: bool,
    },
    /// Complete listing that was not requested for the node. It may have begun before the request about the node did.
    Listing {
        /// Whether the inventory lists the node.
        is_listed: bool,
    },
    /// No answer.
    Outage {
        /// Peer that is waited for and its last error.
        trouble: Arc<str>,
    },
}

/// Records an answer that was requested while the component was in `generation`; `None`: the record is unchanged.
pub fn record_presence(
    component: &Component,
    generation: u64,
    answer: &PresenceAnswer,
    now: Timestamp,
) -> Option<Component> {
    if component.generation != generation {
        return None;
    }
    let known = &component.inventory.presence;
    let presence = match (answer, known) {
        (PresenceAnswer::Listing { is_listed: false }, InventoryPresence::Unknown { .. }) => return None,
        (PresenceAnswer::Requested { is_listed } | PresenceAnswer::Listing { is_listed }, _) => {
            known.after(*is_listed, now)
        }
        (PresenceAnswer::Outage { trouble }, InventoryPresence::Unknown { trouble: shown })
            if shown.is_empty() =>
        {
            InventoryPresence::Unknown { trouble: Arc::clone(trouble) }
        }
        (PresenceAnswer::Outage { .. }, _) => return None,
    };
    (presence != *known).then(|| component.clone().with(|one| one.inventory.presence = presence))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::{
        bos::options::Options,
        component::{ComponentInventory, view::bare},
    };

    /// Plays answers, each as its second and `+` (listed), `-` (lacking), `!` (no answer); with an `L` those of
    /// listings: `L+`, `L-`. Returns the presence after each and the time of the next request.
    fn play(answers: &str) -> String {
        let mut component = Component {
            inventory: ComponentInventory {
                presence: InventoryPresence::default(),
                ..(*bare().inventory).clone()
            }
            .into(),
            ..bare()
        };
        let mut rows = String::new();
        for answer in answers.split_whitespace() {
            let (second, answer) = answer.split_once(':').expect("second:answer");
            let now = Timestamp(second.parse::<i64>().expect("a number") * 1000);
            let given = match answer {
                "!" => PresenceAnswer::Outage { trouble: "waiting for HSM".into() },
                "L+" | "L-" => PresenceAnswer::Listing { is_listed: answer == "L+" },
                _ => PresenceAnswer::Requested { is_listed: answer == "+" },
            };
            let before = component.generation.wrapping_sub(1);
            assert_eq!(record_presence(&component, before, &given, now), None, "of an earlier generation");
            let changed = record_presence(&component, component.generation, &given, now);
            component = changed.unwrap_or(component);
            let ask = match component.inventory.presence.ask_in(&Options::default(), now) {
                Some(wait) => format!("ask in {wait:?}"),
                None => "ask in rounds".to_owned(),
            };
            assert_eq!(
                component.inventory.presence.is_queried_in_rounds(),
                ask == "ask in rounds",
                "{:?}",
                component.inventory.presence
            );
            rows += &format!("{second:>3} {answer:2} {:?} {ask}\n", component.inventory.presence);
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
        assert_eq!(
            locked,
            Component {
                inventory: ComponentInventory { locked: true, ..(*component.inventory).clone() }.into(),
                ..component
            }
        );
        assert_eq!(lock(&locked, true), None);
    }
}
