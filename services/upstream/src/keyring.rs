//! Where the credentials of a peer are kept, and how they get onto its calls.

use std::{env, path::PathBuf, sync::Arc};

use http::header::AUTHORIZATION;
use parking_lot::Mutex;

use crate::{
    Credentials, Family, PeerError, Request, Secret,
    grant::TokenSource,
    watched::{Content, WatchedFile},
};

/// Header by which some APIs, such as Redfish, take tokens.
const X_AUTH_TOKEN: &str = "x-auth-token";

/// The credentials of one peer, read again when they change.
pub(crate) struct Keyring {
    family: Family,
    state: Mutex<State>,
}

struct State {
    place: Place,
    keys: Result<Arc<Keys>, String>,
    warned: bool,
}

enum Place {
    Nowhere,
    File(WatchedFile),
    Environment { name: String, seen: Option<String> },
}

/// Credentials, and the source of the token if they are good for one.
pub(crate) struct Keys {
    pub credentials: Credentials,
    pub tokens: Option<TokenSource>,
}

impl Keyring {
    /// Credentials at `place`, which is empty or as in the settings. They are not read before they are needed.
    pub(crate) fn new(family: Family, place: &str) -> Result<Self, PeerError> {
        let place = Place::parse(place)?;
        let keys = Ok(Arc::new(Keys { credentials: Credentials::None, tokens: None }));
        Ok(Self { family, state: Mutex::new(State { place, keys, warned: false }) })
    }

    /// What holds now.
    pub(crate) fn current(&self) -> Result<Arc<Keys>, String> {
        let mut state = self.state.lock();
        if let Some(news) = state.place.news() {
            let keys = news.and_then(|text| self.keys(&text));
            state.keys = keys.map_err(|reason| format!("credentials: {}: {reason}", state.place.shown()));
            state.warn_if_public();
        }
        state.keys.clone()
    }

    fn keys(&self, text: &str) -> Result<Arc<Keys>, String> {
        let credentials = Credentials::parse(text)?;
        let tokens = match &credentials {
            Credentials::Client(grant) => {
                let source = TokenSource::new(&self.family, grant.clone());
                Some(source.map_err(|error| format!("token_{error}"))?)
            }
            Credentials::None
            | Credentials::Token { .. }
            | Credentials::Password { .. }
            | Credentials::Keys { .. } => None,
        };
        Ok(Arc::new(Keys { credentials, tokens }))
    }
}

impl State {
    fn warn_if_public(&mut self) {
        if let Place::File(file) = &self.place
            && !self.warned
            && file.is_public()
        {
            self.warned = true;
            tracing::warn!(file = %file.shown(), "everybody on this machine can read these credentials");
        }
    }
}

impl Place {
    fn parse(text: &str) -> Result<Self, PeerError> {
        match text.split_once(':') {
            None if text.is_empty() => Ok(Self::Nowhere),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(WatchedFile::new(PathBuf::from(path)))),
            Some(("env", name)) if !name.is_empty() => {
                Ok(Self::Environment { name: name.to_owned(), seen: None })
            }
            // Not repeated, since it may be the secret itself.
            _ => {
                let reason = "has to be file:PATH or env:NAME".to_owned();
                Err(PeerError { field: "credentials", reason })
            }
        }
    }

    fn news(&mut self) -> Option<Content> {
        match self {
            Self::Nowhere => None,
            Self::File(file) => file.news(),
            Self::Environment { name, seen } => match env::var(&*name) {
                Ok(text) if seen.as_ref() == Some(&text) => None,
                Ok(text) => Some(Ok(seen.insert(text).clone())),
                Err(error) => {
                    *seen = None;
                    Some(Err(error.to_string()))
                }
            },
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Nowhere => String::new(),
            Self::File(file) => file.shown().to_string(),
            Self::Environment { name, .. } => name.clone(),
        }
    }
}

/// Whether `place` says where credentials are.
pub(crate) fn check_place(place: &str) -> Result<(), PeerError> {
    Place::parse(place).map(|_| ())
}

/// Whether credentials are put on the call.
pub(crate) fn wanted(request: &Request) -> bool {
    let brings = |name| request.headers.contains_key(name);
    !request.anonymous && !brings(AUTHORIZATION.as_str()) && !brings(X_AUTH_TOKEN)
}

/// What must not show of a call that is about to be made: what it says about who we are, as a whole and without
/// the scheme.
pub(crate) fn shown_to_peer(request: &reqwest::Request) -> Vec<Secret> {
    let headers = [AUTHORIZATION.as_str(), X_AUTH_TOKEN].into_iter();
    let values = headers.filter_map(|name| request.headers().get(name)?.to_str().ok());
    values.map(|value| Secret::new(value.split_once(' ').map_or(value, |(_, secret)| secret))).collect()
}
