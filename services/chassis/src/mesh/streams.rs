//! A budget in bytes for messages that a part has encoded and its clients have not taken, over all streams.
//!
//! Bytes count from the moment they are encoded until the connection has handed them to the system. When the budget is
//! used up, streams wait before they encode more. Streams of clients that take nothing are then closed, the slowest
//! first, so that clients that read wait for a second or two and lose nothing. A stream that has not delivered anything
//! yet can only use half of the budget: a crowd that never reads cannot take the half of those that do.

use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame};
use metrics::{counter, gauge};
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior};
use tonic::Status;

use crate::{Fault, Tasks, mesh::buffers, process::pause};

/// Bytes held for all streams of the process.
const HELD: &str = "reveille_stream_bytes";

/// Streams that were closed because their clients took too little.
const CLOSED: &str = "reveille_streams_closed_total";

/// Memory of an open stream without its messages: its task, its place in the feed, and its state in the connection.
const STREAM: usize = 8 << 10;

/// Bytes of one stream that are handed to its connection at a time.
const UNDER_WAY: usize = 256 << 10;

/// Bytes of one piece. Each shows that the client takes something.
const PIECE: usize = 64 << 10;

/// Bytes of an answer that is no stream, up to which it counts as nothing: there are only so many calls.
const SMALL: usize = 16 << 10;

/// Time after which a client that takes nothing has to make room for others.
const STALLED: Duration = Duration::from_secs(1);

/// Time that a stream waits for room before it is refused.
const WAIT: Duration = Duration::from_secs(10);

/// Time between two searches for streams to close.
const SEARCH: Duration = Duration::from_millis(500);

/// The bytes that all streams of a process may hold. Clones share them.
#[derive(Clone)]
pub struct StreamBudget(Arc<StreamBudgetInner>);

struct StreamBudgetInner {
    most: usize,
    held: AtomicUsize,
    began: Instant,
    /// Time after which a client that takes nothing is given up, whether there is room or not.
    patience: Duration,
    next: AtomicU64,
    watched: AtomicBool,
    /// Streams that may have to be closed.
    open: Mutex<HashMap<u64, Weak<StreamAccount>>>,
    queue: Mutex<StreamQueue>,
    /// Length of the queue: an empty one is not locked.
    queued: AtomicUsize,
}

/// Streams that wait for room.
#[derive(Default)]
struct StreamQueue {
    /// Streams with clients known to read.
    proven: VecDeque<Weak<StreamAccount>>,
    unproven: VecDeque<Weak<StreamAccount>>,
}

/// The share of the budget that one answer holds.
pub(crate) struct StreamAccount {
    budget: Arc<StreamBudgetInner>,
    /// Bytes that the connection has not handed to the system yet.
    under_way: AtomicUsize,
    /// Milliseconds since the budget began at which the client took something, or was given something to take.
    progress: AtomicU64,
    /// Milliseconds since the budget began, and one, since when the stream waits for room; 0: it does not.
    waits: AtomicU64,
    /// Whether the client has ever read anything.
    proven: AtomicBool,
    /// Whether it is in the queue for room.
    queued: AtomicBool,
    closed: AtomicBool,
    refused: AtomicBool,
    task: AtomicWaker,
}

tokio::task_local! {
    /// The account of the stream that a task serves.
    static CURRENT: Arc<StreamAccount>;
}

impl StreamBudget {
    /// A budget of `most` bytes. A client that takes nothing for `patience` is given up.
    pub(crate) fn new(most: u64, patience: Duration) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Self(Arc::new(StreamBudgetInner {
            most,
            held: AtomicUsize::new(0),
            began: Instant::now(),
            patience,
            next: AtomicU64::new(0),
            watched: AtomicBool::new(false),
            open: Mutex::default(),
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
        }))
    }

    /// Spawns the task of a stream, which ends when the stream has to be closed. The client then gets a reset, after
    /// which it may resume from its last batch.
    pub(crate) fn spawn(&self, stream: impl Future<Output = ()> + Send + 'static) {
        let account = StreamAccount::new(&self.0);
        let scoped = CURRENT.scope(Arc::clone(&account), async move {
            let mut stream = pin!(stream);
            poll_fn(move |context| {
                account.task.register(context.waker());
                let polled = stream.as_mut().poll(context);
                match account.closed.load(Ordering::Acquire) {
                    true => Poll::Ready(()),
                    false => polled,
                }
            })
            .await;
        });
        tokio::spawn(scoped);
    }

    /// Returns an answer whose bytes count, and that keeps `place` until the client has read it. `stream`: it has many
    /// messages.
    ///
    /// # Errors
    /// [`Fault::Busy`] when the budget has no room for another stream.
    pub(crate) fn meter(
        &self,
        answer: Body,
        stream: bool,
        place: impl Send + Unpin + 'static,
    ) -> Result<Body, Fault> {
        let account = CURRENT.try_with(Arc::clone).unwrap_or_else(|_| StreamAccount::new(&self.0));
        let mut metered = MeteredBody {
            answer,
            account,
            rest: None,
            end: None,
            own: None,
            listed: None,
            stream,
            _place: place,
        };
        if stream {
            if !metered.account.has_room() {
                return Err(no_room());
            }
            metered.own = Some(metered.account.charge(STREAM));
            metered.list();
        }
        Ok(Body::new(metered))
    }

    /// Closes streams of clients that take too little, until shutdown. One task does so for all parts of a process.
    pub(crate) fn watch_in(&self, tasks: &Tasks) {
        if self.0.watched.swap(true, Ordering::Relaxed) {
            return;
        }
        metrics::describe_gauge!(HELD, "Bytes that were encoded and that clients have not taken yet");
        metrics::describe_counter!(CLOSED, "Streams that were closed because their clients took too little");
        let budget = Arc::clone(&self.0);
        tasks.spawn_until_shutdown("streams", async move {
            let mut ticks = tokio::time::interval(SEARCH);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                // Exact up to amounts that no memory has.
                gauge!(HELD).set(budget.held.load(Ordering::Relaxed) as f64);
                budget.search();
            }
            #[expect(unreachable_code, reason = "it names the type of the outcome")]
            anyhow::Ok(())
        });
    }
}

/// Lets the stream of this task use all of the budget from its beginning. Outside of a stream this does nothing.
pub(crate) fn trust_current() {
    // Outside of a stream there is nothing to trust.
    let _outside = CURRENT.try_with(|account| account.proven.store(true, Ordering::Relaxed));
}

/// Waits until the stream of this task may gather its next messages. Outside of a stream there is no bound.
///
/// # Errors
/// [`Fault::Busy`] when there was no room for too long.
pub(crate) async fn wait_for_room() -> Result<(), Fault> {
    let Ok(account) = CURRENT.try_with(Arc::clone) else { return Ok(()) };
    let room = poll_fn(|_| account.poll_room());
    tokio::time::timeout(WAIT, room).await.map_err(|_| no_room())
}

/// Counts `bytes` that the stream of this task has gathered, until the returned value is dropped.
pub(crate) fn charge_current(bytes: usize) -> Option<StreamCharge> {
    CURRENT.try_with(|account| account.charge(bytes)).ok()
}

fn no_room() -> Fault {
    let reason =
        "streams hold as many bytes as the limits allow; resume after the last revision that arrived";
    Fault::Busy { reason: reason.to_owned(), retry_after: pause::retry_after() }
}

impl StreamBudgetInner {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::SeqCst);
        self.wake_next();
    }

    /// Bytes that a stream may find held and still encode more.
    fn most_for(&self, proven: bool) -> usize {
        if proven { self.most } else { self.most / 2 }
    }

    /// Wakes the longest waiting stream, if there is room. That stream wakes the next one after it has taken its room.
    fn wake_next(&self) {
        if self.queued.load(Ordering::SeqCst) == 0 {
            return;
        }
        let held = self.held.load(Ordering::SeqCst);
        let mut queue = self.queue.lock();
        let StreamQueue { proven, unproven } = &mut *queue;
        for (line, is_proven) in [(proven, true), (unproven, false)] {
            while held < self.most_for(is_proven)
                && let Some(first) = line.pop_front()
            {
                self.queued.fetch_sub(1, Ordering::SeqCst);
                if let Some(first) = first.upgrade() {
                    first.queued.store(false, Ordering::SeqCst);
                    first.task.wake();
                    return;
                }
            }
        }
    }

    /// Closes every stream whose client has read nothing for too long; while others wait for room, also the slowest
    /// that have stalled for a moment.
    fn search(&self) {
        let now = self.now();
        let (stalled, patience) = (STALLED.as_millis() as u64, self.patience.as_millis() as u64);
        let open: Vec<_> = self.open.lock().values().filter_map(Weak::upgrade).collect();
        let mut crowded = false;
        let mut slow = Vec::new();
        for account in open {
            let since = account.waits.load(Ordering::Acquire);
            if since > 0 {
                crowded = true;
                if now.saturating_sub(since) >= WAIT.as_millis() as u64 {
                    account.refused.store(true, Ordering::Release);
                    account.task.wake();
                }
            }
            let idle = now.saturating_sub(account.progress.load(Ordering::Acquire));
            if account.under_way.load(Ordering::Acquire) > 0 && idle >= stalled {
                slow.push((idle, account));
            }
        }
        slow.sort_unstable_by_key(|(idle, _)| std::cmp::Reverse(*idle));
        // The bytes of streams closed now may be released a moment later.
        let mut held = self.held.load(Ordering::Acquire);
        for (idle, account) in slow {
            if idle < patience && !(crowded && held > self.most / 4) {
                break;
            }
            held = held.saturating_sub(account.under_way.load(Ordering::Acquire));
            counter!(CLOSED).increment(1);
            tracing::debug!(milliseconds = idle, "a stream was closed because its client read nothing");
            account.closed.store(true, Ordering::Release);
            account.task.wake();
        }
    }
}

impl StreamAccount {
    fn new(budget: &Arc<StreamBudgetInner>) -> Arc<Self> {
        Arc::new(Self {
            budget: Arc::clone(budget),
            under_way: AtomicUsize::new(0),
            progress: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            proven: AtomicBool::new(false),
            queued: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            task: AtomicWaker::new(),
        })
    }

    fn has_room(&self) -> bool {
        let most = self.budget.most_for(self.proven.load(Ordering::Relaxed));
        self.budget.held.load(Ordering::SeqCst) < most
    }

    /// Waits for room in the queue. The task of the stream is woken when it may have some.
    fn poll_room(self: &Arc<Self>) -> Poll<()> {
        if !self.has_room() {
            if self.waits.load(Ordering::Relaxed) == 0 {
                self.waits.store(self.budget.now() + 1, Ordering::Release);
            }
            self.queue_up();
            // Room may have been given back in between, when no stream was queued.
            if !self.has_room() {
                return Poll::Pending;
            }
        }
        if self.waits.load(Ordering::Relaxed) > 0 {
            self.waits.store(0, Ordering::Release);
            self.budget.wake_next();
        }
        Poll::Ready(())
    }

    fn queue_up(self: &Arc<Self>) {
        if self.queued.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut queue = self.budget.queue.lock();
        let proven = self.proven.load(Ordering::Relaxed);
        let line = if proven { &mut queue.proven } else { &mut queue.unproven };
        line.push_back(Arc::downgrade(self));
        self.budget.queued.fetch_add(1, Ordering::SeqCst);
    }

    fn charge(self: &Arc<Self>, bytes: usize) -> StreamCharge {
        self.budget.held.fetch_add(bytes, Ordering::AcqRel);
        StreamCharge { budget: Arc::clone(&self.budget), bytes }
    }

    fn hand_over(&self, bytes: usize) {
        if self.under_way.fetch_add(bytes, Ordering::AcqRel) == 0 {
            self.progress.store(self.budget.now(), Ordering::Release);
        }
    }

    fn taken(&self, bytes: usize) {
        self.progress.store(self.budget.now(), Ordering::Release);
        self.proven.store(true, Ordering::Relaxed);
        self.under_way.fetch_sub(bytes, Ordering::AcqRel);
        self.task.wake();
    }
}

/// A stream that ended while it waited may have been woken for room that it does not need any more.
impl Drop for StreamAccount {
    fn drop(&mut self) {
        if self.waits.load(Ordering::Acquire) > 0 {
            self.budget.wake_next();
        }
    }
}

/// Bytes of the budget, which are free again when this is dropped.
pub(crate) struct StreamCharge {
    budget: Arc<StreamBudgetInner>,
    bytes: usize,
}

impl Drop for StreamCharge {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

/// A piece of a message on its way through the connection. The message is held as a whole until its last piece is sent.
struct MessagePiece {
    bytes: Bytes,
    account: Arc<StreamAccount>,
    _message: Arc<StreamCharge>,
}

impl AsRef<[u8]> for MessagePiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for MessagePiece {
    fn drop(&mut self) {
        self.account.taken(self.bytes.len());
    }
}

/// Body of an answer whose bytes count.
struct MeteredBody<P> {
    answer: Body,
    account: Arc<StreamAccount>,
    /// The message that is on its way.
    rest: Option<(Bytes, Arc<StreamCharge>)>,
    /// The end, which waits until everything before it was sent: until then the stream can be closed.
    end: Option<Option<Result<Frame<Bytes>, axum::Error>>>,
    own: Option<StreamCharge>,
    listed: Option<u64>,
    stream: bool,
    _place: P,
}

impl<P> MeteredBody<P> {
    fn list(&mut self) {
        let budget = &self.account.budget;
        let number = budget.next.fetch_add(1, Ordering::Relaxed);
        budget.open.lock().insert(number, Arc::downgrade(&self.account));
        self.listed = Some(number);
    }

    /// The next piece of the message on its way.
    fn piece(&mut self) -> Option<Bytes> {
        let (rest, message) = self.rest.as_mut()?;
        let bytes = rest.split_to(rest.len().min(PIECE));
        let (account, _message) = (Arc::clone(&self.account), Arc::clone(message));
        if rest.is_empty() {
            self.rest = None;
        }
        self.account.hand_over(bytes.len());
        Some(Bytes::from_owner(MessagePiece { bytes, account, _message }))
    }
}

impl<P: Unpin> HttpBody for MeteredBody<P> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        this.account.task.register(context.waker());
        loop {
            if this.account.closed.load(Ordering::Acquire) {
                return Poll::Ready(Some(Err(exhausted())));
            }
            let under_way = this.account.under_way.load(Ordering::Acquire);
            if under_way < buffers::size(UNDER_WAY)
                && let Some(piece) = this.piece()
            {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if this.rest.is_some() {
                return Poll::Pending;
            }
            if this.end.is_some() {
                if under_way > 0 {
                    return Poll::Pending;
                }
                return Poll::Ready(this.end.take().flatten());
            }
            if this.stream && this.account.poll_room().is_pending() {
                if this.account.refused.load(Ordering::Acquire) {
                    let mut trailers = HeaderMap::new();
                    let told = Status::from(no_room()).add_header(&mut trailers);
                    this.end = Some(Some(told.map(|()| Frame::trailers(trailers)).map_err(axum::Error::new)));
                    continue;
                }
                return Poll::Pending;
            }
            let frame = match Pin::new(&mut this.answer).poll_frame(context) {
                Poll::Ready(frame) => frame,
                Poll::Pending => return Poll::Pending,
            };
            match frame {
                Some(Ok(frame)) if frame.is_data() => {
                    let Ok(bytes) = frame.into_data() else { continue };
                    if !this.stream && bytes.len() <= SMALL {
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                    if this.listed.is_none() {
                        this.list();
                    }
                    let charge = Arc::new(this.account.charge(bytes.len()));
                    this.rest = (!bytes.is_empty()).then_some((bytes, charge));
                }
                end => this.end = Some(end),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && self.end.is_none() && self.answer.is_end_stream()
    }
}

impl<P> Drop for MeteredBody<P> {
    fn drop(&mut self) {
        if let Some(number) = self.listed {
            self.account.budget.open.lock().remove(&number);
        }
    }
}

/// A reset that gRPC clients read as `RESOURCE_EXHAUSTED`: a client that takes nothing would not get to trailers.
fn exhausted() -> axum::Error {
    axum::Error::new(h2::Error::from(h2::Reason::ENHANCE_YOUR_CALM))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: usize = 300 << 10;

    fn budget(most: usize) -> StreamBudget {
        StreamBudget::new(most as u64, Duration::from_secs(60))
    }

    /// A stream of two messages.
    fn stream(budget: &StreamBudget) -> Body {
        let messages = [(); 2].map(|()| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; MESSAGE])));
        let messages = Body::from_stream(futures_util::stream::iter(messages));
        budget.meter(messages, true, ()).unwrap()
    }

    /// The pieces that a stream yields at once, and the error or the end behind them.
    async fn pieces(stream: &mut Body) -> (Vec<Bytes>, Poll<Option<axum::Error>>) {
        let mut pieces = Vec::new();
        loop {
            let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut *stream).poll_frame(context))).await;
            match polled {
                Poll::Ready(Some(Ok(frame))) => pieces.extend(frame.into_data().ok()),
                Poll::Ready(Some(Err(error))) => return (pieces, Poll::Ready(Some(error))),
                Poll::Ready(None) => return (pieces, Poll::Ready(None)),
                Poll::Pending => return (pieces, Poll::Pending),
            }
        }
    }

    fn held(budget: &StreamBudget) -> usize {
        budget.0.held.load(Ordering::SeqCst)
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_count_until_the_connection_has_sent_them() {
        let budget = budget(16 << 20);
        let mut stream = stream(&budget);
        let (sent, more) = pieces(&mut stream).await;
        assert!(more.is_pending(), "{more:?}");
        assert_eq!(sent.iter().map(Bytes::len).sum::<usize>(), UNDER_WAY);
        assert_eq!(held(&budget), STREAM + MESSAGE);
        drop(sent);
        let mut rest = 0;
        while let (sent, Poll::Pending) = pieces(&mut stream).await {
            rest += sent.iter().map(Bytes::len).sum::<usize>();
        }
        assert_eq!(UNDER_WAY + rest, 2 * MESSAGE);
        assert_eq!(held(&budget), STREAM);
        drop(stream);
        assert_eq!(held(&budget), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_stream_makes_room_for_one_that_waits() {
        // An unproven stream may use half of it.
        let budget = budget(2 * MESSAGE);
        let (mut unread, mut other) = (stream(&budget), stream(&budget));
        let (kept, _) = pieces(&mut unread).await;
        let (none, more) = pieces(&mut other).await;
        assert!(none.is_empty() && more.is_pending());
        tokio::time::advance(STALLED / 2).await;
        budget.0.search();
        assert!(pieces(&mut unread).await.1.is_pending(), "it was closed too soon");
        tokio::time::advance(STALLED).await;
        budget.0.search();
        let (_, closed) = pieces(&mut unread).await;
        let Poll::Ready(Some(error)) = closed else { panic!("it goes on") };
        let mut causes =
            std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let reset = causes.find_map(|cause| cause.downcast_ref::<h2::Error>()).unwrap();
        assert_eq!(reset.reason(), Some(h2::Reason::ENHANCE_YOUR_CALM));
        drop((kept, unread));
        assert!(!pieces(&mut other).await.0.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_stream_is_closed_in_the_end_though_there_is_room() {
        let budget = budget(16 << 20);
        let mut unread = stream(&budget);
        let (_kept, _) = pieces(&mut unread).await;
        tokio::time::advance(Duration::from_secs(59)).await;
        budget.0.search();
        assert!(pieces(&mut unread).await.1.is_pending());
        tokio::time::advance(Duration::from_secs(2)).await;
        budget.0.search();
        assert!(pieces(&mut unread).await.1.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn proven_stream_may_use_what_others_may_not() {
        let budget = budget(4 * MESSAGE);
        let mut proven = stream(&budget);
        drop(pieces(&mut proven).await);
        let mut unread = stream(&budget);
        // The stream takes the rest of the half.
        let (_kept, _) = pieces(&mut unread).await;
        assert!(budget.meter(Body::empty(), true, ()).is_err(), "another stream was admitted");
        assert!(!pieces(&mut proven).await.0.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn stream_without_room_for_too_long_is_refused() {
        let budget = budget(2 * MESSAGE);
        let (mut unread, mut other) = (stream(&budget), stream(&budget));
        let _kept = pieces(&mut unread).await;
        assert!(pieces(&mut other).await.1.is_pending());
        tokio::time::advance(WAIT + Duration::from_secs(1)).await;
        budget.0.search();
        let refused = poll_fn(|context| Pin::new(&mut other).poll_frame(context)).await;
        let trailers = refused.unwrap().unwrap().into_trailers().unwrap();
        assert_eq!(trailers["grpc-status"], "8");
    }
}
