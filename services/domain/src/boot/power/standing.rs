//! Which of two readings of a node's power stands.
//!
//! | arrives | while the reading on record | then |
//! |---|---|---|
//! | answer to a request | is any, and another generation has begun since the request | the answer is discarded: that generation has a request of its own |
//! | answer to a request | is the result of an action that the answer is older than and contradicts | the result stands until the next poll ([`is_outdated`]) |
//! | answer to a request | is of a later request, push or result, and differs | neither is known to be true now: the node is requested again |
//! | answer to a request | is any other | the answer stands |
//! | pushed change | is any | the change stands, for the request of the reading on record |
//! | result of an action | is of a later generation | the node is requested again |
//! | result of an action | was read after the result, differs, and is no older sample | the node is requested again |
//! | result of an action | is any other | the result stands, for the generation of its action |
//! | failed request, after three seconds without answers | is any | the reading is withdrawn, and shown with its age and the outage |
//!
//! An answer that stands is evidence for the generation that it was requested for. While an older action may still change
//! the power, the answer counts for the request of the reading on record.
//!
//! Independent of any reading that arrives:
//!
//! | event | effect |
//! |---|---|
//! | listening begins, for the first time or after a break | readings stand, and are requested again |
//! | the stream of changes is broken for three seconds | readings are withdrawn, with the outage |
//! | an older transition holds a node of a new generation | the reading is withdrawn, with the wait of the node |
//! | the process slept, the database lost readings, or a term begins | readings are withdrawn and requested again |

use super::{PowerReading, Shown, is_outdated};
use crate::core::time::Timestamp;

/// Fate of a reading that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingStanding {
    /// The arriving reading stands.
    Stands,
    /// The arriving reading is discarded: it was requested for an earlier generation.
    Discarded,
    /// The reading on record stands until the next poll, which is not sooner than usual.
    Outdated,
    /// Neither reading is known to be true now: the node is requested again at once.
    Contradicted,
}

/// Answer to a request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivingAnswer {
    /// Whether the component is still in the generation of the request.
    pub is_of_generation: bool,
    /// Power that the answer shows.
    pub reading: PowerReading,
    /// Time since which the answer holds, by the upstream; `None`: now.
    pub as_of: Option<Timestamp>,
    /// Whether a reading has arrived since that was requested or pushed later.
    pub is_overtaken: bool,
    /// Whether the reading on record shows another power.
    pub contradicts: bool,
}

/// Reading on record when a result arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedReading {
    /// Generation that the reading is evidence for.
    pub generation: u64,
    /// Power that the reading shows.
    pub reading: PowerReading,
    /// Time at which the node was read.
    pub observed_at: Timestamp,
    /// Time since which the reading holds, by the upstream; `None`: the time at which the node was read.
    pub as_of: Option<Timestamp>,
    /// Whether the result shows another power.
    pub contradicts: bool,
}

/// Decides about an answer to a request. `shown`: the power that the result of the last action on the node showed.
pub fn answer_standing(answer: ArrivingAnswer, shown: Option<Shown>, now: Timestamp) -> ReadingStanding {
    if !answer.is_of_generation {
        return ReadingStanding::Discarded;
    }
    if shown.is_some_and(|shown| is_outdated(answer.reading, answer.as_of, shown, now)) {
        return ReadingStanding::Outdated;
    }
    match answer.is_overtaken && answer.contradicts {
        true => ReadingStanding::Contradicted,
        false => ReadingStanding::Stands,
    }
}

/// Decides about the result of an action of `generation`. A later answer of the upstream may show an earlier power.
pub fn result_standing(
    result: Shown,
    generation: u64,
    recorded: Option<RecordedReading>,
    now: Timestamp,
) -> ReadingStanding {
    let Some(recorded) = recorded else { return ReadingStanding::Stands };
    let is_newer = recorded.contradicts
        && recorded.observed_at > result.at
        && !is_outdated(recorded.reading, recorded.as_of, result, now);
    match recorded.generation > generation || is_newer {
        true => ReadingStanding::Contradicted,
        false => ReadingStanding::Stands,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn ago(milliseconds: i64) -> Timestamp {
        Timestamp(NOW.0 - milliseconds)
    }

    #[test]
    fn each_answer_has_its_row() {
        use ReadingStanding::{Contradicted, Discarded, Outdated, Stands};
        let usual = ArrivingAnswer {
            is_of_generation: true,
            reading: PowerReading::Off,
            as_of: None,
            is_overtaken: false,
            contradicts: true,
        };
        let on = Shown { power: PowerReading::On, at: ago(1_000) };
        let rows = [
            ("news", usual, None, Stands),
            (
                "of an earlier generation",
                ArrivingAnswer { is_of_generation: false, ..usual },
                None,
                Discarded,
            ),
            (
                "overtaken by the same",
                ArrivingAnswer { is_overtaken: true, contradicts: false, ..usual },
                None,
                Stands,
            ),
            ("overtaken by another", ArrivingAnswer { is_overtaken: true, ..usual }, None, Contradicted),
            (
                "sampled before a result",
                ArrivingAnswer { as_of: Some(ago(90_000)), ..usual },
                Some(on),
                Outdated,
            ),
            ("sampled after a result", ArrivingAnswer { as_of: Some(ago(500)), ..usual }, Some(on), Stands),
            (
                "sampled before a result, and overtaken by it",
                ArrivingAnswer { as_of: Some(ago(90_000)), is_overtaken: true, ..usual },
                Some(on),
                Outdated,
            ),
        ];
        for (name, answer, shown, expected) in rows {
            assert_eq!(answer_standing(answer, shown, NOW), expected, "{name}");
        }
    }

    #[test]
    fn each_result_has_its_row() {
        use ReadingStanding::{Contradicted, Stands};
        let result = Shown { power: PowerReading::On, at: ago(1_000) };
        let read = |generation, age, as_of: Option<i64>, contradicts| {
            Some(RecordedReading {
                generation,
                reading: PowerReading::Off,
                observed_at: ago(age),
                as_of: as_of.map(ago),
                contradicts,
            })
        };
        let rows = [
            ("nothing was read", None, Stands),
            ("read before", read(5, 2_000, None, true), Stands),
            ("read after, and the same", read(5, 500, None, false), Stands),
            ("read after", read(5, 500, None, true), Contradicted),
            ("read after, of an older sample", read(5, 500, Some(90_000), true), Stands),
            ("read for a later generation", read(6, 2_000, None, false), Contradicted),
            ("read for an earlier generation", read(4, 2_000, None, true), Stands),
        ];
        for (name, recorded, expected) in rows {
            assert_eq!(result_standing(result, 5, recorded, NOW), expected, "{name}");
        }
    }
}
