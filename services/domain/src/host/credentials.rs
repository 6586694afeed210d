//! Login at the BMC: which secret can be used, and which one is known to work (host reference 1.19).

use std::{sync::Arc, time::Duration};

use crate::host::{
    decision::{HostEvent, HostMetric},
    detach,
    evidence::CredentialsSight,
    pass::{Flow, HostPass},
    record::{
        Host,
        reason::WaitReason,
        status::{CredentialsRecord, HostErrorKind},
    },
};

/// Time until a missing secret is looked for again.
const MISSING: Duration = Duration::from_secs(10);

/// Problem with a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoginProblem {
    NoName,
    NoAddress,
    NoSecret,
    Incomplete,
    Unreadable,
}

impl LoginProblem {
    fn text(self) -> &'static str {
        match self {
            Self::NoName => "no secret with the login of the BMC is named",
            Self::NoAddress => "the address of the BMC is missing",
            Self::NoSecret => "the secret with the login of the BMC does not exist",
            Self::Incomplete => "the secret with the login of the BMC lacks the user name or the password",
            Self::Unreadable => "the secret with the login of the BMC could not be read",
        }
    }
}

/// Checks that there is a login. A deletion goes on without one, unless a detached host holds it.
pub(crate) fn check(pass: &mut HostPass<'_>) -> Flow {
    if pass.state().is_unmanaged() {
        return Ok(());
    }
    let Some(problem) = problem(&pass.host, &pass.seen.credentials) else { return Ok(()) };
    if pass.host.is_deleted() && !detach::holds_deletion(&pass.host) {
        pass.lacks_credentials = true;
        return Ok(());
    }
    match problem {
        LoginProblem::Unreadable => {
            pass.metrics.push(HostMetric::CredentialsUnhandled);
            Err(pass.trouble(WaitReason::CredentialsUnreadable, problem.text().into()))
        }
        LoginProblem::NoSecret => {
            record(pass, problem, HostMetric::CredentialsMissing);
            Err(pass.rest(WaitReason::CredentialsMissing, Some(MISSING)))
        }
        LoginProblem::NoName | LoginProblem::NoAddress | LoginProblem::Incomplete => {
            record(pass, problem, HostMetric::CredentialsInvalid);
            Err(pass.rest(WaitReason::CredentialsIncomplete, None))
        }
    }
}

fn problem(host: &Host, sight: &CredentialsSight) -> Option<LoginProblem> {
    if host.spec.credentials_name.is_empty() {
        return Some(LoginProblem::NoName);
    }
    if host.spec.bmc_address.is_empty() {
        return Some(LoginProblem::NoAddress);
    }
    match sight {
        CredentialsSight::Missing => Some(LoginProblem::NoSecret),
        CredentialsSight::Kept { .. } if !host.is_deleted() => Some(LoginProblem::NoSecret),
        CredentialsSight::Unreadable => Some(LoginProblem::Unreadable),
        CredentialsSight::Incomplete => Some(LoginProblem::Incomplete),
        CredentialsSight::Complete { .. } | CredentialsSight::Kept { .. } => None,
    }
}

/// Records a problem as a failed registration. The same problem, found again, is no further failure (host reference
/// Q6).
fn record(pass: &mut HostPass<'_>, problem: LoginProblem, metric: HostMetric) {
    let text: Arc<str> = problem.text().into();
    let known = pass.host.status.error.as_ref();
    if known.is_some_and(|error| error.kind == HostErrorKind::Registration && error.text == text) {
        return;
    }
    pass.record_failure(HostErrorKind::Registration, text);
    pass.events.push(HostEvent::BmcCredentialError { text: problem.text() });
    pass.metrics.push(metric);
}

/// Returns the login in use.
pub(crate) fn current(pass: &HostPass<'_>) -> CredentialsRecord {
    let version = match &pass.seen.credentials {
        CredentialsSight::Complete { version } | CredentialsSight::Kept { version } => Arc::clone(version),
        CredentialsSight::Missing | CredentialsSight::Unreadable | CredentialsSight::Incomplete => {
            Arc::default()
        }
    };
    CredentialsRecord { name: Arc::clone(&pass.host.spec.credentials_name), version }
}

/// Returns whether the login in use is the last one that worked.
pub(crate) fn are_good(pass: &HostPass<'_>) -> bool {
    pass.host.status.good_credentials.as_ref() == Some(&current(pass))
}

/// Notes that the login in use works; returns whether that is news.
pub(crate) fn confirm(pass: &mut HostPass<'_>) -> bool {
    if are_good(pass) {
        return false;
    }
    pass.host.status.good_credentials = Some(current(pass));
    pass.events.push(HostEvent::BmcAccessValidated);
    pass.metrics.push(HostMetric::CredentialsUpdated);
    true
}
