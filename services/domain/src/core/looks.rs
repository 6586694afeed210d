//! Timing of polls for changes that no upstream announces.

use std::time::{Duration, Instant};

/// Longest gap between arrivals of one burst, such as nodes that boot together: a poll waits while nodes arrive closer
/// together than this.
pub const MOMENT: Duration = Duration::from_millis(250);

/// Multiple of the duration of a poll for which the upstream rests after it: polls take a fifth of its time at most.
const REST: u32 = 4;

/// Divisor of the quiet time: a poll may come late by this fraction of the time since the last event. A node that takes
/// an hour to configure is not polled every other second.
const PATIENCE: u32 = 8;

/// New items that justify reading one page of a list: a page has no more of them as a rule.
const WORTH: usize = 1000;

/// Extra wait of a poll for each arrival of a burst that does not end. A burst of faster arrivals ends soon, and
/// polling in its middle would fetch the same pages twice.
const GATHERING: Duration = Duration::from_millis(1);

/// Bounds on the time between polls, and the last poll.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Least time between polls.
    pub least: Duration,
    /// Most time between polls, in a quiet time or where polls bring little for their cost.
    pub most: Duration,
    /// The last poll.
    pub last: Look,
}

/// A poll that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// End of the poll.
    pub ended: Instant,
    /// Duration of the poll.
    pub took: Duration,
    /// Pages of lists that were read.
    pub pages: usize,
    /// Items of those pages that were new.
    pub brought: usize,
}

/// Arrivals since a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrivals {
    /// Time of the first arrival.
    pub first: Instant,
    /// Time of the last arrival.
    pub last: Instant,
    /// Number of arrivals.
    pub count: usize,
}

impl Pace {
    /// Time of the next poll. A poll for the arrivals `came` since the last one waits for the end of their burst. The
    /// upstream rests after a poll that was work for it, after one that brought little, and after a time in which
    /// nothing has `stirred`.
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

    /// Least time between polls by the yield of the last one: while many slow items are awaited, each poll reads known
    /// pages again. The `more` items that have arrived since are worth their pages again.
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
    /// Stands for the last poll before the first one.
    pub fn none(now: Instant) -> Self {
        Self { ended: now, took: Duration::ZERO, pages: 0, brought: 0 }
    }
}

/// Time of the next poll of one of several things that are polled in turn. The `last` poll of any of them is due at
/// that time. There is one poll in every `least`, but no thing waits longer than `most`. So many things cost no more
/// polls than that, and a change that all of them share is still noticed soon.
#[must_use]
pub fn in_turn(last: Option<Instant>, now: Instant, least: Duration, most: Duration) -> Instant {
    let free = last.map_or(now, |last| last.max(now)) + least;
    free.min(now + most.max(least))
}

/// Age at which to poll a task next, on which an upstream works in steps of `step`; `age` and result count from the
/// beginning of the task. The first poll comes after `lag`, to read back the begun task; later polls come `lag` after
/// the end of each step, when the upstream may have something new.
#[must_use]
pub fn in_steps(age: Duration, step: Duration, lag: Duration) -> Duration {
    if age < lag {
        return lag;
    }
    let step = step.max(Duration::from_millis(1));
    let Ok(done) = u32::try_from((age - lag).as_nanos() / step.as_nanos()) else { return age + step };
    step.saturating_mul(done.saturating_add(1)).saturating_add(lag)
}

/// Pause before the next poll of a thing that has not changed for the time `quiet`: at first `least`, later two, four,
/// eight times as long, up to half of `quiet` and to `most`. Multiples have their moments in common, so that rarely
/// polled things are polled together with others.
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
