//! Listening to an outside system that pushes changes, across broken connections.

use std::{fmt::Display, future::Future};

use futures_util::{Stream, StreamExt, stream};
use tokio::time::{Instant, sleep};

use super::outage::OutageTimer;
use crate::process::pause::FailureStreak;

/// Event of a stream of pushes.
#[derive(Debug, PartialEq, Eq)]
pub enum PushEvent<T, E> {
    /// No change is missed from here on. Changes before are unknown.
    Began,
    /// The system pushed something.
    Pushed(T),
    /// There has been no connection for too long, for this reason: readings may be out of date. Reported once for each
    /// outage.
    Lost(E),
}

/// Listens without end to the pushes of a connection that `connect` makes; after a break it connects again. `subject`
/// names the changes in the log.
///
/// An outage begins when a connection breaks, or with the first attempt to connect that fails.
pub fn listen<T, E, S, F>(
    subject: &'static str,
    connect: impl Fn() -> F + Send,
) -> impl Stream<Item = PushEvent<T, E>> + Send
where
    T: Send,
    E: Display + Send + Sync,
    S: Stream<Item = Result<T, E>> + Unpin + Send,
    F: Future<Output = Result<S, E>> + Send,
{
    let listener = PushListener {
        subject,
        connect,
        pushes: None,
        failures: FailureStreak::default(),
        outage: OutageTimer::default(),
        is_reported: false,
    };
    stream::unfold(listener, |mut listener| async move { Some((listener.next().await, listener)) })
}

struct PushListener<C, S> {
    subject: &'static str,
    connect: C,
    pushes: Option<S>,
    /// Breaks since the last push.
    failures: FailureStreak,
    /// Time without a connection.
    outage: OutageTimer,
    /// Whether the outage was reported.
    is_reported: bool,
}

impl<C, S> PushListener<C, S> {
    async fn next<T, E: Display, F>(&mut self) -> PushEvent<T, E>
    where
        S: Stream<Item = Result<T, E>> + Unpin,
        C: Fn() -> F,
        F: Future<Output = Result<S, E>>,
    {
        loop {
            let Some(pushes) = &mut self.pushes else {
                let began = Instant::now();
                match self.begin().await {
                    Ok(()) => return PushEvent::Began,
                    Err(error) if self.fail(&error, began).await => return PushEvent::Lost(error),
                    Err(_) => continue,
                }
            };
            match pushes.next().await {
                Some(Ok(pushed)) => {
                    self.failures.end();
                    return PushEvent::Pushed(pushed);
                }
                Some(Err(error)) => {
                    if self.fail(&error, Instant::now()).await {
                        return PushEvent::Lost(error);
                    }
                }
                None => self.pushes = None,
            }
        }
    }

    async fn begin<E, F: Future<Output = Result<S, E>>>(&mut self) -> Result<(), E>
    where
        C: Fn() -> F,
    {
        self.pushes = Some((self.connect)().await?);
        (self.outage, self.is_reported) = (OutageTimer::default(), false);
        Ok(())
    }

    /// Pauses after a failure. Returns whether the outage, which began at `since` at the latest, has just become too long.
    async fn fail(&mut self, error: &impl Display, since: Instant) -> bool {
        self.pushes = None;
        if self.failures.add() {
            tracing::warn!(%error, subject = self.subject, "cannot listen for changes, trying again");
        }
        sleep(self.failures.pause()).await;
        let is_lost = self.outage.is_too_long(since, Instant::now()) && !self.is_reported;
        self.is_reported |= is_lost;
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use parking_lot::Mutex;

    use super::*;

    /// Plays connections, each as the milliseconds until it is refused or made, and what comes of it: pushes by their
    /// letters, and `!` for a break. Returns the events with their second.
    async fn play(connections: &[(u64, &'static str)]) -> Vec<String> {
        let start = Instant::now();
        let left = Mutex::new(connections.iter());
        let connect = || {
            let connection = left.lock().next().copied();
            async move {
                let Some((milliseconds, pushes)) = connection else { return std::future::pending().await };
                sleep(Duration::from_millis(milliseconds)).await;
                match pushes {
                    "" => Err("refused"),
                    _ => Ok(stream::iter(pushes.chars().map(|push| match push {
                        '!' => Err("broken"),
                        push => Ok(push),
                    }))),
                }
            }
        };
        let mut events = Vec::new();
        let mut pushes = std::pin::pin!(listen("letters", connect));
        while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(60), pushes.next()).await {
            let event = match event {
                PushEvent::Began => "began".to_owned(),
                PushEvent::Pushed(letter) => letter.to_string(),
                PushEvent::Lost(error) => format!("lost after {} s: {error}", start.elapsed().as_secs()),
            };
            events.push(event);
        }
        events
    }

    #[tokio::test(start_paused = true)]
    async fn break_is_followed_by_a_new_beginning() {
        assert_eq!(
            play(&[(0, "ab!"), (0, "c!"), (0, "d")]).await,
            ["began", "a", "b", "began", "c", "began", "d"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn outage_is_reported_once_it_is_too_long() {
        let events = play(&[(2_900, "a!"), (0, ""), (3_000, ""), (3_000, ""), (0, "b")]).await;
        assert_eq!(events[..2], ["began", "a"]);
        assert!(events[2].ends_with("refused") && events[3..] == ["began", "b"], "{events:?}");
        let events = play(&[(2_000, ""), (500, "a!"), (500, ""), (0, "b")]).await;
        assert_eq!(events, ["began", "a", "began", "b"], "each outage has its own beginning");
        let events = play(&[(20_000, ""), (0, "a")]).await;
        assert_eq!(
            events,
            ["lost after 20 s: refused", "began", "a"],
            "a peer that hangs is silent from the attempt on"
        );
    }
}
