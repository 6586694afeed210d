//! Systems of one kind at several addresses.

use chassis::settings;

use crate::{
    Credentials, Peer, PeerError,
    settings::{CallSettings, warn_if_unverified},
};

/// Systems of one kind at several addresses, such as the BMCs of a machine. The peers of a group share all settings
/// except address and credentials, and share their metric labels.
#[derive(Clone)]
pub struct PeerGroup {
    settings: CallSettings,
}

impl PeerGroup {
    /// Creates a group with the metric label `label`. The `url` and `credentials` of the settings are ignored.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn new(label: &str, settings: &settings::Peer) -> Result<Self, PeerError> {
        warn_if_unverified(label, settings);
        Ok(Self { settings: CallSettings::new(label, settings)? })
    }

    /// Creates a group that takes every certificate, of peers for each of which somebody wants that.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn unverified(label: &str, settings: &settings::Peer) -> Result<Self, PeerError> {
        let settings = settings::Peer { verify_tls: false, ..settings.clone() };
        Ok(Self { settings: CallSettings::new(label, &settings)? })
    }

    /// Creates the peer called `name` in texts, at `url`, with credentials from the place `credentials`, both as in
    /// the settings.
    ///
    /// # Errors
    /// Names the setting that cannot be used. The peer is not called.
    pub fn peer(&self, name: impl Into<String>, url: &str, credentials: &str) -> Result<Peer, PeerError> {
        Peer::of(self.settings.clone(), name.into(), url, credentials)
    }

    /// Creates the peer called `name` in texts, at `url`, with `credentials` that do not change.
    ///
    /// # Errors
    /// Names the setting that cannot be used. The peer is not called.
    pub fn peer_with(
        &self,
        name: impl Into<String>,
        url: &str,
        credentials: Credentials,
    ) -> Result<Peer, PeerError> {
        Peer::with(self.settings.clone(), name.into(), url, credentials)
    }
}
