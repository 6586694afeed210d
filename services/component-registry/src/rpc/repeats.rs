//! Reports of nodes that only say again what is on record are answered from memory: no transaction, no revision, no
//! message to watchers. Nodes that run say so again and again, and there may be thousands of them a second.
//!
//! Why such an answer is true. It says that what was reported is on record, and shows the record, so nothing is
//! acknowledged that is not durable, and who reads next reads the same. It is as if the report had come right after the
//! last write that is shown here. Where the database is not shared, that is the last write there was: one that is under
//! way has not been acknowledged. Where replicas share it, another may have acknowledged a write that is not shown yet, and
//! a report that comes after that may mean something else: after the report of an earlier boot was cleared, it is the
//! first one of the next boot. So memory is trusted only
//! - about a component that nobody acts on. Before a report of it can be news, somebody has to make it somebody's again,
//!   and has to have it switched off, prepared, switched on and booted;
//! - when it shows all that was acknowledged [`TRUSTED`] ago, within which no hardware does that.
//!
//! Everything else is decided by the writer, on the newest state.
//!
//! What is still to be written of repeated reports is their time stamp, from time to time
//! ([`domain::repetition::precision`]). That is as durable as any write before it is answered, but not urgent: all of a
//! second go together, and those who send them wait for it.

use std::{sync::Arc, time::Duration};

use chassis::convert::time;
use domain::{
    component::Component,
    repetition::{Repetition, repetition},
};
use proto::component as wire;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};

use super::scope::Scope;
use crate::{Registry, convert};

/// How old what is in memory may be: some looks of a second at what other replicas have written.
const TRUSTED: Duration = Duration::from_secs(3);

/// Between two transactions of time stamps.
const BEAT: Duration = Duration::from_secs(1);

/// Requests that wait for the next one. They hold places of reports meanwhile, at the gateway too, which those of boots
/// need more; with as many of them a transaction is worth while without a wait.
const RENEWALS: usize = 256;

/// What becomes of reports that only repeat.
pub(super) enum Repeats {
    /// They are on record like this.
    Known(Vec<wire::Component>),
    /// Their time stamps have to be written. That is not urgent.
    Old,
}

/// When time stamps are written.
pub(crate) struct Renewals {
    start: Instant,
    places: Semaphore,
}

impl Default for Renewals {
    fn default() -> Self {
        Self { start: Instant::now(), places: Semaphore::new(RENEWALS) }
    }
}

impl Renewals {
    /// Waits for the others whose time stamps are to be written.
    pub(super) async fn turn(&self) {
        if let Ok(_place) = self.places.try_acquire() {
            let passed = self.start.elapsed().as_nanos() % BEAT.as_nanos();
            // Shorter than a beat, which fits.
            let rest = BEAT - Duration::from_nanos(u64::try_from(passed).unwrap_or_default());
            sleep_until(Instant::now() + rest).await;
        }
    }
}

impl Registry {
    /// What becomes of reports that only repeat what is on record, as far as that is known here; none if one of them
    /// does not, or may not.
    pub(super) fn repeats(
        &self,
        reports: &[Component],
        scope: &Scope,
        tokens: &convert::Tokens,
    ) -> Option<Repeats> {
        if self.compatibility.strict_bos || !self.components.is_fresh_within(TRUSTED) {
            return None;
        }
        let (ttl, now) = (self.options_in_force().actual_state_ttl(), time::now());
        let mut known: Vec<Arc<Component>> = Vec::with_capacity(reports.len());
        let mut is_old = false;
        for report in reports {
            let id = report.id.as_str();
            let stored = self.components.view().get(id).filter(|_| scope.has(id))?;
            is_old |=
                repetition(&stored, report, |token| tokens.get(token), ttl, now)? == Repetition::TimeStamp;
            known.push(stored);
        }
        Some(if is_old {
            Repeats::Old
        } else {
            Repeats::Known(known.iter().map(|one| convert::to_wire(one)).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn those_who_come_within_a_second_go_together_but_no_more_than_are_worth_it() {
        let renewals = Renewals::default();
        let begun = Instant::now();
        let come = async |after: u64| {
            tokio::time::sleep(Duration::from_millis(after)).await;
            renewals.turn().await;
            begun.elapsed().as_millis()
        };
        let gone = futures_util::future::join_all([0, 1, 400, 999, 1000, 1700].map(come)).await;
        assert_eq!(gone, [1000, 1000, 1000, 1000, 2000, 2000]);

        let crowd = futures_util::future::join_all((0..=RENEWALS).map(|_| async {
            let came = Instant::now();
            renewals.turn().await;
            came.elapsed()
        }));
        let at_once = crowd.await.iter().filter(|waited| waited.is_zero()).count();
        assert_eq!(at_once, 1);
    }
}
