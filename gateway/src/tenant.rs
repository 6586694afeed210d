//! Whose resources a request is about.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;

/// Header that names the tenant (BOS reference 9.1).
const HEADER: &str = "cray-tenant-name";

/// The tenant that a request names; empty: the administrator, who asks for no tenant.
///
/// Nobody checks here whether the tenant exists or the caller may speak for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tenant(pub String);

impl Tenant {
    /// The tenant as a filter of lists; the administrator sees the resources of everybody.
    pub(crate) fn filter(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.clone())
    }

    /// ` for tenant 't'`, or nothing.
    pub(crate) fn suffix(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!(" for tenant '{}'", self.0) }
    }
}

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let named = parts.headers.get(HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
        Ok(Self(named.unwrap_or_default().into_owned()))
    }
}
