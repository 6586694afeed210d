//! Belief about a set that another system keeps, such as the nodes of a tenant.
//!
//! A system in trouble may answer with half of a set or with none of it, and such an answer looks like one about a set
//! that really shrank. So growth is believed at once, and an absence only when it is confirmed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::core::time::Timestamp;

/// Time between the first and the last answer that lack an element before its absence is believed. A system that
/// restarts or fails over answers oddly for seconds; sets change by hand, where another ten seconds do not matter.
pub const CONFIRMATION: Duration = Duration::from_secs(10);

/// Longest time between two answers in a row that confirm one another. Each of two answers that are further apart may
/// come from a disturbance of its own, so the later one begins every doubt anew. Whoever follows a doubt asks again
/// within 15 seconds; the limit leaves room for a slow answer and a few polls that fail.
pub const LONGEST_GAP: Duration = CONFIRMATION.saturating_mul(6);

/// The answer of the system that keeps the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetAnswer<T> {
    /// The elements that the set is said to have.
    Elements(BTreeSet<T>),
    /// There is no such set. All elements are absent, which is confirmed like any absence.
    NoSuchSet,
}

/// The set as far as it is confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmedSet<T> {
    /// The elements that count: those of the newest answer, and those in doubt.
    pub elements: BTreeSet<T>,
    /// Elements that the newest answers lack without confirmation, each with the time of the first such answer.
    pub in_doubt: BTreeMap<T, Timestamp>,
    /// Elements that were expected and whose absence is confirmed.
    pub gone: BTreeSet<T>,
    /// Time of the first of the newest answers in a row that say that there is no such set; `None`: the newest one
    /// does not say so.
    pub denied_since: Option<Timestamp>,
    /// Time of the newest answer; `None`: there was none yet.
    answered_at: Option<Timestamp>,
}

/// Statement of the list of all sets about one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetListing {
    /// The list has the set.
    Has,
    /// The list lacks the set.
    Lacks,
    /// The list cannot be read.
    Unknown,
}

impl<T> Default for ConfirmedSet<T> {
    fn default() -> Self {
        Self {
            elements: BTreeSet::new(),
            in_doubt: BTreeMap::new(),
            gone: BTreeSet::new(),
            denied_since: None,
            answered_at: None,
        }
    }
}

impl<T: Ord + Clone> ConfirmedSet<T> {
    /// Returns the set to believe in after an `answer` at `now`; `self` is the set believed before. An outage is no
    /// answer and leaves the set as it is.
    ///
    /// `expected` are elements that other records place in the set, such as the nodes of a running session. Their
    /// absence needs the same confirmation as that of an element seen in the set, since a process that has just started
    /// has seen none.
    #[must_use]
    pub fn believe(
        &self,
        answer: SetAnswer<T>,
        expected: impl IntoIterator<Item = T>,
        now: Timestamp,
    ) -> Self {
        let expected: BTreeSet<T> = expected.into_iter().collect();
        let is_denied = answer == SetAnswer::NoSuchSet;
        let denied_since = is_denied.then(|| self.denied_before(now).unwrap_or(now));
        let mut elements = match answer {
            SetAnswer::Elements(elements) => elements,
            SetAnswer::NoSuchSet => BTreeSet::new(),
        };
        let mut believed = Self { denied_since, answered_at: Some(now), ..Self::default() };
        for element in self.elements.union(&expected).filter(|element| !elements.contains(element)) {
            let doubt = self.in_doubt.get(element).filter(|_| self.continues_at(now));
            let since = doubt.copied().unwrap_or(now);
            let is_confirmed = self.gone.contains(element) || now.since(since) >= CONFIRMATION;
            match is_confirmed {
                false => drop(believed.in_doubt.insert(element.clone(), since)),
                true if expected.contains(element) => drop(believed.gone.insert(element.clone())),
                true => {}
            }
        }
        elements.extend(believed.in_doubt.keys().cloned());
        Self { elements, ..believed }
    }

    /// Returns whether an answer at `now` comes soon enough after the newest one to confirm it.
    fn continues_at(&self, now: Timestamp) -> bool {
        self.answered_at.is_some_and(|last| now.since(last) <= LONGEST_GAP)
    }

    /// Time of the first denial that a denial at `now` confirms; `None`: there is none. A denial that is confirmed
    /// already lasts through any gap, like an element that is gone.
    fn denied_before(&self, now: Timestamp) -> Option<Timestamp> {
        let is_confirmed = |since| self.answered_at.is_some_and(|last| last.since(since) >= CONFIRMATION);
        self.denied_since.filter(|since| self.continues_at(now) || is_confirmed(*since))
    }

    /// Returns whether the newest answer denies the set, and no element is left whose absence needs confirmation.
    pub fn is_denied(&self) -> bool {
        self.denied_since.is_some() && self.elements.is_empty()
    }

    /// Returns whether there is no such set at `now`, by what the list of all sets says too. Something before the system
    /// that keeps the set may have denied it, in any form, and may have failed the list too. So the list has to lack the
    /// set; and if other records depend on the set (`is_at_stake`), the denial has to be confirmed like any absence.
    pub fn is_missing(&self, listing: SetListing, is_at_stake: bool, now: Timestamp) -> bool {
        let is_lasting = self.denied_since.is_some_and(|since| now.since(since) >= CONFIRMATION);
        self.is_denied()
            && match listing {
                SetListing::Has | SetListing::Unknown => false,
                SetListing::Lacks => is_lasting || !is_at_stake,
            }
    }

    /// Returns whether a later answer is needed: elements are in doubt, or the set was denied and that is not confirmed.
    pub fn is_in_doubt(&self) -> bool {
        let is_lasting = |since| self.answered_at.is_some_and(|last| last.since(since) >= CONFIRMATION);
        !self.in_doubt.is_empty() || self.denied_since.is_some_and(|since| !is_lasting(since))
    }

    /// Returns whether no element is known that the next answer has to be compared with.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty() && self.gone.is_empty()
    }

    /// Time of the first answer that lacks an element which still counts; `None`: nothing is in doubt.
    pub fn in_doubt_since(&self) -> Option<Timestamp> {
        self.in_doubt.values().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn set(letters: &str) -> BTreeSet<char> {
        letters.chars().filter(|letter| *letter != '-').collect()
    }

    /// Believes one answer after another. Each is given as its second, its elements (`!`: there is no such set) and the
    /// elements that are expected.
    fn check(answers: &[(i64, &str, &str)]) -> String {
        let mut believed = ConfirmedSet::default();
        let mut rows = String::new();
        for &(second, answer, expected) in answers {
            let elements = match answer {
                "!" => SetAnswer::NoSuchSet,
                letters => SetAnswer::Elements(set(letters)),
            };
            believed = believed.believe(elements, set(expected), Timestamp(second * 1000));
            let text = |letters: Vec<&char>| match letters.len() {
                0 => "-".to_owned(),
                _ => letters.into_iter().collect(),
            };
            let since =
                believed.in_doubt_since().map_or("-".to_owned(), |since| (since.0 / 1000).to_string());
            rows += &format!(
                "{second} s: {answer:4} {expected:3} | {:4} in doubt {:3} since {since:2} gone {}{}\n",
                text(believed.elements.iter().collect()),
                text(believed.in_doubt.keys().collect()),
                text(believed.gone.iter().collect()),
                if believed.is_denied() { ", no such set" } else { "" },
            );
        }
        rows
    }

    #[test]
    fn absence_counts_only_when_confirmed() {
        expect![[r#"
            0 s: abc  -   | abc  in doubt -   since -  gone -
            1 s: abcd -   | abcd in doubt -   since -  gone -
            2 s: -    -   | abcd in doubt abcd since 2  gone -
            3 s: cd   -   | abcd in doubt ab  since 2  gone -
            4 s: c    -   | abcd in doubt abd since 2  gone -
            11 s: c    -   | abcd in doubt abd since 2  gone -
            12 s: c    -   | cd   in doubt d   since 4  gone -
            13 s: c    -   | cd   in doubt d   since 4  gone -
            14 s: c    -   | c    in doubt -   since -  gone -
            15 s: ac   -   | ac   in doubt -   since -  gone -
        "#]]
        .assert_eq(&check(&[
            (0, "abc", "-"),
            (1, "abcd", "-"),
            (2, "-", "-"),
            (3, "cd", "-"),
            (4, "c", "-"),
            (11, "c", "-"),
            (12, "c", "-"),
            (13, "c", "-"),
            (14, "c", "-"),
            (15, "ac", "-"),
        ]));
    }

    #[test]
    fn long_pause_between_answers_confirms_nothing() {
        expect![[r#"
            0 s: ab   -   | ab   in doubt -   since -  gone -
            900 s: a    -   | ab   in doubt b   since 900 gone -
            901 s: a    -   | ab   in doubt b   since 900 gone -
            1000 s: a    -   | ab   in doubt b   since 1000 gone -
            1060 s: a    -   | a    in doubt -   since -  gone -
        "#]]
        .assert_eq(&check(&[
            (0, "ab", "-"),
            (900, "a", "-"),
            (901, "a", "-"),
            (1000, "a", "-"),
            (1060, "a", "-"),
        ]));
    }

    #[test]
    fn each_of_two_lone_odd_answers_begins_its_own_doubt() {
        expect![[r#"
            0 s: -    a   | a    in doubt a   since 0  gone -
            7200 s: -    a   | a    in doubt a   since 7200 gone -
            7215 s: -    a   | -    in doubt -   since -  gone a
            14400 s: -    a   | -    in doubt -   since -  gone a
            14415 s: !    ab  | b    in doubt b   since 14415 gone a
            21600 s: !    ab  | b    in doubt b   since 21600 gone a
            21615 s: !    ab  | -    in doubt -   since -  gone ab, no such set
        "#]]
        .assert_eq(&check(&[
            (0, "-", "a"),
            (7200, "-", "a"),
            (7215, "-", "a"),
            (14400, "-", "a"),
            (14415, "!", "ab"),
            (21600, "!", "ab"),
            (21615, "!", "ab"),
        ]));
    }

    #[test]
    fn only_a_confirmed_denial_lasts_through_a_gap() {
        let mut believed = ConfirmedSet::<char>::default();
        let rows = [0, 7200, 7215, 14400].map(|second: i64| {
            let now = Timestamp(second * 1000);
            believed = believed.believe(SetAnswer::NoSuchSet, [], now);
            (second, believed.is_missing(SetListing::Lacks, true, now), believed.is_in_doubt())
        });
        let expected = [(0, false, true), (7200, false, true), (7215, true, false), (14400, true, false)];
        assert_eq!(rows, expected);
    }

    #[test]
    fn expected_elements_are_missed_from_the_first_answer() {
        expect![[r#"
            0 s: a    ab  | ab   in doubt b   since 0  gone -
            5 s: a    abc | abc  in doubt bc  since 0  gone -
            10 s: a    abc | ac   in doubt c   since 5  gone b
            11 s: a    abc | ac   in doubt c   since 5  gone b
            15 s: a    abc | a    in doubt -   since -  gone bc
            16 s: a    ab  | a    in doubt -   since -  gone b
            17 s: ab   ab  | ab   in doubt -   since -  gone -
            18 s: a    ab  | ab   in doubt b   since 18 gone -
        "#]]
        .assert_eq(&check(&[
            (0, "a", "ab"),
            (5, "a", "abc"),
            (10, "a", "abc"),
            (11, "a", "abc"),
            (15, "a", "abc"),
            (16, "a", "ab"),
            (17, "ab", "ab"),
            (18, "a", "ab"),
        ]));
    }

    #[test]
    fn end_of_the_set_is_confirmed_like_any_absence() {
        expect![[r#"
            0 s: abc  -   | abc  in doubt -   since -  gone -
            1 s: !    ab  | abc  in doubt abc since 1  gone -
            2 s: abc  ab  | abc  in doubt -   since -  gone -
            3 s: !    ab  | abc  in doubt abc since 3  gone -
            12 s: !    ab  | abc  in doubt abc since 3  gone -
            13 s: !    ab  | -    in doubt -   since -  gone ab, no such set
            14 s: !    ab  | -    in doubt -   since -  gone ab, no such set
            15 s: -    ab  | -    in doubt -   since -  gone ab
            16 s: !    abd | d    in doubt d   since 16 gone ab
            17 s: ab   ab  | abd  in doubt d   since 16 gone -
        "#]]
        .assert_eq(&check(&[
            (0, "abc", "-"),
            (1, "!", "ab"),
            (2, "abc", "ab"),
            (3, "!", "ab"),
            (12, "!", "ab"),
            (13, "!", "ab"),
            (14, "!", "ab"),
            (15, "-", "ab"),
            (16, "!", "abd"),
            (17, "ab", "ab"),
        ]));
    }

    #[test]
    fn end_of_a_set_of_which_nothing_is_known_needs_no_confirmation() {
        expect![[r#"
            0 s: !    -   | -    in doubt -   since -  gone -, no such set
            1 s: -    -   | -    in doubt -   since -  gone -
            2 s: !    -   | -    in doubt -   since -  gone -, no such set
            3 s: !    a   | a    in doubt a   since 3  gone -
            12 s: !    a   | a    in doubt a   since 3  gone -
            13 s: !    a   | -    in doubt -   since -  gone a, no such set
        "#]]
        .assert_eq(&check(&[
            (0, "!", "-"),
            (1, "-", "-"),
            (2, "!", "-"),
            (3, "!", "a"),
            (12, "!", "a"),
            (13, "!", "a"),
        ]));
    }

    #[test]
    fn lone_denial_of_a_set_that_matters_is_not_believed() {
        let denied = |second: i64| {
            ConfirmedSet::<char>::default().believe(SetAnswer::NoSuchSet, [], Timestamp(second * 1000))
        };
        let mut rows = String::new();
        for listing in [SetListing::Has, SetListing::Lacks, SetListing::Unknown] {
            for is_at_stake in [false, true] {
                let missing = [0, 9, 10, 11].map(|second: i64| {
                    let now = Timestamp(second * 1000);
                    let believed = denied(0).believe(SetAnswer::NoSuchSet, [], now);
                    let is_missing = believed.is_missing(listing, is_at_stake, now);
                    format!("{second} s {}", if is_missing { "missing" } else { "in doubt" })
                });
                let stake = if is_at_stake { "at stake" } else { "" };
                rows += &format!("{listing:?} {stake}: {}\n", missing.join(", "));
            }
        }
        expect![[r#"
            Has : 0 s in doubt, 9 s in doubt, 10 s in doubt, 11 s in doubt
            Has at stake: 0 s in doubt, 9 s in doubt, 10 s in doubt, 11 s in doubt
            Lacks : 0 s missing, 9 s missing, 10 s missing, 11 s missing
            Lacks at stake: 0 s in doubt, 9 s in doubt, 10 s missing, 11 s missing
            Unknown : 0 s in doubt, 9 s in doubt, 10 s in doubt, 11 s in doubt
            Unknown at stake: 0 s in doubt, 9 s in doubt, 10 s in doubt, 11 s in doubt
        "#]]
        .assert_eq(&rows);
        let known = denied(0).believe(SetAnswer::NoSuchSet, ['a'], Timestamp(20_000));
        assert!(!known.is_missing(SetListing::Lacks, false, Timestamp(20_000)), "an element is in doubt");
        let exists = denied(0).believe(SetAnswer::Elements(set("-")), [], Timestamp(20_000));
        assert!(!exists.is_missing(SetListing::Lacks, false, Timestamp(20_000)));
    }

    #[test]
    fn shrinking_and_ending_confirm_one_another() {
        expect![[r#"
            0 s: abc  -   | abc  in doubt -   since -  gone -
            1 s: ab   ab  | abc  in doubt c   since 1  gone -
            5 s: !    ab  | abc  in doubt abc since 1  gone -
            11 s: !    ab  | ab   in doubt ab  since 5  gone -
            15 s: -    ab  | -    in doubt -   since -  gone ab
        "#]]
        .assert_eq(&check(&[
            (0, "abc", "-"),
            (1, "ab", "ab"),
            (5, "!", "ab"),
            (11, "!", "ab"),
            (15, "-", "ab"),
        ]));
    }
}
