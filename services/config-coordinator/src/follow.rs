//! Looking for changes of nodes whose configuration is awaited, where nobody tells of any.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use chassis::{pause, work::WorkQueue};
use domain::core::{
    id::ComponentId,
    looks::{Arrivals, Look, Pace},
};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{self, sleep, sleep_until},
};

use crate::observe::{Observer, Yield};

/// Components about which configuration decides, and those of them whose configuration is awaited.
#[derive(Default)]
pub(crate) struct Followed {
    members: Mutex<Members>,
    come: Notify,
}

#[derive(Default)]
struct Members {
    decided: BTreeSet<ComponentId>,
    awaited: BTreeSet<ComponentId>,
    /// Those that came since the last look, to be awaited.
    came: Option<Arrivals>,
    /// When one of those that are awaited came or went last.
    stirred: Option<Instant>,
}

/// How much it matters what the upstream says of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stake {
    /// Nothing is decided by its configuration.
    None,
    /// What is known may cease to be so.
    Known,
    /// It goes on when it is configured.
    Awaited,
}

impl Followed {
    /// Notes how much the configuration of a component matters.
    pub(crate) fn see(&self, id: &ComponentId, stake: Stake, now: Instant) {
        let mut members = self.members.lock();
        if stake == Stake::None {
            members.decided.remove(id);
        } else if !members.decided.contains(id) {
            members.decided.insert(id.clone());
        }
        if stake != Stake::Awaited {
            members.leave(id, now);
        } else if !members.awaited.contains(id) {
            members.come(id.clone(), now);
            self.come.notify_one();
        }
    }

    /// About how many configuration decides.
    pub(crate) fn count(&self) -> usize {
        self.members.lock().decided.len()
    }

    /// When to look next; none: nobody is awaited.
    fn due(&self, pace: &Pace) -> Option<Instant> {
        let members = self.members.lock();
        (!members.awaited.is_empty()).then(|| pace.next(members.came, members.stirred))
    }

    /// All who are awaited, for a look. Whoever comes from now on comes since.
    fn awaited(&self) -> Vec<ComponentId> {
        let mut members = self.members.lock();
        members.came = None;
        members.awaited.iter().cloned().collect()
    }
}

impl Members {
    fn come(&mut self, id: ComponentId, now: Instant) {
        self.awaited.insert(id);
        let before = self.came.unwrap_or(Arrivals { first: now, last: now, count: 0 });
        self.came = Some(Arrivals { last: now, count: before.count + 1, ..before });
        self.stirred = Some(now);
    }

    fn leave(&mut self, id: &ComponentId, now: Instant) {
        if self.awaited.remove(id) {
            self.stirred = Some(now);
            if self.awaited.is_empty() {
                self.came = None;
            }
        }
    }
}

/// Looks for changes.
pub(crate) struct Follower {
    pub(crate) observer: Arc<Observer>,
    pub(crate) followed: Arc<Followed>,
    /// Is told of components that are not awaited any more, or of which something has to be known again.
    pub(crate) queue: WorkQueue<ComponentId>,
}

impl Follower {
    /// Looks for changes without end. Ends where they are told.
    pub(crate) async fn run(&self) {
        let Some(least) = self.observer.upstream.poll_period() else { return };
        let (mut last, mut failures) = (Look::none(now()), 0);
        loop {
            let most = self.observer.options.in_force().polling_period();
            self.wait(&Pace { least, most, last }).await;
            let ids = self.followed.awaited();
            let began = now();
            let outcome = self.observer.follow(&ids).await;
            let ended = now();
            let Yield { pages, brought } = outcome.as_ref().copied().unwrap_or_default();
            last = Look { ended, took: ended - began, pages, brought };
            self.queue.mark(ids.into_iter().filter(|id| self.observer.stake(id) != Stake::Awaited));
            match outcome {
                Ok(_) => failures = 0,
                Err(error) => {
                    error.log();
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
                Some(at) if at <= now() => return,
                Some(at) => tokio::select! {
                    () = sleep_until(at.into()) => {}
                    () = come => {}
                },
            }
        }
    }
}

/// The time of the runtime, which a test or a simulation may have in hand.
fn now() -> Instant {
    time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::core::looks::MOMENT;

    use super::*;

    #[test]
    fn those_who_went_again_are_not_waited_for() {
        let (followed, start) = (Followed::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let [one, other] = ["x1", "x2"].map(|id| ComponentId::parse(id).unwrap());
        let (least, most) = (Duration::from_secs(2), Duration::from_secs(15));
        let pace = Pace { least, most, last: Look::none(at(0)) };
        followed.see(&one, Stake::Awaited, at(10));
        followed.see(&one, Stake::None, at(20));
        assert_eq!((followed.count(), followed.due(&pace)), (0, None));
        followed.see(&other, Stake::Awaited, at(100));
        assert_eq!(followed.due(&pace), Some(at(100) + MOMENT));
    }

    #[test]
    fn who_is_configured_is_counted_and_not_looked_at() {
        let (followed, start) = (Followed::default(), Instant::now());
        let [one, other] = ["x1", "x2"].map(|id| ComponentId::parse(id).unwrap());
        for id in [&one, &other] {
            followed.see(id, Stake::Awaited, start);
        }
        followed.see(&one, Stake::Known, start);
        assert_eq!((followed.count(), followed.awaited()), (2, vec![other.clone()]));
        followed.see(&other, Stake::Known, start);
        assert_eq!((followed.count(), followed.awaited()), (2, vec![]));
        followed.see(&one, Stake::None, start);
        followed.see(&other, Stake::Awaited, start);
        assert_eq!((followed.count(), followed.awaited()), (1, vec![other]));
    }
}
