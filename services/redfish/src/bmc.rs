//! One BMC, called by one caller at a time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderValue, StatusCode, header::ETAG};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit},
    time::timeout,
};
use upstream::{Answer, CredentialUse, Credentials, Failure, FailureKind, Peer, Request};

use crate::{
    access::{self, BmcAccess, BmcSession, TOKEN},
    system::{self, ComputerSystem, ResetAction},
    task::{self, TaskProgress},
};

/// Path at which every BMC lists its services. The trailing slash is needed: some BMCs answer with a redirect
/// otherwise.
const SERVICE_ROOT: &str = "/redfish/v1/";

/// Time for which credentials that a BMC refused are not sent to it again. BMCs lock an account after some wrong
/// passwords, and polls of power are frequent.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// A BMC with many callers. It serves one at a time, in the order in which they arrived.
pub struct BmcClient {
    peer: Peer,
    /// Permits for concurrent calls, shared by all BMCs.
    slots: Arc<Semaphore>,
    memory: Mutex<BmcMemory>,
}

/// Knowledge that is kept from one call to the next.
#[derive(Default)]
struct BmcMemory {
    access: BmcAccess,
    refused: Option<CredentialRefusal>,
    /// Path of the only system, once it was read.
    only_system: Option<String>,
}

/// Credentials that the BMC refused.
struct CredentialRefusal {
    credentials: Credentials,
    at: Instant,
    failure: Failure,
}

/// Exclusive right to call a BMC. The next caller waits until it is dropped.
pub struct BmcTurn<'a> {
    peer: &'a Peer,
    memory: MutexGuard<'a, BmcMemory>,
    _slot: SemaphorePermit<'a>,
}

impl BmcClient {
    /// Creates the client of a BMC. Callers of all BMCs that share `slots` make that many calls at the same time.
    pub fn new(peer: Peer, slots: Arc<Semaphore>) -> Self {
        Self { peer, slots, memory: Mutex::default() }
    }

    /// Warns if the credentials that the settings name in `section` cannot be used.
    pub fn check_credentials(&self, section: &str) {
        self.peer.check_credentials(section, CredentialUse::Header);
    }

    /// Returns the name of the BMC in texts.
    pub fn name(&self) -> &str {
        self.peer.name()
    }

    /// Waits for the BMC, and only then for a permit: callers that wait for a BMC that hangs hold none.
    pub async fn turn(&self) -> BmcTurn<'_> {
        self.begin_turn(self.memory.lock().await).await
    }

    /// Waits as [`Self::turn`] does, but for other callers of the BMC for `patience` at most; `None`: they take longer.
    /// The wait for a permit does not count: it says nothing about the BMC.
    pub async fn turn_within(&self, patience: Duration) -> Option<BmcTurn<'_>> {
        let memory = timeout(patience, self.memory.lock()).await.ok()?;
        Some(self.begin_turn(memory).await)
    }

    async fn begin_turn<'a>(&'a self, memory: MutexGuard<'a, BmcMemory>) -> BmcTurn<'a> {
        let slot = self.slots.acquire().await.expect("nobody closes the slots");
        BmcTurn { peer: &self.peer, memory, _slot: slot }
    }

    /// Ends the session, if there is one.
    pub async fn log_out(&self) {
        let mut turn = self.turn().await;
        let BmcAccess::Session(session) = std::mem::take(&mut turn.memory.access) else { return };
        let Some(path) = session.path else { return };
        let request = Request::delete("session_delete", path).header(TOKEN, session.token);
        if let Err(failure) = self.peer.call(request).await {
            tracing::debug!(%failure, "session not ended, the BMC will");
        }
    }
}

impl BmcTurn<'_> {
    /// Reads the system at `path`; an empty path stands for the only system. Also returns its path.
    ///
    /// # Errors
    /// When the BMC does not answer or refuses, or has another number of systems than one and no path is given.
    pub async fn system(&mut self, path: &str) -> Result<(String, ComputerSystem), Failure> {
        let (path, document) = self.system_document(path).await?;
        Ok((path, ComputerSystem::read(&document)))
    }

    /// Reads the whole document of a system as [`Self::system`] does.
    ///
    /// # Errors
    /// As [`Self::system`].
    pub async fn system_document(&mut self, path: &str) -> Result<(String, Value), Failure> {
        let path = match path {
            "" => self.only_system().await?,
            path => path.to_owned(),
        };
        let document = self.get("system_get", &path).await?;
        Ok((path, document))
    }

    /// Returns the kinds of reset that a system takes; empty: the BMC does not list them.
    ///
    /// # Errors
    /// When the BMC does not answer or refuses.
    pub async fn allowable(&mut self, action: &ResetAction) -> Result<Vec<String>, Failure> {
        match &action.info {
            Some(info) if action.allowable.is_empty() => {
                Ok(system::allowable(&self.get("action_info_get", info).await?))
            }
            Some(_) | None => Ok(action.allowable.clone()),
        }
    }

    /// Requests a reset of the system at `path`, if `still_ours` returns true right before the call leaves.
    ///
    /// # Errors
    /// The failure states the known effect of the call.
    pub async fn reset(
        &mut self,
        path: &str,
        action: &ResetAction,
        reset_type: &str,
        still_ours: Arc<dyn Fn() -> bool + Send + Sync>,
    ) -> Result<(), Failure> {
        let usual = || format!("{}/Actions/ComputerSystem.Reset", path.trim_end_matches('/'));
        let target = action.target.clone().unwrap_or_else(usual);
        let request = Request::post("system_reset", target)
            .json(&json!({ "ResetType": reset_type }))
            .items(1)
            .while_wanted(move || still_ours());
        self.call(request).await.map(drop)
    }

    async fn only_system(&mut self) -> Result<String, Failure> {
        if let Some(path) = &self.memory.only_system {
            return Ok(path.clone());
        }
        let root = self.root().await?;
        let systems = system::link(&root["Systems"]).unwrap_or_else(|| format!("{SERVICE_ROOT}Systems"));
        let mut members = system::members(&self.get("systems_get", &systems).await?);
        match (members.pop(), members.len()) {
            (Some(only), 0) => Ok(self.memory.only_system.insert(only).clone()),
            (None, _) => Err(self.refusal("has no system")),
            (Some(_), others) => {
                let count = others + 1;
                Err(self.refusal(&format!("has {count} systems, and no path says which")))
            }
        }
    }

    /// Reads the service root, which needs no login.
    ///
    /// # Errors
    /// When the BMC does not answer or refuses.
    pub async fn root(&self) -> Result<Value, Failure> {
        self.peer.json(Request::get("root_get", SERVICE_ROOT).anonymous()).await
    }

    /// Changes the document at `path`, or carries an action out there.
    ///
    /// # Errors
    /// The failure states the known effect of the call.
    pub async fn send(&mut self, request: Request) -> Result<(), Failure> {
        self.call(request.items(1)).await.map(drop)
    }

    /// Carries out an action that the BMC may need long for. Returns the path of its task; `None`: the action is over.
    ///
    /// # Errors
    /// The failure states the known effect of the call.
    pub async fn begin(&mut self, request: Request) -> Result<Option<String>, Failure> {
        let answer = self.call(request.items(1)).await?;
        Ok(task::path(&answer.headers, &answer.body))
    }

    /// Returns how far the task at `path` is. A task that the BMC has forgotten is [`TaskProgress::Forgotten`].
    ///
    /// # Errors
    /// When the BMC does not answer or refuses.
    pub async fn task(&mut self, path: &str) -> Result<TaskProgress, Failure> {
        match self.call(Request::get("task_get", path)).await {
            Ok(answer) => Ok(TaskProgress::read(answer.status, &answer.body)),
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Ok(TaskProgress::Forgotten),
            Err(failure) => Err(failure),
        }
    }

    /// Reads the document at `path`.
    ///
    /// # Errors
    /// When the BMC does not answer, refuses, or answers no JSON.
    pub async fn get(&mut self, operation: &'static str, path: &str) -> Result<Value, Failure> {
        let answer = self.call(Request::get(operation, path)).await?;
        let read = serde_json::from_slice(&answer.body);
        read.map_err(|error| self.refusal(&format!("{path} is not the JSON that it should be: {error}")))
    }

    /// Returns the version of the document at `path`, on whose condition it can be changed (DSP0266, ETags); `None`: the BMC
    /// has no such document, or counts no versions of it.
    ///
    /// # Errors
    /// When the BMC does not answer.
    pub async fn version(
        &mut self,
        operation: &'static str,
        path: &str,
    ) -> Result<Option<HeaderValue>, Failure> {
        match self.call(Request::get(operation, path)).await {
            Ok(answer) => Ok(version(&answer)),
            Err(Failure { kind: FailureKind::Refused | FailureKind::Denied, .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Makes a call with a session or a password. A session that the BMC has forgotten is replaced by a new one: the
    /// call had no effect then.
    async fn call(&mut self, request: Request) -> Result<Answer, Failure> {
        let reused = matches!(self.memory.access, BmcAccess::Session(_));
        let answered = self.try_call(request.clone()).await;
        match answered {
            Err(failure) if reused && is_unauthorized(&failure) => self.try_call(request).await,
            answered => answered,
        }
    }

    async fn try_call(&mut self, request: Request) -> Result<Answer, Failure> {
        self.log_in().await?;
        let (request, by_password) = match &self.memory.access {
            BmcAccess::Session(session) => (request.header(TOKEN, session.token.clone()), false),
            BmcAccess::EveryCall | BmcAccess::Unknown => (request, true),
        };
        let answered = self.peer.call(request).await;
        if let Err(failure) = &answered
            && is_unauthorized(failure)
        {
            self.memory.access = BmcAccess::Unknown;
            if by_password {
                return Err(self.credentials_refused(failure).await);
            }
        }
        answered
    }

    /// Finds a way to access the BMC, unless one is known.
    async fn log_in(&mut self) -> Result<(), Failure> {
        if self.memory.access != BmcAccess::Unknown {
            return Ok(());
        }
        let credentials = self.peer.secrets().await?;
        if let Some(refusal) = &self.memory.refused
            && refusal.credentials == credentials
            && refusal.at.elapsed() < AFTER_REFUSAL
        {
            return Err(refusal.failure.clone());
        }
        let session = match &credentials {
            Credentials::Password { username, password } => {
                self.begin_session(username, password.reveal()).await?
            }
            Credentials::None
            | Credentials::Token { .. }
            | Credentials::Client(_)
            | Credentials::Keys { .. } => None,
        };
        self.memory.access = session.map_or(BmcAccess::EveryCall, BmcAccess::Session);
        Ok(())
    }

    /// Begins a session; `None` if the BMC grants none.
    async fn begin_session(&mut self, username: &str, password: &str) -> Result<Option<BmcSession>, Failure> {
        let root = match self.root().await {
            Ok(root) => root,
            Err(failure) if access::may_do_without_session(&failure) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let Some(sessions) = access::sessions_path(&root) else { return Ok(None) };
        let body = json!({ "UserName": username, "Password": password });
        let request = Request::post("session_create", sessions).json(&body).anonymous();
        match self.peer.call(request).await {
            Ok(answer) => Ok(BmcSession::read(&answer.headers, &answer.body)),
            Err(failure) if access::may_do_without_session(&failure) => {
                tracing::debug!(bmc = self.peer.name(), status = ?failure.status, "no session, only passwords");
                Ok(None)
            }
            Err(failure) => {
                let failure = self.without_words(failure);
                if is_unauthorized(&failure) {
                    Err(self.credentials_refused(&failure).await)
                } else {
                    Err(failure)
                }
            }
        }
    }

    /// Removes the BMC's words from a failure: the answer to a request with a password may repeat the password.
    fn without_words(&self, failure: Failure) -> Failure {
        match failure.status {
            Some(status) => {
                let text = format!("{} at {} refused a session: {status}", self.peer.name(), self.peer.url());
                Failure { text, ..failure }
            }
            None => failure,
        }
    }

    /// Remembers that the credentials were refused. Returns a failure whose text distinguishes this from other trouble.
    async fn credentials_refused(&mut self, failure: &Failure) -> Failure {
        let credentials = match self.peer.secrets().await {
            Ok(credentials) => credentials,
            Err(failure) => return failure,
        };
        let reason = match &credentials {
            Credentials::None => "no credentials are set",
            Credentials::Password { .. } => "wrong user name or password",
            Credentials::Token { .. } | Credentials::Client(_) | Credentials::Keys { .. } => {
                "wrong credentials"
            }
        };
        let failure = Failure { text: format!("{}: {reason}", failure.text), ..failure.clone() };
        let at = Instant::now();
        self.memory.refused = Some(CredentialRefusal { credentials, at, failure: failure.clone() });
        failure
    }

    /// Returns the failure of a BMC whose answers cannot be used.
    pub fn refusal(&self, reason: &str) -> Failure {
        let text = format!("{} at {}: {reason}", self.peer.name(), self.peer.url());
        Failure { kind: FailureKind::Refused, status: None, text }
    }
}

fn is_unauthorized(failure: &Failure) -> bool {
    failure.status == Some(StatusCode::UNAUTHORIZED)
}

/// Returns the version of a document that was read. Some BMCs tell it in the document alone.
fn version(answer: &Answer) -> Option<HeaderValue> {
    answer.headers.get(ETAG).cloned().or_else(|| {
        let document: Value = serde_json::from_slice(&answer.body).ok()?;
        HeaderValue::from_str(document["@odata.etag"].as_str()?).ok()
    })
}

#[cfg(test)]
mod tests {
    use chassis::settings;
    use tokio::time::sleep;
    use upstream::PeerGroup;

    use super::*;

    fn bmc(slots: &Arc<Semaphore>) -> BmcClient {
        let settings = settings::Settings::default().host_operations.redfish;
        let peer = PeerGroup::new("redfish", &settings).unwrap();
        let peer = peer.peer_with("BMC b".to_owned(), "https://127.0.0.1:9", Credentials::None).unwrap();
        BmcClient::new(peer, Arc::clone(slots))
    }

    #[tokio::test(start_paused = true)]
    async fn patience_is_with_the_bmc_and_not_with_the_permits() {
        let slots = Arc::new(Semaphore::new(1));
        let (busy, free) = (bmc(&slots), bmc(&slots));
        let turn = busy.turn().await;
        let patience = Duration::from_secs(1);
        assert!(busy.turn_within(patience).await.is_none());
        let late = async {
            sleep(patience * 10).await;
            drop(turn);
        };
        let (waited, ()) = tokio::join!(free.turn_within(patience), late);
        assert!(waited.is_some());
    }
}
