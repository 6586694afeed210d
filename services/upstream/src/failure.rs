//! What can go wrong with a call, by what is known about the peer's state afterwards.

use std::time::Duration;

use http::StatusCode;

/// A call that did not do as asked. Its text names the peer and what is the matter with it: since when it fails and
/// how, or what it refused and in which words, and since when if it refuses all such calls. It stays the same while
/// the trouble is the same, so that it can be written to records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// What is known about the effect of the call.
    pub kind: FailureKind,
    /// Status that the peer answered with, if it did.
    pub status: Option<StatusCode>,
    /// What went wrong, for people.
    pub text: String,
}

/// What is known about the effect of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The peer refused these items together. It may take some of them.
    Refused,
    /// The peer refuses this kind of call, whichever the items.
    Denied,
    /// Nothing happened: the peer was not reached, or asked not to be called now.
    Unreachable,
    /// It may have happened or not, or may still happen.
    Ambiguous,
}

impl FailureKind {
    /// The kind as one word, for logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Denied => "denied",
            Self::Unreachable => "unreachable",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// Why a call did not do as asked, before it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The peer works, and said no.
    No { kind: FailureKind, status: StatusCode, words: String },
    /// The peer does not work.
    Trouble(Trouble),
    /// The call was not made, for a reason that lies on this side or with a third system.
    NotMade { kind: FailureKind, reason: String },
}

impl Cause {
    /// What is known about the effect, as one word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::No { kind, .. } | Self::Trouble(Trouble { kind, .. }) | Self::NotMade { kind, .. } => {
                kind.word()
            }
        }
    }

    /// Status that the peer answered with, if it did.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::No { status, .. } => Some(*status),
            Self::Trouble(trouble) => trouble.status,
            Self::NotMade { .. } => None,
        }
    }
}

/// What is wrong with a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What is known about the effect of the call: unreachable or ambiguous.
    pub kind: FailureKind,
    /// Status that the peer answered with, if it did.
    pub status: Option<StatusCode>,
    /// What went wrong, without the peer's name.
    pub error: String,
    /// How long the peer asks not to be called.
    pub retry_after: Option<Duration>,
}

impl Trouble {
    /// Nothing happened.
    pub(crate) fn unreachable(error: impl Into<String>) -> Self {
        Self { kind: FailureKind::Unreachable, status: None, error: error.into(), retry_after: None }
    }

    /// Nobody knows what happened.
    pub(crate) fn ambiguous(error: impl Into<String>) -> Self {
        Self { kind: FailureKind::Ambiguous, status: None, error: error.into(), retry_after: None }
    }

    /// Whether the peer answered what was asked, badly, and did not ask for a pause.
    pub(crate) fn is_answer(&self) -> bool {
        self.retry_after.is_none()
            && self.status.is_some_and(|status| status != StatusCode::TOO_MANY_REQUESTS)
    }

    /// Whether both come from the same defect. A peer may word the same defect differently each time, for
    /// example with the time of day in it.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.status == other.status && (self.status.is_some() || self.error == other.error)
    }
}

impl From<Trouble> for Cause {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}
