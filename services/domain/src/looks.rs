//! How soon to look for changes of which nobody tells.

use std::time::{Duration, Instant};

/// As long as more of them come within such a moment, nodes that boot together are waited for.
pub const MOMENT: Duration = Duration::from_millis(250);

/// How much longer than a look takes the upstream is left alone: a fifth of its time is for looks at most.
const REST: u32 = 4;

/// What share of the time since anything happened may pass until it is noticed that something does. Whoever is
/// configured for an hour is not looked at every other second.
const PATIENCE: u32 = 8;

/// How quickly looks follow one another.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Least time between looks.
    pub least: Duration,
    /// Most time between looks because nothing happens.
    pub most: Duration,
    /// When the last look ended.
    pub looked: Instant,
    /// How long it took.
    pub took: Duration,
}

impl Pace {
    /// When to look next. Those that `came` since the last look, first and last, are looked at as soon as no more
    /// come. The upstream is given time after a look that was work for it, and after a time in which nothing has
    /// `stirred`.
    #[must_use]
    pub fn next(&self, came: Option<(Instant, Instant)>, stirred: Option<Instant>) -> Instant {
        let quiet = stirred.map_or(Duration::ZERO, |stirred| self.looked.saturating_duration_since(stirred));
        let pause = (quiet / PATIENCE).min(self.most).max(self.took * REST).max(self.least);
        let Some((first, last)) = came else { return self.looked + pause };
        let latest = self.looked.max(first) + pause;
        (last + MOMENT).max(self.looked + self.least).min(latest)
    }
}

/// When to look next at one of several things that are looked at in turn, of which the `last` look of any of them is due
/// then: there is one look in every `least`, but none later than after `most`. So many of them cost no more looks than that,
/// and what they have in common is still noticed soon.
#[must_use]
pub fn in_turn(last: Option<Instant>, now: Instant, least: Duration, most: Duration) -> Instant {
    let free = last.map_or(now, |last| last.max(now)) + least;
    free.min(now + most.max(least))
}

/// How long to leave alone what has been as it is for so long, `quiet`: at first for `least`, later for two, four, eight
/// times as long, up to half of that time and to `most`. Multiples have their moments in common, so that those who are
/// looked at less often are looked at together with others.
#[must_use]
pub fn at_leisure(quiet: Duration, least: Duration, most: Duration) -> Duration {
    let mut pause = least;
    while pause * 2 <= most && pause * 4 <= quiet && !pause.is_zero() {
        pause *= 2;
    }
    pause
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn looks_are_quick_while_something_happens_and_slow_otherwise() {
        let start = Instant::now();
        let at = |tenths: u64| start + Duration::from_millis(tenths * 100);
        let rows = [
            ("nothing has happened yet", 100, 1, None, None),
            ("one went", 100, 1, None, Some(99)),
            ("nothing for long", 1000, 1, None, Some(200)),
            ("nothing for very long", 9000, 1, None, Some(200)),
            ("it was work", 100, 10, None, Some(99)),
            ("it was much work", 1000, 100, None, Some(999)),
            ("one came after long", 100, 1, Some((500, 500)), Some(500)),
            ("more come after long", 100, 1, Some((500, 510)), Some(510)),
            ("they do not cease to come", 100, 1, Some((500, 520)), Some(520)),
            ("one came after a look", 100, 1, Some((101, 101)), Some(101)),
            ("one came after work", 100, 10, Some((101, 101)), Some(101)),
            ("they come after work", 100, 10, Some((101, 139)), Some(139)),
        ];
        let mut told = String::new();
        for (name, looked, took, came, stirred) in rows {
            let pace = Pace {
                least: Duration::from_secs(2),
                most: Duration::from_secs(15),
                looked: at(looked),
                took: Duration::from_millis(took * 100),
            };
            let next = pace.next(came.map(|(first, last)| (at(first), at(last))), stirred.map(at));
            let (after, since) = (next - start, next - at(looked));
            told += &format!("{name}: {after:?}, {since:?} after the look\n");
        }
        expect![[r#"
            nothing has happened yet: 12s, 2s after the look
            one went: 12s, 2s after the look
            nothing for long: 110s, 10s after the look
            nothing for very long: 915s, 15s after the look
            it was work: 14s, 4s after the look
            it was much work: 140s, 40s after the look
            one came after long: 50.25s, 40.25s after the look
            more come after long: 51.25s, 41.25s after the look
            they do not cease to come: 52s, 42s after the look
            one came after a look: 12s, 2s after the look
            one came after work: 12s, 2s after the look
            they come after work: 14.1s, 4.1s after the look
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn many_share_the_looks_of_one_until_they_would_be_left_alone_for_too_long() {
        let [least, most] = [1, 5].map(Duration::from_secs);
        let now = Instant::now();
        let mut last = None;
        let turns = [(); 7].map(|()| {
            let next = in_turn(last, now, least, most);
            last = Some(next);
            (next - now).as_secs()
        });
        assert_eq!(turns, [1, 2, 3, 4, 5, 5, 5]);
        let later = now + 4 * least;
        assert_eq!(in_turn(Some(now), later, least, most), later + least, "nobody else waits");
        assert_eq!(in_turn(last, now, most, least), now + most, "the least holds in any case");
    }

    #[test]
    fn what_has_not_changed_for_long_is_looked_at_seldom() {
        let [least, most] = [5, 30].map(Duration::from_secs);
        let pauses = [0, 5, 19, 20, 39, 40, 79, 80, 10_000]
            .map(|quiet| at_leisure(Duration::from_secs(quiet), least, most).as_secs());
        assert_eq!(pauses, [5, 5, 5, 10, 10, 20, 20, 20, 20]);
        assert_eq!(at_leisure(Duration::MAX, most, most), most);
        assert_eq!(at_leisure(Duration::MAX, Duration::ZERO, most), Duration::ZERO);
    }
}
