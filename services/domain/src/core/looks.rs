//! How soon to look for changes of which nobody tells.

use std::time::{Duration, Instant};

/// As long as more of them come within such a moment, nodes that boot together are waited for.
pub const MOMENT: Duration = Duration::from_millis(250);

/// How much longer than a look takes the upstream is left alone: a fifth of its time is for looks at most.
const REST: u32 = 4;

/// What share of the time since anything happened may pass until it is noticed that something does. Whoever is
/// configured for an hour is not looked at every other second.
const PATIENCE: u32 = 8;

/// Something new of so many is worth reading a page of a list: as a rule there are no more on it.
const WORTH: usize = 1000;

/// How much longer a crowd that does not cease to come is waited for, for each of those that came. Who comes faster than
/// they can be waited for has come before long, and looking at some of them early means to read about them twice.
const GATHERING: Duration = Duration::from_millis(1);

/// How quickly looks follow one another.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Least time between looks.
    pub least: Duration,
    /// Most time between looks because nothing happens, or little for what they cost.
    pub most: Duration,
    /// The last look.
    pub last: Look,
}

/// A look that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// When it ended.
    pub ended: Instant,
    /// How long it took.
    pub took: Duration,
    /// Pages of lists that were read.
    pub pages: usize,
    /// Of how many there was something new.
    pub brought: usize,
}

/// Those that came since a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrivals {
    /// When the first came.
    pub first: Instant,
    /// When the last came.
    pub last: Instant,
    /// How many came.
    pub count: usize,
}

impl Pace {
    /// When to look next. Those that `came` since the last look are looked at as soon as no more come. The upstream is
    /// given time after a look that was work for it, after one that brought little, and after a time in which nothing has
    /// `stirred`.
    #[must_use]
    pub fn next(&self, came: Option<Arrivals>, stirred: Option<Instant>) -> Instant {
        let Look { ended, took, .. } = self.last;
        let quiet = stirred.map_or(Duration::ZERO, |stirred| ended.saturating_duration_since(stirred));
        let spaced = self.spaced(came.map_or(0, |came| came.count));
        let pause = (quiet / PATIENCE).min(self.most).max(took * REST).max(spaced);
        let Some(Arrivals { first, last, count }) = came else { return ended + pause };
        let gathering = GATHERING.saturating_mul(counted(count)).min(self.most);
        let latest = ended.max(first) + pause + gathering;
        (last + MOMENT).max(ended + spaced).min(latest)
    }

    /// Time between looks by what the last one brought for what was read: of many who take long each look reads again
    /// what was known. `more` that have come since are worth their pages again.
    fn spaced(&self, more: usize) -> Duration {
        let worth = (self.last.brought + more).div_ceil(WORTH).max(1);
        let in_vain = self.last.pages.saturating_sub(worth);
        let spaced = self.least.saturating_add(self.least.saturating_mul(counted(in_vain)) / 2);
        spaced.min(self.most).max(self.least)
    }
}

fn counted(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Look {
    /// What there is to go by before the first look.
    pub fn none(now: Instant) -> Self {
        Self { ended: now, took: Duration::ZERO, pages: 0, brought: 0 }
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

/// When to poll something next that an upstream works on in steps of so long, both counted from its beginning. The first
/// poll comes after `lag`, to read back what was begun; later ones as long after the end of each step, when there may be
/// something new.
#[must_use]
pub fn in_steps(age: Duration, step: Duration, lag: Duration) -> Duration {
    if age < lag {
        return lag;
    }
    let step = step.max(Duration::from_millis(1));
    let Ok(done) = u32::try_from((age - lag).as_nanos() / step.as_nanos()) else { return age + step };
    step.saturating_mul(done.saturating_add(1)).saturating_add(lag)
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
            ("one came after long", 100, 1, Some((500, 500, 1)), Some(500)),
            ("more come after long", 100, 1, Some((500, 510, 2)), Some(510)),
            ("they do not cease to come", 100, 1, Some((500, 520, 20)), Some(520)),
            ("a crowd does not cease to come", 100, 1, Some((500, 520, 5000)), Some(520)),
            ("a crowd has come for long", 100, 1, Some((500, 569, 9000)), Some(569)),
            ("a crowd never ceases to come", 100, 1, Some((500, 999, 100_000)), Some(999)),
            ("one came after a look", 100, 1, Some((101, 101, 1)), Some(101)),
            ("one came after work", 100, 10, Some((101, 101, 1)), Some(101)),
            ("they come after work", 100, 10, Some((101, 139, 30)), Some(139)),
        ];
        let mut told = String::new();
        for (name, looked, took, came, stirred) in rows {
            let took = Duration::from_millis(took * 100);
            let pace = Pace {
                least: Duration::from_secs(2),
                most: Duration::from_secs(15),
                last: Look { took, ..Look::none(at(looked)) },
            };
            let came = came.map(|(first, last, count)| Arrivals { first: at(first), last: at(last), count });
            let next = pace.next(came, stirred.map(at));
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
            they do not cease to come: 52.02s, 42.02s after the look
            a crowd does not cease to come: 52.25s, 42.25s after the look
            a crowd has come for long: 57.15s, 47.15s after the look
            a crowd never ceases to come: 67s, 57s after the look
            one came after a look: 12s, 2s after the look
            one came after work: 12s, 2s after the look
            they come after work: 14.13s, 4.13s after the look
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn who_reads_much_for_little_looks_less_often() {
        let start = Instant::now();
        let mut told = String::new();
        for (pages, brought, came) in [
            (0, 0, 0),
            (1, 0, 0),
            (1, 16, 0),
            (2, 0, 0),
            (3, 1500, 0),
            (10, 10_000, 0),
            (10, 9_001, 0),
            (10, 5_000, 0),
            (10, 0, 0),
            (10, 0, 1),
            (10, 0, 7_500),
            (100, 0, 0),
            (usize::MAX, 0, 0),
        ] {
            let last = Look { pages, brought, ..Look::none(start) };
            let pace = Pace { least: Duration::from_secs(2), most: Duration::from_secs(15), last };
            let came = (came > 0).then_some(Arrivals { first: start, last: start, count: came });
            let next = pace.next(came, Some(start)) - start;
            let more = came.map_or(0, |came| came.count);
            told += &format!("{pages} pages about {brought}, {more} came: {next:?}\n");
        }
        expect![[r#"
            0 pages about 0, 0 came: 2s
            1 pages about 0, 0 came: 2s
            1 pages about 16, 0 came: 2s
            2 pages about 0, 0 came: 3s
            3 pages about 1500, 0 came: 3s
            10 pages about 10000, 0 came: 2s
            10 pages about 9001, 0 came: 2s
            10 pages about 5000, 0 came: 7s
            10 pages about 0, 0 came: 11s
            10 pages about 0, 1 came: 11s
            10 pages about 0, 7500 came: 4s
            100 pages about 0, 0 came: 15s
            18446744073709551615 pages about 0, 0 came: 15s
        "#]]
        .assert_eq(&told);
        let seldom = Pace { least: Duration::from_secs(20), most: Duration::ZERO, last: Look::none(start) };
        assert_eq!(seldom.next(None, None), start + seldom.least, "the least holds in any case");
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
    fn what_goes_on_in_steps_is_polled_once_for_each() {
        let [step, lag] = [15, 1].map(Duration::from_secs);
        let polls =
            [0, 1, 7, 15, 16, 17, 31, 60].map(|age| in_steps(Duration::from_secs(age), step, lag).as_secs());
        assert_eq!(polls, [1, 16, 16, 16, 31, 31, 46, 61]);
        let age = Duration::from_millis(10);
        assert!(in_steps(age, Duration::ZERO, Duration::ZERO) > age, "no step is no reason to stop");
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
