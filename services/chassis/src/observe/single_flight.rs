//! Single flight: callers that ask an outside system the same question at the same time share one call.

use std::{
    collections::HashMap,
    future::Future,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// The newest answer to each question.
///
/// A caller whose question is already under way waits for the end of that call, and then shares one new call with all
/// other waiting callers: the earlier answer may predate a change. So there is one call per question at a time,
/// however many callers need the answer, and no answer is older than allowed.
///
/// A caller that gives up during its call ends that call; one of the waiting callers then makes another.
pub struct SingleFlight<K, V, E> {
    /// Longest time between the call for an answer and a later question that may use the answer.
    age: Duration,
    /// Time for which a call waits for more callers.
    gathering: Duration,
    is_outage: fn(&E) -> bool,
    /// Counts questions, beginnings and ends of calls, which orders them: clocks may stand still meanwhile.
    order: AtomicU64,
    newest: Mutex<HashMap<K, Arc<AnswerSlot<V, E>>>>,
}

/// Latest answer to one question.
type AnswerSlot<V, E> = tokio::sync::Mutex<Option<LatestAnswer<V, E>>>;

struct LatestAnswer<V, E> {
    began: u64,
    began_at: Instant,
    ended: u64,
    answer: Result<V, E>,
}

/// Moment of a question.
#[derive(Clone, Copy)]
struct Asked {
    order: u64,
    at: Instant,
}

impl<K: Eq + Hash, V: Clone, E: Clone> SingleFlight<K, V, E> {
    /// Creates no answers yet. An answer serves questions up to `age` after its call began. `is_outage`: the error tells
    /// that the system does not answer at all, so callers that asked meanwhile get it too.
    pub fn new(age: Duration, is_outage: fn(&E) -> bool) -> Self {
        Self { age, gathering: Duration::ZERO, is_outage, order: AtomicU64::new(0), newest: Mutex::default() }
    }

    /// Lets each call wait for more callers, for the time `gathering`.
    #[must_use]
    pub fn gathering(self, gathering: Duration) -> Self {
        Self { gathering, ..self }
    }

    /// Returns the answer to `question`, and calls `ask` if no answer is new enough.
    ///
    /// # Errors
    /// The error of `ask`, possibly of another caller's `ask`.
    pub async fn get<F>(&self, question: K, ask: impl FnOnce() -> F) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        self.get_within(self.age, question, ask).await
    }

    /// Returns an answer like [`Self::get`] whose call begins after this one, whatever the age that others accept.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub async fn get_anew<F>(&self, question: K, ask: impl FnOnce() -> F) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        self.get_within(Duration::ZERO, question, ask).await
    }

    async fn get_within<F>(&self, age: Duration, question: K, ask: impl FnOnce() -> F) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let answer = self.newest_or(age, question, ask).await;
        // An answer may be as large as the machine, and the next question may be days away.
        self.forget_useless(&mut self.newest.lock(), self.asked_now());
        answer
    }

    async fn newest_or<F>(&self, age: Duration, question: K, ask: impl FnOnce() -> F) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let asked = self.asked_now();
        let slot = self.slot(question, asked);
        let mut newest = slot.lock().await;
        if let Some(answered) = newest.as_ref().filter(|answered| self.serves(answered, asked, age)) {
            return answered.answer.clone();
        }
        if !self.gathering.is_zero() {
            sleep(self.gathering).await;
        }
        let Asked { order: began, at: began_at } = self.asked_now();
        let answer = ask().await;
        let Asked { order: ended, .. } = self.asked_now();
        *newest = Some(LatestAnswer { began, began_at, ended, answer: answer.clone() });
        answer
    }

    fn asked_now(&self) -> Asked {
        Asked { order: self.order.fetch_add(1, Ordering::SeqCst), at: Instant::now() }
    }

    /// Returns the slot of the latest answer.
    fn slot(&self, question: K, asked: Asked) -> Arc<AnswerSlot<V, E>> {
        let mut all = self.newest.lock();
        self.forget_useless(&mut all, asked);
        Arc::clone(all.entry(question).or_default())
    }

    /// Drops answers that serve no question from `now` on.
    fn forget_useless(&self, all: &mut HashMap<K, Arc<AnswerSlot<V, E>>>, now: Asked) {
        all.retain(|_, slot| Arc::strong_count(slot) > 1 || self.is_useful(slot, now));
    }

    fn is_useful(&self, slot: &AnswerSlot<V, E>, asked: Asked) -> bool {
        slot.try_lock()
            .is_ok_and(|newest| newest.as_ref().is_some_and(|one| self.serves(one, asked, self.age)))
    }

    /// Returns whether an answer serves a question.
    fn serves(&self, latest: &LatestAnswer<V, E>, asked: Asked, age: Duration) -> bool {
        let began_after = latest.began > asked.order;
        match &latest.answer {
            Ok(_) => began_after || (!age.is_zero() && latest.began_at + age >= asked.at),
            // The outage lasted beyond the question: waiting once more would report nothing new.
            Err(error) if (self.is_outage)(error) => latest.ended > asked.order,
            // The reason of an earlier failure may be gone by now.
            Err(_) => began_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{FutureExt, future::join_all};
    use tokio::sync::Semaphore;

    use super::*;

    const OUTAGE: &str = "is down";
    const REFUSAL: &str = "no such thing";

    fn flight<K: Eq + Hash>(age: Duration) -> SingleFlight<K, u32, &'static str> {
        SingleFlight::new(age, |error| *error == OUTAGE)
    }

    /// Asks a question `many` times at once and, after the first call has begun, once more. The calls return
    /// `answers` in turn. Returns the results of all callers.
    async fn asked_at_once(
        many: usize,
        answers: &[Result<u32, &'static str>],
    ) -> Vec<Result<u32, &'static str>> {
        let calls = AtomicUsize::new(0);
        let go = Semaphore::new(0);
        let all = flight::<()>(Duration::ZERO);
        let ask = || async {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            go.acquire().await.unwrap().forget();
            answers[call]
        };
        let mut first = Box::pin(all.get((), ask));
        assert!(first.as_mut().now_or_never().is_none());
        tokio::time::sleep(Duration::from_millis(2)).await;
        let later = async {
            go.add_permits(answers.len());
            join_all((0..many).map(|_| all.get((), ask))).await
        };
        // The later callers are polled first, and so ask before the first call ends.
        let (later, first) = futures_util::join!(later, first);
        assert_eq!(calls.into_inner(), answers.len());
        [vec![first], later].concat()
    }

    #[tokio::test]
    async fn concurrent_callers_share_a_later_call() {
        let answers = asked_at_once(5, &[Ok(1), Ok(2)]).await;
        assert_eq!(answers, [Ok(1), Ok(2), Ok(2), Ok(2), Ok(2), Ok(2)]);
    }

    #[tokio::test]
    async fn concurrent_callers_share_the_outage_of_a_peer() {
        assert_eq!(asked_at_once(2, &[Err(OUTAGE)]).await, [Err(OUTAGE), Err(OUTAGE), Err(OUTAGE)]);
    }

    #[tokio::test]
    async fn a_refusal_counts_only_for_earlier_callers() {
        let refused = Err(REFUSAL);
        assert_eq!(asked_at_once(2, &[refused, Ok(1)]).await, [refused, Ok(1), Ok(1)]);
    }

    #[tokio::test]
    async fn answers_expire() {
        let kept = flight(Duration::from_secs(60));
        let fresh = flight(Duration::ZERO);
        for (answers, second) in [(&kept, 1), (&fresh, 2)] {
            assert_eq!(answers.get("a", || async { Ok(1) }).await, Ok(1));
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!(answers.get("a", || async { Ok(2) }).await, Ok(second));
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!(answers.get("b", || async { Ok(3) }).await, Ok(3));
        }
        assert_eq!((kept.newest.lock().len(), fresh.newest.lock().len()), (2, 0));
        assert_eq!(kept.get_anew("a", || async { Ok(4) }).await, Ok(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_is_shared_by_those_who_asked_before_it_began() {
        let shared = flight::<()>(Duration::ZERO).gathering(Duration::from_millis(250));
        let fetches = AtomicUsize::new(0);
        let fetch = async || {
            fetches.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_secs(1)).await;
            Ok(0)
        };
        let wanted = async |after: u64| {
            sleep(Duration::from_millis(after)).await;
            shared.get((), &fetch).await
        };
        // One caller begins, one arrives before the fetch, and three arrive during it.
        let wants = [0, 50, 600, 700, 900].map(wanted);
        let outcomes = join_all(wants).await;
        assert!(outcomes.iter().all(Result::is_ok));
        assert_eq!(fetches.load(Ordering::SeqCst), 2);
    }
}
