//! Answers of peers, shared by setups and requests that ask the same at the same time.

use std::{collections::HashMap, future::Future, hash::Hash, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::setback::Setback;

/// The newest answer to each question.
///
/// Whoever asks what is being asked already waits until that has ended, and then asks again together with all
/// others who waited: what was answered to an earlier question may have changed since. So however many setups
/// need the same, there is one call at a time, and no answer is older than allowed.
pub(crate) struct Answers<K, V> {
    /// How long before a question its answer may have been asked for.
    age: Duration,
    newest: Mutex<HashMap<K, Arc<Newest<V>>>>,
}

/// The newest answer to one question.
type Newest<V> = tokio::sync::Mutex<Option<Answered<V>>>;

struct Answered<V> {
    began: Instant,
    ended: Instant,
    answer: Result<V, Setback>,
}

impl<K: Eq + Hash, V: Clone> Answers<K, V> {
    /// No answers yet. They may be used for questions that come up to `age` later.
    pub(crate) fn new(age: Duration) -> Self {
        Self { age, newest: Mutex::default() }
    }

    /// The answer to `question`, which `ask` gets if none is new enough.
    ///
    /// # Errors
    /// What `ask` gave, now or for somebody else.
    pub(crate) async fn get<F>(&self, question: K, ask: impl FnOnce() -> F) -> Result<V, Setback>
    where
        F: Future<Output = Result<V, Setback>>,
    {
        let answer = self.newest_or(question, ask).await;
        // An answer may be as large as the machine, and the next question may be days away.
        self.forget_useless(&mut self.newest.lock(), Instant::now());
        answer
    }

    async fn newest_or<F>(&self, question: K, ask: impl FnOnce() -> F) -> Result<V, Setback>
    where
        F: Future<Output = Result<V, Setback>>,
    {
        let asked = Instant::now();
        let newest = self.newest(question, asked);
        let mut newest = newest.lock().await;
        if let Some(answered) = newest.as_ref().filter(|answered| answered.serves(asked, self.age)) {
            return answered.answer.clone();
        }
        let began = Instant::now();
        let answer = ask().await;
        *newest = Some(Answered { began, ended: Instant::now(), answer: answer.clone() });
        answer
    }

    /// The place of the newest answer.
    fn newest(&self, question: K, asked: Instant) -> Arc<Newest<V>> {
        let mut all = self.newest.lock();
        self.forget_useless(&mut all, asked);
        Arc::clone(all.entry(question).or_default())
    }

    /// Drops answers that are of no use any more to anybody who asks from `now` on.
    fn forget_useless(&self, all: &mut HashMap<K, Arc<Newest<V>>>, now: Instant) {
        all.retain(|_, newest| Arc::strong_count(newest) > 1 || self.is_useful(newest, now));
    }

    fn is_useful(&self, newest: &Newest<V>, asked: Instant) -> bool {
        newest.try_lock().is_ok_and(|newest| newest.as_ref().is_some_and(|one| one.serves(asked, self.age)))
    }
}

impl<V> Answered<V> {
    /// Whether this is an answer to a question of that time.
    fn serves(&self, asked: Instant, age: Duration) -> bool {
        match &self.answer {
            Ok(_) => self.began + age >= asked,
            // What was wrong before may be mended by now.
            Err(Setback::Fail(_)) => self.began >= asked,
            // It still did not answer after the question: to wait for it once more would tell nothing new.
            Err(Setback::Wait(_)) => self.ended >= asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{FutureExt, future::join_all};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::setback::Outage;

    fn outage() -> Setback {
        Setback::Wait(Outage { what: "peer", error: "is down".into() })
    }

    /// Asks a question `many` times at once and then, after the first call was begun, once more; the calls
    /// give `answers` in turn. Returns what everybody got.
    async fn asked_at_once(many: usize, answers: &[Result<u32, Setback>]) -> Vec<Result<u32, Setback>> {
        let (calls, go) = (AtomicUsize::new(0), Semaphore::new(0));
        let all = Answers::<(), u32>::new(Duration::ZERO);
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
        // The later ones are polled first, and so ask before the first call ends.
        let (later, first) = futures_util::join!(later, first);
        assert_eq!(calls.into_inner(), answers.len());
        [vec![first], later].concat()
    }

    #[tokio::test]
    async fn many_who_ask_at_once_share_a_call_that_began_after_all_had_asked() {
        let answers = asked_at_once(5, &[Ok(1), Ok(2)]).await;
        assert_eq!(answers, [Ok(1), Ok(2), Ok(2), Ok(2), Ok(2), Ok(2)]);
    }

    #[tokio::test]
    async fn many_who_wait_for_a_peer_that_is_down_learn_it_together() {
        assert_eq!(asked_at_once(2, &[Err(outage())]).await, [Err(outage()), Err(outage()), Err(outage())]);
    }

    #[tokio::test]
    async fn a_refusal_counts_for_those_only_who_asked_before() {
        let refused = Err(Setback::Fail("no such thing".into()));
        assert_eq!(asked_at_once(2, &[refused.clone(), Ok(1)]).await, [refused, Ok(1), Ok(1)]);
    }

    #[tokio::test]
    async fn answers_are_used_for_as_long_as_allowed_and_then_dropped() {
        let (kept, fresh) = (Answers::new(Duration::from_secs(60)), Answers::new(Duration::ZERO));
        for (answers, second) in [(&kept, 1), (&fresh, 2)] {
            assert_eq!(answers.get("a", || async { Ok(1) }).await, Ok(1));
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!(answers.get("a", || async { Ok(2) }).await, Ok(second));
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!(answers.get("b", || async { Ok(3) }).await, Ok(3));
        }
        assert_eq!((kept.newest.lock().len(), fresh.newest.lock().len()), (2, 0));
    }
}
