//! Decision about an operation.

use std::fmt;

/// Decision about an operation of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessDecision<'a> {
    /// The operation is allowed.
    Allowed(AccessGrant<'a>),
    /// The operation is refused.
    Refused(AccessRefusal<'a>),
}

/// Permission, with the conditions under which it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessGrant<'a> {
    /// Name of the rule that decided.
    pub rule: &'a str,
    /// Tenant of the request from here on.
    pub tenant: GrantedTenant,
    /// Content that the body may have.
    pub content: ContentRule,
}

/// Tenant of an allowed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantedTenant {
    /// The tenant that the request names, if any: the caller may act for every tenant and for none.
    AsRequested,
    /// No tenant.
    Without,
    /// This tenant of the caller.
    Of(String),
}

/// Content that the body of an allowed request may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentRule {
    /// Any content.
    Any,
    /// An actual state and nothing else.
    ActualState,
}

/// Refusal, with the rule that came nearest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRefusal<'a> {
    /// Reason of the refusal.
    pub reason: RefusalReason,
    /// Name of the rule that denies, or whose further conditions are not met; `None`: no rule is about the operation of
    /// this caller.
    pub rule: Option<&'a str>,
}

/// Reason why an operation is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// The caller has no credentials, and the operation is not open to everybody.
    Unauthenticated,
    /// No rule allows the operation to the caller.
    NoRule,
    /// A rule denies the operation to the caller.
    Denied,
    /// The path names another node than the one that the caller is.
    ForeignNode,
    /// The request names a tenant that the caller does not act for.
    ForeignTenant,
    /// The caller acts for several tenants, and the request names none.
    TenantNeeded,
    /// The operation is for callers that act for a tenant, and the caller acts for none.
    NoTenant,
    /// The caller acts for tenants only, and the operation reaches beyond them.
    BeyondTenants,
    /// The request names a tenant, which the rule does not let the caller choose.
    TenantNotAllowed,
    /// The body has more than an actual state.
    MoreThanActualState,
}

impl RefusalReason {
    /// Every reason.
    pub const ALL: [Self; 10] = [
        Self::Unauthenticated,
        Self::NoRule,
        Self::Denied,
        Self::ForeignNode,
        Self::ForeignTenant,
        Self::TenantNeeded,
        Self::NoTenant,
        Self::BeyondTenants,
        Self::TenantNotAllowed,
        Self::MoreThanActualState,
    ];

    /// Returns the word for logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unauthenticated => "unauthenticated",
            Self::NoRule => "no_rule",
            Self::Denied => "denied",
            Self::ForeignNode => "foreign_node",
            Self::ForeignTenant => "foreign_tenant",
            Self::TenantNeeded => "tenant_needed",
            Self::NoTenant => "no_tenant",
            Self::BeyondTenants => "beyond_tenants",
            Self::TenantNotAllowed => "tenant_not_allowed",
            Self::MoreThanActualState => "more_than_actual_state",
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unauthenticated => "the request needs credentials",
            Self::NoRule => "no rule of the policy allows this to the caller",
            Self::Denied => "a rule of the policy denies this to the caller",
            Self::ForeignNode => "the caller may do this for its own node only",
            Self::ForeignTenant => "the caller does not act for the tenant of the request",
            Self::TenantNeeded => "the caller acts for several tenants, and the request has to name one",
            Self::NoTenant => "the caller may do this for a tenant only, and acts for none",
            Self::BeyondTenants => "the caller acts for its tenants only, and this reaches beyond them",
            Self::TenantNotAllowed => "the caller may not name a tenant here",
            Self::MoreThanActualState => "the caller may report an actual state and change nothing else",
        })
    }
}

impl fmt::Display for AccessRefusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Some(rule) => write!(f, "{} (rule '{rule}')", self.reason),
            None => self.reason.fmt(f),
        }
    }
}
