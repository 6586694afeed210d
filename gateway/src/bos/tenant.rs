//! The tenant of a request.

use axum::extract::FromRequestParts;
use http::{StatusCode, request::Parts};

use super::wire::primitive::TenantName;
use crate::http::{
    document::{self, ApiOperation, HandlerInput, WRONG_REQUEST},
    problem::RequestProblem,
};

/// Header that names the tenant (BOS reference 9.1).
const HEADER: &str = "cray-tenant-name";

/// Spelling of the header in the documentation.
const HEADER_SHOWN: &str = "Cray-Tenant-Name";

/// Most characters of its name (BOS reference 2.3, TenantName).
const LONGEST: usize = chassis::limits::LONGEST_NAME;

/// Tenant of a request; empty: the administrator, without a tenant.
///
/// The services know which tenants exist. The right of the caller to speak for the tenant was checked before the
/// request came here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequestTenant(pub String);

impl RequestTenant {
    fn named(name: &str) -> Result<Self, String> {
        if name.chars().count() > LONGEST {
            return Err(format!("header '{HEADER}' has more than {LONGEST} characters"));
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the tenant as a filter of lists; the administrator sees the resources of all tenants.
    pub(crate) fn filter(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.clone())
    }

    /// Returns ` for tenant 't'`, or an empty text.
    pub(crate) fn suffix(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!(" for tenant '{}'", self.0) }
    }
}

impl<S: Sync> FromRequestParts<S> for RequestTenant {
    type Rejection = RequestProblem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestProblem> {
        let mut named = parts.headers.get_all(HEADER).iter();
        let first = named.next().map(|value| std::str::from_utf8(value.as_bytes()));
        // The check of the caller may have read the other header, and no name at all would be the administrator.
        if named.next().is_some() {
            return Err(RequestProblem::bad_request(format!("header '{HEADER}' is there more than once")));
        }
        let named = first
            .transpose()
            .map_err(|_| RequestProblem::bad_request(format!("header '{HEADER}' is not valid UTF-8")))?;
        Self::named(named.unwrap_or_default()).map_err(RequestProblem::bad_request)
    }
}

impl HandlerInput for RequestTenant {
    fn describe(operation: &mut ApiOperation) {
        let about = "Tenant that asks; absent or empty: the administrator";
        operation.adds(document::header::<TenantName>(HEADER_SHOWN, about));
        operation.may_answer(StatusCode::BAD_REQUEST, WRONG_REQUEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_shows_the_header_that_is_read() {
        assert!(HEADER_SHOWN.eq_ignore_ascii_case(HEADER));
    }

    #[tokio::test]
    async fn the_header_names_the_tenant() {
        let longest = "t".repeat(127);
        for (sent, named) in [
            (None, Some("")),
            (Some(&b""[..]), Some("")),
            (Some(b"blue"), Some("blue")),
            (Some("bl\u{fc}".as_bytes()), Some("bl\u{fc}")),
            (Some(b"bl\xfc"), None),
            (Some(longest.as_bytes()), Some(&*longest)),
            (Some(format!("{longest}t").as_bytes()), None),
        ] {
            let request = http::Request::get("/");
            let request = sent.into_iter().fold(request, |request, name| request.header(HEADER, name));
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let tenant = RequestTenant::from_request_parts(&mut parts, &()).await;
            assert_eq!(tenant.ok().map(|tenant| tenant.0).as_deref(), named, "{sent:?}");
        }
    }

    #[tokio::test]
    async fn one_request_is_about_one_tenant() {
        for names in [["", "blue"], ["blue", ""], ["blue", "red"], ["blue", "blue"]] {
            let request = http::Request::get("/");
            let request = names.iter().fold(request, |request, name| request.header(HEADER, *name));
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let refused = RequestTenant::from_request_parts(&mut parts, &()).await.unwrap_err();
            assert_eq!(refused.detail, "header 'cray-tenant-name' is there more than once", "{names:?}");
        }
    }
}
