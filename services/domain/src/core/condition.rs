//! Conditions of a resource: statements about it that are true, false or not known, each with its reason and the time
//! since which it holds.

use crate::core::time::Timestamp;

/// Truth of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// The statement holds.
    True,
    /// The statement does not hold.
    False,
    /// Nothing is known about it.
    Unknown,
}

impl ConditionStatus {
    /// Every truth.
    pub const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    /// Returns the truth of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Condition of the kind `K`, for the reason `R`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition<K, R> {
    /// Statement that the condition is about.
    pub kind: K,
    /// Truth of the statement.
    pub status: ConditionStatus,
    /// Reason for it.
    pub reason: R,
    /// Time of the last change of the truth. A new reason alone does not move it.
    pub since: Timestamp,
}

/// Puts a condition into `conditions`, which hold one of each kind. Its time moves only with its truth.
pub fn set<K: Copy + PartialEq, R>(
    conditions: &mut Vec<Condition<K, R>>,
    kind: K,
    (status, reason): (ConditionStatus, R),
    now: Timestamp,
) {
    match conditions.iter_mut().find(|known| known.kind == kind) {
        Some(known) => {
            let since = if known.status == status { known.since } else { now };
            *known = Condition { kind, status, reason, since };
        }
        None => conditions.push(Condition { kind, status, reason, since: now }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_with_the_truth_alone() {
        let mut conditions = Vec::new();
        for (status, reason, now, since) in [
            (ConditionStatus::False, "new", 1, 1),
            (ConditionStatus::False, "other", 2, 1),
            (ConditionStatus::True, "other", 3, 3),
            (ConditionStatus::Unknown, "lost", 4, 4),
        ] {
            set(&mut conditions, "Ready", (status, reason), Timestamp(now));
            let expected = Condition { kind: "Ready", status, reason, since: Timestamp(since) };
            assert_eq!(conditions, [expected]);
        }
    }
}
