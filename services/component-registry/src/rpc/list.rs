//! Which part of the components a list request asks for.

use chassis::ledger::Selection;
use domain::component::Component;
use proto::component::ListComponentsRequest;

use crate::convert;

/// The components that a request asks for (BOS reference 2.6.1).
pub(super) fn selection(request: ListComponentsRequest) -> Selection<Component> {
    let mut filter = request.filter.unwrap_or_default();
    let keys = std::mem::take(&mut filter.ids).into_iter().collect();
    let filter = convert::filter(filter);
    Selection {
        keys,
        after: request.start_after_id,
        most: if request.page_size == 0 { usize::MAX } else { request.page_size as usize },
        wanted: Box::new(move |component| filter.matches(component)),
    }
}
