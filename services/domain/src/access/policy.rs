//! Rules, and the decision by the first that fits.

use super::{
    caller::AccessCaller,
    decision::{AccessDecision, AccessGrant, AccessRefusal, ContentRule, GrantedTenant, RefusalReason},
    operation::{AccessOperation, RequestedTenant},
    pattern::{PathPattern, SubjectPattern},
};

/// Ordered list of rules. An operation that none of them allows is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessPolicy {
    rules: Vec<AccessRule>,
}

/// Rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRule {
    /// Name, which no other rule of the policy has.
    pub name: String,
    /// Callers that the rule is about.
    pub callers: CallerSelector,
    /// Methods, such as `GET`, which stands for HEAD too; empty: all.
    pub methods: Vec<String>,
    /// Paths, of which one has to fit.
    pub paths: Vec<PathPattern>,
    /// Effect of the rule.
    pub effect: RuleEffect,
}

/// Callers that a rule is about: every set condition has to hold. Without any, the rule is about every caller with
/// credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerSelector {
    /// Includes callers without credentials; then no other condition is set.
    pub is_everybody: bool,
    /// Roles, of which the caller needs one; empty: any or none.
    pub roles: Vec<String>,
    /// Subjects, of which one has to fit; empty: any.
    pub subjects: Vec<SubjectPattern>,
    /// Words for issuers, of which one has to be that of the caller; empty: any.
    pub issuers: Vec<String>,
    /// Requires the caller to be a node.
    pub is_node: bool,
}

/// Effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleEffect {
    /// The operation is denied, whatever tenant the request names.
    Deny,
    /// The operation is allowed under these conditions.
    Allow(AllowConditions),
}

/// Conditions of a rule that allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowConditions {
    /// Condition about tenants.
    pub tenant: TenantRule,
    /// Content that the body may have.
    pub content: ContentRule,
}

/// Condition about tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantRule {
    /// The operation has nothing to do with tenants: whatever the request names is dropped.
    Ignored,
    /// For callers that are bound to no tenant, and only without a tenant.
    None,
    /// For callers that act for tenants, and only for one of these.
    Own,
    /// For callers that are bound to no tenant: for any tenant, and without one.
    Any,
}

/// Defect of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyDefect {
    /// Two rules have one name.
    #[error("rule '{0}': another rule has this name")]
    RepeatedName(String),
    /// A rule has no name.
    #[error("a rule has no name")]
    NoName,
    /// A rule is about no path.
    #[error("rule '{0}': has no paths")]
    NoPaths(String),
    /// A rule is about everybody, and names callers.
    #[error("rule '{0}': is about everybody, and names callers too")]
    EverybodyAndSome(String),
    /// A rule has a method that is none.
    #[error(
        "rule '{rule}': methods: '{method}' is no method in capital letters, or HEAD, which GET stands for"
    )]
    Method {
        /// Name of the rule.
        rule: String,
        /// Text in the place of a method.
        method: String,
    },
    /// A rule that denies binds a path to the caller.
    #[error("rule '{0}': denies, and has {{own_node}} in a path, which only rules that allow may have")]
    DeniedOwnNode(String),
    /// A rule for everybody cannot depend on the tenants of the caller.
    #[error("rule '{0}': is about everybody, so that tenant has to be \"ignored\"")]
    EverybodyOfTenant(String),
}

impl AccessPolicy {
    /// Creates a policy.
    ///
    /// # Errors
    /// The first defect of a rule.
    pub fn new(rules: Vec<AccessRule>) -> Result<Self, PolicyDefect> {
        for (number, rule) in rules.iter().enumerate() {
            rule.check()?;
            if rules[..number].iter().any(|earlier| earlier.name == rule.name) {
                return Err(PolicyDefect::RepeatedName(rule.name.clone()));
            }
        }
        Ok(Self { rules })
    }

    /// Returns the rules in their order.
    pub fn rules(&self) -> &[AccessRule] {
        &self.rules
    }

    /// Decides about an operation; `caller` is `None` where the request has no credentials.
    ///
    /// Which rule denies depends on caller, method and path alone, so that no tenant in a request changes it.
    pub fn decide(
        &self,
        caller: Option<&AccessCaller>,
        operation: &AccessOperation<'_>,
    ) -> AccessDecision<'_> {
        let mut nearest = None;
        for rule in self.rules.iter().filter(|rule| rule.concerns(caller, operation)) {
            let refused = match rule.effect {
                RuleEffect::Deny => {
                    let reason = RefusalReason::Denied;
                    return refused(caller, AccessRefusal { reason, rule: Some(&rule.name) });
                }
                RuleEffect::Allow(conditions) => match rule.grant(conditions, caller, operation) {
                    Ok(tenant) => {
                        let content = conditions.content;
                        return AccessDecision::Allowed(AccessGrant { rule: &rule.name, tenant, content });
                    }
                    Err(reason) => AccessRefusal { reason, rule: Some(&rule.name) },
                },
            };
            nearest.get_or_insert(refused);
        }
        refused(caller, nearest.unwrap_or(AccessRefusal { reason: RefusalReason::NoRule, rule: None }))
    }
}

/// Returns the refusal. A caller without credentials learns only that it needs some.
fn refused<'a>(caller: Option<&AccessCaller>, refusal: AccessRefusal<'a>) -> AccessDecision<'a> {
    AccessDecision::Refused(match caller {
        Some(_) => refusal,
        None => AccessRefusal { reason: RefusalReason::Unauthenticated, rule: None },
    })
}

impl AccessRule {
    fn check(&self) -> Result<(), PolicyDefect> {
        let name = || self.name.clone();
        if self.name.is_empty() {
            return Err(PolicyDefect::NoName);
        }
        if self.paths.is_empty() {
            return Err(PolicyDefect::NoPaths(name()));
        }
        if let Some(method) = self.methods.iter().find(|method| !is_method(method)) {
            return Err(PolicyDefect::Method { rule: name(), method: method.clone() });
        }
        if self.callers.is_everybody && self.callers.names_some() {
            return Err(PolicyDefect::EverybodyAndSome(name()));
        }
        match self.effect {
            RuleEffect::Deny if self.paths.iter().any(PathPattern::names_own_node) => {
                Err(PolicyDefect::DeniedOwnNode(name()))
            }
            RuleEffect::Allow(AllowConditions { tenant, .. })
                if self.callers.is_everybody && tenant != TenantRule::Ignored =>
            {
                Err(PolicyDefect::EverybodyOfTenant(name()))
            }
            RuleEffect::Deny | RuleEffect::Allow(_) => Ok(()),
        }
    }

    fn concerns(&self, caller: Option<&AccessCaller>, operation: &AccessOperation<'_>) -> bool {
        let method = operation.effective_method();
        self.callers.selects(caller)
            && (self.methods.is_empty() || self.methods.iter().any(|one| one == method))
            && self.paths.iter().any(|path| path.has_shape_of(&operation.path))
    }

    fn grant(
        &self,
        conditions: AllowConditions,
        caller: Option<&AccessCaller>,
        operation: &AccessOperation<'_>,
    ) -> Result<GrantedTenant, RefusalReason> {
        let node = caller.and_then(|caller| caller.node.as_deref());
        let about =
            |path: &&PathPattern| path.has_shape_of(&operation.path) && path.is_about(&operation.path, node);
        if !self.paths.iter().any(|path| about(&path)) {
            return Err(RefusalReason::ForeignNode);
        }
        let tenants = caller.map_or(&[][..], |caller| &caller.tenants);
        granted_tenant(conditions.tenant, tenants, &operation.tenant)
    }
}

/// Decides the tenant of a request of a caller that acts for `tenants`. A caller that acts for some never acts without one.
fn granted_tenant(
    rule: TenantRule,
    tenants: &[String],
    requested: &RequestedTenant,
) -> Result<GrantedTenant, RefusalReason> {
    match (rule, tenants, requested) {
        (TenantRule::Ignored, _, _) => Ok(GrantedTenant::Without),
        (TenantRule::None | TenantRule::Any, [_, ..], _) => Err(RefusalReason::BeyondTenants),
        (TenantRule::Any, [], _) => Ok(GrantedTenant::AsRequested),
        (TenantRule::None, [], RequestedTenant::None) => Ok(GrantedTenant::Without),
        (TenantRule::None, [], RequestedTenant::Named(_) | RequestedTenant::Unreadable) => {
            Err(RefusalReason::TenantNotAllowed)
        }
        (TenantRule::Own, [], _) => Err(RefusalReason::NoTenant),
        (TenantRule::Own, [only], RequestedTenant::None) => Ok(GrantedTenant::Of(only.clone())),
        (TenantRule::Own, _, RequestedTenant::None) => Err(RefusalReason::TenantNeeded),
        (TenantRule::Own, tenants, RequestedTenant::Named(named)) if tenants.contains(named) => {
            Ok(GrantedTenant::Of(named.clone()))
        }
        (TenantRule::Own, _, RequestedTenant::Named(_) | RequestedTenant::Unreadable) => {
            Err(RefusalReason::ForeignTenant)
        }
    }
}

impl CallerSelector {
    fn names_some(&self) -> bool {
        let Self { is_everybody: _, roles, subjects, issuers, is_node } = self;
        *is_node || !roles.is_empty() || !subjects.is_empty() || !issuers.is_empty()
    }

    fn selects(&self, caller: Option<&AccessCaller>) -> bool {
        if self.is_everybody {
            return true;
        }
        let Some(caller) = caller else { return false };
        let Self { is_everybody: _, roles, subjects, issuers, is_node } = self;
        (roles.is_empty() || roles.iter().any(|role| caller.roles.contains(role)))
            && (subjects.is_empty() || subjects.iter().any(|subject| subject.fits(&caller.subject)))
            && (issuers.is_empty() || issuers.contains(&caller.issuer))
            && (!is_node || caller.node.is_some())
    }
}

fn is_method(text: &str) -> bool {
    text != "HEAD" && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
}
