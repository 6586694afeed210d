//! Whose resources a request is about.

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::problem::Problem;

/// Header that names the tenant (BOS reference 9.1).
const HEADER: &str = "cray-tenant-name";

/// Most characters of its name (BOS reference 2.3, TenantName).
const LONGEST: usize = 127;

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
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let named = parts.headers.get(HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let named = named.unwrap_or_default();
        if named.chars().count() > LONGEST {
            let detail = format!("header '{HEADER}' has more than {LONGEST} characters");
            return Err(Problem::bad_request(detail));
        }
        Ok(Self(named.into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_header_names_the_tenant() {
        let longest = "t".repeat(LONGEST);
        for (sent, named) in [
            (None, Some("")),
            (Some(""), Some("")),
            (Some("blue"), Some("blue")),
            (Some(&longest), Some(&*longest)),
            (Some(&*format!("{longest}t")), None),
        ] {
            let request = http::Request::get("/");
            let request = sent.into_iter().fold(request, |request, name| request.header(HEADER, name));
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let tenant = Tenant::from_request_parts(&mut parts, &()).await;
            assert_eq!(tenant.ok().map(|tenant| tenant.0).as_deref(), named, "{sent:?}");
        }
    }
}
