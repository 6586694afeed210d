//! Static tokens: a file with digests of them, and whose they are. A token cannot be derived from the file.

use std::path::Path;

use access_policy::{AccessCaller, node_xname};
use anyhow::Context as _;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::credentials::CredentialFault;

/// Word for the issuer of static tokens in policy, logs and events.
pub(super) const ISSUER: &str = "tokens";

/// Digest of a token.
pub(super) type TokenDigest = [u8; 32];

/// Static tokens.
#[derive(Debug, Default)]
pub(super) struct StaticTokens(Vec<StaticToken>);

#[derive(Debug)]
struct StaticToken {
    digest: TokenDigest,
    caller: AccessCaller,
    /// End of the token, in seconds since 1970; `None`: it has none.
    ends: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    #[serde(default)]
    token: Vec<TokenEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenEntry {
    name: String,
    sha256: String,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    tenants: Vec<String>,
    node: Option<String>,
    expires: Option<String>,
}

/// Returns the digest of a token.
pub(super) fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token.as_bytes()).into()
}

impl StaticTokens {
    /// Reads the file of tokens.
    ///
    /// # Errors
    /// When the file cannot be read, or names the token and its defect.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let TokenFile { token: entries } = toml::from_str(text)?;
        let tokens = entries.into_iter().map(|entry| {
            let name = entry.name.clone();
            StaticToken::of(entry).with_context(|| format!("token '{name}'"))
        });
        let tokens: Vec<_> = tokens.collect::<Result<_, _>>()?;
        for (number, token) in tokens.iter().enumerate() {
            let name = &token.caller.subject;
            let earlier = &tokens[..number];
            anyhow::ensure!(
                earlier.iter().all(|one| one.caller.subject != *name && one.digest != token.digest),
                "token '{name}': another entry has its name or its digest"
            );
        }
        Ok(Self(tokens))
    }

    /// Returns the caller with that token; `None`: it is none of these. Every digest is compared as a whole, so that the time
    /// tells nothing about any of them.
    ///
    /// # Errors
    /// When the token is over.
    pub(super) fn find(
        &self,
        digest: &TokenDigest,
        now: DateTime<Utc>,
    ) -> Result<Option<&AccessCaller>, CredentialFault> {
        let mut found = None;
        for token in &self.0 {
            if verify_slices_are_equal(&token.digest, digest).is_ok() {
                found = Some(token);
            }
        }
        match found {
            Some(token) if token.ends.is_some_and(|end| end <= now.timestamp()) => {
                Err(CredentialFault::Expired)
            }
            Some(token) => Ok(Some(&token.caller)),
            None => Ok(None),
        }
    }
}

impl StaticToken {
    fn of(entry: TokenEntry) -> anyhow::Result<Self> {
        let TokenEntry { name, sha256, roles, tenants, node, expires } = entry;
        anyhow::ensure!(!name.is_empty(), "name: is empty");
        anyhow::ensure!(tenants.iter().all(|tenant| !tenant.is_empty()), "tenants: has an empty name");
        let digest = digest_of_text(&sha256).context("sha256: has to be 64 hexadecimal digits")?;
        let node = match node {
            Some(node) => Some(node_xname(&node).context("node: is no name such as x1000c0s0b0n0")?),
            None => None,
        };
        let ends = match expires {
            Some(text) => {
                let end = DateTime::parse_from_rfc3339(&text);
                Some(end.context("expires: has to be a time such as \"2027-01-31T00:00:00Z\"")?.timestamp())
            }
            None => None,
        };
        let caller = AccessCaller { subject: name, issuer: ISSUER.to_owned(), roles, tenants, node };
        Ok(Self { digest, caller, ends })
    }
}

fn digest_of_text(text: &str) -> Option<TokenDigest> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = TokenDigest::default();
    for (place, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        *place = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// Digest of `secret`, as `sha256sum` prints it.
    const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    fn entry(rest: &str) -> String {
        format!("[[token]]\nname = \"backup\"\nsha256 = \"{SECRET}\"\n{rest}\n")
    }

    #[test]
    fn tokens_are_found_by_their_digests() {
        let text = entry("roles = [\"admin\"]\nexpires = \"2027-01-31T00:00:00Z\"\nnode = \"X1000C0S0B0N0\"");
        let tokens = StaticTokens::parse(&text).unwrap();
        let time = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let caller = tokens.find(&digest("secret"), time("2026-12-01T00:00:00Z")).unwrap().unwrap();
        assert_eq!(
            (caller.shown().as_str(), caller.roles[0].as_str(), caller.node.as_deref()),
            ("backup@tokens", "admin", Some("x1000c0s0b0n0"))
        );
        assert_eq!(tokens.find(&digest("Secret"), time("2026-12-01T00:00:00Z")), Ok(None));
        let ended = tokens.find(&digest("secret"), time("2027-01-31T00:00:00Z"));
        assert_eq!(ended, Err(CredentialFault::Expired));
    }

    #[test]
    fn mistakes_are_named_without_the_digest() {
        let texts = [
            String::new(),
            entry(""),
            entry("").repeat(2),
            entry("node = \"login-1\""),
            entry("expires = \"soon\""),
            entry("tenants = [\"\"]"),
            entry("role = \"admin\""),
            "[[token]]\nname = \"a\"\nsha256 = \"abc\"".to_owned(),
        ];
        let rows = texts.map(|text| match StaticTokens::parse(&text) {
            Ok(tokens) => format!("{} tokens\n", tokens.0.len()),
            Err(error) => {
                let shown = format!("{error:#}");
                assert!(!shown.contains(SECRET), "{shown}");
                format!("{}\n", shown.trim().replace('\n', " / "))
            }
        });
        expect![[r#"
            0 tokens
            1 tokens
            token 'backup': another entry has its name or its digest
            token 'backup': node: is no name such as x1000c0s0b0n0
            token 'backup': expires: has to be a time such as "2027-01-31T00:00:00Z": premature end of input
            token 'backup': tenants: has an empty name
            TOML parse error at line 4, column 1 /   | / 4 | role = "admin" /   | ^^^^ / unknown field `role`, expected one of `name`, `sha256`, `roles`, `tenants`, `node`, `expires`
            token 'a': sha256: has to be 64 hexadecimal digits
        "#]].assert_eq(&rows.concat());
    }
}
