//! Messages that the power upstream pushes, across broken connections.

use chassis::process::pause;
use futures_util::{Stream, StreamExt, stream};
use tokio::time::Instant;

use super::silence::SILENCE;
use crate::driver::{Driver, Failure, Reading, Readings};

/// Event of the stream of pushes.
pub(crate) enum Push {
    /// The connection was down for a while, for this reason: known states may be out of date.
    Lost(String),
    /// No change is missed from here on. Changes before are unknown.
    Began,
    /// The power of these nodes changed.
    Changed(Vec<(String, Reading)>),
}

/// Listens to the upstream without end. After a break it connects again and reports the break.
pub(crate) fn pushes(driver: Driver) -> impl Stream<Item = Push> + Send {
    stream::unfold(
        Listener { driver, messages: None, failures: 0, silence: None },
        |mut listener| async move { Some((listener.next().await, listener)) },
    )
}

struct Listener {
    driver: Driver,
    messages: Option<Readings>,
    /// Breaks since the last message.
    failures: u32,
    silence: Option<Silence>,
}

/// Time without a connection.
struct Silence {
    since: Instant,
    told: bool,
}

impl Listener {
    async fn next(&mut self) -> Push {
        loop {
            let heard = match &mut self.messages {
                Some(messages) => messages.next().await.map(|message| message.map(Push::Changed)),
                None => Some(self.begin().await.map(|()| Push::Began)),
            };
            match heard {
                Some(Ok(push)) => {
                    if let Push::Changed(_) = push {
                        self.failures = 0;
                    }
                    return push;
                }
                Some(Err(failure)) => {
                    let error = failure.to_string();
                    self.pause(&error).await;
                    if self.is_lost() {
                        return Push::Lost(error);
                    }
                }
                None => self.messages = None,
            }
        }
    }

    /// Returns whether the silence has just become too long.
    fn is_lost(&mut self) -> bool {
        let silence = self.silence.get_or_insert_with(|| Silence { since: Instant::now(), told: false });
        let lost = !silence.told && silence.since.elapsed() >= SILENCE;
        silence.told |= lost;
        lost
    }

    async fn begin(&mut self) -> Result<(), Failure> {
        self.messages = Some(self.driver.watch_power().await?);
        self.silence = None;
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
