//! JSON web tokens of one issuer.

use std::{sync::Arc, time::Duration};

use super::{
    claims::{ClaimNames, ClaimPath},
    credentials::CredentialFault,
    fetch::KeySource,
    keys::{IssuerKeys, NoKeys},
    signature::SignatureAlgorithm,
    token::{ExpectedClaims, UnverifiedToken},
};
use access_policy::{AccessCaller, KeyTimes, NodeSubject};
use anyhow::{Context as _, ensure};
use chassis::{Tasks, settings::IssuerSettings};

/// Least time between two attempts to fetch keys from a server.
const PAUSE: Duration = Duration::from_secs(10);

/// Time between two readings of keys in a file.
const FILE_PAUSE: Duration = Duration::from_secs(1);

/// Issuer of tokens.
pub(super) struct TokenIssuer {
    /// Word for the issuer in the settings.
    pub word: String,
    algorithms: Vec<SignatureAlgorithm>,
    expected: ExpectedClaims,
    claims: ClaimNames,
    keys: IssuerKeys,
}

/// Token of an issuer that was verified.
pub(super) struct ProvedToken {
    pub caller: Arc<AccessCaller>,
    /// Number of the key set.
    pub key_set: u64,
    /// End of the token, with the leeway, in seconds since 1970.
    pub ends: i64,
}

/// Reason why a token of an issuer does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenRefusal {
    /// The token is at fault.
    Fault(CredentialFault),
    /// The keys of the issuer are not available.
    Unavailable,
}

impl From<CredentialFault> for TokenRefusal {
    fn from(fault: CredentialFault) -> Self {
        Self::Fault(fault)
    }
}

impl TokenIssuer {
    /// Reads the settings of an issuer, and begins to fetch its keys.
    ///
    /// # Errors
    /// Names the setting that is wrong.
    pub(super) fn new(word: &str, settings: &IssuerSettings, tasks: &Tasks) -> anyhow::Result<Self> {
        ensure!(!settings.issuer.is_empty(), "issuer: is empty");
        let audiences = listed(&settings.audience);
        ensure!(!audiences.is_empty(), "audience: is empty, so that tokens for other programs would count");
        let algorithms = algorithms(&settings.algorithms).context("algorithms")?;
        for (key, seconds) in
            [("refresh_seconds", settings.refresh_seconds), ("longest_seconds", settings.longest_seconds)]
        {
            ensure!(seconds > 0, "{key}: has to be above zero");
        }
        let source = KeySource::new(settings)?;
        let (refresh, pause) = match source.is_local() {
            true => (FILE_PAUSE, FILE_PAUSE),
            false => {
                let refresh = Duration::from_secs(settings.refresh_seconds.into());
                (refresh, PAUSE.min(refresh))
            }
        };
        let times =
            KeyTimes { refresh, longest: Duration::from_secs(settings.longest_seconds.into()), pause };
        let nodes = listed(&settings.node_subjects).into_iter().map(|text| {
            NodeSubject::parse(&text)
                .with_context(|| format!("node_subjects: '{text}' does not have one segment {{xname}}"))
        });
        let paths = |text: &str| listed(text).iter().map(|one| ClaimPath::parse(one)).collect();
        let claims = ClaimNames {
            issuer: word.to_owned(),
            subject: settings.subject_claim.clone(),
            roles: paths(&settings.role_claims),
            tenants: paths(&settings.tenant_claims),
            given_roles: listed(&settings.roles),
            nodes: nodes.collect::<anyhow::Result<_>>()?,
        };
        Ok(Self {
            word: word.to_owned(),
            algorithms,
            expected: ExpectedClaims {
                issuer: settings.issuer.clone(),
                audiences,
                leeway: settings.leeway_seconds.into(),
            },
            claims,
            keys: IssuerKeys::follow(word.to_owned(), source, times, tasks),
        })
    }

    /// Returns whether a token says that this issuer made it, which is not verified.
    pub(super) fn is_named_in(&self, token: &UnverifiedToken<'_>) -> bool {
        token.issuer() == Some(&*self.expected.issuer)
    }

    /// Returns whether tokens that were verified by that key set still count.
    pub(super) fn still_has(&self, key_set: u64) -> bool {
        self.keys.current().is_ok_and(|keys| keys.number == key_set)
    }

    /// Verifies a token at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// When the token does not count, or the keys of the issuer are not available.
    pub(super) async fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        now: i64,
    ) -> Result<ProvedToken, TokenRefusal> {
        if !self.algorithms.contains(&token.algorithm) {
            return Err(CredentialFault::Invalid("its algorithm is not allowed").into());
        }
        // A token that is over needs no key, and so causes no attempt to fetch one.
        let ends = self.expected.check(&token.claims, now)?;
        let keys = self.keys.with_key(token.key_id.as_deref()).await.map_err(|none| match none {
            NoKeys::Unknown => CredentialFault::Invalid("its issuer has no such key").into(),
            NoKeys::Unavailable => TokenRefusal::Unavailable,
        })?;
        if !keys.has_signed(token) {
            return Err(CredentialFault::Invalid("its signature is wrong").into());
        }
        let caller = Arc::new(self.claims.caller(&token.claims)?);
        Ok(ProvedToken { caller, key_set: keys.number, ends })
    }
}

fn algorithms(text: &str) -> anyhow::Result<Vec<SignatureAlgorithm>> {
    let read = |word: &String| {
        SignatureAlgorithm::parse(word).with_context(|| format!("'{word}' is no algorithm with a public key"))
    };
    let algorithms: Vec<_> = listed(text).iter().map(read).collect::<anyhow::Result<_>>()?;
    ensure!(!algorithms.is_empty(), "are empty");
    Ok(algorithms)
}

/// Returns the texts of a setting with commas between them.
fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect()
}
