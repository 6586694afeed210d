//! Places of credentials, and the credentials that were read there.

use std::{env, path::PathBuf, sync::Arc};

use chassis::process::watched_file::{FileContent, WatchedFile};
use parking_lot::Mutex;

use crate::{Credentials, PeerError, grant::TokenSource, settings::CallSettings};

/// The credentials of one peer, read again when they change.
pub(crate) struct PeerKeyring {
    settings: CallSettings,
    state: Mutex<KeyringState>,
}

struct KeyringState {
    place: CredentialPlace,
    keys: Result<Arc<CurrentKeys>, String>,
    warned: bool,
}

enum CredentialPlace {
    Nowhere,
    File(WatchedFile),
    Environment { name: String, seen: Option<String> },
}

/// Credentials, and the token source of client credentials.
pub(crate) struct CurrentKeys {
    pub credentials: Credentials,
    pub tokens: Option<TokenSource>,
}

impl PeerKeyring {
    /// Creates a keyring for `place`, which is empty or as in the settings. The credentials are read on first use.
    pub(crate) fn new(settings: CallSettings, place: &str) -> Result<Self, PeerError> {
        let place = CredentialPlace::parse(place)?;
        let keyring = Self::holding(settings, Credentials::None);
        keyring.state.lock().place = place;
        Ok(keyring)
    }

    /// Creates a keyring with `credentials` that do not change.
    pub(crate) fn holding(settings: CallSettings, credentials: Credentials) -> Self {
        let keys = Ok(Arc::new(CurrentKeys { credentials, tokens: None }));
        let place = CredentialPlace::Nowhere;
        Self { settings, state: Mutex::new(KeyringState { place, keys, warned: false }) }
    }

    /// Returns the current credentials.
    pub(crate) fn current(&self) -> Result<Arc<CurrentKeys>, String> {
        let mut state = self.state.lock();
        if let Some(content) = state.place.changed_content() {
            let keys = content.and_then(|text| self.keys(&text));
            state.keys = keys.map_err(|reason| format!("credentials: {}: {reason}", state.place.shown()));
            state.warn_if_public();
        }
        state.keys.clone()
    }

    fn keys(&self, text: &str) -> Result<Arc<CurrentKeys>, String> {
        let credentials = Credentials::parse(text)?;
        let tokens = match &credentials {
            Credentials::Client(grant) => {
                let source = TokenSource::new(self.settings.clone(), grant.clone());
                Some(source.map_err(|error| format!("token_{error}"))?)
            }
            Credentials::None
            | Credentials::Token { .. }
            | Credentials::Password { .. }
            | Credentials::Keys { .. } => None,
        };
        Ok(Arc::new(CurrentKeys { credentials, tokens }))
    }
}

impl KeyringState {
    fn warn_if_public(&mut self) {
        if let CredentialPlace::File(file) = &self.place
            && !self.warned
            && file.is_public()
        {
            self.warned = true;
            tracing::warn!(file = %file.shown(), "credentials file is readable by all users");
        }
    }
}

impl CredentialPlace {
    fn parse(text: &str) -> Result<Self, PeerError> {
        match text.split_once(':') {
            None if text.is_empty() => Ok(Self::Nowhere),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(WatchedFile::new(PathBuf::from(path)))),
            Some(("env", name)) if !name.is_empty() => {
                Ok(Self::Environment { name: name.to_owned(), seen: None })
            }
            // The text is not repeated, since it may be the secret itself.
            _ => {
                let reason = "has to be file:PATH or env:NAME".to_owned();
                Err(PeerError { field: "credentials", reason })
            }
        }
    }

    fn changed_content(&mut self) -> Option<FileContent> {
        match self {
            Self::Nowhere => None,
            Self::File(file) => file.changed_content(),
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

/// Checks that `place` names a place of credentials.
pub(crate) fn check_place(place: &str) -> Result<(), PeerError> {
    CredentialPlace::parse(place).map(|_| ())
}
