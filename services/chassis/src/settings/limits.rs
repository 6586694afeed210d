//! Limits of the concurrent work of a part.

use serde::{Deserialize, Serialize};

/// Concurrent work that each part accepts over gRPC. Excess is refused at once with `RESOURCE_EXHAUSTED` and the time
/// after which to try again; health checks are always answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Most connections. Further ones are closed.
    pub connections: u32,
    /// Seconds of silence, without even answers to pings, after which a connection is closed.
    pub silence_seconds: u32,
    /// Most calls on behalf of nodes.
    pub reports: u32,
    /// Most calls on behalf of people and tools, lists aside.
    pub operators: u32,
    /// Most calls of the parts of the mesh among each other, lists and watches included.
    pub control: u32,
    /// Most lists of others.
    pub lists: u32,
    /// Most watches of others.
    pub watches: u32,
    /// Most bytes that all streams of a process may hold for their clients; a quarter of its memory limit at most.
    pub stream_bytes: u64,
    /// Seconds after which a stream is closed if its client does not read.
    pub stalled_seconds: u32,
    /// Most bytes of the messages that a part is receiving or working on; a quarter of its memory limit at most.
    pub body_bytes: u64,
    /// Fewest bytes that have to arrive of a message in each second, after the first ten.
    pub least_rate: u32,
    /// Bytes of memory that the process may have; 0: as much as its control group allows.
    pub memory_bytes: u64,
    /// Complete sessions that are kept, whatever their age. Beyond that the oldest are deleted.
    pub complete_sessions: u32,
}

impl LimitSettings {
    /// Checks that every class has a place.
    ///
    /// # Errors
    /// Names the limit that leaves a class none.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (key, most) in [
            ("connections", self.connections),
            ("reports", self.reports),
            ("operators", self.operators),
            ("control", self.control),
            ("lists", self.lists),
            ("watches", self.watches),
            ("stalled_seconds", self.stalled_seconds),
        ] {
            anyhow::ensure!(most > 0, "limits.{key}: has to be above zero");
        }
        anyhow::ensure!(self.stream_bytes >= 1 << 20, "limits.stream_bytes: has to be 1048576 or more");
        anyhow::ensure!(self.body_bytes >= 1 << 20, "limits.body_bytes: has to be 1048576 or more");
        // A shorter limit would close connections that answer every ping.
        anyhow::ensure!(self.silence_seconds >= 30, "limits.silence_seconds: has to be 30 or more");
        Ok(())
    }

    /// Most calls that may be under way at the same time.
    pub(crate) fn calls(&self) -> u32 {
        let all = [self.reports, self.operators, self.control, self.lists, self.watches];
        all.into_iter().fold(0, u32::saturating_add)
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            connections: 1024,
            // Pings come every ten seconds.
            silence_seconds: 60,
            // Several gateways' worth of each.
            reports: 4096,
            operators: 2048,
            control: 1024,
            lists: 256,
            watches: 16_384,
            // The first state of a fleet of 10,000 for about thirty watches at the same time.
            stream_bytes: 128 << 20,
            // A gateway that waits for its own client gives up sooner.
            stalled_seconds: 120,
            // The largest message twice.
            body_bytes: 512 << 20,
            least_rate: 1024,
            memory_bytes: 0,
            complete_sessions: 10_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_leaves_nobody_a_place_is_named() {
        let limits = LimitSettings::default();
        assert!(limits.check().is_ok());
        for (limits, told) in [
            (LimitSettings { watches: 0, ..limits.clone() }, "limits.watches: has to be above zero"),
            (LimitSettings { control: 0, ..limits.clone() }, "limits.control: has to be above zero"),
            (LimitSettings { silence_seconds: 10, ..limits }, "limits.silence_seconds: has to be 30 or more"),
        ] {
            assert_eq!(limits.check().unwrap_err().to_string(), told);
        }
    }
}
