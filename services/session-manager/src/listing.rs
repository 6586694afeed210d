//! Long lists in pages, so that neither writers nor memory feel them.

use std::sync::Arc;

use chassis::ledger::{Ledger, Table};
use futures_util::{Stream, stream};

/// Records that are looked at while writers wait.
const SCANNED: usize = 1000;

/// Where a list goes on.
enum Position {
    Start,
    After(Arc<str>),
    End,
}

/// The records that `wanted` picks, ordered by key, in pages of at most `most`. What changes while the list is
/// read may or may not be in it.
pub(crate) fn listing<T: Table>(
    ledger: Ledger<T>,
    most: usize,
    wanted: impl Fn(&T::Kind) -> bool + Send + 'static,
) -> impl Stream<Item = Vec<Arc<T::Kind>>> + Send {
    stream::unfold((ledger, wanted, Position::Start), move |(ledger, wanted, mut position)| async move {
        loop {
            let after = match &position {
                Position::Start => None,
                Position::After(key) => Some(&**key),
                Position::End => return None,
            };
            let (page, last) = ledger.view().page(after, SCANNED, most, &wanted);
            position = last.map_or(Position::End, Position::After);
            if !page.is_empty() {
                return Some((page, (ledger, wanted, position)));
            }
        }
    })
}
