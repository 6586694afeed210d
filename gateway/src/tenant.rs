//! Whose resources a request is about.

use axum::response::Response;
use chassis::Fault;
use http::HeaderValue;
use proto::{component::Scope, tenant::GetTenantRequest};

use crate::{
    mesh::{Mesh, SESSIONS, answer, call},
    problem::Problem,
    wire::stamp::Stamp,
};

/// Header that names the tenant (BOS reference 9.1).
pub(crate) const HEADER: &str = "cray-tenant-name";

/// Most characters of its name (BOS reference 2.3, TenantName).
const LONGEST: usize = chassis::limits::LONGEST_NAME;

/// Header of answers that show nodes of which it is in doubt since then whether the tenant still has them.
const IN_DOUBT: &str = "reveille-tenant-in-doubt-since";

/// The components that exist to a tenant.
#[derive(Debug, Clone, Default)]
pub(crate) struct TenantScope {
    /// Their ids; `None`: every component.
    pub scope: Option<Scope>,
    /// Since when the tenant service leaves some of them out, which is not confirmed yet.
    in_doubt_since: Option<Stamp>,
}

impl TenantScope {
    /// The scope of a change. Nothing is begun with components in doubt, for they may be another tenant's by now.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] while any component is in doubt.
    pub(crate) fn confirmed(self) -> Result<Option<Scope>, Fault> {
        match self.in_doubt_since {
            None => Ok(self.scope),
            Some(since) => {
                let reason =
                    format!("the tenant service leaves nodes out since {since}Z, which is being confirmed");
                Err(Fault::unavailable("tenant membership", reason))
            }
        }
    }

    /// The response with the time since when components are in doubt. BOS has no such header, so that there is none
    /// where it is followed strictly.
    pub(crate) fn mark(in_doubt_since: Option<Stamp>, strict: bool, mut response: Response) -> Response {
        let since =
            in_doubt_since.filter(|_| !strict).map(|since| HeaderValue::try_from(format!("{since}Z")));
        if let Some(Ok(since)) = since {
            response.headers_mut().insert(IN_DOUBT, since);
        }
        response
    }

    /// The scope of a read, and the mark for its response.
    pub(crate) fn shown(self) -> (Option<Scope>, Option<Stamp>) {
        (self.scope, self.in_doubt_since)
    }
}

/// The tenant that a request names; empty: the administrator, who asks for no tenant.
///
/// Whether the tenant exists is for the services to know, and whether the caller may speak for it was checked before
/// the request came here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tenant(pub String);

impl Tenant {
    /// The tenant that the header names.
    ///
    /// # Errors
    /// Says what is wrong with the header.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        if name.chars().count() > LONGEST {
            return Err(format!("header '{HEADER}' has more than {LONGEST} characters"));
        }
        Ok(Self(name.to_owned()))
    }

    /// The tenant as a filter of lists; the administrator sees the resources of everybody.
    pub(crate) fn filter(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.clone())
    }

    /// The components that exist to the tenant, of those that a request is `about`, or of all if that is empty. The
    /// administrator has every component, and no service is asked.
    ///
    /// # Errors
    /// [`Fault::NotFound`] when there is no such tenant, [`Fault::Unavailable`] when the tenant service does not answer.
    pub(crate) async fn scope(&self, mesh: &Mesh, about: Vec<String>) -> Result<TenantScope, Fault> {
        if self.0.is_empty() {
            return Ok(TenantScope::default());
        }
        let request = GetTenantRequest { name: self.0.clone(), among: about };
        let tenant = answer(SESSIONS, mesh.tenants.clone().get_tenant(call(request))).await?;
        let Some(nodes) = tenant.nodes else { return Ok(TenantScope::default()) };
        let in_doubt_since = nodes.in_doubt_since.map(Stamp::from);
        Ok(TenantScope { scope: Some(Scope { ids: nodes.ids }), in_doubt_since })
    }

    /// What it means to a request about components that their scope is not known (BOS reference 9.2).
    pub(crate) fn without_scope(&self, fault: Fault) -> Problem {
        match fault {
            Fault::NotFound { .. } => Problem::invalid_tenant(self.unknown()),
            other => other.into(),
        }
    }

    /// The same for a request about many components, which BOS takes for a mistake in the body.
    pub(crate) fn without_scope_of_many(&self, fault: Fault) -> Problem {
        match fault {
            Fault::NotFound { .. } => {
                Problem::bad_request(format!("Error parsing the data provided: {}", self.unknown()))
            }
            other => other.into(),
        }
    }

    fn unknown(&self) -> String {
        format!("Data not found for tenant {}", self.0)
    }

    /// ` for tenant 't'`, or nothing.
    pub(crate) fn suffix(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!(" for tenant '{}'", self.0) }
    }
}
