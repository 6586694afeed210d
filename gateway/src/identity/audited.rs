//! Lines of the audit log about requests.

use axum::extract::Request;
use chassis::{
    mesh::request_id,
    process::audit::{AuditDecision, AuditLog, AuditRecord},
};
use http::{Method, StatusCode};

use super::{
    gate::{RequestCaller, TENANT},
    refusal::{AccessProblem, DecidedRequest},
};

/// Reason of a refusal behind the gate: the content of the request is not for this caller.
const INSIDE: &str = "content";

/// Request that gets a line once it is answered, or once its client has left: by then it may have had its effect. One that was
/// let in and only reads gets none, nor does one whose client leaves before it is decided about.
pub(crate) struct AuditedRequest {
    log: AuditLog,
    method: Method,
    path: String,
    request_id: String,
    tenant: String,
    decided: DecidedRequest,
    /// Decision; `None`: there is none to record.
    decision: Option<AuditDecision>,
    /// Status of the answer; `None`: the client left before.
    status: Option<StatusCode>,
}

impl AuditedRequest {
    /// Begins with a request to `path`.
    pub(crate) fn begin(log: AuditLog, request: &Request, path: &str) -> Self {
        Self {
            log,
            method: request.method().clone(),
            path: path.to_owned(),
            request_id: request_id::current().unwrap_or_default(),
            tenant: tenant(request),
            decided: DecidedRequest::default(),
            decision: None,
            status: None,
        }
    }

    /// Notes that the request was let in, as it goes on.
    pub(crate) fn admitted(&mut self, request: &Request) {
        self.decision = (!self.method.is_safe()).then_some(AuditDecision::Allowed);
        self.tenant = tenant(request);
        if let Some(RequestCaller { caller, rule, .. }) = request.extensions().get() {
            let caller = caller.as_ref().map(|caller| caller.shown()).unwrap_or_default();
            self.decided = DecidedRequest { caller, rule: rule.clone(), reason: "" };
        }
    }

    /// Notes that the request was refused.
    pub(crate) fn refused(&mut self, refusal: &AccessProblem) {
        self.decision = Some(AuditDecision::Refused);
        self.decided = DecidedRequest::clone(&refusal.decided);
    }

    /// Records the request with the status of its answer. A request that was let in may be refused further inside, for its
    /// body or its tenant.
    pub(crate) fn answered(mut self, status: StatusCode) {
        self.status = Some(status);
        let was_let_in = self.decided.reason.is_empty();
        if was_let_in && [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) {
            self.decision = Some(AuditDecision::Refused);
            self.decided.reason = INSIDE;
        }
    }
}

impl Drop for AuditedRequest {
    fn drop(&mut self) {
        let Some(decision) = self.decision else { return };
        let DecidedRequest { caller, rule, reason } = &self.decided;
        self.log.record(&AuditRecord {
            decision,
            caller,
            tenant: &self.tenant,
            method: self.method.as_str(),
            path: &self.path,
            rule,
            reason,
            status: self.status.map(|status| status.as_u16()),
            request_id: &self.request_id,
        });
    }
}

fn tenant(request: &Request) -> String {
    let named = request.headers().get(TENANT);
    named.map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned()).unwrap_or_default()
}
