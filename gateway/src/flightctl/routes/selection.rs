//! Selections of devices by query parameters (device reference 4.1, 4.2). The registry judges the selectors.

use proto::device::DeviceFilter;

use crate::http::{problem::RequestProblem, query::QueryParameters};

/// Longest selector.
pub(super) const LONGEST_SELECTOR: usize = 16 << 10;

/// Reads the selectors of a request.
///
/// # Errors
/// When one is too long.
pub(super) fn device_filter(query: &QueryParameters) -> Result<DeviceFilter, RequestProblem> {
    Ok(DeviceFilter {
        label_selector: selector(query, "labelSelector")?,
        field_selector: selector(query, "fieldSelector")?,
    })
}

/// Reads a selector; empty: there is none.
///
/// # Errors
/// When it is too long.
pub(super) fn selector(query: &QueryParameters, name: &str) -> Result<String, RequestProblem> {
    Ok(query.text(name, 0..=LONGEST_SELECTOR)?.unwrap_or_default().to_owned())
}
