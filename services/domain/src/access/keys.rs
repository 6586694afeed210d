//! Keys of an issuer: for how long they count, and when they are fetched again.

use std::time::Duration;

/// Times about the keys of an issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyTimes {
    /// Time after which keys are fetched again.
    pub refresh: Duration,
    /// Time for which keys count that could not be fetched again. A withdrawn key counts no longer than that.
    pub longest: Duration,
    /// Least time between two attempts to fetch, so that tokens with invented keys do not burden the issuer.
    pub pause: Duration,
}

/// Standing of the keys that were fetched last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStanding {
    /// No key was ever fetched.
    Missing,
    /// The keys count.
    Valid,
    /// The keys are too old to count.
    TooOld,
}

/// History of the fetching of keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchHistory {
    /// Time since the last attempt; `None`: there was none.
    pub since_attempt: Option<Duration>,
    /// Time since the last success; `None`: there was none.
    pub since_success: Option<Duration>,
}

impl KeyTimes {
    /// Returns the standing of the keys.
    pub fn standing(&self, history: FetchHistory) -> KeyStanding {
        match history.since_success {
            None => KeyStanding::Missing,
            Some(age) if age <= self.longest => KeyStanding::Valid,
            Some(_) => KeyStanding::TooOld,
        }
    }

    /// Returns the time until the next attempt; `is_wanted`: a token names a key that is not known.
    pub fn next_attempt(&self, history: FetchHistory, is_wanted: bool) -> Duration {
        let Some(since_attempt) = history.since_attempt else { return Duration::ZERO };
        let rest = self.pause.saturating_sub(since_attempt);
        let has_failed = history.since_success.is_none_or(|success| success > since_attempt);
        match history.since_success {
            Some(success) if !has_failed && !is_wanted => {
                // An interval below the pause would be no interval.
                Ord::max(self.refresh.saturating_sub(success), rest)
            }
            Some(_) | None => rest,
        }
    }

    /// Returns whether a token with an unknown key may cause an attempt now.
    pub fn may_ask(&self, history: FetchHistory) -> bool {
        self.next_attempt(history, true).is_zero()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn keys_are_fetched_in_rounds_and_when_one_is_wanted() {
        let seconds = Duration::from_secs;
        let times = KeyTimes { refresh: seconds(300), longest: seconds(3600), pause: seconds(10) };
        let mut table = String::new();
        for (attempt, success) in [
            (None, None),
            (Some(3), None),
            (Some(12), None),
            (Some(3), Some(3)),
            (Some(12), Some(12)),
            (Some(400), Some(400)),
            (Some(3), Some(500)),
            (Some(12), Some(500)),
            (Some(5), Some(3601)),
        ] {
            let history =
                FetchHistory { since_attempt: attempt.map(seconds), since_success: success.map(seconds) };
            let [plain, wanted] = [false, true].map(|wanted| times.next_attempt(history, wanted).as_secs());
            let standing = times.standing(history);
            let may_ask = times.may_ask(history);
            writeln!(
                table,
                "attempt {attempt:?} success {success:?}: {standing:?}, next in {plain} s, if wanted in {wanted} s, {may_ask}"
            )
            .unwrap();
        }
        expect![[r#"
            attempt None success None: Missing, next in 0 s, if wanted in 0 s, true
            attempt Some(3) success None: Missing, next in 7 s, if wanted in 7 s, false
            attempt Some(12) success None: Missing, next in 0 s, if wanted in 0 s, true
            attempt Some(3) success Some(3): Valid, next in 297 s, if wanted in 7 s, false
            attempt Some(12) success Some(12): Valid, next in 288 s, if wanted in 0 s, true
            attempt Some(400) success Some(400): Valid, next in 0 s, if wanted in 0 s, true
            attempt Some(3) success Some(500): Valid, next in 7 s, if wanted in 7 s, false
            attempt Some(12) success Some(500): Valid, next in 0 s, if wanted in 0 s, true
            attempt Some(5) success Some(3601): TooOld, next in 5 s, if wanted in 5 s, false
        "#]]
        .assert_eq(&table);
    }
}
