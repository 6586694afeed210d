//! Tokens that were verified before, so that a signature is checked once and not with every request.

use std::{collections::HashMap, sync::Arc};

use access_policy::AccessCaller;
use parking_lot::Mutex;

use super::tokens::TokenDigest;

/// Most tokens that are remembered: each node of a large machine has one.
const MOST: usize = 20_000;

/// Tokens that were verified.
#[derive(Default)]
pub(super) struct VerifiedTokens(Mutex<HashMap<TokenDigest, VerifiedToken>>);

/// Token that was verified.
#[derive(Clone)]
pub(super) struct VerifiedToken {
    pub caller: Arc<AccessCaller>,
    /// Number of the issuer in the settings.
    pub issuer: usize,
    /// Number of the key set by which the token was verified. Another set may lack its key.
    pub key_set: u64,
    /// End of the token, with the leeway, in seconds since 1970.
    pub ends: i64,
}

impl VerifiedTokens {
    /// Returns a token that has not ended.
    pub(super) fn find(&self, digest: &TokenDigest, now: i64) -> Option<VerifiedToken> {
        let tokens = self.0.lock();
        tokens.get(digest).filter(|token| now < token.ends).cloned()
    }

    /// Remembers a token. If there is no room, ended tokens leave, and then an eighth of the others.
    pub(super) fn remember(&self, digest: TokenDigest, token: VerifiedToken, now: i64) {
        let mut tokens = self.0.lock();
        if tokens.len() >= MOST {
            tokens.retain(|_, token| now < token.ends);
        }
        if tokens.len() >= MOST {
            let leaving: Vec<_> = tokens.keys().take(MOST / 8).copied().collect();
            leaving.iter().for_each(|digest| drop(tokens.remove(digest)));
        }
        tokens.insert(digest, token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(ends: i64) -> VerifiedToken {
        VerifiedToken { caller: Arc::default(), issuer: 0, key_set: 1, ends }
    }

    fn digest(number: usize) -> TokenDigest {
        let mut digest = TokenDigest::default();
        digest[..8].copy_from_slice(&number.to_be_bytes());
        digest
    }

    #[test]
    fn memory_is_bounded_by_number_and_time() {
        let tokens = VerifiedTokens::default();
        (0..MOST + 10).for_each(|number| tokens.remember(digest(number), token(100), 1));
        assert!(tokens.0.lock().len() <= MOST);
        assert!(tokens.find(&digest(MOST + 9), 99).is_some());
        assert!(tokens.find(&digest(MOST + 9), 100).is_none());
        (0..MOST).for_each(|number| tokens.remember(digest(number), token(300), 200));
        assert!(tokens.0.lock().values().all(|token| token.ends == 300));
    }
}
