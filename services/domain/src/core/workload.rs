//! Identities of workloads in the form of SPIFFE, and the decision about which of them may call.

use std::{fmt, sync::Arc};

/// Scheme of an identity.
const SCHEME: &str = "spiffe://";
/// Most bytes of an identity, by the specification of SPIFFE.
const LONGEST_IDENTITY: usize = 2048;
/// Most bytes of a trust domain, by the specification of SPIFFE.
const LONGEST_TRUST_DOMAIN: usize = 255;

/// Identity of a workload, such as `spiffe://reveille/gateway`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadIdentity(Arc<str>);

impl WorkloadIdentity {
    /// Reads an identity; `None` if `uri` is none by the rules of SPIFFE.
    pub fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME).filter(|_| uri.len() <= LONGEST_IDENTITY)?;
        let (domain, path) = rest.split_once('/').unwrap_or((rest, ""));
        let has_path = rest.len() > domain.len();
        (is_trust_domain(domain) && (!has_path || path.split('/').all(is_segment))).then(|| Self(uri.into()))
    }

    /// Returns the trust domain.
    pub fn trust_domain(&self) -> &str {
        let rest = &self.0[SCHEME.len()..];
        rest.split_once('/').map_or(rest, |(domain, _)| domain)
    }

    /// Returns the identity that differs from this one in its last segment; `None` if this one has no path.
    pub fn sibling(&self, segment: &str) -> Option<Self> {
        let (parent, _) = self.0.rsplit_once('/').filter(|(parent, _)| parent.len() > SCHEME.len())?;
        Self::parse(&format!("{parent}/{segment}"))
    }

    /// Returns the identity as a URI.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkloadIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_trust_domain(domain: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    (1..=LONGEST_TRUST_DOMAIN).contains(&domain.len()) && domain.bytes().all(is_valid)
}

fn is_segment(segment: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    !matches!(segment, "" | "." | "..") && segment.bytes().all(is_valid)
}

/// Identities that may call a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerPolicy {
    /// Every identity of a trust domain.
    TrustDomain(String),
    /// Identities that match any of the patterns.
    Listed(Vec<CallerPattern>),
}

/// Pattern of an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerPattern {
    /// Exactly this identity.
    Identity(WorkloadIdentity),
    /// Every identity below this one.
    Below(WorkloadIdentity),
}

/// Reason why a caller is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallerRefusal {
    /// The caller presented no certificate.
    #[error("the call needs a client certificate")]
    NoCertificate,
    /// The certificate has no URI name, several, or one that is no identity.
    #[error("the certificate does not have one workload identity, a URI name spiffe://…")]
    NoIdentity,
    /// The identity is not one of those that may call.
    #[error("{0} is not among the identities that may call")]
    NotAllowed(WorkloadIdentity),
}

impl CallerPolicy {
    /// Reads the identities that may call, with commas between them, each exact or ending with `/*` for all below. An empty
    /// text allows the trust domain of `own`.
    ///
    /// # Errors
    /// The entry that is no identity.
    pub fn parse(text: &str, own: &WorkloadIdentity) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::TrustDomain(own.trust_domain().to_owned()));
        }
        CallerPattern::parse_list(text).map(Self::Listed)
    }

    /// Decides about a caller by the URI names of its certificate; `None`: it presented no certificate.
    ///
    /// # Errors
    /// The reason why the caller is refused.
    pub fn admit(&self, names: Option<&[&str]>) -> Result<WorkloadIdentity, CallerRefusal> {
        let names = names.ok_or(CallerRefusal::NoCertificate)?;
        let identity = identity_of(names).ok_or(CallerRefusal::NoIdentity)?;
        let allowed = match self {
            Self::TrustDomain(domain) => identity.trust_domain() == domain,
            Self::Listed(patterns) => patterns.iter().any(|pattern| pattern.matches(&identity)),
        };
        if allowed { Ok(identity) } else { Err(CallerRefusal::NotAllowed(identity)) }
    }
}

/// Returns the identity among the URI names of a certificate, which has exactly one such name.
pub fn identity_of(names: &[&str]) -> Option<WorkloadIdentity> {
    match names {
        [name] => WorkloadIdentity::parse(name),
        _ => None,
    }
}

impl CallerPattern {
    /// Reads patterns with commas between them.
    ///
    /// # Errors
    /// The entry that is no pattern.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let entries = text.split(',').map(str::trim);
        entries.map(|entry| Self::parse(entry).ok_or_else(|| entry.to_owned())).collect()
    }

    fn parse(entry: &str) -> Option<Self> {
        match entry.strip_suffix("/*") {
            Some(above) => WorkloadIdentity::parse(above).map(Self::Below),
            None => WorkloadIdentity::parse(entry).map(Self::Identity),
        }
    }

    /// Returns whether an identity is one of those that the pattern stands for.
    pub fn matches(&self, identity: &WorkloadIdentity) -> bool {
        match self {
            Self::Identity(exact) => exact == identity,
            Self::Below(above) => {
                let below = identity.as_str().strip_prefix(above.as_str());
                below.is_some_and(|rest| rest.starts_with('/'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn identities_follow_the_rules_of_spiffe() {
        let long = format!("spiffe://a/{}", "b".repeat(LONGEST_IDENTITY));
        for (uri, domain) in [
            ("spiffe://reveille/gateway", Some("reveille")),
            ("spiffe://site-1.example/ns/boot/sa/Gate_way", Some("site-1.example")),
            ("spiffe://reveille", Some("reveille")),
            ("spiffe://reveille/", None),
            ("spiffe://Reveille/gateway", None),
            ("spiffe:///gateway", None),
            ("spiffe://reveille/a//b", None),
            ("spiffe://reveille/a/../b", None),
            ("spiffe://reveille/a?b", None),
            ("spiffe://reveille:1/a", None),
            ("https://reveille/a", None),
            ("", None),
            (long.as_str(), None),
        ] {
            let identity = WorkloadIdentity::parse(uri);
            assert_eq!(identity.as_ref().map(WorkloadIdentity::trust_domain), domain, "{uri}");
        }
    }

    #[test]
    fn callers_are_admitted_by_their_identity() {
        let own = WorkloadIdentity::parse("spiffe://reveille/gateway").unwrap();
        let mut table = String::new();
        for text in ["", "spiffe://other/a", "spiffe://reveille/ns/*, spiffe://other/a"] {
            let policy = CallerPolicy::parse(text, &own).unwrap();
            for names in [
                None,
                Some(&[][..]),
                Some(&["https://reveille/a"]),
                Some(&["spiffe://reveille/a", "spiffe://reveille/b"]),
                Some(&["spiffe://reveille/a"]),
                Some(&["spiffe://reveille/ns"]),
                Some(&["spiffe://reveille/ns/b"]),
                Some(&["spiffe://reveille/nsb"]),
                Some(&["spiffe://other/a"]),
            ] {
                let decided = policy.admit(names).map_or_else(|why| why.to_string(), |_| "admitted".into());
                table += &format!("'{text}' {names:?}: {decided}\n");
            }
        }
        expect![[r#"
            '' None: the call needs a client certificate
            '' Some([]): the certificate does not have one workload identity, a URI name spiffe://…
            '' Some(["https://reveille/a"]): the certificate does not have one workload identity, a URI name spiffe://…
            '' Some(["spiffe://reveille/a", "spiffe://reveille/b"]): the certificate does not have one workload identity, a URI name spiffe://…
            '' Some(["spiffe://reveille/a"]): admitted
            '' Some(["spiffe://reveille/ns"]): admitted
            '' Some(["spiffe://reveille/ns/b"]): admitted
            '' Some(["spiffe://reveille/nsb"]): admitted
            '' Some(["spiffe://other/a"]): spiffe://other/a is not among the identities that may call
            'spiffe://other/a' None: the call needs a client certificate
            'spiffe://other/a' Some([]): the certificate does not have one workload identity, a URI name spiffe://…
            'spiffe://other/a' Some(["https://reveille/a"]): the certificate does not have one workload identity, a URI name spiffe://…
            'spiffe://other/a' Some(["spiffe://reveille/a", "spiffe://reveille/b"]): the certificate does not have one workload identity, a URI name spiffe://…
            'spiffe://other/a' Some(["spiffe://reveille/a"]): spiffe://reveille/a is not among the identities that may call
            'spiffe://other/a' Some(["spiffe://reveille/ns"]): spiffe://reveille/ns is not among the identities that may call
            'spiffe://other/a' Some(["spiffe://reveille/ns/b"]): spiffe://reveille/ns/b is not among the identities that may call
            'spiffe://other/a' Some(["spiffe://reveille/nsb"]): spiffe://reveille/nsb is not among the identities that may call
            'spiffe://other/a' Some(["spiffe://other/a"]): admitted
            'spiffe://reveille/ns/*, spiffe://other/a' None: the call needs a client certificate
            'spiffe://reveille/ns/*, spiffe://other/a' Some([]): the certificate does not have one workload identity, a URI name spiffe://…
            'spiffe://reveille/ns/*, spiffe://other/a' Some(["https://reveille/a"]): the certificate does not have one workload identity, a URI name spiffe://…
            'spiffe://reveille/ns/*, spiffe://other/a' Some(["spiffe://reveille/a", "spiffe://reveille/b"]): the certificate does not have one workload identity, a URI name spiffe://…
            'spiffe://reveille/ns/*, spiffe://other/a' Some(["spiffe://reveille/a"]): spiffe://reveille/a is not among the identities that may call
            'spiffe://reveille/ns/*, spiffe://other/a' Some(["spiffe://reveille/ns"]): spiffe://reveille/ns is not among the identities that may call
            'spiffe://reveille/ns/*, spiffe://other/a' Some(["spiffe://reveille/ns/b"]): admitted
            'spiffe://reveille/ns/*, spiffe://other/a' Some(["spiffe://reveille/nsb"]): spiffe://reveille/nsb is not among the identities that may call
            'spiffe://reveille/ns/*, spiffe://other/a' Some(["spiffe://other/a"]): admitted
        "#]]
        .assert_eq(&table);
        assert_eq!(CallerPolicy::parse("spiffe://reveille/a,gateway", &own), Err("gateway".to_owned()));
    }
}
