//! Records that several mirrors of one process hold, in memory once.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use crate::resource::Resource;

/// Keys fewer than which are kept without looking whether anybody still holds their records.
const SMALL: usize = 256;

/// What the mirrors of one process share: parts that run in one process each have a copy of every component, and equal
/// records need memory once. Clones are the same pool.
///
/// It keeps nothing alive, and nobody can tell from the outside whether a record is shared.
#[derive(Clone, Default)]
pub struct Pool {
    kinds: Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>,
}

impl Pool {
    /// What is shared of one kind.
    pub(super) fn of<R: Resource + PartialEq>(&self) -> Arc<Records<R>> {
        let mut kinds = self.kinds.lock();
        let records = kinds.entry(TypeId::of::<R>()).or_insert_with(|| Arc::new(Records::<R>::default()));
        Arc::clone(records).downcast().expect("records are stored under their own type")
    }
}

/// The newest records of one kind that somebody holds.
pub(super) struct Records<R> {
    held: Mutex<Held<R>>,
}

struct Held<R> {
    by_key: HashMap<Box<str>, Weak<R>>,
    /// How many there were when those were sorted out that nobody holds.
    kept: usize,
}

impl<R> Default for Records<R> {
    fn default() -> Self {
        Self { held: Mutex::new(Held { by_key: HashMap::new(), kept: 0 }) }
    }
}

impl<R: Resource + PartialEq> Records<R> {
    /// The same records, those that somebody holds already in that memory.
    pub(super) fn share(&self, records: Vec<Arc<R>>) -> Vec<Arc<R>> {
        let mut held = self.held.lock();
        records.into_iter().map(|record| held.share(record)).collect()
    }
}

impl<R: Resource + PartialEq> Held<R> {
    fn share(&mut self, record: Arc<R>) -> Arc<R> {
        if let Some(known) = self.by_key.get_mut(record.key()) {
            return match known.upgrade() {
                Some(known) if *known == *record => known,
                // Whoever is behind does not take the newest from the others.
                Some(newer) if newer.revision() > record.revision() => record,
                Some(_) | None => {
                    *known = Arc::downgrade(&record);
                    record
                }
            };
        }
        if self.by_key.len() >= 2 * self.kept.max(SMALL) {
            self.by_key.retain(|_, record| record.strong_count() > 0);
            self.kept = self.by_key.len();
        }
        self.by_key.insert(record.key().into(), Arc::downgrade(&record));
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Note(String, u64, &'static str);

    impl Resource for Note {
        const KIND: &'static str = "note";

        fn key(&self) -> &str {
            &self.0
        }

        fn revision(&self) -> u64 {
            self.1
        }

        fn set_revision(&mut self, revision: u64) {
            self.1 = revision;
        }
    }

    fn note(key: &str, revision: u64, text: &'static str) -> Arc<Note> {
        Arc::new(Note(key.to_owned(), revision, text))
    }

    #[test]
    fn equal_records_are_in_memory_once_and_others_are_themselves() {
        let records = Pool::default().of::<Note>();
        let first = records.share(vec![note("a", 1, "one")]).remove(0);
        for (told, shared) in [
            (note("a", 1, "one"), true),
            (note("a", 1, "of another owner"), false),
            (note("a", 3, "newest"), false),
            (note("a", 1, "one"), false),
            (note("b", 1, "one"), false),
        ] {
            let got = records.share(vec![Arc::clone(&told)]).remove(0);
            assert_eq!(got, told);
            assert_eq!(Arc::ptr_eq(&got, &first), shared, "{told:?}");
        }
        let newest = records.share(vec![note("a", 3, "newest")]).remove(0);
        records.share(vec![note("a", 1, "one")]);
        assert!(
            Arc::ptr_eq(&newest, &records.share(vec![note("a", 3, "newest")])[0]),
            "who is behind took it"
        );
    }

    #[test]
    fn nothing_is_remembered_of_records_that_nobody_holds() {
        let pool = Pool::default();
        for number in 0..10 * SMALL {
            pool.of::<Note>().share(vec![note(&number.to_string(), 1, "")]);
        }
        assert!(pool.of::<Note>().held.lock().by_key.len() <= 2 * SMALL);
    }
}
