//! Whose resources a request is about.

/// Header that names the tenant (BOS reference 9.1).
pub(crate) const HEADER: &str = "cray-tenant-name";

/// Most characters of its name (BOS reference 2.3, TenantName).
const LONGEST: usize = 127;

/// The tenant that a request names; empty: the administrator, who asks for no tenant.
///
/// Nobody checks here whether the tenant exists or the caller may speak for it.
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

    /// ` for tenant 't'`, or nothing.
    pub(crate) fn suffix(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!(" for tenant '{}'", self.0) }
    }
}
