//! The components that exist to a tenant.

use axum::response::Response;
use chassis::Fault;
use http::HeaderValue;
use proto::{component::Scope, tenant::GetTenantRequest};

use super::{problem::BosProblem, tenant::RequestTenant, wire::stamp::BosTime};
use crate::{
    http::call::{answer, call},
    mesh::{MeshHandle, SESSIONS},
};

/// Header of answers with nodes whose membership in the tenant is in doubt; its value is the beginning of the doubt.
const IN_DOUBT: &str = "reveille-tenant-in-doubt-since";

/// Components that exist to a tenant.
#[derive(Debug, Clone, Default)]
pub(crate) struct TenantScope {
    /// Ids of the components; `None`: every component.
    pub scope: Option<Scope>,
    /// Time since which the tenant service leaves some of them out, which is not confirmed yet.
    in_doubt_since: Option<BosTime>,
}

impl TenantScope {
    /// Returns the components that exist to `tenant`, of those that a request is `about`, or of all if that is empty.
    /// The administrator has every component, and no service is called.
    ///
    /// # Errors
    /// [`Fault::NotFound`] when there is no such tenant, [`Fault::Unavailable`] when the tenant service does not answer.
    pub(crate) async fn of(
        tenant: &RequestTenant,
        mesh: &MeshHandle,
        about: Vec<String>,
    ) -> Result<Self, Fault> {
        if tenant.0.is_empty() {
            return Ok(Self::default());
        }
        let request = GetTenantRequest { name: tenant.0.clone(), among: about };
        let answer = answer(SESSIONS, mesh.tenants.clone().get_tenant(call(request))).await?;
        let Some(nodes) = answer.nodes else { return Ok(Self::default()) };
        let in_doubt_since = nodes.in_doubt_since.map(BosTime::from);
        Ok(Self { scope: Some(Scope { ids: nodes.ids }), in_doubt_since })
    }

    /// Returns the scope of a change. A change does not begin while components are in doubt, for they may be another
    /// tenant's by now.
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

    /// Returns the scope of a read, and the mark for its response.
    pub(crate) fn shown(self) -> (Option<Scope>, Option<BosTime>) {
        (self.scope, self.in_doubt_since)
    }

    /// Returns the response with the time since which components are in doubt. BOS has no such header, so the response
    /// has none where BOS is followed strictly.
    pub(crate) fn mark(in_doubt_since: Option<BosTime>, strict: bool, mut response: Response) -> Response {
        let since =
            in_doubt_since.filter(|_| !strict).map(|since| HeaderValue::try_from(format!("{since}Z")));
        if let Some(Ok(since)) = since {
            response.headers_mut().insert(IN_DOUBT, since);
        }
        response
    }
}

/// Returns the problem of a request about components without a scope (BOS reference 9.2).
pub(crate) fn without_scope(tenant: &RequestTenant, fault: Fault) -> BosProblem {
    match fault {
        Fault::NotFound { .. } => BosProblem::invalid_tenant(unknown(tenant)),
        other => other.into(),
    }
}

/// Returns the problem as [`without_scope`] does, for a request about many components: BOS calls an unknown tenant a
/// mistake in the body.
pub(crate) fn without_scope_of_many(tenant: &RequestTenant, fault: Fault) -> BosProblem {
    match fault {
        Fault::NotFound { .. } => {
            BosProblem::bad_request(format!("Error parsing the data provided: {}", unknown(tenant)))
        }
        other => other.into(),
    }
}

fn unknown(tenant: &RequestTenant) -> String {
    format!("Data not found for tenant {}", tenant.0)
}
