//! The time for which nodes could not be read.

use std::{collections::HashMap, time::Duration};

use domain::core::id::ComponentId;
use tokio::time::Instant;

/// Longest time without readings before known states count as unknown. A restart of the upstream takes less, and every
/// wait for the effect of an action is much longer.
pub(super) const SILENCE: Duration = Duration::from_secs(3);

/// Nodes that could not be read, and since when.
#[derive(Debug, Default)]
pub(super) struct NodeOutages {
    since: HashMap<ComponentId, Instant>,
}

impl NodeOutages {
    /// Ends the outage of a node that was read.
    pub(super) fn heard(&mut self, id: &str) {
        self.since.remove(id);
    }

    /// Notes that these nodes, requested at `asked_at`, could not be read. Returns those that could not be read for too
    /// long.
    pub(super) fn unheard(
        &mut self,
        ids: &[ComponentId],
        asked_at: Instant,
        now: Instant,
    ) -> Vec<ComponentId> {
        let lost = |id: &&ComponentId| {
            let since = *self.since.entry(ComponentId::clone(id)).or_insert(asked_at);
            now.saturating_duration_since(since) >= SILENCE
        };
        ids.iter().filter(lost).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_lost_when_nothing_was_read_of_it_for_a_while() {
        let (start, mut outages) = (Instant::now(), NodeOutages::default());
        let ids = ["x1", "x2"].map(|id| ComponentId::parse(id).unwrap());
        let unheard = |outages: &mut NodeOutages, asked_at, now| {
            let [asked_at, now] = [asked_at, now].map(|after| start + Duration::from_millis(after));
            outages.unheard(&ids, asked_at, now).len()
        };
        assert_eq!(unheard(&mut outages, 0, 1), 0);
        assert_eq!(unheard(&mut outages, 2_990, 2_999), 0);
        outages.heard("x2");
        assert_eq!(unheard(&mut outages, 2_999, 3_000), 1);
        assert_eq!(unheard(&mut outages, 5_000, 6_000), 2);
        ids.iter().for_each(|id| outages.heard(id.as_str()));
        assert_eq!(unheard(&mut outages, 6_000, 9_000), 2, "one batch took so long");
    }
}
