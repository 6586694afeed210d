//! Keys of an issuer: the last ones that were fetched, and the task that fetches them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use access_policy::{FetchHistory, KeyStanding, KeyTimes};
use chassis::Tasks;
use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};

use super::{
    fetch::KeySource,
    signature::{SignatureAlgorithm, VerifyingKey},
    token::UnverifiedToken,
};

/// Time that a request waits for keys.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most keys that a token without the id of one is tried with.
const MOST_TRIED: usize = 8;

/// Keys of an issuer. Clones share them.
#[derive(Clone)]
pub(super) struct IssuerKeys {
    times: KeyTimes,
    state: watch::Receiver<KeyState>,
    wanted: Arc<Notify>,
}

/// Result of the attempts to fetch keys.
#[derive(Clone, Default)]
struct KeyState {
    keys: Option<Arc<KeySet>>,
    attempted: Option<Instant>,
    fetched: Option<Instant>,
}

/// Keys of one document.
pub(super) struct KeySet {
    /// Number, which no other set of the process has.
    pub number: u64,
    keys: Vec<IssuerKey>,
}

struct IssuerKey {
    id: Option<String>,
    /// Algorithm that the document names; `None`: those that fit the key.
    algorithm: Option<SignatureAlgorithm>,
    key: VerifyingKey,
}

/// Reason why there are no keys for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoKeys {
    /// The issuer has no such key.
    Unknown,
    /// The keys of the issuer could not be fetched, or not for too long.
    Unavailable,
}

impl IssuerKeys {
    /// Begins to fetch keys.
    pub(super) fn follow(issuer: String, source: KeySource, times: KeyTimes, tasks: &Tasks) -> Self {
        let (publisher, state) = watch::channel(KeyState::default());
        let wanted = Arc::new(Notify::new());
        let follower = KeyFollower { issuer, source, times, publisher, wanted: Arc::clone(&wanted) };
        tasks.spawn_until_shutdown::<_, ()>("keys of an issuer", follower.run());
        Self { times, state, wanted }
    }

    /// Returns the keys that count now.
    ///
    /// # Errors
    /// When there are none.
    pub(super) fn current(&self) -> Result<Arc<KeySet>, NoKeys> {
        let state = self.state.borrow();
        match (self.times.standing(state.history()), &state.keys) {
            (KeyStanding::Valid, Some(keys)) => Ok(Arc::clone(keys)),
            (KeyStanding::Valid | KeyStanding::Missing | KeyStanding::TooOld, _) => Err(NoKeys::Unavailable),
        }
    }

    /// Returns the keys that count now, with the one of the id. If it is missing, keys are fetched again, unless that was just
    /// done.
    ///
    /// # Errors
    /// When there are none.
    pub(super) async fn with_key(&self, id: Option<&str>) -> Result<Arc<KeySet>, NoKeys> {
        let first = self.current();
        if let Ok(keys) = &first
            && keys.has(id)
        {
            return first;
        }
        let mut state = self.state.clone();
        let history = state.borrow_and_update().history();
        // The first attempt of all may be under way.
        if history.since_attempt.is_none() || self.times.may_ask(history) {
            self.wanted.notify_one();
            // A silent issuer leaves the keys as they were.
            let _silent = timeout(PATIENCE, state.changed()).await;
        }
        let keys = self.current()?;
        if keys.has(id) { Ok(keys) } else { Err(NoKeys::Unknown) }
    }
}

impl KeyState {
    fn history(&self) -> FetchHistory {
        let since = |moment: Option<Instant>| moment.map(|moment| moment.elapsed());
        FetchHistory { since_attempt: since(self.attempted), since_success: since(self.fetched) }
    }
}

/// Task that fetches the keys of an issuer.
struct KeyFollower {
    issuer: String,
    source: KeySource,
    times: KeyTimes,
    publisher: watch::Sender<KeyState>,
    wanted: Arc<Notify>,
}

impl KeyFollower {
    async fn run(self) -> anyhow::Result<()> {
        let mut document = Value::Null;
        let mut has_failed = false;
        loop {
            let began = Instant::now();
            let fetched = self.source.fetch().await.and_then(|found| Ok((KeySet::read(&found)?, found)));
            match fetched {
                Ok((keys, found)) => {
                    let is_new = found != document;
                    document = found;
                    if is_new {
                        tracing::info!(
                            issuer = self.issuer,
                            keys = keys.keys.len(),
                            "keys of the issuer read"
                        );
                    }
                    has_failed = false;
                    self.publisher.send_modify(|state| {
                        // The number of the set changes with its content alone, or every token would be verified again.
                        if is_new || state.keys.is_none() {
                            state.keys = Some(Arc::new(keys));
                        }
                        (state.attempted, state.fetched) = (Some(began), Some(began));
                    });
                }
                Err(error) => {
                    if !has_failed {
                        let reason = chassis::cause_first(&error);
                        tracing::warn!(
                            issuer = self.issuer,
                            reason,
                            "keys of the issuer cannot be read, the previous ones count for a while"
                        );
                    }
                    has_failed = true;
                    self.publisher.send_modify(|state| state.attempted = Some(began));
                }
            }
            self.rest().await;
        }
    }

    /// Waits until keys have to be fetched again.
    async fn rest(&self) {
        let mut is_wanted = false;
        loop {
            let history = self.publisher.borrow().history();
            let rest = self.times.next_attempt(history, is_wanted);
            if rest.is_zero() {
                return;
            }
            tokio::select! {
                () = sleep(rest) => {}
                () = self.wanted.notified() => is_wanted = true,
            }
        }
    }
}

impl KeySet {
    /// Reads a key set. Keys that cannot be used, such as those for encryption, are left out.
    fn read(document: &Value) -> anyhow::Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let listed = document.get("keys").and_then(Value::as_array);
        let listed = listed.ok_or_else(|| anyhow::anyhow!("is no key set: it has no list 'keys'"))?;
        let keys = listed.iter().filter_map(IssuerKey::read).collect();
        Ok(Self { number: NUMBERS.fetch_add(1, Ordering::Relaxed), keys })
    }

    fn has(&self, id: Option<&str>) -> bool {
        id.is_none() || self.keys.iter().any(|key| key.id.as_deref() == id)
    }

    /// Returns whether a key of the set has signed a token.
    pub(super) fn has_signed(&self, token: &UnverifiedToken<'_>) -> bool {
        let id = token.key_id.as_deref();
        let named = |key: &&IssuerKey| {
            (id.is_none() || key.id.as_deref() == id)
                && key.algorithm.is_none_or(|one| one == token.algorithm)
        };
        let mut candidates = self.keys.iter().filter(named).take(MOST_TRIED);
        candidates.any(|one| one.key.has_signed(token.algorithm, token.message, &token.signature))
    }
}

impl IssuerKey {
    fn read(value: &Value) -> Option<Self> {
        let text = |member: &str| value.get(member).and_then(Value::as_str);
        let operations = value.get("key_ops").and_then(Value::as_array);
        let verifies = operations.is_none_or(|all| all.iter().any(|one| one == "verify"));
        if !verifies || text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let algorithm = match text("alg") {
            // A key for an algorithm that is not known is for no other.
            Some(word) => Some(SignatureAlgorithm::parse(word)?),
            None => None,
        };
        Some(Self { id: text("kid").map(str::to_owned), algorithm, key: VerifyingKey::read(value)? })
    }
}
