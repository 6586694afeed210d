//! The least pace at which a client has to send its request and to take the answer.

use std::time::Duration;

/// Limits on the slowness of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Bytes in each second, on average.
    pub bytes_per_second: u64,
    /// Time in which a client may stall and move nothing.
    pub grace: Duration,
    /// Time in which a body has to be complete, whatever its pace.
    pub patience: Duration,
}

impl Pace {
    /// Time since the beginning of a body by which more of it has to arrive, once `received` bytes have arrived. A body
    /// of the length `announced` has to be fast enough to be complete in time.
    pub fn more_of_body_within(&self, received: u64, announced: Option<u64>) -> Duration {
        let seconds = self.patience.as_secs().max(1);
        let needed = announced.map_or(0, |length| length / seconds);
        let rate = self.bytes_per_second.max(needed).max(1);
        let paced = Duration::from_millis(received.saturating_mul(1000) / rate);
        self.grace.saturating_add(paced).min(self.patience)
    }

    /// Returns whether a client that took `taken` bytes while data has been waiting for it for `waited` is fast enough.
    pub fn takes_enough(&self, taken: u64, waited: Duration) -> bool {
        let seconds = waited.saturating_sub(self.grace).as_secs();
        taken >= self.bytes_per_second.saturating_mul(seconds) && (taken > 0 || waited < self.grace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace =
        Pace { bytes_per_second: 1024, grace: Duration::from_secs(10), patience: Duration::from_secs(75) };

    #[test]
    fn body_has_to_keep_pace() {
        for (received, announced, seconds) in [
            (0, None, 10),
            (10, Some(600), 10),
            (2048, Some(4096), 12),
            (1 << 20, None, 75),
            // One of 64 MiB needs almost a MiB per second to be complete in time.
            (2048, Some(64 << 20), 10),
            (32 << 20, Some(64 << 20), 47),
            (64 << 20, Some(64 << 20), 75),
        ] {
            let within = PACE.more_of_body_within(received, announced);
            assert_eq!(within.as_secs(), seconds, "{received} of {announced:?}");
        }
    }

    #[test]
    fn reader_has_to_keep_pace() {
        for (taken, seconds, enough) in [
            (0, 0, true),
            (0, 9, true),
            (0, 10, false),
            (1, 10, true),
            (1, 12, false),
            (4096, 14, true),
            (4096, 15, false),
        ] {
            assert_eq!(
                PACE.takes_enough(taken, Duration::from_secs(seconds)),
                enough,
                "{taken} in {seconds} s"
            );
        }
    }
}
