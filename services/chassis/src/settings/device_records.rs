//! Settings of the records of edge devices and of the decisions about them.

use std::{path::PathBuf, time::Duration};

use domain::device::evaluation::DISCONNECT_TIMEOUT;
use serde::{Deserialize, Serialize};

/// Records of edge devices and decisions about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSettings {
    /// Seconds without a sign of its agent after which a device counts as disconnected. The same for all parts.
    pub disconnect_seconds: u32,
    /// Certificates of agents.
    pub certificates: CertificateSettings,
}

/// Certificates of agents, which the fleet manager signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateSettings {
    /// PEM file with the certificate of the authority that signs; empty: one is made at the first start and kept in the
    /// data directory. The certificates of an authority that was replaced stay valid until they end.
    pub authority: PathBuf,
    /// PEM file with the key of the authority. Replicas that share a database share it.
    pub authority_key: PathBuf,
    /// Days for which a certificate is valid, 1,825 at most.
    pub valid_days: u32,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        // Five minutes, which fit.
        Self {
            disconnect_seconds: u32::try_from(DISCONNECT_TIMEOUT.as_secs()).unwrap_or(u32::MAX),
            certificates: CertificateSettings {
                authority: PathBuf::new(),
                authority_key: PathBuf::new(),
                valid_days: 365,
            },
        }
    }
}

impl DeviceSettings {
    /// Time without a sign of its agent after which a device counts as disconnected.
    pub fn disconnect_timeout(&self) -> Duration {
        Duration::from_secs(self.disconnect_seconds.into())
    }
}
