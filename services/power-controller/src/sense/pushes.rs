//! Messages that the power upstream pushes, across broken connections.

use chassis::process::pause;
use futures_util::{Stream, StreamExt, stream};
use tokio::time::Instant;

use super::outage::SILENCE;
use crate::driver::{DriverFailure, NodeReading, PowerUpstream, ReadingStream};

/// Event of the stream of pushes.
pub(crate) enum PushEvent {
    /// The connection was down for a while, for this reason: known states may be out of date.
    Lost(String),
    /// No change is missed from here on. Changes before are unknown.
    Began,
    /// The power of these nodes changed.
    Changed(Vec<(String, NodeReading)>),
}

/// Listens to the upstream without end. After a break it connects again and reports the break.
pub(crate) fn pushes(driver: PowerUpstream) -> impl Stream<Item = PushEvent> + Send {
    stream::unfold(
        PushListener { driver, messages: None, failures: 0, outage: None },
        |mut listener| async move { Some((listener.next().await, listener)) },
    )
}

struct PushListener {
    driver: PowerUpstream,
    messages: Option<ReadingStream>,
    /// Breaks since the last message.
    failures: u32,
    outage: Option<PushOutage>,
}

/// Time without a connection.
struct PushOutage {
    since: Instant,
    told: bool,
}

impl PushListener {
    async fn next(&mut self) -> PushEvent {
        loop {
            let heard = match &mut self.messages {
                Some(messages) => messages.next().await.map(|message| message.map(PushEvent::Changed)),
                None => Some(self.begin().await.map(|()| PushEvent::Began)),
            };
            match heard {
                Some(Ok(push)) => {
                    if let PushEvent::Changed(_) = push {
                        self.failures = 0;
                    }
                    return push;
                }
                Some(Err(failure)) => {
                    let error = failure.to_string();
                    self.pause(&error).await;
                    if self.is_lost() {
                        return PushEvent::Lost(error);
                    }
                }
                None => self.messages = None,
            }
        }
    }

    /// Returns whether the outage has just become too long.
    fn is_lost(&mut self) -> bool {
        let outage = self.outage.get_or_insert_with(|| PushOutage { since: Instant::now(), told: false });
        let lost = !outage.told && outage.since.elapsed() >= SILENCE;
        outage.told |= lost;
        lost
    }

    async fn begin(&mut self) -> Result<(), DriverFailure> {
        self.messages = Some(self.driver.watch_power().await?);
        self.outage = None;
        Ok(())
    }

    async fn pause(&mut self, error: &str) {
        self.messages = None;
        if self.failures == 0 {
            tracing::warn!(error, "cannot listen to the power upstream, trying again");
        }
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(pause::after(self.failures)).await;
    }
}
