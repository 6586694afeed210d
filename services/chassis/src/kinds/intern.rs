//! Shared values: thousands of nodes boot the same kernel with the same parameters, for the same session.

use std::{
    borrow::Borrow,
    collections::{HashSet, VecDeque},
    hash::Hash,
    sync::Arc,
};

use domain::{
    boot::component::{Component, ComponentPools, StagedState, artifacts::BootArtifacts},
    core::{text::text, trouble::Trouble},
};

use super::trouble;

/// Values fewer than which are kept without looking whether anybody still uses them.
const SMALL: usize = 256;

/// Recent values that are compared before the pool is searched. Records that arrive together mostly share a few values,
/// and comparing a kilobyte is cheaper than hashing it.
const RECENT: usize = 8;

/// Bytes of the largest shared text. No sensible text is longer, and unused pool entries would be without bound.
const LARGEST: usize = 16 << 10;

/// Shares the memory of equal values. Unused values are dropped when there are many.
#[derive(Debug, Default)]
pub struct Interner {
    texts: ValuePool<str>,
    artifacts: ValuePool<BootArtifacts>,
    staged: ValuePool<StagedState>,
    troubles: ValuePool<Trouble>,
    components: ComponentPools,
}

impl Interner {
    /// The shared form of `text`.
    pub fn share(&mut self, shared: &str) -> Arc<str> {
        if shared.len() > LARGEST { text(shared) } else { self.texts.share(shared, text) }
    }

    /// The shared form of `text`, if there is any.
    pub(super) fn share_any(&mut self, shared: Option<String>) -> Option<Arc<str>> {
        shared.map(|shared| self.share(&shared))
    }

    /// The shared form of `artifacts`.
    pub fn artifacts(&mut self, artifacts: BootArtifacts) -> Arc<BootArtifacts> {
        if is_large(&artifacts) {
            return Arc::new(artifacts);
        }
        self.artifacts.share(&artifacts, |artifacts| Arc::new(artifacts.clone()))
    }

    /// Returns the shared form of the trouble with this text and this `kind` of the wire; `None`: the text is empty.
    pub fn trouble(&mut self, kind: i32, text: &str) -> Option<Arc<Trouble>> {
        let trouble = trouble::from_wire(kind, self.share(text))?;
        if text.len() > LARGEST {
            return Some(Arc::new(trouble));
        }
        Some(self.troubles.share(&trouble, |trouble| Arc::new(trouble.clone())))
    }

    /// Shares the groups of a component.
    pub fn share_groups(&mut self, component: &mut Component) {
        self.components.share(component);
    }

    /// The shared form of a `staged` state.
    pub fn staged(&mut self, staged: StagedState) -> Arc<StagedState> {
        if staged.boot_artifacts.as_ref().is_some_and(|artifacts| is_large(artifacts)) {
            return Arc::new(staged);
        }
        self.staged.share(&staged, |staged| Arc::new(staged.clone()))
    }
}

fn is_large(artifacts: &BootArtifacts) -> bool {
    let BootArtifacts { kernel, kernel_parameters, initrd, timestamp: _ } = artifacts;
    [kernel, kernel_parameters, initrd].into_iter().flatten().any(|text| text.len() > LARGEST)
}

/// The shared values of one type.
#[derive(Debug)]
struct ValuePool<T: ?Sized> {
    values: HashSet<Arc<T>>,
    kept: usize,
    /// The latest that were searched for, oldest first.
    recent: VecDeque<Arc<T>>,
}

impl<T: ?Sized> Default for ValuePool<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), kept: 0, recent: VecDeque::new() }
    }
}

impl<T: Eq + Hash + ?Sized> ValuePool<T> {
    fn share(&mut self, value: &T, make: fn(&T) -> Arc<T>) -> Arc<T> {
        if let Some(held) = self.recent.iter().find(|held| ***held == *value) {
            return Arc::clone(held);
        }
        let shared = self.search(value, make);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Arc::clone(&shared));
        shared
    }

    fn search(&mut self, value: &T, make: fn(&T) -> Arc<T>) -> Arc<T> {
        if let Some(held) = self.values.get::<T>(value.borrow()) {
            return Arc::clone(held);
        }
        if self.values.len() >= 2 * self.kept.max(SMALL) {
            self.values.retain(|held| Arc::strong_count(held) > 1);
            self.kept = self.values.len();
        }
        let shared = make(value);
        self.values.insert(Arc::clone(&shared));
        shared
    }
}

#[cfg(test)]
mod tests {
    use proto::meta::TroubleKind;

    use super::*;

    #[test]
    fn equal_texts_share_memory_and_unused_ones_go() {
        let mut interner = Interner::default();
        let first = interner.share("kernel");
        assert!(Arc::ptr_eq(&first, &interner.share("kernel")));
        for n in 0..10 * SMALL {
            interner.share(&n.to_string());
        }
        assert!(interner.texts.values.len() <= 2 * SMALL);
        assert!(Arc::ptr_eq(&first, &interner.share("kernel")));
    }

    #[test]
    fn nothing_large_is_kept_for_nobody() {
        let mut interner = Interner::default();
        let large = "x".repeat(LARGEST + 1);
        let shared = interner.share(&large);
        let artifacts = BootArtifacts { kernel: Some(shared), ..BootArtifacts::default() };
        let staged = StagedState { boot_artifacts: Some(artifacts.clone().into()), ..StagedState::default() };
        assert_eq!(*interner.artifacts(artifacts), *staged.boot_artifacts.clone().unwrap());
        assert_eq!(*interner.staged(staged.clone()), staged);
        assert_eq!(interner.trouble(0, &large).unwrap().text().len(), large.len());
        assert!(interner.texts.values.is_empty() && interner.troubles.values.is_empty());
        assert!(interner.artifacts.values.is_empty() && interner.staged.values.is_empty());
    }

    #[test]
    fn equal_troubles_share_memory() {
        let mut interner = Interner::default();
        let mut trouble = |kind: TroubleKind, text: &str| interner.trouble(kind.into(), text);
        let first = trouble(TroubleKind::Waiting, "waiting for PCS").unwrap();
        assert!(Arc::ptr_eq(&first, &trouble(TroubleKind::Waiting, "waiting for PCS").unwrap()));
        assert_ne!(Some(first), trouble(TroubleKind::Failed, "waiting for PCS"));
        assert_eq!(trouble(TroubleKind::Waiting, ""), None);
    }

    #[test]
    fn artifacts_of_equal_texts_share_memory() {
        let mut interner = Interner::default();
        let artifacts =
            |kernel: &str| BootArtifacts { kernel: Some(kernel.into()), ..BootArtifacts::default() };
        let first = interner.artifacts(artifacts("kernel"));
        assert!(Arc::ptr_eq(&first, &interner.artifacts(artifacts("kernel"))));
        assert!(!Arc::ptr_eq(&first, &interner.artifacts(artifacts("another"))));
    }
}
