//! The ledger of a kind for other parts of its process.

use std::sync::{Arc, OnceLock, Weak};

use super::view::LedgerView;

/// The view of the ledger that owns a kind, where that is in this process. Clones share it.
pub(crate) struct OwnerView<R>(Arc<OnceLock<Weak<LedgerView<R>>>>);

impl<R> Default for OwnerView<R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<R> Clone for OwnerView<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> OwnerView<R> {
    /// Registers the ledger of `view` as the owner of the kind. A second ledger of the kind keeps its copy to itself.
    pub(crate) fn set(&self, view: &Arc<LedgerView<R>>) {
        let _known = self.0.set(Arc::downgrade(view));
    }

    /// The view, unless the ledger is elsewhere or gone.
    pub(crate) fn get(&self) -> Option<Arc<LedgerView<R>>> {
        self.0.get().and_then(Weak::upgrade)
    }
}
