//! What keeps a session from running.

use chassis::Fault;
use domain::compatibility::Compatibility;
use upstream::Failure;

/// The component registry, in texts for people.
pub(crate) const REGISTRY: &str = "component registry";

/// The database, in texts for people.
pub(crate) const DATABASE: &str = "database";

/// The membership of a tenant while it is in doubt, in texts for people.
pub(crate) const MEMBERSHIP: &str = "tenant membership";

/// How often BOS asks an upstream before it gives up.
const BOS_TRIES: u32 = 10;

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
    /// The consequence of the setback for finding the members of a session, after `failures` earlier ones in a row, where
    /// BOS is followed strictly: there an upstream that does not answer after all retries ends the session (BOS reference 12,
    /// BUG-22).
    #[must_use]
    pub(crate) fn followed(self, compatibility: Compatibility, failures: u32) -> Self {
        let last = compatibility.strict_bos && failures.saturating_add(1) >= BOS_TRIES;
        match self {
            Self::Wait(outage) if last && !outage.is_own() => {
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
    /// Whether the wait is for the mesh itself, as it is in BOS, or for a confirmation. The latter ends within seconds, and
    /// without it a session would be judged by half of a set.
    fn is_own(&self) -> bool {
        [REGISTRY, DATABASE, MEMBERSHIP].contains(&self.what)
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
        for what in ["inventory", "image store", "tenant service", MEMBERSHIP, REGISTRY, DATABASE] {
            for (strict_bos, failures) in [(false, 0), (false, u32::MAX), (true, 0), (true, 8), (true, 9)] {
                let setback = Setback::Wait(Outage { what, error: "no answer".to_owned() });
                let followed = match setback.followed(Compatibility { strict_bos }, failures) {
                    Setback::Wait(_) => "waits".to_owned(),
                    Setback::Fail(error) => format!("fails: {error}"),
                };
                let mode = if strict_bos { "strict" } else { "" };
                rows += &format!("{what:18} {mode:6} after {failures}: {followed}\n");
            }
        }
        expect![[r#"
            inventory                 after 0: waits
            inventory                 after 4294967295: waits
            inventory          strict after 0: waits
            inventory          strict after 8: waits
            inventory          strict after 9: fails: inventory: no answer
            image store               after 0: waits
            image store               after 4294967295: waits
            image store        strict after 0: waits
            image store        strict after 8: waits
            image store        strict after 9: fails: image store: no answer
            tenant service            after 0: waits
            tenant service            after 4294967295: waits
            tenant service     strict after 0: waits
            tenant service     strict after 8: waits
            tenant service     strict after 9: fails: tenant service: no answer
            tenant membership         after 0: waits
            tenant membership         after 4294967295: waits
            tenant membership  strict after 0: waits
            tenant membership  strict after 8: waits
            tenant membership  strict after 9: waits
            component registry        after 0: waits
            component registry        after 4294967295: waits
            component registry strict after 0: waits
            component registry strict after 8: waits
            component registry strict after 9: waits
            database                  after 0: waits
            database                  after 4294967295: waits
            database           strict after 0: waits
            database           strict after 8: waits
            database           strict after 9: waits
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
