//! Whose resources a request is about.

use chassis::Fault;
use proto::{component::Scope, tenant::GetTenantRequest};

use crate::{
    mesh::{Mesh, SESSIONS, answer, call},
    problem::Problem,
};

/// Header that names the tenant (BOS reference 9.1).
pub(crate) const HEADER: &str = "cray-tenant-name";

/// Most characters of its name (BOS reference 2.3, TenantName).
const LONGEST: usize = chassis::limits::LONGEST_NAME;

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

    /// The components that exist to the tenant, of those that a request is `about`, or of all if that is empty;
    /// `None`: whichever there are. Nobody is asked on behalf of the administrator.
    ///
    /// # Errors
    /// [`Fault::NotFound`] when there is no such tenant, [`Fault::Unavailable`] when nobody tells.
    pub(crate) async fn scope(&self, mesh: &Mesh, about: Vec<String>) -> Result<Option<Scope>, Fault> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let request = GetTenantRequest { name: self.0.clone(), among: about };
        let tenant = answer(SESSIONS, mesh.tenants.clone().get_tenant(call(request))).await?;
        Ok(tenant.nodes.map(|nodes| Scope { ids: nodes.ids }))
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
