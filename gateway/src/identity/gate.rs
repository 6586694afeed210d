//! The decision about a request, in front of every face.

use std::{fmt, sync::Arc};

use access_policy::{
    AccessCaller, AccessDecision, AccessGrant, AccessOperation, AccessPolicy, AccessRefusal, ContentRule,
    GrantedTenant, RefusalReason, RequestedTenant, default_policy, operation_path, parse_policy,
};
use anyhow::Context as _;
use axum::extract::Request;
use chassis::{Tasks, mesh::tls::ReloadedValue, settings::IdentitySettings};
use chrono::Utc;
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};

use super::{
    content::only_actual_state,
    credentials::{CredentialFault, bearer},
    issuer::{TokenIssuer, TokenRefusal},
    refusal::{AccessProblem, DecidedRequest},
    token::UnverifiedToken,
    tokens::{StaticTokens, digest},
    verified::{VerifiedToken, VerifiedTokens},
};
use crate::http::admission::BodyCondition;

/// Header of a request on behalf of a tenant.
pub(super) const TENANT: HeaderName = HeaderName::from_static("cray-tenant-name");

/// Reason of a refusal in the audit log.
const UNUSABLE_TENANT: &str = "unusable_tenant";

/// Decides about requests. Clones share everything.
#[derive(Clone)]
pub(crate) struct IdentityGate(Arc<GateParts>);

struct GateParts {
    policy: ReloadedValue<AccessPolicy>,
    tokens: ReloadedValue<StaticTokens>,
    issuers: Vec<TokenIssuer>,
    verified: VerifiedTokens,
}

/// Caller of a request that was let in; an extension of the request.
#[derive(Clone)]
pub(crate) struct RequestCaller {
    /// Caller; `None`: it has no credentials that count.
    pub caller: Option<Arc<AccessCaller>>,
    /// Rule that let the request in.
    pub rule: String,
    gate: IdentityGate,
}

/// Outcome of reading the credentials of a request.
enum CallerEvidence {
    None,
    Proved(Arc<AccessCaller>),
    Fault(CredentialFault),
    /// The keys of this issuer are not available.
    Unavailable(String),
}

impl IdentityGate {
    /// Reads policy and tokens, and begins to fetch the keys of issuers; `None` if the settings have no source of credentials.
    ///
    /// # Errors
    /// Names the setting that is wrong.
    pub(crate) fn start(settings: &IdentitySettings, tasks: &Tasks) -> anyhow::Result<Option<Self>> {
        if !settings.is_on().map_err(anyhow::Error::msg)? {
            return Ok(None);
        }
        let given =
            |path: &std::path::PathBuf| Some(path.clone()).filter(|path| !path.as_os_str().is_empty());
        let (policy_file, token_file) = (given(&settings.policy_file), given(&settings.token_file));
        let of = policy_file.clone();
        let policy = ReloadedValue::named("policy", policy_file, move || match &of {
            None => Ok(default_policy()),
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                parse_policy(&text).with_context(|| path.display().to_string())
            }
        });
        let of = token_file.clone();
        let tokens = ReloadedValue::named("tokens", token_file, move || match &of {
            None => Ok(StaticTokens::default()),
            Some(path) => StaticTokens::read(path),
        });
        let issuers = settings.issuers.iter().map(|(word, issuer)| {
            TokenIssuer::new(word, issuer, tasks).with_context(|| format!("gateway.identity.issuers.{word}"))
        });
        Ok(Some(Self(Arc::new(GateParts {
            policy: policy.context("gateway.identity.policy_file")?,
            tokens: tokens.context("gateway.identity.token_file")?,
            issuers: issuers.collect::<anyhow::Result<_>>()?,
            verified: VerifiedTokens::default(),
        }))))
    }

    /// Decides about a request to the path below `mount` on the common port. The request leaves with the tenant that was decided
    /// on and without its credentials.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) async fn admit(&self, mount: &str, mut request: Request) -> Result<Request, AccessProblem> {
        let evidence = self.evidence(request.headers()).await;
        let caller = match &evidence {
            CallerEvidence::Proved(caller) => Some(Arc::clone(caller)),
            CallerEvidence::None | CallerEvidence::Fault(_) | CallerEvidence::Unavailable(_) => None,
        };
        let policy = self.0.policy.current();
        let path = format!("{mount}{}", request.uri().path());
        let operation = AccessOperation {
            method: request.method().as_str(),
            path: operation_path(&path),
            tenant: requested_tenant(request.headers()),
        };
        let grant = match policy.decide(caller.as_deref(), &operation) {
            AccessDecision::Allowed(grant) => grant,
            AccessDecision::Refused(refusal) => {
                let shown = caller.as_ref().map_or_else(|| "nobody".to_owned(), |caller| caller.shown());
                let (method, reason) = (operation.method, refusal.reason.word());
                tracing::info!(caller = shown, method, path, reason, rule = refusal.rule, "access refused");
                let caller = caller.map(|caller| caller.shown()).unwrap_or_default();
                let rule = refusal.rule.map(str::to_owned).unwrap_or_default();
                let decided = DecidedRequest { caller, rule, reason };
                return Err(problem(&refusal, &evidence).for_audit(decided));
            }
        };
        tracing::debug!(rule = grant.rule, "access allowed");
        let rule = grant.rule.to_owned();
        prepare(&mut request, &grant).map_err(|problem| {
            let caller = caller.as_ref().map(|caller| caller.shown()).unwrap_or_default();
            problem.for_audit(DecidedRequest { caller, rule: rule.clone(), reason: UNUSABLE_TENANT })
        })?;
        request.extensions_mut().insert(RequestCaller { caller, rule, gate: self.clone() });
        Ok(request)
    }

    async fn evidence(&self, headers: &HeaderMap) -> CallerEvidence {
        let token = match bearer(headers) {
            Ok(None) => return CallerEvidence::None,
            Ok(Some(token)) => token,
            Err(fault) => return CallerEvidence::Fault(fault),
        };
        let (digest, now) = (digest(token), Utc::now());
        match self.0.tokens.current().find(&digest, now) {
            Ok(Some(caller)) => return CallerEvidence::Proved(Arc::new(caller.clone())),
            Ok(None) => {}
            Err(fault) => return CallerEvidence::Fault(fault),
        }
        let now = now.timestamp();
        if let Some(known) = self.0.verified.find(&digest, now)
            && self.0.issuers[known.issuer].still_has(known.key_set)
        {
            return CallerEvidence::Proved(known.caller);
        }
        let token = match UnverifiedToken::read(token) {
            Ok(token) => token,
            Err(fault) => return CallerEvidence::Fault(fault),
        };
        let named = self.0.issuers.iter().enumerate().find(|(_, issuer)| issuer.is_named_in(&token));
        let Some((number, issuer)) = named else { return CallerEvidence::Fault(CredentialFault::Unknown) };
        match issuer.verify(&token, now).await {
            Ok(proved) => {
                let caller = Arc::clone(&proved.caller);
                let (key_set, ends) = (proved.key_set, proved.ends);
                let token = VerifiedToken { caller: proved.caller, issuer: number, key_set, ends };
                self.0.verified.remember(digest, token, now);
                CallerEvidence::Proved(caller)
            }
            Err(TokenRefusal::Fault(fault)) => CallerEvidence::Fault(fault),
            Err(TokenRefusal::Unavailable) => CallerEvidence::Unavailable(issuer.word.clone()),
        }
    }
}

impl fmt::Debug for RequestCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestCaller").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl RequestCaller {
    /// Returns the rule that allows the caller an operation without a tenant.
    ///
    /// # Errors
    /// The reason why the policy does not allow it.
    pub(crate) fn may(&self, method: &str, path: &str) -> Result<String, String> {
        let operation = AccessOperation { method, path: operation_path(path), tenant: RequestedTenant::None };
        match self.gate.0.policy.current().decide(self.caller.as_deref(), &operation) {
            AccessDecision::Allowed(grant) => Ok(format!("rule '{}'", grant.rule)),
            AccessDecision::Refused(refusal) => Err(refusal.to_string()),
        }
    }
}

/// Returns the answer to a refused request. A caller whose credentials do not count learns why.
fn problem(refusal: &AccessRefusal<'_>, evidence: &CallerEvidence) -> AccessProblem {
    match evidence {
        CallerEvidence::None => AccessProblem::no_credentials(RefusalReason::Unauthenticated.to_string()),
        CallerEvidence::Fault(fault) => AccessProblem::bad_credentials(fault),
        CallerEvidence::Unavailable(issuer) => AccessProblem::unavailable(issuer),
        CallerEvidence::Proved(_) => AccessProblem::forbidden(refusal.to_string()),
    }
}

fn requested_tenant(headers: &HeaderMap) -> RequestedTenant {
    let mut named = headers.get_all(TENANT).iter();
    let Some(first) = named.next() else { return RequestedTenant::None };
    if named.next().is_some() {
        return RequestedTenant::Unreadable;
    }
    match std::str::from_utf8(first.as_bytes()) {
        Ok("") => RequestedTenant::None,
        Ok(name) => RequestedTenant::Named(name.to_owned()),
        Err(_) => RequestedTenant::Unreadable,
    }
}

/// Leaves a request with the decision about it.
///
/// # Errors
/// When the tenant has a name that no header can have.
fn prepare(request: &mut Request, grant: &AccessGrant<'_>) -> Result<(), AccessProblem> {
    request.headers_mut().remove(AUTHORIZATION);
    match &grant.tenant {
        GrantedTenant::AsRequested => {}
        GrantedTenant::Without => drop(request.headers_mut().remove(TENANT)),
        GrantedTenant::Of(tenant) => {
            let value = HeaderValue::from_bytes(tenant.as_bytes());
            let value =
                value.map_err(|_| AccessProblem::forbidden("the tenant of the caller has no usable name"))?;
            request.headers_mut().insert(TENANT, value);
        }
    }
    match grant.content {
        ContentRule::Any => {}
        ContentRule::ActualState => {
            request.extensions_mut().insert(BodyCondition(only_actual_state));
        }
    }
    Ok(())
}
