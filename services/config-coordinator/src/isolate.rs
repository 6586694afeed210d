//! Isolates the items that a peer refuses, so that the others are served.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use domain::core::refusal::{self, RefusalStep, Witness};
use futures_util::{StreamExt, stream};

use crate::upstream::{Failure, FailureKind};

/// Parts of one group that are tried concurrently.
const AT_ONCE: usize = 4;

/// Outcome of a part of a group.
#[derive(Debug)]
pub(crate) struct GroupPart<I, T> {
    pub(crate) items: Arc<[I]>,
    pub(crate) outcome: Result<T, Failure>,
    /// Whether the peer had taken others of the group before this outcome.
    after_others: bool,
}

/// Makes `call` for all of `items`. If the peer refuses them together, a few probes are tried alone, different ones in
/// each `round`. As long as the peer takes any, halves are tried, down to single items. Each item ends up in one part
/// of the outcome; a refused part is a single item, or the rest of a group of which the peer took none.
pub(crate) async fn isolate<I, T, F>(
    items: Vec<I>,
    round: u32,
    call: impl Fn(Arc<[I]>) -> F,
) -> Vec<GroupPart<I, T>>
where
    I: Clone,
    F: Future<Output = Result<T, Failure>>,
{
    let taken = AtomicBool::new(false);
    let call = |items| attempt(items, &call, &taken);
    let whole = call(items.into()).await;
    if !whole.is_refused() {
        return vec![whole];
    }
    let RefusalStep::Probe(count) = refusal::next_step(whole.items.len(), Witness::Nobody, false) else {
        return vec![whole];
    };
    let (probes, rest) = refusal::split_probes(whole.items.to_vec(), count, round);
    let probes = probes.into_iter().map(|probe| [probe].into());
    let mut ended = attempts(probes.collect(), &call).await;
    if ended.iter().all(|part| part.outcome.is_err()) {
        if !rest.is_empty() {
            ended.push(GroupPart { items: rest.into(), ..whole });
        }
        return ended;
    }
    // A peer that was in trouble until now may have refused the first probes because of that.
    let (judged, early): (Vec<_>, _) =
        ended.into_iter().partition(|part| !part.is_refused() || part.after_others);
    let retried = attempts(early.into_iter().map(|part| part.items).collect(), &call).await;
    let mut ended: Vec<_> = judged.into_iter().chain(retried).collect();
    // The peer refuses because of another item unless it refuses one of the tried items.
    let mut open =
        if ended.iter().all(|part| part.outcome.is_ok()) { halves(&rest) } else { vec![rest.into()] };
    open.retain(|part| !part.is_empty());
    while !open.is_empty() {
        let tried = attempts(std::mem::take(&mut open), &call).await;
        for part in tried {
            let goes_on = part.is_refused()
                && refusal::next_step(part.items.len(), Witness::Within, true) == RefusalStep::Halve;
            if goes_on {
                open.extend(halves(&part.items));
            } else {
                ended.push(part);
            }
        }
    }
    ended
}

impl<I, T> GroupPart<I, T> {
    /// Returns a part that was the only call of its group.
    pub(crate) fn of_single_call(items: Arc<[I]>, outcome: Result<T, Failure>) -> Self {
        Self { items, outcome, after_others: false }
    }

    /// Returns whether the peer refused these items together.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(&self.outcome, Err(failure) if failure.kind == FailureKind::Refused)
    }
}

async fn attempts<I, T, F>(parts: Vec<Arc<[I]>>, call: &impl Fn(Arc<[I]>) -> F) -> Vec<GroupPart<I, T>>
where
    F: Future<Output = GroupPart<I, T>>,
{
    stream::iter(parts.into_iter().map(call)).buffered(AT_ONCE).collect().await
}

/// Makes the call for a part. `taken`: the peer has taken others of the group.
async fn attempt<I, T, F>(
    items: Arc<[I]>,
    call: &impl Fn(Arc<[I]>) -> F,
    taken: &AtomicBool,
) -> GroupPart<I, T>
where
    F: Future<Output = Result<T, Failure>>,
{
    let outcome = call(Arc::clone(&items)).await;
    let after_others = taken.fetch_or(outcome.is_ok(), Ordering::Relaxed);
    GroupPart { items, outcome, after_others }
}

/// Returns two parts, or one with a single item.
fn halves<I: Clone>(items: &[I]) -> Vec<Arc<[I]>> {
    let (first, second) = items.split_at(items.len() / 2);
    [first, second].into_iter().filter(|half| !half.is_empty()).map(Arc::from).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use expect_test::expect;

    use super::*;

    fn failure(kind: FailureKind) -> Failure {
        Failure { kind, status: None, text: "no".to_owned() }
    }

    /// Returns the number of calls for finding the refused ones of `count` items, and these items.
    async fn found(count: u32, bad: impl Fn(u32) -> bool) -> (u32, Vec<u32>, usize) {
        let calls = Cell::new(0);
        let call = |items: Arc<[u32]>| {
            calls.set(calls.get() + 1);
            let refused = items.iter().any(|item| bad(*item));
            std::future::ready(if refused { Err(failure(FailureKind::Refused)) } else { Ok(()) })
        };
        let parts = isolate((0..count).collect(), 0, call).await;
        let mut all: Vec<_> = parts.iter().flat_map(|part| part.items.to_vec()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..count).collect::<Vec<_>>(), "each item ends up in one part");
        let (refused, taken): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.outcome.is_err());
        let mut refused: Vec<_> = refused.into_iter().flat_map(|part| part.items.to_vec()).collect();
        refused.sort_unstable();
        (calls.get(), refused, taken.into_iter().map(|part| part.items.len()).sum())
    }

    #[tokio::test]
    async fn a_bad_item_is_found_in_few_calls_and_all_others_are_taken() {
        let rows = [
            ("none of 1000", found(1000, |_| false).await),
            ("1 of 1", found(1, |_| true).await),
            ("1 of 2", found(2, |item| item == 1).await),
            ("1 of 5", found(5, |item| item == 2).await),
            ("1 of 100", found(100, |item| item == 37).await),
            ("first of 100", found(100, |item| item == 0).await),
            ("3 of 1000", found(1000, |item| item % 400 == 7).await),
            ("1 of 10000", found(10_000, |item| item == 9_998).await),
        ];
        let told: String = rows
            .iter()
            .map(|(name, (calls, refused, taken))| {
                format!("{name}: {calls} calls, {refused:?} refused, {taken} taken\n")
            })
            .collect();
        expect![[r#"
            none of 1000: 1 calls, [] refused, 1000 taken
            1 of 1: 1 calls, [0] refused, 0 taken
            1 of 2: 3 calls, [1] refused, 1 taken
            1 of 5: 6 calls, [2] refused, 4 taken
            1 of 100: 18 calls, [37] refused, 99 taken
            first of 100: 6 calls, [0] refused, 99 taken
            3 of 1000: 58 calls, [7, 407, 807] refused, 997 taken
            1 of 10000: 32 calls, [9998] refused, 9999 taken
        "#]]
        .assert_eq(&told);
    }

    #[tokio::test]
    async fn a_batch_of_which_nobody_is_taken_is_only_probed() {
        let (calls, refused, taken) = found(10_000, |_| true).await;
        assert_eq!((calls, refused.len(), taken), (4, 10_000, 0));
    }

    #[tokio::test]
    async fn probes_that_were_refused_before_others_were_taken_are_asked_again() {
        for recovers_at in 1..6 {
            let calls = Cell::new(0);
            let call = |_: Arc<[u32]>| {
                calls.set(calls.get() + 1);
                let refused = calls.get() <= recovers_at;
                std::future::ready(if refused { Err(failure(FailureKind::Refused)) } else { Ok(()) })
            };
            let parts = isolate((0..40).collect(), 0, call).await;
            let taken = parts.iter().filter(|part| part.outcome.is_ok()).map(|part| part.items.len());
            let expected = if recovers_at < 4 { 40 } else { 0 };
            assert_eq!(taken.sum::<usize>(), expected, "from call {recovers_at} on");
        }
    }

    #[tokio::test]
    async fn only_refusals_are_looked_into() {
        for kind in [FailureKind::Denied, FailureKind::Unreachable, FailureKind::Ambiguous] {
            let calls = Cell::new(0);
            let call = |_: Arc<[u32]>| {
                calls.set(calls.get() + 1);
                std::future::ready(Err::<(), _>(failure(kind)))
            };
            let parts = isolate((0..100).collect(), 0, call).await;
            assert_eq!((calls.get(), parts.len()), (1, 1));
        }
    }
}
