//! Cancels, pauses, resumes and retries sessions for operators.
//!
//! A pause is a wish in the record of the session, too; [`crate::marking`] carries it out.
//!
//! A cancellation is a wish in the record of the session. The completion carries it out, so that it survives a restart:
//! it releases the components and then completes the session. Before anything was assigned, the call itself completes
//! the session.

use std::sync::Arc;

use chassis::{Fault, mesh::request_id, process::clock::now, store::resource::Resource};
use domain::{
    boot::session::{
        Progress, Session, SessionPause, pause,
        steer::{self, AssignmentBegin, SteerRefusal},
    },
    core::{event::Actor, text::text},
};
use proto::session as wire;

use crate::{
    convert,
    record::{SessionRecord, wanted_key},
    sessions::SessionRpc,
};

/// Name of a client that gives none, as in events.
const UNNAMED_CLIENT: &str = "client";

impl SessionRpc {
    /// Cancels a session.
    ///
    /// # Errors
    /// [`Fault::NotFound`], [`Fault::Invalid`] for a reason that is too long, [`Fault::Locked`] if the session ended in
    /// another way.
    pub(crate) async fn cancel(&self, request: wire::CancelSessionRequest) -> Result<wire::Session, Fault> {
        let wire::CancelSessionRequest { name, tenant, reason } = request;
        let key = wanted_key(SessionRecord::KIND, &tenant, &name)?;
        steer::check_reason(&reason)?;
        let shared = self.shared.clone();
        let cancel = self.shared.sessions.write_by(Actor::Client, move |draft| {
            let record = draft.get(&key).ok_or_else(|| Fault::not_found(SessionRecord::KIND, &name))?;
            let assignment = match record.intent {
                None => AssignmentBegin::NotBegun,
                Some(_) => AssignmentBegin::MayHaveBegun,
            };
            let session = steer::cancel(record.session.clone(), &reason, assignment, now());
            let session = session.map_err(|refusal| refused(&name, &refusal))?;
            if session == record.session {
                return Ok(convert::session::to_wire(&session));
            }
            let answer = convert::session::to_wire(&session);
            let saved_status = match session.progress {
                Progress::Complete => Some(shared.status(&session, &None)),
                Progress::Pending | Progress::Running => record.saved_status.clone(),
            };
            let record = Arc::unwrap_or_clone(record).with(session);
            draft.put(SessionRecord { saved_status, left_out: None, ..record });
            Ok(wire::Session { revision: 0, ..answer })
        });
        let (session, revision) = cancel.await?;
        if session.revision == 0 && session.progress() == wire::Progress::Complete {
            let wire::Session { name, id, .. } = &session;
            tracing::info!(session = name, id, result = "cancelled", "session complete before its setup");
        }
        Ok(if session.revision == 0 { wire::Session { revision, ..session } } else { session })
    }

    /// Pauses a session.
    ///
    /// # Errors
    /// [`Fault::NotFound`], [`Fault::Invalid`] for a text that is too long, [`Fault::Conflict`] for another revision,
    /// [`Fault::Locked`] if the session is complete or is being cancelled.
    pub(crate) async fn pause(&self, request: wire::PauseSessionRequest) -> Result<wire::Session, Fault> {
        let wire::PauseSessionRequest { name, tenant, reason, client, expected_revision } = request;
        steer::check_reason(&reason)?;
        pause::check_client(&client)?;
        let wish = SessionPause {
            by: text(if client.is_empty() { UNNAMED_CLIENT } else { &client }),
            since: now(),
            reason: text(&reason),
            request_id: text(&request_id::current().unwrap_or_default()),
        };
        self.steer(name, &tenant, expected_revision, |session| pause::pause(session, wish)).await
    }

    /// Resumes a session.
    ///
    /// # Errors
    /// Refusals as of [`Self::pause`].
    pub(crate) async fn resume(&self, request: wire::ResumeSessionRequest) -> Result<wire::Session, Fault> {
        let wire::ResumeSessionRequest { name, tenant, expected_revision } = request;
        self.steer(name, &tenant, expected_revision, pause::resume).await
    }

    /// Changes a session, and returns it; a change that changes nothing is not written.
    async fn steer(
        &self,
        name: String,
        tenant: &str,
        expected_revision: u64,
        change: impl FnOnce(Session) -> Result<Session, SteerRefusal> + Send + 'static,
    ) -> Result<wire::Session, Fault> {
        let key = wanted_key(SessionRecord::KIND, tenant, &name)?;
        let write = self.shared.sessions.write_by(Actor::Client, move |draft| {
            let record = draft.get(&key).ok_or_else(|| Fault::not_found(SessionRecord::KIND, &name))?;
            if expected_revision != 0 && record.session.revision != expected_revision {
                return Err(Fault::Conflict { kind: SessionRecord::KIND.into(), name });
            }
            let session = change(record.session.clone()).map_err(|refusal| refused(&name, &refusal))?;
            if session == record.session {
                return Ok(convert::session::to_wire(&session));
            }
            let record = Arc::unwrap_or_clone(record).with(session);
            let answer = convert::session::to_wire(&record.session);
            draft.put(record);
            Ok(wire::Session { revision: 0, ..answer })
        });
        let (session, revision) = write.await?;
        Ok(if session.revision == 0 { wire::Session { revision, ..session } } else { session })
    }

    /// Creates a session for the components of a complete session that failed.
    ///
    /// # Errors
    /// [`Fault::NotFound`], [`Fault::Locked`] if the session is not complete or nothing failed, and those of the creation
    /// of a session.
    pub(crate) async fn retry(&self, request: wire::RetrySessionRequest) -> Result<wire::Session, Fault> {
        let wire::RetrySessionRequest { name, tenant } = request;
        let record = self.record(&tenant, &name).await?;
        let session = &record.session;
        if let Some(retry) = self.retry_of(session) {
            return Ok(convert::session::to_wire(&retry.session));
        }
        self.shared.registry.wait_for_mirror(&self.shared.components).await?;
        let wish = steer::retry(session, self.shared.standings(session));
        self.create(wish.map_err(|refusal| refused(&name, &refusal))?).await
    }

    /// Returns the session that retries `session`, if there is one.
    fn retry_of(&self, session: &Session) -> Option<Arc<SessionRecord>> {
        let sessions = self.shared.sessions.view().all();
        sessions.into_iter().find(|other| other.session.retries(&session.id))
    }
}

fn refused(name: &str, refusal: &SteerRefusal) -> Fault {
    Fault::Locked { kind: SessionRecord::KIND.into(), name: name.to_owned(), reason: refusal.to_string() }
}
