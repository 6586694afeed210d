//! Whether the inventory lists a node that is to be acted on (BOS reference 5.2, "HSM presence").
//!
//! BOS asks before every action and leaves out the nodes that are not listed. Here the registry asks when a wish begins,
//! then in rounds about all nodes that are acted on, and follows later listings; a node is prepared and switched only while
//! it is known to be listed.

use std::{sync::Arc, time::Duration};

use crate::{
    component::Component,
    confirmed_set::CONFIRMATION,
    options::Options,
    time::Timestamp,
    trouble::{Trouble, TroubleKind},
};

/// Least time between questions to an inventory in trouble, whatever else happens to the nodes that wait for it.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Answer of the inventory about a node since its generation began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InventoryPresence {
    /// Nothing yet.
    Unknown {
        /// Peer that is waited for and its last error; empty: the question was only just asked.
        trouble: Arc<str>,
    },
    /// The inventory lists the node.
    Listed,
    /// The newest answer lacks the node. Nothing is begun until another answer settles the matter.
    Doubtful {
        /// Time of the first answer that lacked the node.
        since: Timestamp,
    },
    /// Answers far enough apart lack the node.
    Absent {
        /// Time of the first of them.
        since: Timestamp,
    },
}

impl Default for InventoryPresence {
    fn default() -> Self {
        Self::Unknown { trouble: Arc::default() }
    }
}

/// An inventory does not list a node that it was asked about.
pub const ERROR_ABSENT: &str =
    "the inventory does not list the node, so its power is left alone; it goes on once the node is listed";
/// [`ERROR_ABSENT`] of one answer only.
pub const ERROR_DOUBTFUL: &str = "the newest answer of the inventory lacks the node, so its power is left alone until the inventory has been asked again";

impl InventoryPresence {
    /// How long to leave the inventory alone about an enabled node at `now`; `None`: later rounds and listings tell about
    /// it.
    pub fn ask_in(&self, options: &Options, now: Timestamp) -> Option<Duration> {
        match self {
            Self::Unknown { trouble } if trouble.is_empty() => Some(Duration::ZERO),
            Self::Unknown { .. } => Some(AFTER_TROUBLE),
            Self::Listed => None,
            Self::Doubtful { since } => Some(CONFIRMATION.saturating_sub(now.since(*since))),
            Self::Absent { .. } => Some(options.polling_period()),
        }
    }

    /// Whether answers far enough apart lack the node.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Absent { .. } => true,
            Self::Unknown { .. } | Self::Listed | Self::Doubtful { .. } => false,
        }
    }

    /// Whether an enabled node is asked about in each round: what was listed may be taken away while it is acted on. All
    /// others are asked about at times of their own.
    pub fn is_queried_in_rounds(&self) -> bool {
        match self {
            Self::Listed => true,
            Self::Unknown { .. } | Self::Doubtful { .. } | Self::Absent { .. } => false,
        }
    }

    /// The presence after an answer at `now` that lists the node or lacks it. A listed node counts at once, an absence
    /// when a later answer confirms it.
    fn after(&self, is_listed: bool, now: Timestamp) -> Self {
        match self {
            _ if is_listed => Self::Listed,
            Self::Unknown { .. } | Self::Listed => Self::Doubtful { since: now },
            Self::Doubtful { since } if now.since(*since) >= CONFIRMATION => Self::Absent { since: *since },
            Self::Doubtful { .. } | Self::Absent { .. } => self.clone(),
        }
    }
}

/// Records an answer about `component`, which was asked about by itself or in a round; `None`: the record says so already.
pub fn answered(component: &Component, is_listed: bool, now: Timestamp) -> Option<Component> {
    let presence = component.presence.after(is_listed, now);
    (presence != component.presence).then(|| Component { presence, ..component.clone() })
}

/// Records a complete listing of the inventory, which was not asked for because of `component`: a node that is waiting
/// for its own answer is not put in doubt by a listing that may have begun before.
pub fn listed(component: &Component, is_listed: bool, now: Timestamp) -> Option<Component> {
    let waits = matches!(component.presence, InventoryPresence::Unknown { .. });
    answered(component, is_listed, now).filter(|_| is_listed || !waits)
}

/// Records the trouble of an inventory that does not answer. What it answered before stays.
pub fn unanswered(component: &Component, trouble: &Arc<str>) -> Option<Component> {
    let InventoryPresence::Unknown { trouble: shown } = &component.presence else { return None };
    let presence = InventoryPresence::Unknown { trouble: Arc::clone(trouble) };
    shown.is_empty().then(|| Component { presence, ..component.clone() })
}

/// Returns the trouble of a node that nobody may act on; `None`: it is listed, or the inventory was only just asked.
pub(crate) fn trouble(component: &Component) -> Option<Trouble> {
    match &component.presence {
        InventoryPresence::Unknown { trouble } => Trouble::new(TroubleKind::Waiting, Arc::clone(trouble)),
        InventoryPresence::Listed => None,
        InventoryPresence::Doubtful { .. } => Some(Trouble::own(TroubleKind::NotListed, ERROR_DOUBTFUL)),
        InventoryPresence::Absent { .. } => Some(Trouble::own(TroubleKind::NotListed, ERROR_ABSENT)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::component::view::bare;

    /// Plays answers, each as its second and `+` (listed), `-` (lacking), `!` (no answer); in upper case letters of
    /// listings: `L+`, `L-`. Shows the presence after each and when to ask next.
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
             99 L- Absent { since: Timestamp(17000) } ask in 15s
            100 L+ Listed ask in rounds
        "#]]
        .assert_eq(&play("0:! 0:L- 1:- 2:! 10:- 11:- 12:L- 13:+ 14:! 15:L- 16:L+ 17:- 99:L- 100:L+"));
    }
}
