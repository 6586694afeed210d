//! Refusal of calls whose caller the rules do not name.
//!
//! The rules are a table that the part hands in. Health and reflection are the mesh's own: every admitted caller may call them.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use domain::core::call_rules::{CallRefusal, CallTable, NamedCaller};
use metrics::counter;
use parking_lot::Mutex;
use tonic::Status;

use crate::{
    mesh::request_id,
    process::audit::{AuditDecision, AuditLog, AuditRecord},
};

/// Services of every part besides its own.
pub(super) const HEALTH: &str = "grpc.health.v1.Health";
pub(super) const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";

/// Most bytes of a path in the answer to a refused call, which travels in a header.
const LONGEST_SHOWN: usize = 256;

/// Calls that were refused because the rules do not name their caller.
const DENIED: &str = "reveille_calls_denied_total";

/// Time between two warnings about the same caller and method: a part that retries must not flood the log.
const QUIET: Duration = Duration::from_secs(600);

/// Most callers and methods of which the time of the last warning is kept. Callers have certificates of the mesh, so that
/// more of them are a mistake in the settings, about which as many warnings say enough.
const MOST_WARNED: usize = 256;

/// Method of calls in the audit log.
const CALL: &str = "gRPC";

/// Rules of a part, and the log lines about refused calls. Clones share it.
#[derive(Clone)]
pub(super) struct CallGuard(Arc<GuardParts>);

struct GuardParts {
    table: CallTable,
    audit: Option<AuditLog>,
    warnings: Mutex<RecentWarnings>,
}

/// Times of the last warnings, by the identity of the caller and the method.
#[derive(Default)]
struct RecentWarnings(HashMap<(String, &'static str), Instant>);

impl CallGuard {
    pub(super) fn new(table: CallTable, audit: Option<AuditLog>) -> Self {
        metrics::describe_counter!(
            DENIED,
            "Calls that were refused because the rules do not name their caller"
        );
        Self(Arc::new(GuardParts { table, audit, warnings: Mutex::default() }))
    }

    fn decide(&self, caller: Option<&NamedCaller>, path: &str) -> Result<(), Status> {
        if is_common(path) {
            return Ok(());
        }
        let caller = caller.ok_or_else(|| Status::unauthenticated("the call needs a client certificate"))?;
        let Err(refusal) = self.0.table.decide(caller, path) else { return Ok(()) };
        self.record(caller, path, &refusal);
        let text = refusal.text(caller, &path[..path.floor_char_boundary(LONGEST_SHOWN)]);
        Err(match refusal {
            // A newer caller has to see what every part without the method answers, and wait until this part is replaced.
            CallRefusal::UnknownMethod => Status::unimplemented(text),
            CallRefusal::OtherCallers(_) => Status::permission_denied(text),
        })
    }

    /// Adds a call to the audit log: that of a person, and every one that was refused. Calls between parts follow from
    /// requests that have lines of their own.
    fn audit(&self, request: &Request, refusal: Option<&Status>) {
        let Some(log) = &self.0.audit else { return };
        let caller = request.extensions().get::<Arc<NamedCaller>>();
        if refusal.is_none() && !caller.is_some_and(|caller| self.0.table.is_person(caller)) {
            return;
        }
        let request_id = request.headers().get(request_id::HEADER).and_then(|id| id.to_str().ok());
        log.record(&AuditRecord {
            decision: refusal.map_or(AuditDecision::Allowed, |_| AuditDecision::Refused),
            caller: caller.map_or("", |caller| caller.identity.as_str()),
            method: CALL,
            path: request.uri().path(),
            reason: refusal.map_or("", Status::message),
            request_id: request_id.unwrap_or_default(),
            ..AuditRecord::default()
        });
    }

    fn record(&self, caller: &NamedCaller, path: &str, refusal: &CallRefusal) {
        let (service, method) = labels(path, refusal);
        let name = caller.names.first().copied().unwrap_or("unknown");
        counter!(DENIED, "caller" => name, "service" => service, "method" => method).increment(1);
        let caller = caller.identity.as_str();
        if self.0.warnings.lock().may_warn(caller, method, Instant::now()) {
            tracing::warn!(caller, path, "call denied; further ones within ten minutes are logged as debug");
        } else {
            tracing::debug!(caller, path, "call denied");
        }
    }
}

/// Returns service and method for metrics. A caller may write anything for a method that no rule is about.
fn labels(path: &str, refusal: &CallRefusal) -> (&'static str, &'static str) {
    match refusal {
        CallRefusal::UnknownMethod => ("unknown", "unknown"),
        CallRefusal::OtherCallers(rule) => {
            let name = path.rsplit('/').next().unwrap_or_default();
            let method = rule.methods.iter().copied().find(|method| *method == name);
            (rule.service, method.unwrap_or("unknown"))
        }
    }
}

/// Returns whether the method at `path` is one that every part serves.
fn is_common(path: &str) -> bool {
    let service = path.strip_prefix('/').and_then(|path| path.split_once('/')).map(|(service, _)| service);
    service == Some(HEALTH) || service == Some(REFLECTION)
}

impl RecentWarnings {
    fn may_warn(&mut self, caller: &str, method: &'static str, now: Instant) -> bool {
        self.0.retain(|_, at| now.duration_since(*at) < QUIET);
        let key = (caller.to_owned(), method);
        let is_new = !self.0.contains_key(&key) && self.0.len() < MOST_WARNED;
        if is_new {
            self.0.insert(key, now);
        }
        is_new
    }
}

/// Passes a call on if the rules name its caller.
pub(super) async fn check(State(guard): State<CallGuard>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Arc<NamedCaller>>();
    let decided = guard.decide(caller.map(AsRef::as_ref), request.uri().path());
    guard.audit(&request, decided.as_ref().err());
    match decided {
        Ok(()) => next.run(request).await,
        Err(status) => status.into_http(),
    }
}

#[cfg(test)]
mod tests {
    use domain::core::workload::WorkloadIdentity;

    use super::*;

    #[test]
    fn warnings_are_bounded_by_time_and_number() {
        let (mut warnings, start) = (RecentWarnings::default(), Instant::now());
        let just_before = start + QUIET - Duration::from_secs(1);
        for (caller, method, at, expected) in [
            ("a", "Get", start, true),
            ("a", "Get", start, false),
            ("a", "Put", start, true),
            ("b", "Get", start, true),
            ("a", "Get", just_before, false),
            ("a", "Get", start + QUIET, true),
            ("a", "Get", start + QUIET, false),
        ] {
            assert_eq!(warnings.may_warn(caller, method, at), expected, "{caller} {method}");
        }
        let later = start + 3 * QUIET;
        let warned =
            (0..2 * MOST_WARNED).filter(|number| warnings.may_warn(&number.to_string(), "Get", later));
        assert_eq!(warned.count(), MOST_WARNED);
    }

    #[test]
    fn calls_without_rules_are_refused_but_health_and_reflection() {
        let guard = CallGuard::new(CallTable::default(), None);
        let identity = WorkloadIdentity::parse("spiffe://site/part").unwrap();
        let caller = NamedCaller { identity, is_own: false, names: Vec::new() };
        for (path, expected) in [
            ("/grpc.health.v1.Health/Check", None),
            ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", None),
            ("/grpc.health.v1.HealthService/Check", Some(tonic::Code::Unimplemented)),
            ("/a.v1.NoteService/GetNote", Some(tonic::Code::Unimplemented)),
        ] {
            let refused = guard.decide(Some(&caller), path).err();
            assert_eq!(refused.map(|status| status.code()), expected, "{path}");
        }
        let nobody = guard.decide(None, "/a.v1.NoteService/GetNote").unwrap_err();
        assert_eq!(nobody.code(), tonic::Code::Unauthenticated);
    }
}
