//! Secondary indexes: finds resources by shared facets without examining all of them.

use std::{
    collections::{BTreeSet, HashMap, btree_set},
    iter::{self, Peekable},
    ops::Bound,
    sync::Arc,
};

use crate::store::resource::{Facet, KeyedResource, Resource};

/// A condition of a list: a resource meets it by any one of these facets.
pub type OneOf = Vec<(&'static str, String)>;

/// The keys of the resources that have a facet, by the facet's name and value.
#[derive(Debug, Default)]
pub(super) struct FacetIndex(HashMap<&'static str, HashMap<Box<str>, KeySet>>);

/// Keys in order.
#[derive(Debug)]
pub(super) enum KeySet {
    /// A single key, such as that of the host that is a node: a set would have room for ten others.
    One(Arc<str>),
    Many(BTreeSet<Arc<str>>),
}

impl KeySet {
    fn of(mut keys: Vec<Arc<str>>) -> Option<Self> {
        match keys.len() {
            0 | 1 => keys.pop().map(Self::One),
            // Sets that are made of sorted keys at once take little more memory than the keys.
            _ => Some(Self::Many(keys.into_iter().collect())),
        }
    }

    fn insert(&mut self, key: Arc<str>) {
        match self {
            Self::One(only) if *only == key => {}
            Self::One(only) => *self = Self::Many(BTreeSet::from([Arc::clone(only), key])),
            Self::Many(keys) => {
                keys.insert(key);
            }
        }
    }

    /// Removes a key. Returns whether none is left.
    fn remove(&mut self, key: &str) -> bool {
        match self {
            Self::One(only) => **only == *key,
            Self::Many(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(keys) => keys.len(),
        }
    }

    fn following(&self, after: &str) -> KeyRange<'_> {
        match self {
            Self::One(only) => KeyRange::One(Some(only).filter(|only| ***only > *after)),
            Self::Many(keys) => {
                KeyRange::Many(keys.range::<str, _>((Bound::Excluded(after), Bound::Unbounded)))
            }
        }
    }
}

/// Keys of a set that follow another one.
enum KeyRange<'a> {
    One(Option<&'a Arc<str>>),
    Many(btree_set::Range<'a, Arc<str>>),
}

impl<'a> Iterator for KeyRange<'a> {
    type Item = &'a Arc<str>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::One(only) => only.take(),
            Self::Many(keys) => keys.next(),
        }
    }
}

impl FacetIndex {
    pub(super) fn of<R: Resource>(resources: &BTreeSet<KeyedResource<R>>) -> Self {
        let mut found: HashMap<Facet<'_>, Vec<Arc<str>>> = HashMap::new();
        for KeyedResource(resource) in resources {
            for facet in resource.facets() {
                found.entry(facet).or_default().push(resource.shared_key());
            }
        }
        let mut facets = Self::default();
        for ((name, value), keys) in found {
            let values = facets.0.entry(name).or_default();
            values.extend(KeySet::of(keys).map(|keys| (value.into(), keys)));
        }
        facets
    }

    /// Updates the index for a resource that changed from `before` to `now`.
    pub(super) fn change<R: Resource>(&mut self, before: Option<&R>, now: Option<&R>) {
        if let Some(gone) = before {
            gone.facets().for_each(|facet| self.remove(gone.key(), facet));
        }
        if let Some(come) = now {
            come.facets().for_each(|facet| self.insert(come.shared_key(), facet));
        }
    }

    fn insert(&mut self, key: Arc<str>, (name, value): Facet<'_>) {
        let values = self.0.entry(name).or_default();
        match values.get_mut(value) {
            Some(keys) => keys.insert(key),
            None => drop(values.insert(value.into(), KeySet::One(key))),
        }
    }

    fn remove(&mut self, key: &str, (name, value): Facet<'_>) {
        let Some(values) = self.0.get_mut(name) else { return };
        let Some(keys) = values.get_mut(value) else { return };
        if keys.remove(key) {
            values.remove(value);
        }
    }

    /// The keys that meet the most selective of these conditions, if they are fewer than `most`.
    pub(super) fn fewest(&self, conditions: &[OneOf], most: usize) -> Option<Vec<&KeySet>> {
        let sets = |condition: &OneOf| -> Vec<_> {
            let values = condition.iter().filter_map(|(name, value)| self.0.get(name)?.get(value.as_str()));
            values.collect()
        };
        let count = |sets: &Vec<&KeySet>| sets.iter().map(|keys| keys.len()).sum::<usize>();
        conditions.iter().map(sets).min_by_key(count).filter(|sets| count(sets) < most)
    }
}

/// Returns whether both have the same facets.
pub(super) fn same_facets<R: Resource>(one: &R, other: &R) -> bool {
    one.facets().eq(other.facets())
}

/// The keys of all `sets` that follow `after`, in order, each once.
pub(super) fn merged<'a>(sets: &[&'a KeySet], after: &str) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
    let mut rests: Vec<Peekable<KeyRange<'a>>> =
        sets.iter().map(|keys| keys.following(after).peekable()).collect();
    iter::from_fn(move || {
        let next = rests.iter_mut().filter_map(|rest| rest.peek().copied()).min()?;
        for rest in &mut rests {
            rest.next_if(|key| *key == next);
        }
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::store::{
        ledger::{
            bookkeeping::LedgerCommit,
            incarnation::LedgerIncarnation,
            showing::show,
            state::{LedgerState, LoadedState},
            view::LedgerView,
        },
        resource::{Batch, ResourceDeletion},
    };

    const COLOURS: [&str; 3] = ["red", "green", ""];

    /// Resource with up to one colour and any sizes.
    #[derive(Debug, Clone, PartialEq)]
    struct Ball {
        key: String,
        colour: Option<&'static str>,
        sizes: Vec<&'static str>,
    }

    impl Resource for Ball {
        const KIND: &'static str = "ball";

        fn key(&self) -> &str {
            &self.key
        }

        fn revision(&self) -> u64 {
            0
        }

        fn set_revision(&mut self, _: u64) {}

        fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
            let colour = self.colour.map(|colour| ("colour", colour));
            colour.into_iter().chain(self.sizes.iter().map(|size| ("size", *size)))
        }
    }

    fn has(ball: &Ball, condition: &OneOf) -> bool {
        condition.iter().any(|(name, value)| ball.facets().any(|facet| facet == (*name, value.as_str())))
    }

    fn balls() -> impl Strategy<Value = Ball> {
        let colour = prop::option::of(prop::sample::select(&COLOURS[..]));
        let sizes = prop::sample::subsequence(vec!["small", "large"], 0..=2);
        (0..20, colour, sizes).prop_map(|(n, colour, sizes)| Ball { key: format!("b{n:02}"), colour, sizes })
    }

    fn batches() -> impl Strategy<Value = (Vec<Ball>, Vec<usize>)> {
        (prop::collection::vec(balls(), 0..10), prop::collection::vec(0..20_usize, 0..4))
    }

    fn conditions() -> impl Strategy<Value = Vec<OneOf>> {
        let facet = prop::sample::select(vec![
            ("colour", "red"),
            ("colour", "green"),
            ("colour", "blue"),
            ("size", "small"),
            ("size", "large"),
            ("weight", "heavy"),
        ]);
        let facet = facet.prop_map(|(name, value)| (name, value.to_owned()));
        prop::collection::vec(prop::collection::vec(facet, 1..4), 0..4)
    }

    fn listed(FacetIndex(names): &FacetIndex) -> BTreeSet<(&str, &str, &str)> {
        let values = names.iter().flat_map(|(name, values)| values.iter().map(move |found| (*name, found)));
        values
            .flat_map(|(name, (value, keys))| keys.following("").map(move |key| (name, &**value, &**key)))
            .collect()
    }

    fn empty() -> LedgerState<Ball> {
        LedgerState {
            resources: BTreeSet::new(),
            deletions: Vec::new(),
            revision: 0,
            compacted: 0,
            incarnation: LedgerIncarnation::of(uuid::Uuid::nil()),
            remembers: 1,
            unreadable: BTreeMap::new(),
            facets: FacetIndex::default(),
        }
    }

    fn batch((changed, deleted): (Vec<Ball>, Vec<usize>)) -> Batch<Ball> {
        let deleted =
            deleted.into_iter().map(|n| ResourceDeletion { key: format!("b{n:02}").into(), revision: 0 });
        Batch {
            changed: changed.into_iter().map(Arc::new).collect(),
            deleted: deleted.collect(),
            revision: 0,
            synced: false,
        }
    }

    proptest! {
        #[test]
        fn after_any_history_the_same_is_found_as_by_looking_at_everything(
            history in prop::collection::vec(batches(), 0..12),
            conditions in conditions(),
            after in 0..20,
            steps in 1..30_usize,
        ) {
            let mut state = empty();
            for step in history {
                show(&mut state, &batch(step));
            }
            let anew = FacetIndex::of(&state.resources);
            prop_assert_eq!(listed(&state.facets), listed(&anew));
            let wanted = |ball: &Ball| conditions.iter().all(|condition| has(ball, condition));
            let scanned: Vec<_> = state.all().filter(|ball| wanted(ball)).cloned().collect();
            let last = LedgerCommit::to(0);
            let view = LedgerView::new(LoadedState { state, unreadable: Vec::new(), last });
            let paged = |mut after: Arc<str>, conditions: &[OneOf]| {
                let mut found = Vec::new();
                loop {
                    let (page, last) = view.page(&after, steps, 3, conditions, wanted);
                    found.extend(page);
                    let Some(last) = last else { return found };
                    after = last;
                }
            };
            prop_assert_eq!(&paged("".into(), &conditions), &scanned);
            let from: Arc<str> = format!("b{after:02}").into();
            prop_assert_eq!(paged(from.clone(), &conditions), paged(from, &[]));
        }
    }

    #[test]
    fn only_those_are_looked_at_that_meet_the_narrowest_condition() {
        let mut state = empty();
        let ball = |n: usize| Ball {
            key: format!("b{n:02}"),
            colour: Some(if n.is_multiple_of(10) { "red" } else { "green" }),
            sizes: if n < 5 { vec!["small"] } else { vec!["large"] },
        };
        show(&mut state, &batch(((0..40).map(ball).collect(), Vec::new())));
        let one_of = |facets: &[Facet<'_>]| -> OneOf {
            facets.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
        };
        let (red, green) = (("colour", "red"), ("colour", "green"));
        let (small, large) = (("size", "small"), ("size", "large"));
        for (conditions, looked_at) in [
            (vec![], 40),
            (vec![one_of(&[red])], 4),
            (vec![one_of(&[red]), one_of(&[small])], 4),
            (vec![one_of(&[large]), one_of(&[small])], 5),
            (vec![one_of(&[red, green])], 40),
            (vec![one_of(&[red, small])], 8),
            (vec![one_of(&[("colour", "blue")]), one_of(&[green])], 0),
        ] {
            assert_eq!(state.candidates(&conditions, "").count(), looked_at, "{conditions:?}");
        }
        assert_eq!(state.candidates(&[one_of(&[red])], "b10").count(), 2);
    }
}
