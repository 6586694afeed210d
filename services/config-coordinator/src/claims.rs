//! Claims of components for rounds of work, and the pauses between repeats.

use std::{collections::HashMap, time::Duration};

use chassis::process::{memory::leave_room, pause};
use domain::core::id::ComponentId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Lets only one round at a time work on each component, prevents repeats of finished work, and spaces retries. `W`
/// identifies the work, so that new work never waits for the pause of old work.
///
/// Claims exist only in this process: after a restart everything may be claimed.
pub(crate) struct WorkClaims<W> {
    claims: Mutex<HashMap<ComponentId, WorkClaim<W>>>,
}

struct WorkClaim<W> {
    work: W,
    /// Failures of this work in a row.
    failures: u32,
    stage: ClaimStage,
}

enum ClaimStage {
    UnderWay,
    Done,
    Paused(Instant),
}

/// Answer to a request for a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimAnswer {
    /// The round may work on the component, and has to report the end.
    Granted,
    /// Another round works on the component.
    Busy,
    /// The work is done, and its record is on its way.
    Done,
    /// The work may not begin before this time.
    Early(Instant),
}

impl<W> Default for WorkClaims<W> {
    fn default() -> Self {
        Self { claims: Mutex::default() }
    }
}

impl<W: PartialEq> WorkClaims<W> {
    /// Forgets all claims, as a start does.
    pub(crate) fn clear(&self) {
        *self.claims.lock() = HashMap::new();
    }

    /// Claims a component for `work`.
    pub(crate) fn claim(&self, id: &ComponentId, work: W, now: Instant) -> ClaimAnswer {
        self.claim_from(id, work, now, now)
    }

    /// Claims a component for work that, if it is new, does not begin before `earliest`.
    pub(crate) fn claim_from(
        &self,
        id: &ComponentId,
        work: W,
        earliest: Instant,
        now: Instant,
    ) -> ClaimAnswer {
        let mut claims = self.claims.lock();
        let known = claims.get(id).map(|claim| (claim.work == work, claim.failures, &claim.stage));
        let failures = match known {
            Some((_, _, ClaimStage::UnderWay)) => return ClaimAnswer::Busy,
            Some((true, _, ClaimStage::Done)) => return ClaimAnswer::Done,
            Some((true, _, ClaimStage::Paused(until))) if now < *until => return ClaimAnswer::Early(*until),
            Some((true, failures, ClaimStage::Paused(_))) => failures,
            Some((false, _, ClaimStage::Done | ClaimStage::Paused(_))) | None if now < earliest => {
                let stage = ClaimStage::Paused(earliest);
                claims.insert(id.clone(), WorkClaim { work, failures: 0, stage });
                return ClaimAnswer::Early(earliest);
            }
            Some((false, _, ClaimStage::Done | ClaimStage::Paused(_))) | None => 0,
        };
        claims.insert(id.clone(), WorkClaim { work, failures, stage: ClaimStage::UnderWay });
        ClaimAnswer::Granted
    }

    /// Marks the claimed work as done, so that it is not repeated.
    pub(crate) fn done(&self, id: &ComponentId) {
        if let Some(claim) = self.claims.lock().get_mut(id) {
            claim.stage = ClaimStage::Done;
        }
    }

    /// Schedules a retry of the claimed work, after a pause that grows with each failure. Components with the same
    /// number of failures get the same time, so that one call can serve them all.
    pub(crate) fn again<'a>(&self, ids: impl IntoIterator<Item = &'a ComponentId>, now: Instant) {
        self.again_after(ids, now, pause::after);
    }

    /// Schedules a retry as [`Self::again`] does, with the pause that `pause` returns for a number of failures in a
    /// row.
    pub(crate) fn again_after<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a ComponentId>,
        now: Instant,
        pause: impl Fn(u32) -> Duration,
    ) {
        let mut pauses = HashMap::new();
        let mut claims = self.claims.lock();
        for id in ids {
            if let Some(claim) = claims.get_mut(id) {
                claim.failures = claim.failures.saturating_add(1);
                let pause = pauses.entry(claim.failures).or_insert_with_key(|failures| pause(*failures));
                claim.stage = ClaimStage::Paused(now + *pause);
            }
        }
    }

    /// Marks the claimed work as successful, to be repeated from `until` on.
    pub(crate) fn rest(&self, id: &ComponentId, until: Instant) {
        if let Some(claim) = self.claims.lock().get_mut(id) {
            claim.failures = 0;
            claim.stage = ClaimStage::Paused(until);
        }
    }

    /// Ends all pauses after success, because their length has to be computed again. Pauses after failures stay.
    pub(crate) fn end_rests(&self, now: Instant) {
        for claim in self.claims.lock().values_mut().filter(|claim| claim.failures == 0) {
            if let ClaimStage::Paused(until) = &mut claim.stage {
                *until = now.min(*until);
            }
        }
    }

    /// Ends the claimed work and forgets it.
    pub(crate) fn release(&self, id: &ComponentId) {
        let mut claims = self.claims.lock();
        claims.remove(id);
        leave_room(&mut claims);
    }

    /// Forgets a component without work, unless a round works on it.
    pub(crate) fn idle(&self, id: &ComponentId) {
        let mut claims = self.claims.lock();
        if claims.get(id).is_some_and(|claim| !matches!(claim.stage, ClaimStage::UnderWay)) {
            claims.remove(id);
            leave_room(&mut claims);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn early(answer: ClaimAnswer) -> bool {
        matches!(answer, ClaimAnswer::Early(_))
    }

    #[test]
    fn one_round_at_a_time_whatever_the_work() {
        let (claims, id, now) = (WorkClaims::default(), ComponentId::parse("x1").unwrap(), Instant::now());
        assert_eq!(claims.claim(&id, 1, now), ClaimAnswer::Granted);
        claims.idle(&id);
        assert_eq!([1, 2].map(|work| claims.claim(&id, work, now)), [ClaimAnswer::Busy, ClaimAnswer::Busy]);
        claims.release(&id);
        assert_eq!(claims.claim(&id, 2, now), ClaimAnswer::Granted);
    }

    #[test]
    fn finished_work_is_not_repeated_but_new_work_begins() {
        let (claims, id, now) = (WorkClaims::default(), ComponentId::parse("x1").unwrap(), Instant::now());
        claims.claim(&id, 1, now);
        claims.done(&id);
        assert_eq!(claims.claim(&id, 1, now + LONG), ClaimAnswer::Done);
        assert_eq!(claims.claim(&id, 2, now), ClaimAnswer::Granted);
        claims.done(&id);
        claims.idle(&id);
        assert_eq!(claims.claim(&id, 2, now), ClaimAnswer::Granted);
    }

    #[test]
    fn repeats_wait_but_new_work_does_not() {
        let (claims, id, now) = (WorkClaims::default(), ComponentId::parse("x1").unwrap(), Instant::now());
        claims.claim(&id, 1, now);
        claims.again([&id], now);
        assert!(early(claims.claim(&id, 1, now)));
        assert_eq!(claims.claim(&id, 1, now + LONG), ClaimAnswer::Granted);
        claims.again([&id], now);
        assert_eq!(claims.claim(&id, 2, now), ClaimAnswer::Granted);
    }

    #[test]
    fn new_work_may_have_to_wait_for_its_time() {
        let (claims, id, now) = (WorkClaims::default(), ComponentId::parse("x1").unwrap(), Instant::now());
        let later = now + LONG;
        assert_eq!(claims.claim_from(&id, 1, later, now), ClaimAnswer::Early(later));
        assert_eq!(claims.claim_from(&id, 1, later + LONG, now), ClaimAnswer::Early(later));
        assert_eq!(claims.claim_from(&id, 1, later + LONG, later), ClaimAnswer::Granted);
        claims.rest(&id, later + LONG);
        assert_eq!(claims.claim_from(&id, 1, later, later), ClaimAnswer::Early(later + LONG));
        assert_eq!(claims.claim(&id, 2, later), ClaimAnswer::Granted);
    }

    #[test]
    fn those_that_failed_together_come_back_together() {
        let (claims, now) = (WorkClaims::default(), Instant::now());
        let ids = ["x1", "x2"].map(|id| ComponentId::parse(id).unwrap());
        for id in &ids {
            claims.claim(id, 1, now);
        }
        claims.again(&ids, now);
        let [one, other] = ids.each_ref().map(|id| claims.claim(id, 1, now));
        assert_eq!(one, other);
        assert!(early(one));
    }
}
