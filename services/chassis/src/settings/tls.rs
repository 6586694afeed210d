//! Certificates of the parts, and the parts that may call them.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::Settings;

/// TLS between the parts. Certificate, key and authorities are read again when their files change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// PEM file with the certificate of this part, and those that it was signed by. It has one URI name, the identity of the
    /// part, such as `spiffe://reveille/gateway`. Empty: nothing between the parts is encrypted.
    pub certificate: PathBuf,
    /// PEM file with the key of the certificate.
    pub key: PathBuf,
    /// PEM file with the authorities that sign the certificates of the parts; several while one replaces another.
    pub ca_file: PathBuf,
    /// Identities that may call this part and be called by it, with commas between them; one that ends with `/*` stands for
    /// all below. Empty: every identity of the trust domain of the part's own certificate.
    pub callers: String,
    /// Identities of callers by the name that rules about single methods use for them, with commas between them; one that
    /// ends with `/*` stands for all below. A part that is not here has the identity beside the one of the called part that
    /// ends with its name, such as `spiffe://reveille/power-controller`. `operator` reads. `administrator`, which is nobody
    /// unless named here, also writes whatever people write through the gateway.
    pub names: BTreeMap<String, String>,
    /// Listen beyond this machine also without TLS.
    pub insecure: bool,
}

impl TlsSettings {
    /// Returns whether the part has a certificate: all three files are set.
    ///
    /// # Errors
    /// The first file that is missing beside another.
    pub fn is_set(&self) -> Result<bool, String> {
        let files =
            [("tls.certificate", &self.certificate), ("tls.key", &self.key), ("tls.ca_file", &self.ca_file)];
        let missing = files.iter().filter(|(_, path)| path.as_os_str().is_empty());
        let missing: Vec<_> = missing.map(|(name, _)| *name).collect();
        match missing.as_slice() {
            [] => Ok(true),
            [_, _, _] => Ok(false),
            [name, ..] => Err(format!(
                "{name}: is not set; TLS needs tls.certificate, tls.key and tls.ca_file together"
            )),
        }
    }
}

impl Settings {
    /// Checks that every part with an encrypted address can be called that way.
    ///
    /// # Errors
    /// Names the address and the missing setting.
    pub fn check_encryption(&self) -> Result<(), String> {
        if self.tls.is_set()? {
            return Ok(());
        }
        for (part, url) in [
            ("component_registry", &self.component_registry.url),
            ("session_manager", &self.session_manager.url),
            ("status_evaluator", &self.status_evaluator.url),
            ("power_controller", &self.power_controller.url),
            ("config_coordinator", &self.config_coordinator.url),
            ("host_provisioner", &self.host_provisioner.url),
            ("fleet_manager", &self.fleet_manager.url),
            ("insight", &self.insight.url),
            ("simulator", &self.simulator.url),
        ] {
            let encrypted = url.split(',').any(|one| one.trim().to_ascii_lowercase().starts_with("https:"));
            if encrypted {
                return Err(format!(
                    "{part}.url: is https, for which tls.ca_file, tls.certificate and tls.key have to be set"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_addresses_need_authorities() {
        let mut settings = Settings::default();
        assert_eq!(settings.check_encryption(), Ok(()));
        settings.gateway.url = "https://boot.example".into();
        assert_eq!(settings.check_encryption(), Ok(()), "clients of the gateway are no parts");
        settings.power_controller.url = "http://a:7704, HTTPS://b:7704".into();
        let refused = settings.check_encryption().unwrap_err();
        assert!(refused.starts_with("power_controller.url: is https, for which tls.ca_file"), "{refused}");
        settings.tls.ca_file = "ca.pem".into();
        let refused = settings.check_encryption().unwrap_err();
        assert!(refused.starts_with("tls.certificate: is not set"), "{refused}");
        settings.tls.certificate = "certificate.pem".into();
        settings.tls.key = "key.pem".into();
        assert_eq!(settings.check_encryption(), Ok(()));
    }
}
