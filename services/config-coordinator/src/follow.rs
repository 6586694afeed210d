//! Looking for changes of nodes about which configuration decides, where nobody tells of any.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use chassis::{pause, work::WorkQueue};
use domain::{id::ComponentId, looks::Pace};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{self, sleep, sleep_until},
};

use crate::observe::{Need, Observer};

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
        let (mut looked, mut took, mut failures) = (now(), Duration::ZERO, 0);
        loop {
            let most = self.observer.options.in_force().polling_period();
            self.wait(&Pace { least, most, looked, took }).await;
            let ids = self.followed.all();
            let began = now();
            let outcome = self.observer.follow(&ids).await;
            looked = now();
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
                Some(at) if at <= now() => return,
                Some(at) => tokio::select! {
                    () = sleep_until(at.into()) => {}
                    () = come => {}
                },
            }
        }
    }

    fn is_known(&self, id: &ComponentId) -> bool {
        matches!(self.observer.need(id), Some(Need::Audit { .. }))
    }
}

/// The time of the runtime, which a test or a simulation may have in hand.
fn now() -> Instant {
    time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use domain::looks::MOMENT;

    use super::*;

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
