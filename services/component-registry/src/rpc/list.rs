//! Which part of the components a list request asks for.

use std::collections::BTreeSet;

use chassis::ledger::Selection;
use domain::{component::Component, invalid::Invalid};
use proto::component::ListComponentsRequest;

use super::scope::Scope;
use crate::convert;

/// The components that a request asks for (BOS reference 2.6.1); none when it can be for nobody.
///
/// # Errors
/// When the filter cannot be read.
pub(super) fn selection(request: ListComponentsRequest) -> Result<Option<Selection<Component>>, Invalid> {
    let mut filter = request.filter.unwrap_or_default();
    let wanted = std::mem::take(&mut filter.ids).into_iter().collect();
    let keys = match Scope::from(request.scope).among(wanted) {
        Scope::Everything => BTreeSet::new(),
        Scope::Only(ids) if ids.is_empty() => return Ok(None),
        Scope::Only(ids) => ids,
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
