//! Name of the client on whose behalf a call is made: it follows the request into every service, for events.
//!
//! The name decides nothing. The gateway has verified the client; a service believes the name as it believes its caller, whose
//! certificate it verifies where the parts have certificates.

use std::future::Future;

use http::HeaderMap;
use tonic::metadata::{MetadataMap, MetadataValue};

/// Metadata key that carries the name.
pub const HEADER: &str = "x-reveille-client";

/// Most bytes of a name in events; the rest is cut off.
const LONGEST: usize = 256;

tokio::task_local! {
    static CURRENT: String;
}

/// Runs `work` on behalf of the client: calls that it makes carry the name on.
pub async fn scope<F: Future>(name: String, work: F) -> F::Output {
    CURRENT.scope(name, work).await
}

/// Name of the client that is being worked for, if it is known.
pub fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Returns a name as metadata can carry it: anything but visible ASCII letters is a question mark.
pub fn carried(name: &str) -> String {
    let visible = |letter: char| if letter.is_ascii_graphic() { letter } else { '?' };
    name.chars().take(LONGEST).map(visible).collect()
}

/// Puts the name on an outgoing call.
pub(crate) fn mark(metadata: &mut MetadataMap) {
    if let Some(name) = current().and_then(|name| MetadataValue::try_from(carried(&name)).ok()) {
        metadata.insert(HEADER, name);
    }
}

/// Returns the name that an incoming call carries.
pub(crate) fn of(headers: &HeaderMap) -> Option<String> {
    let name = headers.get(HEADER)?.to_str().ok()?;
    Some(carried(name)).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_short_and_visible() {
        for (name, expected) in [
            ("alice@keycloak", "alice@keycloak"),
            (
                "spiffe://site/compute/x1/workload/bos-reporter@spire",
                "spiffe://site/compute/x1/workload/bos-reporter@spire",
            ),
            ("a b\nc\u{fc}", "a?b?c?"),
        ] {
            assert_eq!(carried(name), expected);
        }
        assert_eq!(carried(&"x".repeat(300)).len(), LONGEST);
    }

    #[tokio::test]
    async fn calls_carry_the_name_of_their_client() {
        let mut metadata = MetadataMap::new();
        mark(&mut metadata);
        assert_eq!(of(&metadata.clone().into_headers()), None);
        scope("alice@site".to_owned(), async { mark(&mut metadata) }).await;
        assert_eq!(of(&metadata.into_headers()).as_deref(), Some("alice@site"));
    }
}
