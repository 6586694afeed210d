//! Finding those of many items that a peer refuses, so that the others need not suffer.

use std::{future::Future, sync::Arc};

use futures_util::{StreamExt, stream};

use crate::upstream::{Failure, FailureKind};

/// Parts of one group that are tried at the same time.
const AT_ONCE: usize = 4;

/// Items of a refused group that are tried alone before the group is cut in two. When each of them is refused, it
/// is not the items that the peer minds but what they have in common, and cutting up thousands would call the
/// peer thousands of times to learn nothing more.
const SAMPLES: usize = 3;

/// A group smaller than this is cut up at once: that takes about as few calls as samples do.
const SMALL: usize = 8;

/// What became of a part of a group.
#[derive(Debug)]
pub(crate) struct Part<I, T> {
    pub(crate) items: Arc<[I]>,
    pub(crate) outcome: Result<T, Failure>,
}

/// Makes `call` for all of `items`. Where the peer refuses them together, halves are tried, down to single items.
/// Each item ends up in one part of the outcome; a refused part is a single item, or all that were never taken.
pub(crate) async fn isolate<I, T, F>(items: Vec<I>, call: impl Fn(Arc<[I]>) -> F) -> Vec<Part<I, T>>
where
    I: Clone,
    F: Future<Output = Result<T, Failure>>,
{
    let mut ended = Vec::new();
    let whole = attempt(items.into(), &call).await;
    let mut open = match (whole.is_refused(), whole.items.len()) {
        (false, _) | (true, 0 | 1) => return vec![whole],
        (true, 2..SMALL) => halves(&whole.items),
        (true, SMALL..) => {
            let (samples, rest) = samples(&whole.items);
            let tried = attempts(samples, &call).await;
            let hopeless = tried.iter().all(Part::is_refused);
            ended.extend(tried);
            if hopeless {
                ended.push(Part { items: rest.into(), outcome: whole.outcome });
                return ended;
            }
            halves(&rest)
        }
    };
    while !open.is_empty() {
        let mut smaller = Vec::new();
        for part in attempts(std::mem::take(&mut open), &call).await {
            if part.is_refused() && part.items.len() > 1 {
                smaller.extend(halves(&part.items));
            } else {
                ended.push(part);
            }
        }
        open = smaller;
    }
    ended
}

impl<I, T> Part<I, T> {
    fn is_refused(&self) -> bool {
        matches!(&self.outcome, Err(failure) if failure.kind == FailureKind::Refused)
    }
}

async fn attempts<I, T, F>(parts: Vec<Arc<[I]>>, call: &impl Fn(Arc<[I]>) -> F) -> Vec<Part<I, T>>
where
    F: Future<Output = Result<T, Failure>>,
{
    stream::iter(parts.into_iter().map(|items| attempt(items, call))).buffered(AT_ONCE).collect().await
}

async fn attempt<I, T, F>(items: Arc<[I]>, call: &impl Fn(Arc<[I]>) -> F) -> Part<I, T>
where
    F: Future<Output = Result<T, Failure>>,
{
    let outcome = call(Arc::clone(&items)).await;
    Part { items, outcome }
}

/// Two parts of at least two items.
fn halves<I: Clone>(items: &[I]) -> Vec<Arc<[I]>> {
    let (first, second) = items.split_at(items.len() / 2);
    vec![first.into(), second.into()]
}

/// A few items from all over the group, each by itself, and the others.
fn samples<I: Clone>(items: &[I]) -> (Vec<Arc<[I]>>, Vec<I>) {
    let last = items.len().saturating_sub(1);
    let places: Vec<_> = (0..SAMPLES).map(|sample| sample * last / (SAMPLES - 1)).collect();
    let (mut samples, mut rest) = (Vec::new(), Vec::new());
    for (place, item) in items.iter().enumerate() {
        if places.contains(&place) {
            samples.push([item.clone()].into());
        } else {
            rest.push(item.clone());
        }
    }
    (samples, rest)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use expect_test::expect;

    use super::*;

    fn failure(kind: FailureKind) -> Failure {
        Failure { kind, status: None, text: "no".to_owned() }
    }

    /// How many calls it took among `count` items to find out which are refused, and who that is.
    async fn found(count: u32, bad: impl Fn(u32) -> bool) -> (u32, Vec<u32>, usize) {
        let calls = Cell::new(0);
        let call = |items: Arc<[u32]>| {
            calls.set(calls.get() + 1);
            let refused = items.iter().any(|item| bad(*item));
            std::future::ready(if refused { Err(failure(FailureKind::Refused)) } else { Ok(()) })
        };
        let parts = isolate((0..count).collect(), call).await;
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
            1 of 5: 5 calls, [2] refused, 4 taken
            1 of 100: 16 calls, [37] refused, 99 taken
            first of 100: 6 calls, [0] refused, 99 taken
            3 of 1000: 58 calls, [7, 407, 807] refused, 997 taken
            1 of 10000: 32 calls, [9998] refused, 9999 taken
        "#]]
        .assert_eq(&told);
    }

    #[tokio::test]
    async fn what_is_refused_whoever_the_items_is_not_tried_with_each() {
        let (calls, refused, taken) = found(10_000, |_| true).await;
        assert_eq!((calls, refused.len(), taken), (4, 10_000, 0));
    }

    #[tokio::test]
    async fn only_refusals_are_looked_into() {
        for kind in [FailureKind::Denied, FailureKind::Unreachable, FailureKind::Ambiguous] {
            let calls = Cell::new(0);
            let call = |_: Arc<[u32]>| {
                calls.set(calls.get() + 1);
                std::future::ready(Err::<(), _>(failure(kind)))
            };
            let parts = isolate((0..100).collect(), call).await;
            assert_eq!((calls.get(), parts.len()), (1, 1));
        }
    }
}
