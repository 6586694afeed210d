//! What keeps a session from running.

use chassis::Fault;
use domain::compatibility::Compatibility;
use upstream::Failure;

/// The component registry, in texts for people.
pub(crate) const REGISTRY: &str = "component registry";

/// The database, in texts for people.
pub(crate) const DATABASE: &str = "database";

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
    /// What the setback means for finding the members of a session where BOS is followed strictly: there an upstream
    /// that does not answer ends the session (BOS reference 12, BUG-22).
    #[must_use]
    pub(crate) fn followed(self, compatibility: Compatibility) -> Self {
        match self {
            Self::Wait(outage) if compatibility.strict_bos && !outage.is_own() => {
                Self::Fail(format!("{}: {}", outage.what, outage.error))
            }
            setback => setback,
        }
    }

    /// What is wrong, for people who cannot wait.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Wait(outage) => outage.error,
            Self::Fail(error) => error,
        }
    }

    /// What it means that a part of the mesh answered with a fault. Only one that judged the request itself is
    /// believed for good.
    pub(crate) fn from_mesh(what: &'static str, fault: impl Into<Fault>) -> Self {
        let fault = fault.into();
        let wait = |error| Self::Wait(Outage { what, error });
        match fault {
            Fault::Unavailable { reason, .. } => wait(reason),
            Fault::Internal(cause) => wait(cause),
            Fault::Locked { .. } | Fault::Busy { .. } | Fault::Stale { .. } | Fault::ResumeExpired(_) => {
                wait(fault.to_string())
            }
            Fault::NotFound { .. } | Fault::AlreadyExists { .. } | Fault::Invalid(_) => {
                Self::Fail(format!("{what}: {fault}"))
            }
        }
    }
}

impl Outage {
    /// Whether what does not answer is a part of the mesh, which BOS waits for too.
    fn is_own(&self) -> bool {
        [REGISTRY, DATABASE].contains(&self.what)
    }

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
    fn an_outage_ends_a_session_only_where_bos_is_followed_strictly() {
        let mut rows = String::new();
        for what in ["inventory", "image store", "tenant service", REGISTRY, DATABASE] {
            for strict_bos in [false, true] {
                let setback = Setback::Wait(Outage { what, error: "no answer".to_owned() });
                let followed = match setback.followed(Compatibility { strict_bos }) {
                    Setback::Wait(_) => "waits".to_owned(),
                    Setback::Fail(error) => format!("fails: {error}"),
                };
                let mode = if strict_bos { "strict" } else { "" };
                rows += &format!("{what:18} {mode:6} {followed}\n");
            }
        }
        expect![[r#"
            inventory                 waits
            inventory          strict fails: inventory: no answer
            image store               waits
            image store        strict fails: image store: no answer
            tenant service            waits
            tenant service     strict fails: tenant service: no answer
            component registry        waits
            component registry strict waits
            database                  waits
            database           strict waits
        "#]]
        .assert_eq(&rows);
    }

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
