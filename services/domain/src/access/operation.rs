//! Requests as rules see them.

/// Tenant that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedTenant {
    /// The request names no tenant, or an empty one.
    None,
    /// The request names one tenant.
    Named(String),
    /// The request names several tenants, or one that is no text.
    Unreadable,
}

/// Operation that a caller asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessOperation<'a> {
    /// Method; HEAD counts as GET.
    pub method: &'a str,
    /// Segments of the path on the common port, decoded, without empty ones and without the prefix of BOS.
    pub path: Vec<String>,
    /// Tenant that the request names.
    pub tenant: RequestedTenant,
}

impl AccessOperation<'_> {
    /// Returns the method by which rules are chosen.
    pub(super) fn effective_method(&self) -> &str {
        if self.method == "HEAD" { "GET" } else { self.method }
    }
}
