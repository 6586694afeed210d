//! Reports of nodes that only repeat the record are answered from memory: no transaction, no revision, no message to
//! watchers. Running nodes repeat their reports again and again, and there may be thousands of reports a second.
//!
//! Correctness of such an answer. The answer states that the report is on record, and contains the record, so it
//! acknowledges only durable data, and the next read returns the same. The effect is that of a report which arrived
//! right after the last write in memory. With an unshared database that is the last write there was: a write in
//! progress has not been acknowledged. With a shared database another replica may have acknowledged a write that is
//! not in memory yet, and a report after that write may have another meaning: after the report of an earlier boot was
//! cleared, it is the first one of the next boot. So memory is trusted only
//! - about a component that is disabled. Before its report can be news, a session has to enable the component, and
//!   the node has to be switched off, prepared, switched on and booted;
//! - if it includes every write that was acknowledged [`TRUSTED`] ago, since no hardware boots within that time.
//!
//! The writer decides about all other reports, on the newest state.
//!
//! The time stamp of repeated reports still has to be written from time to time
//! ([`domain::boot::component::repetition::precision`]). Such a write is durable before it is answered, but not urgent:
//! the time stamps of one second are written together, and their senders wait for the write.

use std::{sync::Arc, time::Duration};

use chassis::process::clock;
use domain::boot::component::{
    Component,
    repetition::{Repetition, repetition},
};
use proto::component as wire;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};

use super::{scope::VisibleScope, written::ComponentWrite};
use crate::{RegistryState, convert};

/// Longest age of trusted memory: a few polls of the writes of other replicas.
const TRUSTED: Duration = Duration::from_secs(3);

/// Period of the transactions that write time stamps.
const BEAT: Duration = Duration::from_secs(1);

/// Requests that wait for the next transaction. They hold report slots meanwhile, at the gateway too, which reports
/// of boots need more; this many of them are worth a transaction without a wait.
const RENEWALS: usize = 256;

/// Handling of reports that only repeat the record.
pub(super) enum RepeatedReports {
    /// The reports are on record in this form.
    Known(Vec<wire::Component>),
    /// The time stamps of the reports have to be written, without urgency.
    Old,
}

/// Clock of the transactions that write time stamps.
pub(crate) struct TimeStampRenewals {
    start: Instant,
    places: Semaphore,
}

impl Default for TimeStampRenewals {
    fn default() -> Self {
        Self { start: Instant::now(), places: Semaphore::new(RENEWALS) }
    }
}

impl TimeStampRenewals {
    /// Waits for the next transaction of time stamps.
    pub(super) async fn turn(&self) {
        if let Ok(_place) = self.places.try_acquire() {
            let passed = self.start.elapsed().as_nanos() % BEAT.as_nanos();
            // The rest of the period is shorter than the period, which fits.
            let rest = BEAT - Duration::from_nanos(u64::try_from(passed).unwrap_or_default());
            sleep_until(Instant::now() + rest).await;
        }
    }
}

impl RegistryState {
    /// Classifies reports that only repeat the record in memory; `None` if one of the reports does not, or may not.
    pub(super) fn repeats(
        &self,
        reports: &[ComponentWrite],
        scope: &VisibleScope,
        tokens: &convert::RequestTokens,
    ) -> Option<RepeatedReports> {
        if self.compatibility.strict_bos || !self.components.is_fresh_within(TRUSTED) {
            return None;
        }
        let ttl = self.options_in_force().actual_state_ttl();
        let now = clock::now();
        let mut known: Vec<Arc<Component>> = Vec::with_capacity(reports.len());
        let mut is_old = false;
        for report in reports {
            let id = report.id.as_str();
            let stored = self.components.view().get(id).filter(|_| scope.has(id))?;
            is_old |= repetition(&stored, &report.patch, |token| tokens.get(token), ttl, now)?
                == Repetition::TimeStamp;
            known.push(stored);
        }
        Some(if is_old {
            RepeatedReports::Old
        } else {
            RepeatedReports::Known(known.iter().map(|one| convert::to_wire(one)).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn repeats_within_a_second_share_a_write() {
        let renewals = TimeStampRenewals::default();
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
