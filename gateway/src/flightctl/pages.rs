//! Pages of lists, and tokens of later pages (device reference 4.1).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::wire::meta::ListMeta;
use crate::http::{problem::RequestProblem, query::QueryParameters};

/// Most items of a page, and the items of a page without a limit.
pub(crate) const LARGEST_PAGE: u32 = 1000;

/// Longest token.
const LONGEST_TOKEN: usize = 4096;

/// Page that a request asks for.
#[derive(Debug)]
pub(crate) struct WantedPage<T> {
    /// Most items.
    pub limit: u32,
    /// Place at which the page begins; none: the first page.
    pub place: Option<T>,
}

/// Place at which a page of named resources begins. Every gateway reads the tokens of all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamePlace {
    /// Name of the last resource before the page.
    pub after: String,
    /// Resources of this page and of all later ones, as known at the first page.
    pub remaining: u64,
}

impl<T: DeserializeOwned> WantedPage<T> {
    /// Reads the parameters of a page.
    ///
    /// # Errors
    /// When the limit is out of range, or the token is none of ours.
    pub(crate) fn read(query: &QueryParameters) -> Result<Self, RequestProblem> {
        let limit = query.integer("limit", 0..=LARGEST_PAGE)?.filter(|limit| *limit > 0);
        let token = query.text("continue", 0..=LONGEST_TOKEN)?.filter(|token| !token.is_empty());
        let place = token.map(|token| {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok();
            let place = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            place.ok_or_else(|| RequestProblem::bad_request("query parameter 'continue': is not valid"))
        });
        Ok(Self { limit: limit.unwrap_or(LARGEST_PAGE), place: place.transpose()? })
    }
}

impl WantedPage<NamePlace> {
    /// Name after which the page begins; empty: at the first.
    pub(crate) fn after(&self) -> String {
        self.place.as_ref().map(|place| place.after.clone()).unwrap_or_default()
    }

    /// Returns the items of this page, and the facts about it: `found` has one item more if others follow.
    pub(crate) fn cut<R>(self, found: Vec<R>, name: impl Fn(&R) -> String) -> (Vec<R>, ListMeta) {
        let known = u64::try_from(found.len()).unwrap_or(u64::MAX);
        self.cut_of(found, name, known)
    }

    /// Returns the items of this page as [`Self::cut`] does, if `total` resources were selected at the first page.
    pub(crate) fn cut_of<R>(
        self,
        mut found: Vec<R>,
        name: impl Fn(&R) -> String,
        total: u64,
    ) -> (Vec<R>, ListMeta) {
        if !self.is_followed(&found) {
            return (found, ListMeta::default());
        }
        found.truncate(self.limit as usize);
        let before = self.place.map_or(total, |place| place.remaining);
        let remaining = before.saturating_sub(self.limit.into()).max(1);
        let after = found.last().map(name).unwrap_or_default();
        let metadata = ListMeta {
            next: Some(token(&NamePlace { after, remaining })),
            remaining_item_count: i64::try_from(remaining).ok(),
        };
        (found, metadata)
    }

    /// Returns whether more was found than the page takes.
    pub(crate) fn is_followed<R>(&self, found: &[R]) -> bool {
        found.len() > self.limit as usize
    }
}

/// Returns the token of a place.
pub(crate) fn token(place: &impl Serialize) -> String {
    URL_SAFE_NO_PAD
        .encode(serde_json::to_vec(place).expect("texts and numbers can always be written as JSON"))
}
