//! Incarnations of a ledger: the histories between which revisions must not be compared.
//!
//! An incarnation begins with an empty store and with each detected loss of commits. Where a SQLite file was copied by other
//! means than a backup, nothing tells it from the file that it replaced, so on SQLite each start begins an incarnation too;
//! that one names the incarnation of the file and the revision at which it took over, so that watchers resume across an
//! ordinary restart, and only revisions beyond that one belong to a lost history.

use proto::WatchRequest;
use tonic::{
    Request,
    metadata::{AsciiMetadataValue, MetadataMap},
};
use uuid::Uuid;

/// The metadata of a watch that names an incarnation: in a request that of the resume token, in an answer that of the
/// stream.
const METADATA: &str = "reveille-incarnation";

/// The incarnation of a ledger and the origin of its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LedgerIncarnation {
    pub(crate) id: Uuid,
    /// Incarnation that this one continues, and the last revision that they share; `None` after a loss.
    pub(crate) continues: Option<(Uuid, u64)>,
}

impl LedgerIncarnation {
    /// An incarnation that shares no history with any other.
    pub(crate) fn of(id: Uuid) -> Self {
        Self { id, continues: None }
    }

    /// Returns whether the history of this incarnation includes the state of `token`. A token without an incarnation is
    /// from a client that knows none; its revision alone decides.
    pub(crate) fn includes(self, token: ResumeToken) -> bool {
        let Some(id) = token.incarnation.filter(|_| token.revision > 0) else { return true };
        let shared = |(before, revision)| id == before && token.revision <= revision;
        id == self.id || self.continues.is_some_and(shared)
    }
}

/// The point from which a watch resumes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResumeToken {
    /// Incarnation in which the revision was delivered; `None` when the server named none.
    pub incarnation: Option<Uuid>,
    /// The last revision that was delivered; 0: everything is wanted.
    pub revision: u64,
}

impl ResumeToken {
    /// The token of a watch request, which has the revision in its message and the incarnation in its metadata.
    pub fn received<M>(request: &Request<M>, revision: impl FnOnce(&M) -> u64) -> Self {
        Self { incarnation: named(request.metadata()), revision: revision(request.get_ref()) }
    }

    /// The request of a watch that resumes here; `message` has the revision.
    pub fn request<M>(self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(incarnation) = self.incarnation {
            name(request.metadata_mut(), incarnation);
        }
        request
    }
}

impl<M: WatchRequest> From<Request<M>> for ResumeToken {
    /// The token of the request to watch a kind.
    fn from(request: Request<M>) -> Self {
        Self::received(&request, M::resume_revision)
    }
}

impl From<u64> for ResumeToken {
    /// The token of a client that knows only the revision.
    fn from(revision: u64) -> Self {
        Self { incarnation: None, revision }
    }
}

/// Names an incarnation in the metadata of a call.
pub(crate) fn name(metadata: &mut MetadataMap, incarnation: Uuid) {
    if let Ok(value) = AsciiMetadataValue::try_from(incarnation.to_string()) {
        metadata.insert(METADATA, value);
    }
}

/// The incarnation that the metadata of a call name.
pub fn named(metadata: &MetadataMap) -> Option<Uuid> {
    Uuid::try_parse(metadata.get(METADATA)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_valid_only_within_the_history_it_came_from() {
        let [own, before, lost] = [1, 2, 3].map(Uuid::from_u128);
        let token = |incarnation, revision| ResumeToken { incarnation, revision };
        let restarted = LedgerIncarnation { id: own, continues: Some((before, 5)) };
        for (name, incarnation, resume, expected) in [
            ("its own", restarted, token(Some(own), 9), true),
            ("up to the restart", restarted, token(Some(before), 5), true),
            ("written after the backup", restarted, token(Some(before), 6), false),
            ("another history", restarted, token(Some(lost), 1), false),
            ("before a loss", LedgerIncarnation::of(own), token(Some(before), 1), false),
            ("everything", LedgerIncarnation::of(own), token(Some(lost), 0), true),
            ("client without incarnations", LedgerIncarnation::of(own), token(None, 9), true),
        ] {
            assert_eq!(incarnation.includes(resume), expected, "{name}");
        }
    }

    #[test]
    fn metadata_carry_the_incarnation() {
        let token = ResumeToken { incarnation: Some(Uuid::from_u128(7)), revision: 3 };
        assert_eq!(ResumeToken::received(&token.request(3), |revision| *revision), token);
        let bare = ResumeToken { incarnation: None, revision: 3 };
        assert_eq!(ResumeToken::received(&bare.request(3), |revision| *revision), bare);
    }
}
