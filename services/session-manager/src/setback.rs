//! What keeps a session from running.

use chassis::Fault;
use upstream::Failure;

/// Why a session cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setback {
    /// Something that is needed does not answer: try again later.
    Wait(Outage),
    /// It will never go well: the session is over. The text is for people.
    Fail(String),
}

/// Something that is needed and does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// What is waited for, such as `inventory`.
    pub what: &'static str,
    /// The last error, for people.
    pub error: String,
}

impl Setback {
    /// What it means that a part of the mesh answered with a fault. Only one that judged the request itself is
    /// believed for good.
    pub(crate) fn from_mesh(what: &'static str, fault: impl Into<Fault>) -> Self {
        let fault = fault.into();
        let wait = |error| Self::Wait(Outage { what, error });
        match fault {
            Fault::Unavailable { reason, .. } => wait(reason),
            Fault::Internal(cause) => wait(cause),
            Fault::Locked { .. } | Fault::ResumeExpired(_) => wait(fault.to_string()),
            Fault::NotFound { .. } | Fault::AlreadyExists { .. } | Fault::Invalid(_) => {
                Self::Fail(format!("{what}: {fault}"))
            }
        }
    }
}

impl Outage {
    /// What it means that a call to a system outside the mesh failed. Whoever gets an answer that is definite
    /// for the session looks for it first: what is left, a refusal included, says more about that system or
    /// our way to it than about the session.
    pub(crate) fn from_upstream(what: &'static str, failure: Failure) -> Self {
        Self { what, error: failure.text }
    }
}

#[cfg(test)]
mod tests {
    use domain::invalid::Invalid;
    use expect_test::expect;

    use super::*;

    #[test]
    fn only_a_judged_request_fails_a_session() {
        let rows: String = [
            Fault::unavailable("service", "connection refused"),
            Fault::Internal("Unimplemented: no such method".into()),
            Fault::Locked { kind: "node".into(), name: "x1".into(), reason: "busy".into() },
            Fault::ResumeExpired(3),
            Fault::not_found("image", "i1"),
            Fault::Invalid(Invalid::new("assignments[0].ids", "is empty")),
        ]
        .map(|fault| match Setback::from_mesh("peer", fault) {
            Setback::Wait(outage) => format!("wait for {}: {}\n", outage.what, outage.error),
            Setback::Fail(error) => format!("fail: {error}\n"),
        })
        .concat();
        expect![[r#"
            wait for peer: connection refused
            wait for peer: Unimplemented: no such method
            wait for peer: node 'x1': busy
            wait for peer: revision 3 cannot be resumed from
            fail: peer: image 'i1' does not exist
            fail: peer: assignments[0].ids: is empty
        "#]]
        .assert_eq(&rows);
    }
}
