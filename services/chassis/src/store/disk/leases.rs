//! The row of a role on a disk in memory. Each function corresponds to the statement of the same name on the table of a
//! database; the surrounding transaction decides which transaction may call it at which time.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::simulation::PlantedDefect;
use crate::store::fence::HeldElsewhere;

/// Replica in its writes to the row.
#[derive(Clone)]
pub(crate) struct LeaseHolder {
    pub(crate) id: Arc<str>,
    /// Duration of the lease from its acquisition or renewal.
    pub(crate) ttl: Duration,
    /// Start of the replica's host.
    pub(crate) start: u64,
}

/// Row of the role of one part, if there is one.
#[derive(Clone, Default)]
pub(crate) struct RoleRow(Option<LeaseRow>);

#[derive(Clone)]
struct LeaseRow {
    /// Holder of the role; empty: none.
    holder: Arc<str>,
    start: u64,
    epoch: u64,
    expires_at: Instant,
    taken_over: bool,
}

impl RoleRow {
    pub(crate) fn make(&mut self, now: Instant) {
        self.0.get_or_insert_with(|| LeaseRow {
            holder: "".into(),
            start: 0,
            epoch: 0,
            expires_at: now,
            taken_over: false,
        });
    }

    pub(crate) fn renew(&mut self, who: &LeaseHolder, epoch: u64, taken_over: bool, now: Instant) -> bool {
        let is_mine =
            |lease: &&mut LeaseRow| lease.holder == who.id && lease.epoch == epoch && lease.expires_at >= now;
        let Some(lease) = self.0.as_mut().filter(is_mine) else { return false };
        (lease.expires_at, lease.taken_over) = (now + who.ttl, taken_over);
        true
    }

    /// Returns whether [`Self::acquire`] may acquire the role.
    pub(crate) fn is_free(&self, who: &LeaseHolder, now: Instant) -> bool {
        let is_lost = |lease: &LeaseRow| PlantedDefect::LostRole.is_planted() && lease.epoch > 0;
        self.0.as_ref().is_some_and(|lease| {
            lease.holder == who.id || !is_lost(lease) && (lease.holder.is_empty() || lease.expires_at < now)
        })
    }

    /// Acquires the role under an epoch greater than that of the row and than `last`.
    pub(crate) fn acquire(&mut self, who: &LeaseHolder, last: u64, now: Instant) -> Option<u64> {
        let lease = self.0.as_mut()?;
        let is_raised = lease.epoch == 0 || !PlantedDefect::SameEpochs.is_planted();
        let epoch = if is_raised { lease.epoch.max(last) + 1 } else { lease.epoch };
        let holder = Arc::clone(&who.id);
        *lease = LeaseRow { holder, start: who.start, epoch, expires_at: now + who.ttl, taken_over: false };
        Some(epoch)
    }

    pub(crate) fn look(&self, now: Instant) -> Option<HeldElsewhere> {
        let lease = self.0.as_ref()?;
        let is_held = !lease.holder.is_empty();
        let left = if is_held { lease.expires_at.saturating_duration_since(now) } else { Duration::ZERO };
        Some(HeldElsewhere { epoch: lease.epoch, left, taken_over: is_held && lease.taken_over })
    }

    /// Returns whether `who` holds the role, or held it last.
    pub(crate) fn is_of(&self, who: &LeaseHolder) -> bool {
        self.0.as_ref().is_some_and(|lease| lease.holder == who.id)
    }

    pub(crate) fn release(&mut self, who: &LeaseHolder, now: Instant) {
        if let Some(lease) = self.0.as_mut().filter(|lease| lease.holder == who.id) {
            (lease.holder, lease.expires_at) = ("".into(), now);
        }
    }

    /// Returns whether the role is `holder`'s under `epoch`, and no replica has acquired it since.
    pub(crate) fn is(&self, holder: &str, epoch: u64) -> bool {
        let is_holder = |lease: &LeaseRow| *lease.holder == *holder || PlantedDefect::SameEpochs.is_planted();
        self.0.as_ref().is_some_and(|lease| is_holder(lease) && lease.epoch == epoch)
    }

    /// Returns the start that acquired the role last, if it was not released since.
    pub(crate) fn start(&self) -> Option<u64> {
        self.0.as_ref().filter(|lease| !lease.holder.is_empty()).map(|lease| lease.start)
    }

    /// Returns the start that holds the role now.
    pub(crate) fn held_by(&self, now: Instant) -> Option<u64> {
        self.start().filter(|_| self.0.as_ref().is_some_and(|lease| lease.expires_at >= now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(6);

    fn holder(id: &str, start: u64) -> LeaseHolder {
        LeaseHolder { id: id.into(), ttl: TTL, start }
    }

    #[tokio::test(start_paused = true)]
    async fn expired_lease_is_acquired_under_the_next_epoch() {
        let (one, other) = (holder("one", 1), holder("other", 2));
        let (mut row, now) = (RoleRow::default(), Instant::now());
        assert!(!row.is_free(&one, now) && row.look(now).is_none(), "there is no row");
        row.make(now);
        assert!(row.is_free(&one, now));
        assert_eq!(row.acquire(&one, 0, now), Some(1));
        assert!(row.is_free(&one, now) && !row.is_free(&other, now));
        assert_eq!(row.look(now), Some(HeldElsewhere { epoch: 1, left: TTL, taken_over: false }));

        assert!(row.renew(&one, 1, true, now + TTL), "to the last moment");
        assert!(row.look(now + TTL).is_some_and(|held| held.taken_over && held.left == TTL));
        let later = now + TTL * 2 + Duration::from_millis(1);
        assert!(!row.renew(&one, 1, true, later) && row.held_by(later).is_none());
        assert!(row.is("one", 1), "no replica has acquired it");
        assert_eq!(row.acquire(&other, 0, later), Some(2));
        assert!(!row.is("one", 1) && row.start() == Some(2) && row.held_by(later) == Some(2));

        row.release(&one, later);
        assert_eq!(row.start(), Some(2), "only its holder can release it");
        row.release(&other, later);
        assert_eq!(row.start(), None);
        assert!(row.is_free(&one, later));
        assert_eq!(row.acquire(&one, 1, later), Some(3));
        assert_eq!(row.acquire(&one, 7, later), Some(8), "the row was lost since");
    }
}
