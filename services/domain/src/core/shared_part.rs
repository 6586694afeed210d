//! Parts of records that equal records share.
//!
//! Thousands of records have equal parts: nodes of one session want the same, and nodes that were switched together have
//! the same last action. A record holds such a part by reference, and a pool of its holder makes equal parts one.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    ops::{Deref, DerefMut},
    sync::{Arc, Weak},
};

/// Recent parts that are compared before a pool is searched. Records that arrive together mostly share a few parts, and
/// to compare parts with shared texts is cheaper than to hash the texts.
const RECENT: usize = 4;

/// Parts fewer than which a pool keeps in mind without a check whether anybody still holds them.
const SMALL: usize = 256;

/// Part of a record, which equal records share. It is read and written as the part itself: a write copies a part that
/// others hold too, so sharing never shows.
///
/// ```
/// use domain::core::shared_part::SharedPart;
///
/// let first = SharedPart::from(vec![1, 2]);
/// let mut second = first.clone();
/// assert!(SharedPart::is_same(&first, &second));
/// second.push(3);
/// assert_eq!((first.len(), second.len()), (2, 3));
/// ```
#[derive(Default)]
pub struct SharedPart<T>(Arc<T>);

impl<T> SharedPart<T> {
    /// Returns whether others hold the part too.
    pub fn is_shared(part: &Self) -> bool {
        Arc::strong_count(&part.0) > 1
    }

    /// Returns whether both are one part in memory.
    pub fn is_same(one: &Self, other: &Self) -> bool {
        Arc::ptr_eq(&one.0, &other.0)
    }
}

impl<T: Clone + PartialEq> SharedPart<T> {
    /// Changes the part. A change that leaves the part as it was keeps the shared one.
    pub fn update(part: &mut Self, change: impl FnOnce(&mut T)) {
        let mut changed = T::clone(part);
        change(&mut changed);
        if changed != **part {
            *part = changed.into();
        }
    }
}

impl<T> From<T> for SharedPart<T> {
    fn from(part: T) -> Self {
        Self(Arc::new(part))
    }
}

impl<T> Clone for SharedPart<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for SharedPart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for SharedPart<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for SharedPart<T> {
    fn eq(&self, other: &Self) -> bool {
        // Most parts that are compared are shared: the address decides without a look at the contents.
        Self::is_same(self, other) || *self.0 == *other.0
    }
}

impl<T: Eq> Eq for SharedPart<T> {}

impl<T: Hash> Hash for SharedPart<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedPart<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Parts in use, so that equal ones become one. The pool holds no part itself: a part ends with its last record.
#[derive(Debug)]
pub struct PartPool<T> {
    /// Parts by the hash of their content. Of different parts with the same hash the latest is found.
    parts: HashMap<u64, Weak<T>>,
    /// Latest parts that were looked up, oldest first.
    recent: VecDeque<Weak<T>>,
    /// Number of parts in use at the last check.
    used: usize,
    hasher: RandomState,
}

impl<T> Default for PartPool<T> {
    fn default() -> Self {
        Self { parts: HashMap::new(), recent: VecDeque::new(), used: 0, hasher: RandomState::new() }
    }
}

impl<T: Eq + Hash> PartPool<T> {
    /// Makes `part` the equal part that is in use, if there is one. A part with other holders is left as it is.
    pub fn share(&mut self, part: &mut SharedPart<T>) {
        if SharedPart::is_shared(part) {
            return;
        }
        let mut recent = self.recent.iter().filter_map(Weak::upgrade);
        if let Some(held) = recent.find(|held| **held == **part) {
            *part = SharedPart(held);
            return;
        }
        self.search(part);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Arc::downgrade(&part.0));
    }

    fn search(&mut self, part: &mut SharedPart<T>) {
        let hash = self.hasher.hash_one(&**part);
        match self.parts.get(&hash).and_then(Weak::upgrade) {
            Some(held) if *held == **part => *part = SharedPart(held),
            Some(_) | None => {
                self.forget_unused();
                self.parts.insert(hash, Arc::downgrade(&part.0));
            }
        }
    }

    /// Forgets parts that nobody holds any more, once there may be as many of these as parts in use.
    fn forget_unused(&mut self) {
        if self.parts.len() < 2 * self.used.max(SMALL) {
            return;
        }
        self.parts.retain(|_, part| part.strong_count() > 0);
        self.used = self.parts.len();
        self.parts.shrink_to(2 * self.used.max(SMALL));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_part_compares_hashes_and_shows_as_its_content() {
        let (one, other) = (SharedPart::from("a".to_owned()), SharedPart::from("a".to_owned()));
        assert!(!SharedPart::is_same(&one, &other));
        assert_eq!(one, other);
        assert_ne!(one, SharedPart::from("b".to_owned()));
        assert_eq!(HashSet::from([one.clone(), other, SharedPart::default()]).len(), 2);
        assert_eq!(format!("{one:?}"), format!("{:?}", "a"));
    }

    #[test]
    fn a_write_leaves_the_other_holders_alone() {
        let before = SharedPart::from(1);
        let mut after = before.clone();
        assert!(SharedPart::is_shared(&before));
        *after += 1;
        assert_eq!((*before, *after), (1, 2));
        assert!(!SharedPart::is_shared(&before) && !SharedPart::is_shared(&after));
    }

    #[test]
    fn an_update_without_effect_keeps_the_shared_part() {
        let first = SharedPart::from(1);
        let mut second = first.clone();
        SharedPart::update(&mut second, |value| *value = 1);
        assert!(SharedPart::is_same(&first, &second));
        SharedPart::update(&mut second, |value| *value = 2);
        assert_eq!((*first, *second), (1, 2));
    }
    /// Returns the part as a pool shares it.
    fn shared(pool: &mut PartPool<String>, text: &str) -> SharedPart<String> {
        let mut part = SharedPart::from(text.to_owned());
        pool.share(&mut part);
        part
    }

    #[test]
    fn equal_parts_become_one() {
        let mut pool = PartPool::default();
        let parts: Vec<_> = (0..3 * RECENT).map(|n| shared(&mut pool, &n.to_string())).collect();
        for (n, part) in parts.iter().enumerate() {
            let again = shared(&mut pool, &n.to_string());
            assert!(SharedPart::is_same(part, &again), "{n}");
            assert_eq!(**part, n.to_string());
        }
    }

    #[test]
    fn a_part_with_other_holders_stays_itself() {
        let mut pool = PartPool::default();
        let _known = shared(&mut pool, "a");
        let mut part = SharedPart::from("a".to_owned());
        let holder = part.clone();
        pool.share(&mut part);
        assert!(SharedPart::is_same(&part, &holder));
    }

    #[test]
    fn a_written_part_leaves_the_pool_as_it_was() {
        let mut pool = PartPool::default();
        let mut only = shared(&mut pool, "a");
        only.push('b');
        assert_eq!(*shared(&mut pool, "a"), "a");
        assert_eq!(*only, "ab");
    }

    #[test]
    fn unused_parts_end() {
        let mut pool = PartPool::default();
        let first = shared(&mut pool, "kept");
        let gone = shared(&mut pool, "gone");
        let last = Arc::downgrade(&gone.0);
        drop(gone);
        assert!(last.upgrade().is_none());
        for n in 0..10 * SMALL {
            shared(&mut pool, &n.to_string());
        }
        assert!(pool.parts.len() <= 2 * SMALL, "{}", pool.parts.len());
        assert!(SharedPart::is_same(&first, &shared(&mut pool, "kept")));
    }
}
