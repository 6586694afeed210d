//! Messages that the power upstream pushes, across broken connections.

use chassis::{observe::outage::OutageTimer, process::pause};
use futures_util::{Stream, StreamExt, stream};
use tokio::time::Instant;

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
        PushListener {
            driver,
            messages: None,
            failures: 0,
            outage: OutageTimer::default(),
            is_reported: false,
        },
        |mut listener| async move { Some((listener.next().await, listener)) },
    )
}

struct PushListener {
    driver: PowerUpstream,
    messages: Option<ReadingStream>,
    /// Breaks since the last message.
    failures: u32,
    /// Time without a connection.
    outage: OutageTimer,
    /// Whether the outage was reported.
    is_reported: bool,
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
        let now = Instant::now();
        let is_lost = self.outage.is_too_long(now, now) && !self.is_reported;
        self.is_reported |= is_lost;
        is_lost
    }

    async fn begin(&mut self) -> Result<(), DriverFailure> {
        self.messages = Some(self.driver.watch_power().await?);
        (self.outage, self.is_reported) = (OutageTimer::default(), false);
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
