//! The latest requests with their full content, as many as memory allows.

use std::collections::VecDeque;

/// Most ids in all kept requests together: a few boots of a large machine, some tens of megabytes.
const MOST_IDS: usize = 200_000;

/// The latest requests, oldest first.
#[derive(Debug)]
pub(crate) struct LatestRequests<T> {
    requests: VecDeque<(usize, T)>,
    ids: usize,
}

impl<T> Default for LatestRequests<T> {
    fn default() -> Self {
        Self { requests: VecDeque::new(), ids: 0 }
    }
}

impl<T: Clone> LatestRequests<T> {
    /// Keeps a request about so many ids, and forgets the oldest that are too much. The latest is always kept.
    pub(crate) fn push(&mut self, ids: usize, request: T) {
        self.ids += ids;
        self.requests.push_back((ids, request));
        while self.ids > MOST_IDS && self.requests.len() > 1 {
            let oldest = self.requests.pop_front();
            self.ids -= oldest.map_or(0, |(ids, _)| ids);
        }
    }

    pub(crate) fn list(&self) -> Vec<T> {
        self.requests.iter().map(|(_, request)| request.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_oldest_but_never_the_latest() {
        let mut kept = LatestRequests::default();
        for request in 1..=3 {
            kept.push(MOST_IDS / 2, request);
        }
        assert_eq!(kept.list(), [2, 3]);
        kept.push(MOST_IDS + 1, 4);
        assert_eq!(kept.list(), [4]);
    }
}
