//! Looking for changes of nodes about which configuration decides, where nobody tells of any.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chassis::{pause, work::WorkQueue};
use domain::id::ComponentId;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use crate::observe::{Need, Observer};

/// As long as more of them come within such a moment, nodes that boot together are waited for.
const MOMENT: Duration = Duration::from_millis(250);

/// How much longer than a look takes the upstream is left alone: a fifth of its time is for looks at most.
const REST: u32 = 4;

/// What share of the time since anything happened may pass until it is noticed that something does. Whoever is
/// configured for an hour is not looked at every other second.
const PATIENCE: u32 = 8;

/// Components about which configuration decides.
#[derive(Default)]
pub(crate) struct Followed {
    members: Mutex<Members>,
    come: Notify,
}

#[derive(Default)]
struct Members {
    ids: BTreeSet<ComponentId>,
    /// When the first and the last came of those that came since the last look.
    came: Option<(Instant, Instant)>,
    /// When one came or went last.
    stirred: Option<Instant>,
}

impl Followed {
    /// Notes whether configuration decides about a component.
    pub(crate) fn see(&self, id: &ComponentId, follow: bool, now: Instant) {
        let mut members = self.members.lock();
        if follow && !members.ids.contains(id) {
            members.ids.insert(id.clone());
            members.came = Some((members.came.map_or(now, |(first, _)| first), now));
            members.stirred = Some(now);
            self.come.notify_one();
        } else if !follow && members.ids.remove(id) {
            members.stirred = Some(now);
            if members.ids.is_empty() {
                members.came = None;
            }
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.members.lock().ids.len()
    }

    /// When to look next; none: nobody is followed.
    fn due(&self, pace: &Pace) -> Option<Instant> {
        let members = self.members.lock();
        (!members.ids.is_empty()).then(|| pace.next(members.came, members.stirred))
    }

    /// All of them, for a look. Whoever comes from now on comes since.
    fn all(&self) -> Vec<ComponentId> {
        let mut members = self.members.lock();
        members.came = None;
        members.ids.iter().cloned().collect()
    }
}

/// How quickly looks follow one another.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Least time between looks.
    least: Duration,
    /// Most time between looks because nothing happens.
    most: Duration,
    /// When the last look ended.
    looked: Instant,
    /// How long it took.
    took: Duration,
}

impl Pace {
    /// When to look next. Those that `came` since the last look, first and last, are looked at as soon as no more
    /// come. The upstream is given time after a look that was work for it, and after a time in which nothing has
    /// `stirred`.
    fn next(&self, came: Option<(Instant, Instant)>, stirred: Option<Instant>) -> Instant {
        let quiet = stirred.map_or(Duration::ZERO, |stirred| self.looked.saturating_duration_since(stirred));
        let pause = (quiet / PATIENCE).min(self.most).max(self.took * REST).max(self.least);
        let Some((first, last)) = came else { return self.looked + pause };
        let latest = self.looked.max(first) + pause;
        (last + MOMENT).max(self.looked + self.least).min(latest)
    }
}

/// Looks for changes.
pub(crate) struct Follower {
    pub(crate) observer: Arc<Observer>,
    pub(crate) followed: Arc<Followed>,
    /// Is told of components of which something has to be known again.
    pub(crate) queue: WorkQueue<ComponentId>,
}

impl Follower {
    /// Looks for changes without end. Ends where they are told.
    pub(crate) async fn run(&self) {
        let Some(least) = self.observer.upstream.poll_period() else { return };
        let (mut looked, mut took, mut failures) = (Instant::now(), Duration::ZERO, 0);
        loop {
            let most = self.observer.options.in_force().polling_period();
            self.wait(&Pace { least, most, looked, took }).await;
            let ids = self.followed.all();
            let began = Instant::now();
            let outcome = self.observer.follow(&ids).await;
            looked = Instant::now();
            took = looked - began;
            self.queue.mark(ids.into_iter().filter(|id| !self.is_known(id)));
            match outcome {
                Ok(()) => failures = 0,
                Err(error) => {
                    tracing::warn!(%error, "changes of configurations are not known");
                    failures += 1;
                    sleep(pause::after(failures)).await;
                }
            }
        }
    }

    /// Waits until it is time for a look.
    async fn wait(&self, pace: &Pace) {
        loop {
            let come = self.followed.come.notified();
            match self.followed.due(pace) {
                None => come.await,
                Some(at) if at <= Instant::now() => return,
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = come => {}
                },
            }
        }
    }

    fn is_known(&self, id: &ComponentId) -> bool {
        matches!(self.observer.need(id), Some(Need::Audit { .. }))
    }
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
    fn those_who_went_again_are_not_waited_for() {
        let (followed, start) = (Followed::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let [one, other] = ["x1", "x2"].map(|id| ComponentId::parse(id).unwrap());
        let (least, most) = (Duration::from_secs(2), Duration::from_secs(15));
        let pace = Pace { least, most, looked: at(0), took: Duration::ZERO };
        followed.see(&one, true, at(10));
        followed.see(&one, false, at(20));
        assert_eq!((followed.count(), followed.due(&pace)), (0, None));
        followed.see(&other, true, at(100));
        assert_eq!(followed.due(&pace), Some(at(100) + MOMENT));
    }
}
