//! Single flight: setups and requests that ask a peer the same question at the same time share one call.

use std::{collections::HashMap, future::Future, hash::Hash, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::dependency::DependencyError;

/// The newest answer to each question.
///
/// A caller whose question is already under way waits for the end of that call, and then shares one new call with all
/// other waiting callers: the earlier answer may predate a change. So there is one call per question at a time,
/// however many setups need the answer, and no answer is older than allowed.
pub(crate) struct SingleFlight<K, V> {
    /// Longest time between the call for an answer and a later question that may use the answer.
    age: Duration,
    newest: Mutex<HashMap<K, Arc<Newest<V>>>>,
}

/// Latest answer to one question.
type Newest<V> = tokio::sync::Mutex<Option<LatestAnswer<V>>>;

struct LatestAnswer<V> {
    began: Instant,
    ended: Instant,
    answer: Result<V, DependencyError>,
}

impl<K: Eq + Hash, V: Clone> SingleFlight<K, V> {
    /// Creates no answers yet. An answer serves questions up to `age` after its call began.
    pub(crate) fn new(age: Duration) -> Self {
        Self { age, newest: Mutex::default() }
    }

    /// Returns the answer to `question`, and calls `ask` if no answer is new enough.
    ///
    /// # Errors
    /// The error of `ask`, possibly of another caller's `ask`.
    pub(crate) async fn get<F>(&self, question: K, ask: impl FnOnce() -> F) -> Result<V, DependencyError>
    where
        F: Future<Output = Result<V, DependencyError>>,
    {
        self.get_within(self.age, question, ask).await
    }

    /// Returns an answer like [`Self::get`] whose call begins after this one, whatever the age that others accept.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub(crate) async fn get_anew<F>(&self, question: K, ask: impl FnOnce() -> F) -> Result<V, DependencyError>
    where
        F: Future<Output = Result<V, DependencyError>>,
    {
        self.get_within(Duration::ZERO, question, ask).await
    }

    async fn get_within<F>(
        &self,
        age: Duration,
        question: K,
        ask: impl FnOnce() -> F,
    ) -> Result<V, DependencyError>
    where
        F: Future<Output = Result<V, DependencyError>>,
    {
        let answer = self.newest_or(age, question, ask).await;
        // An answer may be as large as the machine, and the next question may be days away.
        self.forget_useless(&mut self.newest.lock(), Instant::now());
        answer
    }

    async fn newest_or<F>(
        &self,
        age: Duration,
        question: K,
        ask: impl FnOnce() -> F,
    ) -> Result<V, DependencyError>
    where
        F: Future<Output = Result<V, DependencyError>>,
    {
        let asked = Instant::now();
        let newest = self.newest(question, asked);
        let mut newest = newest.lock().await;
        if let Some(answered) = newest.as_ref().filter(|answered| answered.serves(asked, age)) {
            return answered.answer.clone();
        }
        let began = Instant::now();
        let answer = ask().await;
        *newest = Some(LatestAnswer { began, ended: Instant::now(), answer: answer.clone() });
        answer
    }

    /// Returns the slot of the latest answer.
    fn newest(&self, question: K, asked: Instant) -> Arc<Newest<V>> {
        let mut all = self.newest.lock();
        self.forget_useless(&mut all, asked);
        Arc::clone(all.entry(question).or_default())
    }

    /// Drops answers that serve no question from `now` on.
    fn forget_useless(&self, all: &mut HashMap<K, Arc<Newest<V>>>, now: Instant) {
        all.retain(|_, newest| Arc::strong_count(newest) > 1 || self.is_useful(newest, now));
    }

    fn is_useful(&self, newest: &Newest<V>, asked: Instant) -> bool {
        newest.try_lock().is_ok_and(|newest| newest.as_ref().is_some_and(|one| one.serves(asked, self.age)))
    }
}

impl<V> LatestAnswer<V> {
    /// Returns whether the answer serves a question that was asked at `asked`.
    fn serves(&self, asked: Instant, age: Duration) -> bool {
        match &self.answer {
            Ok(_) => self.began + age >= asked,
            // The reason of an earlier failure may be gone by now.
            Err(DependencyError::Fatal(_)) => self.began >= asked,
            // The outage lasted beyond the question: waiting once more would report nothing new.
            Err(DependencyError::Retryable(_)) => self.ended >= asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{FutureExt, future::join_all};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::dependency::{Dependency, DependencyOutage};

    fn outage() -> DependencyError {
        DependencyError::Retryable(DependencyOutage { what: Dependency::Registry, error: "is down".into() })
    }

    /// Asks a question `many` times at once and, after the first call has begun, once more. The calls return
    /// `answers` in turn. Returns the results of all callers.
    async fn asked_at_once(
        many: usize,
        answers: &[Result<u32, DependencyError>],
    ) -> Vec<Result<u32, DependencyError>> {
        let calls = AtomicUsize::new(0);
        let go = Semaphore::new(0);
        let all = SingleFlight::<(), u32>::new(Duration::ZERO);
        let ask = || async {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            go.acquire().await.unwrap().forget();
            answers[call].clone()
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
        assert_eq!(asked_at_once(2, &[Err(outage())]).await, [Err(outage()), Err(outage()), Err(outage())]);
    }

    #[tokio::test]
    async fn a_refusal_counts_only_for_earlier_callers() {
        let refused = Err(DependencyError::Fatal("no such thing".into()));
        assert_eq!(asked_at_once(2, &[refused.clone(), Ok(1)]).await, [refused, Ok(1), Ok(1)]);
    }

    #[tokio::test]
    async fn answers_expire() {
        let kept = SingleFlight::new(Duration::from_secs(60));
        let fresh = SingleFlight::new(Duration::ZERO);
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
}
