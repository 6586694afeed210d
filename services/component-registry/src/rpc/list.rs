//! Selection of a list request.

use std::collections::BTreeSet;

use chassis::store::ledger::Selection;
use domain::{boot::component::Component, core::invalid::Invalid};
use proto::component::ListComponentsRequest;

use super::scope::VisibleScope;
use crate::convert;

/// Returns the components that a request selects (BOS reference 2.6.1); `None` if no component can match.
///
/// # Errors
/// The filter cannot be read.
pub(super) fn selection(request: ListComponentsRequest) -> Result<Option<Selection<Component>>, Invalid> {
    let mut filter = request.filter.unwrap_or_default();
    let wanted = std::mem::take(&mut filter.ids).into_iter().collect();
    let keys = match VisibleScope::from(request.scope).among(wanted) {
        VisibleScope::Everything => BTreeSet::new(),
        VisibleScope::Only(ids) if ids.is_empty() => return Ok(None),
        VisibleScope::Only(ids) => ids,
    };
    let filter = convert::filter(filter)?;
    Ok(Some(Selection {
        keys,
        after: request.start_after_id,
        most: if request.page_size == 0 { usize::MAX } else { request.page_size as usize },
        conditions: filter.conditions(),
        wanted: Box::new(move |component| filter.matches(component)),
    }))
}
