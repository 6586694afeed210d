//! The time for which an upstream has not answered.

use std::time::Duration;

use tokio::time::Instant;

/// Longest time without answers before known states count as unknown. A restart of the upstream takes less, and every
/// wait for the effect of an action is much longer.
pub(crate) const LONGEST: Duration = Duration::from_secs(3);

/// Time from the first failure in a row.
#[derive(Debug, Default)]
pub(crate) struct OutageTimer {
    since: Option<Instant>,
}

impl OutageTimer {
    /// Ends the outage: the upstream answered.
    pub(crate) fn ends(&mut self) {
        self.since = None;
    }

    /// Notes that the upstream did not answer a request made at `asked`. Returns whether the outage is too long.
    pub(crate) fn lasts(&mut self, asked: Instant, now: Instant) -> bool {
        now.duration_since(*self.since.get_or_insert(asked)) >= LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_silence_changes_nothing() {
        let mut outage = OutageTimer::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!outage.lasts(at(0), at(1)));
        assert!(outage.lasts(at(2), at(3)));
        outage.ends();
        assert!(!outage.lasts(at(4), at(5)));
        assert!(outage.lasts(at(6), at(26)), "a peer that hangs is silent from the request on");
        outage.ends();
        assert!(outage.lasts(at(30), at(50)));
    }
}
