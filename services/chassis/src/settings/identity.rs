//! Credentials of the gateway's callers, and the policy about them.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

/// Credentials of callers, and the policy about them. Without a token file and without issuers nobody is asked for
/// credentials, and everybody may do everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentitySettings {
    /// TOML file with the policy; empty: the default policy, which `reveille policy show` prints. It is read again when it
    /// changes.
    pub policy_file: PathBuf,
    /// TOML file with the digests of static tokens, and whose they are; empty: none. It is read again when it changes.
    pub token_file: PathBuf,
    /// Issuers of JSON web tokens by a name of the site's choice, which policy, logs and events use.
    pub issuers: BTreeMap<String, IssuerSettings>,
}

/// Issuer of JSON web tokens, such as a realm of Keycloak, SPIRE, or the API server of a Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IssuerSettings {
    /// Name of the issuer in its tokens, such as `https://keycloak.example/realms/shasta`.
    pub issuer: String,
    /// Audiences, of which a token has to name one, with commas between them.
    pub audience: String,
    /// Address or path of the file with the keys of the issuer, a JSON web key set; empty: the discovery document of the
    /// issuer, below its name, says where the keys are.
    pub jwks: String,
    /// PEM file with the authorities of the server that has the keys; empty: those of the system.
    pub ca_file: PathBuf,
    /// Allow keys over HTTP without TLS.
    pub plain_http: bool,
    /// Algorithms of signatures, with commas between them. Algorithms with a shared secret are refused.
    pub algorithms: String,
    /// Seconds by which clocks may differ.
    pub leeway_seconds: u32,
    /// Seconds after which keys are fetched again.
    pub refresh_seconds: u32,
    /// Seconds for which keys count that cannot be fetched again.
    pub longest_seconds: u32,
    /// Claim with the name of the caller.
    pub subject_claim: String,
    /// Claims with roles, with commas between them. A dot leads into an object, and `*` stands for each of its members.
    pub role_claims: String,
    /// Claims with tenants, as those with roles.
    pub tenant_claims: String,
    /// Roles that every caller with a token of this issuer has, with commas between them.
    pub roles: String,
    /// Patterns of subjects that are nodes, with commas between them, such as
    /// `spiffe://shasta/compute/{xname}/workload/bos-reporter`; `*` stands for any one segment.
    pub node_subjects: String,
}

impl Default for IssuerSettings {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            audience: String::new(),
            jwks: String::new(),
            ca_file: PathBuf::new(),
            plain_http: false,
            algorithms: "RS256,RS384,RS512,PS256,PS384,PS512,ES256,ES384,EdDSA".into(),
            leeway_seconds: 30,
            refresh_seconds: 300,
            // A night in which nobody mends the issuer, after which a withdrawn key no longer counts for certain.
            longest_seconds: 12 * 3600,
            subject_claim: "sub".into(),
            // Roles of single clients are for the site to name: another program may have an `admin` of its own.
            role_claims: "roles,realm_access.roles".into(),
            tenant_claims: "tenants".into(),
            roles: String::new(),
            node_subjects: String::new(),
        }
    }
}

impl IdentitySettings {
    /// Returns whether callers are asked for credentials.
    ///
    /// # Errors
    /// A policy without a source of credentials, under which nobody could be anybody.
    pub fn is_on(&self) -> Result<bool, &'static str> {
        let has_source = !self.token_file.as_os_str().is_empty() || !self.issuers.is_empty();
        if !has_source && !self.policy_file.as_os_str().is_empty() {
            return Err(
                "gateway.identity.policy_file: needs a source of credentials: set gateway.identity.token_file or an issuer \
                 below gateway.identity.issuers",
            );
        }
        Ok(has_source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_need_a_source_of_credentials() {
        let mut settings = IdentitySettings::default();
        assert_eq!(settings.is_on(), Ok(false));
        settings.policy_file = "policy.toml".into();
        assert!(settings.is_on().unwrap_err().starts_with("gateway.identity.policy_file: needs a source"));
        settings.token_file = "tokens.toml".into();
        assert_eq!(settings.is_on(), Ok(true));
        settings.token_file = PathBuf::new();
        settings.issuers.insert("keycloak".into(), IssuerSettings::default());
        assert_eq!(settings.is_on(), Ok(true));
    }
}
