//! Shared texts: thousands of nodes boot the same kernel with the same parameters.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

/// Texts fewer than which are kept without looking whether anybody still uses them.
const SMALL: usize = 256;

/// Texts that are compared before the others are searched. Records that come together mostly name the same few, and to
/// compare a kilobyte is less work than to hash it.
const RECENT: usize = 8;

/// Gives equal texts the same memory. Texts that nobody else holds go when there are many.
#[derive(Debug, Default)]
pub struct Interner {
    texts: HashSet<Arc<str>>,
    kept: usize,
    /// The latest that were searched for, oldest first.
    recent: VecDeque<Arc<str>>,
}

impl Interner {
    /// The shared form of `text`.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(held) = self.recent.iter().find(|held| ***held == *text) {
            return Arc::clone(held);
        }
        let shared = self.search(text);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Arc::clone(&shared));
        shared
    }

    fn search(&mut self, text: &str) -> Arc<str> {
        if let Some(held) = self.texts.get(text) {
            return Arc::clone(held);
        }
        if self.texts.len() >= 2 * self.kept.max(SMALL) {
            self.texts.retain(|held| Arc::strong_count(held) > 1);
            self.kept = self.texts.len();
        }
        let shared: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&shared));
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_memory_and_unused_ones_go() {
        let mut interner = Interner::default();
        let first = interner.share("kernel");
        assert!(Arc::ptr_eq(&first, &interner.share("kernel")));
        for n in 0..10 * SMALL {
            interner.share(&n.to_string());
        }
        assert!(interner.texts.len() <= 2 * SMALL);
        assert!(Arc::ptr_eq(&first, &interner.share("kernel")));
    }
}
