//! Place in a live stream: how far each source was delivered, as the id of the last event.

use std::collections::BTreeMap;

use chassis::store::ledger::ResumeToken;
use http::HeaderMap;
use uuid::Uuid;

use super::{source::LiveSource, wanted::LAST_EVENT_ID};
use crate::http::problem::RequestProblem;

/// Revisions up to which sources were delivered. A source that is missing begins from the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LivePlace(BTreeMap<LiveSource, ResumeToken>);

impl LivePlace {
    /// Reads the place at which a client wants to resume; the start without one.
    ///
    /// # Errors
    /// The header is no place.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, RequestProblem> {
        let Some(header) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else {
            return Ok(Self::default());
        };
        let place = header.to_str().ok().and_then(Self::parse);
        place.ok_or_else(|| {
            RequestProblem::bad_request(format!("header '{LAST_EVENT_ID}': is no id of this stream"))
        })
    }

    fn parse(text: &str) -> Option<Self> {
        text.split(',').map(token).collect::<Option<_>>().map(Self)
    }

    /// Returns the point from which the watch of a source resumes.
    pub(super) fn of(&self, source: LiveSource) -> ResumeToken {
        self.0.get(&source).copied().unwrap_or_default()
    }

    /// Returns whether a source was delivered before.
    pub(super) fn has(&self, source: LiveSource) -> bool {
        self.0.contains_key(&source)
    }

    /// Notes that everything of a source up to a point was delivered.
    pub(super) fn set(&mut self, source: LiveSource, token: ResumeToken) {
        self.0.insert(source, token);
    }

    /// Forgets a source, which begins from the start.
    pub(super) fn forget(&mut self, source: LiveSource) {
        self.0.remove(&source);
    }

    /// Returns the text; `None`: nothing was delivered yet.
    pub(super) fn text(&self) -> Option<String> {
        let items = self.0.iter().map(|(source, token)| {
            let incarnation = token.incarnation.map(|id| format!(":{id}")).unwrap_or_default();
            format!("{}:{}{incarnation}", source.word(), token.revision)
        });
        let text = items.collect::<Vec<_>>().join(",");
        Some(text).filter(|text| !text.is_empty())
    }
}

fn token(item: &str) -> Option<(LiveSource, ResumeToken)> {
    let mut parts = item.splitn(3, ':');
    let source = LiveSource::named(parts.next()?)?;
    let revision = parts.next()?.parse().ok().filter(|revision| i64::try_from(*revision).is_ok())?;
    let incarnation =
        parts.next().map(|text| Uuid::parse_str(text).ok()).map_or(Some(None), |id| id.map(Some))?;
    Some((source, ResumeToken { incarnation, revision }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_as_they_went() {
        let text = "component:7:6ba7b810-9dad-11d1-80b4-00c04fd430c8,session_event:3";
        let place = LivePlace::parse(text).unwrap();
        assert_eq!(place.text().as_deref(), Some(text));
        assert_eq!(place.of(LiveSource::Components).revision, 7);
        assert_eq!(place.of(LiveSource::Sessions), ResumeToken::default());
        assert_eq!(LivePlace::default().text(), None);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "x",
            "component",
            "component:x",
            "component:7:x",
            "host:7",
            "component:7,",
            "component:99999999999999999999",
        ] {
            assert_eq!(LivePlace::parse(text), None, "{text}");
        }
    }
}
