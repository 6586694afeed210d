//! What keeps a session from running.

use std::{future::Future, time::Duration};

use chassis::Fault;
use tonic::Status;

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
    pub(crate) fn from_peer(peer: &str, fault: Fault) -> Self {
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

/// The answer of `peer`, if it comes within `deadline`.
///
/// # Errors
/// What the peer said, or [`Fault::Unavailable`] when it said nothing.
pub(crate) async fn within<T>(
    peer: &str,
    deadline: Duration,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(deadline, call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Fault::unavailable(peer, format!("no answer within {} s", deadline.as_secs()))),
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
