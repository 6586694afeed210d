//! What keeps a session from running.

use chassis::Fault;

/// Why a session could not be set up, by what is to be done about it. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setback {
    /// Something that is needed does not answer: try again later.
    Wait(String),
    /// It will never go well: the session is over.
    Fail(String),
}

impl Setback {
    /// What it means that `peer` answered with a fault. Only a peer that judged the request itself is believed
    /// for good.
    pub(crate) fn from_peer(peer: &str, fault: impl Into<Fault>) -> Self {
        let fault = fault.into();
        match fault {
            Fault::Unavailable { reason, .. } => Self::Wait(format!("{peer}: {reason}")),
            Fault::Internal(cause) => Self::Wait(format!("{peer}: {cause}")),
            Fault::Locked { .. } | Fault::ResumeExpired(_) => Self::Wait(format!("{peer}: {fault}")),
            Fault::NotFound { .. } | Fault::AlreadyExists { .. } | Fault::Invalid(_) => {
                Self::Fail(format!("{peer}: {fault}"))
            }
        }
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
        .map(|fault| format!("{:?}\n", Setback::from_peer("peer", fault)))
        .concat();
        expect![[r#"
            Wait("peer: connection refused")
            Wait("peer: Unimplemented: no such method")
            Wait("peer: node 'x1': busy")
            Wait("peer: revision 3 cannot be resumed from")
            Fail("peer: image 'i1' does not exist")
            Fail("peer: assignments[0].ids: is empty")
        "#]]
        .assert_eq(&rows);
    }
}
