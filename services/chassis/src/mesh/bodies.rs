//! Bodies of requests on their way in: read as a whole before anything is done for them, at no less than a least pace, and
//! within a budget in bytes.

use std::{future::poll_fn, pin::Pin, sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
pub use domain::core::pace::Pace;
use http_body::Body as HttpBody;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout, timeout_at},
};

use crate::{Fault, process::pause};

/// Bytes that one permit stands for: a semaphore has fewer permits than there are bytes.
const UNIT: u64 = 1 << 10;

/// Bytes at the beginning of each body that have room of their own, a quarter of all: bulk writes keep no report out.
const SMALL: u64 = 64 << 10;

/// Bytes by which the room of a large body grows.
const STEP: u64 = 64 << 10;

/// The room for all bodies that are being read or worked on. Clones share it.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// Longest body that there can be room for.
    longest: u64,
    pace: Pace,
    wait: Duration,
}

/// A body that has arrived, and the room that it takes until this is dropped.
#[derive(Debug, Default)]
pub struct ArrivedBody {
    /// The body.
    pub bytes: Bytes,
    /// The room that it takes.
    pub room: BodyRoom,
}

/// Room of a body, which is free again when this is dropped.
#[derive(Debug, Default)]
pub struct BodyRoom {
    small: Option<OwnedSemaphorePermit>,
    large: Option<OwnedSemaphorePermit>,
    bytes: u64,
}

/// The reason why a body is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncompleteBody {
    /// The body has more bytes than it may have.
    TooLarge,
    /// The body did not arrive in time or not fast enough.
    TooSlow,
    /// Other bodies take all room.
    NoRoom(Fault),
    /// The connection broke, or the framing is wrong.
    Broken,
}

impl BodyBudget {
    /// Room for `most` bytes. Bodies have to keep `pace`, and wait for room for `wait` at most.
    pub fn new(most: u64, pace: Pace, wait: Duration) -> Self {
        let small = (most / 4).max(SMALL);
        let large = most.saturating_sub(small).max(UNIT);
        let semaphore = |bytes: u64| {
            let units = usize::try_from(bytes / UNIT).unwrap_or(usize::MAX);
            Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)))
        };
        Self { small: semaphore(small), large: semaphore(large), longest: large, pace, wait }
    }

    /// Reads a body of at most `longest` bytes to its end. Room is taken as bytes arrive: an announced body without
    /// bytes takes none.
    ///
    /// # Errors
    /// The reason why the body is not complete.
    pub async fn read(&self, mut body: Body, longest: u64) -> Result<ArrivedBody, IncompleteBody> {
        if body.is_end_stream() {
            return Ok(ArrivedBody::default());
        }
        let longest = longest.min(self.longest);
        if body.size_hint().lower() > longest {
            return Err(IncompleteBody::TooLarge);
        }
        let (announced, began) = (body.size_hint().exact(), Instant::now());
        let (mut first, mut all, mut room) = (Bytes::new(), Vec::new(), BodyRoom::default());
        let mut received = 0;
        while !body.is_end_stream() {
            let deadline = began + self.pace.more_of_body_within(received, announced);
            let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
            let Some(frame) = timeout_at(deadline, frame).await.map_err(|_| IncompleteBody::TooSlow)? else {
                break;
            };
            let Ok(part) = frame.map_err(|_| IncompleteBody::Broken)?.into_data() else { continue };
            received += part.len() as u64;
            if received > longest {
                return Err(IncompleteBody::TooLarge);
            }
            room.grow(self, received).await?;
            // Most bodies arrive in one part, which is not copied.
            if first.is_empty() && all.is_empty() {
                first = part;
            } else {
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&part);
            }
        }
        let bytes = if all.is_empty() { first } else { all.into() };
        Ok(ArrivedBody { bytes, room })
    }
}

impl BodyRoom {
    /// Takes room for `bytes` in all.
    async fn grow(&mut self, budget: &BodyBudget, bytes: u64) -> Result<(), IncompleteBody> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let wanted = if bytes <= SMALL { bytes.next_multiple_of(UNIT) } else { bytes.next_multiple_of(STEP) };
        let (small, large) = (wanted.min(SMALL), wanted.saturating_sub(SMALL));
        let (had_small, had_large) = (self.bytes.min(SMALL), self.bytes.saturating_sub(SMALL));
        take(&budget.small, &mut self.small, small - had_small, budget.wait).await?;
        take(&budget.large, &mut self.large, large - had_large, budget.wait).await?;
        self.bytes = wanted;
        Ok(())
    }
}

/// Adds `bytes` of `from` to `room`.
async fn take(
    from: &Arc<Semaphore>,
    room: &mut Option<OwnedSemaphorePermit>,
    bytes: u64,
    wait: Duration,
) -> Result<(), IncompleteBody> {
    let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
    if units == 0 {
        return Ok(());
    }
    let taken = match Arc::clone(from).try_acquire_many_owned(units) {
        Ok(taken) => taken,
        Err(_) => {
            // Large bodies that have arrived in part wait for each other. Random limits let some give up, so that
            // others finish.
            let patience = wait.mul_f64(rand::random_range(0.1..=1.0));
            let waited = timeout(patience, Arc::clone(from).acquire_many_owned(units)).await;
            waited.map_err(|_| IncompleteBody::NoRoom(no_room()))?.expect("nobody closes the room")
        }
    };
    match room {
        Some(room) => room.merge(taken),
        None => *room = Some(taken),
    }
    Ok(())
}

fn no_room() -> Fault {
    Fault::Busy {
        reason: "as many bytes of bodies are being worked on as the limits allow".into(),
        retry_after: pause::retry_after(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    const PACE: Pace =
        Pace { bytes_per_second: 1024, grace: Duration::from_secs(10), patience: Duration::from_secs(75) };

    fn budget(most: u64) -> BodyBudget {
        BodyBudget::new(most, PACE, Duration::ZERO)
    }

    /// A body of `length` bytes of which one arrives each second.
    fn slow(length: usize) -> Body {
        let parts = stream::iter(0..length).then(async |_| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, std::io::Error>(Bytes::from_static(b"x"))
        });
        Body::from_stream(parts)
    }

    fn parts(count: usize, length: usize) -> Body {
        let part = Bytes::from(vec![b'x'; length]);
        Body::from_stream(stream::iter(vec![part; count]).map(Ok::<_, std::io::Error>))
    }

    #[tokio::test]
    async fn body_arrives_as_it_was_sent() {
        let budget = budget(1 << 20);
        for (body, length) in [(Body::empty(), 0), (Body::from("four"), 4), (parts(3, 1000), 3000)] {
            assert_eq!(budget.read(body, 3000).await.unwrap().bytes.len(), length);
        }
        assert_eq!(budget.read(parts(3, 1000), 2999).await.unwrap_err(), IncompleteBody::TooLarge);
        assert_eq!(budget.read(Body::from("four"), 3).await.unwrap_err(), IncompleteBody::TooLarge);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_bodies_are_cut_and_take_little_room() {
        let budget = budget(1 << 20);
        let reads = (0..200).map(|_| budget.read(slow(600), 1 << 20));
        let crowd = futures_util::future::join_all(reads);
        let began = Instant::now();
        let others = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            budget.read(Body::from("four"), 1 << 20).await
        };
        let (cut, other) = tokio::join!(crowd, others);
        assert_eq!(other.unwrap().bytes, "four");
        assert!(cut.iter().all(|read| matches!(read, Err(IncompleteBody::TooSlow))));
        assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn large_bodies_leave_room_for_small_ones() {
        let budget = budget(1 << 20);
        let large = budget.read(parts(9, 64 << 10), 1 << 20).await.unwrap();
        let refused = budget.read(parts(9, 64 << 10), 1 << 20).await;
        assert!(matches!(refused, Err(IncompleteBody::NoRoom(Fault::Busy { .. }))), "{refused:?}");
        budget.read(parts(1, 64 << 10), 1 << 20).await.unwrap();
        drop(large);
        budget.read(parts(9, 64 << 10), 1 << 20).await.unwrap();
    }
}
