//! Callers, many at a time.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::RequestBuilder;
use tokio::{sync::Semaphore, task::JoinSet, time::sleep_until};

use crate::samples::milliseconds;

/// Result of a period of calls.
#[derive(Default)]
pub struct LoadResult {
    /// Time from the first call to the last answer.
    pub took: Duration,
    /// Duration of each call, in milliseconds, with the time of its answer.
    pub answers: Vec<(Instant, f64)>,
}

impl LoadResult {
    /// Answers in a second.
    pub fn rate(&self) -> f64 {
        self.answers.len() as f64 / self.took.as_secs_f64()
    }

    /// Returns the durations of calls, in milliseconds.
    pub fn times(&self) -> Vec<f64> {
        self.answers.iter().map(|(_, took)| *took).collect()
    }
}

/// Runs `at_once` callers for `lasting`. Each caller calls again once its call was answered. `call` gets the number of
/// the call.
///
/// # Panics
/// When a call does.
pub async fn callers<C, F>(at_once: usize, lasting: Duration, call: C) -> LoadResult
where
    C: Fn(usize) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..at_once {
        let call = call.clone();
        callers.spawn(async move {
            let mut answers = Vec::new();
            let mut number = caller;
            while began.elapsed() < lasting {
                answers.push(answered(call(number)).await);
                number += at_once;
            }
            answers
        });
    }
    let answers = callers.join_all().await.concat();
    LoadResult { took: began.elapsed(), answers }
}

/// Makes `a_second` calls a second for `lasting`, whether or not the calls before were answered.
///
/// # Panics
/// When a call does.
pub async fn pace<C, F>(a_second: u32, lasting: Duration, call: C) -> LoadResult
where
    C: Fn(usize) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let began = tokio::time::Instant::now();
    let mut calls = JoinSet::new();
    let pause = Duration::from_secs(1) / a_second;
    for number in 0.. {
        let at = began + pause * number;
        if at.duration_since(began) >= lasting {
            break;
        }
        sleep_until(at).await;
        calls.spawn(answered(call(number as usize)));
    }
    let answers = calls.join_all().await;
    LoadResult { took: began.elapsed(), answers }
}

/// Makes all calls as soon as possible, at most `at_once` of them at a time. Returns the time until the last of them
/// was answered.
///
/// # Panics
/// When a call does.
pub async fn burst<F>(at_once: usize, calls: impl Iterator<Item = F>) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let began = Instant::now();
    let places = Arc::new(Semaphore::new(at_once));
    let placed = |call: F| {
        let places = Arc::clone(&places);
        async move {
            let _place = places.acquire_owned().await.expect("nobody closes the places");
            call.await;
        }
    };
    calls.map(placed).collect::<JoinSet<()>>().join_all().await;
    began.elapsed()
}

/// Sends a request over REST and reads the whole answer.
///
/// # Panics
/// When it is not a success.
pub async fn taken(request: RequestBuilder) {
    let answer = request.send().await.expect("an answer");
    let status = answer.status();
    let body = answer.bytes().await.expect("a whole answer");
    assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
}

async fn answered(call: impl Future<Output = ()>) -> (Instant, f64) {
    let began = Instant::now();
    call.await;
    let now = Instant::now();
    (now, milliseconds(now - began))
}
