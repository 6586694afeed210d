//! Restarts and crashes while others work.

use std::{ops::Range, time::Duration};

use rand::{Rng, SeedableRng, rngs::SmallRng};
use tokio::{sync::watch, time::timeout};

use crate::site::RegistrySite;

/// Milliseconds between two restarts.
const BETWEEN: Range<u64> = 300..1500;

/// Milliseconds that a registry is away.
const AWAY: Range<u64> = 0..300;

/// Stops and starts registries until signalled. Returns them all running.
pub async fn blow(mut site: RegistrySite, seed: u64, mut stopped: watch::Receiver<bool>) -> RegistrySite {
    let mut rng = SmallRng::seed_from_u64(seed);
    loop {
        let pause = Duration::from_millis(rng.random_range(BETWEEN));
        if timeout(pause, stopped.wait_for(|stopped| *stopped)).await.is_ok() {
            return site;
        }
        let index = rng.random_range(0..site.registries());
        site.end_one(index).await;
        tokio::time::sleep(Duration::from_millis(rng.random_range(AWAY))).await;
        site.start_one(index).await;
    }
}
