//! Settings of the records of bare-metal hosts and of the decisions about them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Records of bare-metal hosts and decisions about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSettings {
    /// Most hosts that backends inspect, provision or clean at the same time. Hosts that boot from virtual media do not
    /// count.
    pub slots: u32,
    /// Failed rounds of provisioning after which none is begun; 0: no limit.
    pub provisioning_retries: u32,
    /// Most provisioned hosts that may give up their systems within `discard_seconds`, by a change of their image or by
    /// deletion, unless a person confirms each further one; 0: no limit.
    pub discards: u32,
    /// Seconds within which such hosts count.
    pub discard_seconds: u32,
    /// CPU architecture of hosts of which none is known.
    pub architecture: String,
    /// Whether the power controller carries out the power calls of hosts; if not, the host provisioner does. To be set to
    /// false while a part of a release from before this setting runs, because it would carry the call out as well.
    pub power_by_controller: bool,
    /// Keys that encrypt the values of secrets, of 64 hexadecimal digits each, or `file:` with the path of a file that
    /// has them. The first one encrypts, every one decrypts; empty: a key in the data directory, made with the first
    /// secret.
    pub secret_keys: SecretKeys,
}

impl Default for HostSettings {
    fn default() -> Self {
        Self {
            slots: 20,
            provisioning_retries: 5,
            discards: 25,
            discard_seconds: 600,
            architecture: "x86_64".to_owned(),
            power_by_controller: true,
            secret_keys: SecretKeys::default(),
        }
    }
}

/// Keys that no log shows.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretKeys(Vec<String>);

impl SecretKeys {
    /// Texts of the keys.
    pub fn texts(&self) -> &[String] {
        &self.0
    }
}

impl From<Vec<String>> for SecretKeys {
    fn from(keys: Vec<String>) -> Self {
        Self(keys)
    }
}

impl fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}
