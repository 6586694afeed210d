//! Giving memory back to the system.

use std::{convert::Infallible, thread, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

/// How often memory is given back: a thread that does nothing costs less than a hundred microseconds.
const PERIOD: Duration = Duration::from_secs(2);

/// Has the allocator give back what has been free for a second. It does so when it is called, and a part at rest hardly
/// calls it: what a start, a boot or a crowd of lists had needed would stay for hours. It also does so when a thread
/// ends, which needs no call that the compiler cannot check.
pub(crate) async fn give_back() -> anyhow::Result<Infallible> {
    let mut period = interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        period.tick().await;
        if let Err(error) = thread::Builder::new().name("memory".into()).spawn(|| {}) {
            tracing::debug!(%error, "no memory is given back now");
        }
    }
}
