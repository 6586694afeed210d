//! Failures of a call, classified by the known effect of the call.

use std::time::Duration;

use http::StatusCode;

/// A call that failed. The text names the peer, the error and its beginning, or the refusal in the words of the peer
/// and, if the peer refuses all such calls, since when. The text stays the same while the error stays the same, so
/// that it can be written to records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// Known effect of the call.
    pub kind: FailureKind,
    /// Status of the answer, if the peer answered.
    pub status: Option<StatusCode>,
    /// Error text for people.
    pub text: String,
}

/// Known effect of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The peer refused these items together. A call with fewer of the items may succeed.
    Refused,
    /// The peer refuses this kind of call, whichever the items.
    Denied,
    /// The call had no effect: the peer was not reached, or asked for a pause.
    Unreachable,
    /// The call may have had its effect, or may still have it.
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

/// Reason of a failed call, before its text is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// The peer works and refused the call.
    No { kind: FailureKind, status: StatusCode, words: String },
    /// The peer does not work.
    Trouble(PeerTrouble),
    /// The call was not made, because of this process or of a third system.
    NotMade { kind: FailureKind, reason: String },
}

impl FailureCause {
    /// A call that was not sent, and may succeed later.
    pub(crate) fn not_reached(reason: String) -> Self {
        Self::NotMade { kind: FailureKind::Unreachable, reason }
    }

    /// Known effect of the call as one word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::No { kind, .. } | Self::Trouble(PeerTrouble { kind, .. }) | Self::NotMade { kind, .. } => {
                kind.word()
            }
        }
    }

    /// Status of the answer, if the peer answered.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::No { status, .. } => Some(*status),
            Self::Trouble(trouble) => trouble.status,
            Self::NotMade { .. } => None,
        }
    }
}

/// An error of a peer that does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerTrouble {
    /// Known effect of the call: unreachable or ambiguous.
    pub kind: FailureKind,
    /// Status of the answer, if the peer answered.
    pub status: Option<StatusCode>,
    /// Error text without the name of the peer.
    pub error: String,
    /// Pause that the peer asks for.
    pub retry_after: Option<Duration>,
}

impl PeerTrouble {
    /// An error of a call without effect.
    pub(crate) fn unreachable(error: impl Into<String>) -> Self {
        Self { kind: FailureKind::Unreachable, status: None, error: error.into(), retry_after: None }
    }

    /// Creates an error of a call whose effect is unknown.
    pub(crate) fn ambiguous(error: impl Into<String>) -> Self {
        Self { kind: FailureKind::Ambiguous, status: None, error: error.into(), retry_after: None }
    }

    /// Returns whether the peer answered with a bad answer, and did not ask for a pause.
    pub(crate) fn is_answer(&self) -> bool {
        self.retry_after.is_none()
            && self.status.is_some_and(|status| status != StatusCode::TOO_MANY_REQUESTS)
    }

    /// Returns whether both errors have the same cause. A peer may word the same error differently each time, for
    /// example with the time of day in it.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.status == other.status && (self.status.is_some() || self.error == other.error)
    }
}

impl From<PeerTrouble> for FailureCause {
    fn from(trouble: PeerTrouble) -> Self {
        Self::Trouble(trouble)
    }
}
