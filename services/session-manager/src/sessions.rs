//! Calls about sessions (BOS reference 2.9).

use std::sync::Arc;

use chassis::{
    Fault,
    process::clock::now,
    store::{
        ledger::{Responses, Selection},
        resource::Resource,
    },
};
use domain::{
    boot::{
        bos::options::Options,
        session::{
            self, NewSession, Progress, Session, SessionPatch, limit::names_nid, rollout::rollout_standing,
        },
        template::{Rules, SessionTemplate},
    },
    core::{event::Actor, invalid::Invalid},
};
use proto::{
    Encoded,
    session::{self as wire, session_service_server::SessionService},
};
use tonic::{Request, Response, Status};

use crate::{
    convert,
    dependency::DependencyError,
    lookup::ImageLookup,
    record::{SessionRecord, wanted_key},
    setup::{SetupPeers, plan::change_since_plan},
    shared::{ManagerState, SessionDraft},
    staging::StagingService,
};

/// Kind of plans in faults.
const PLAN: &str = "plan";

/// Sessions in one message of a list. Each session may name every node of the machine.
const PAGE: usize = 32;

pub(crate) struct SessionRpc {
    pub(crate) shared: ManagerState,
    pub(crate) lookup: Arc<ImageLookup>,
    pub(crate) peers: SetupPeers,
    pub(crate) staging: StagingService,
}

#[tonic::async_trait]
impl SessionService for SessionRpc {
    type ListSessionsStream = Responses<wire::ListSessionsResponse>;
    type WatchSessionsStream = Responses<Encoded<wire::WatchSessionsResponse>>;
    type ListLeftOutMembersStream = Responses<wire::ListLeftOutMembersResponse>;

    async fn list_sessions(
        &self,
        request: Request<wire::ListSessionsRequest>,
    ) -> Result<Response<Self::ListSessionsStream>, Status> {
        let filter = convert::session::filter_from_wire(request.into_inner().filter, now());
        let filter = filter.map_err(Fault::Invalid)?;
        let wanted = Box::new(move |record: &SessionRecord| filter.matches(&record.session));
        let selection = Selection { wanted, ..Selection::default() };
        self.shared.sessions.list(selection, PAGE).await
    }

    async fn get_session(
        &self,
        request: Request<wire::GetSessionRequest>,
    ) -> Result<Response<wire::GetSessionResponse>, Status> {
        let wire::GetSessionRequest { name, tenant } = request.into_inner();
        let record = self.record(&tenant, &name).await?;
        let session = &record.session;
        let standing = match session.progress {
            Progress::Complete => None,
            Progress::Pending | Progress::Running => {
                rollout_standing(session, &self.shared.batch_views(session), now())
            }
        };
        let rollout = standing.as_ref().map(convert::rollout::standing_to_wire);
        let estimate = self.shared.estimate(session);
        let session = Some(convert::session::to_wire(session));
        let estimate = estimate.map(convert::durations::estimate_to_wire);
        Ok(Response::new(wire::GetSessionResponse { session, rollout, estimate }))
    }

    async fn watch_sessions(
        &self,
        request: Request<wire::WatchSessionsRequest>,
    ) -> Result<Response<Self::WatchSessionsStream>, Status> {
        self.shared.sessions.serve_watch(request).await
    }

    async fn create_session(
        &self,
        request: Request<wire::CreateSessionRequest>,
    ) -> Result<Response<wire::CreateSessionResponse>, Status> {
        let wish = convert::session::wish_from_wire(request.into_inner()).map_err(Fault::Invalid)?;
        let session = self.create(wish).await?;
        Ok(Response::new(wire::CreateSessionResponse { session: Some(session) }))
    }

    async fn update_session(
        &self,
        request: Request<wire::UpdateSessionRequest>,
    ) -> Result<Response<wire::UpdateSessionResponse>, Status> {
        let request = request.into_inner();
        let key = wanted_key(SessionRecord::KIND, &request.tenant, &request.name)?;
        let name = request.name.clone();
        let session = self.update(key, name, convert::session::patch_from_wire(request)).await?;
        Ok(Response::new(wire::UpdateSessionResponse { session: Some(session) }))
    }

    async fn delete_session(
        &self,
        request: Request<wire::DeleteSessionRequest>,
    ) -> Result<Response<wire::DeleteSessionResponse>, Status> {
        let wire::DeleteSessionRequest { name, tenant } = request.into_inner();
        let key = wanted_key(SessionRecord::KIND, &tenant, &name)?;
        let delete = self.shared.sessions.write_by(Actor::Client, move |draft| {
            if !draft.has_row(&key) {
                return Err(Fault::not_found(SessionRecord::KIND, &name));
            }
            draft.delete(&key);
            Ok(())
        });
        delete.await?;
        Ok(Response::new(wire::DeleteSessionResponse {}))
    }

    async fn delete_sessions(
        &self,
        request: Request<wire::DeleteSessionsRequest>,
    ) -> Result<Response<wire::DeleteSessionsResponse>, Status> {
        let filter = convert::session::filter_from_wire(request.into_inner().filter, now());
        let filter = filter.map_err(Fault::Invalid)?;
        let delete = self.shared.sessions.write_by(Actor::Client, move |draft| {
            let matching = draft.select(|record| filter.matches(&record.session));
            matching.iter().for_each(|record| draft.delete(&record.key));
            Ok(u32::try_from(matching.len()).unwrap_or(u32::MAX))
        });
        let (deleted, _revision) = delete.await?;
        Ok(Response::new(wire::DeleteSessionsResponse { deleted }))
    }

    async fn list_left_out_members(
        &self,
        request: Request<wire::ListLeftOutMembersRequest>,
    ) -> Result<Response<Self::ListLeftOutMembersStream>, Status> {
        let wire::ListLeftOutMembersRequest { name, tenant } = request.into_inner();
        let record = self.record(&tenant, &name).await?;
        let visible = self.shared.tenants.former_nodes(&record.session.tenant).await?;
        let left_out = self.shared.left_out.of(&record.session.id).await?.into_iter();
        let seen = left_out.map(move |one| one.seen(visible.as_deref().map(|nodes| &nodes.elements)));
        let messages = seen.flat_map(convert::session::left_out_to_wire);
        Ok(self.shared.sessions.respond(messages))
    }

    async fn get_session_status(
        &self,
        request: Request<wire::GetSessionStatusRequest>,
    ) -> Result<Response<wire::GetSessionStatusResponse>, Status> {
        let wire::GetSessionStatusRequest { name, tenant } = request.into_inner();
        let record = self.record(&tenant, &name).await?;
        let status = match record.final_status() {
            Some(status) => status.clone(),
            None => {
                let visible = self.shared.tenants.former_nodes(&record.session.tenant).await?;
                self.shared.registry.wait_for_mirror(&self.shared.components).await?;
                self.shared.status(&record.session, &visible)
            }
        };
        Ok(Response::new(wire::GetSessionStatusResponse { status: Some(status) }))
    }

    async fn save_session_status(
        &self,
        request: Request<wire::SaveSessionStatusRequest>,
    ) -> Result<Response<wire::SaveSessionStatusResponse>, Status> {
        let wire::SaveSessionStatusRequest { name, tenant } = request.into_inner();
        let record = self.record(&tenant, &name).await?;
        let visible = self.shared.tenants.former_nodes(&record.session.tenant).await?;
        self.shared.registry.wait_for_mirror(&self.shared.components).await?;
        let key = Arc::clone(&record.key);
        let shared = self.shared.clone();
        let save = self.shared.sessions.write(move |draft| {
            let record = draft.get(&key).ok_or_else(|| Fault::not_found(SessionRecord::KIND, &name))?;
            let status = shared.status(&record.session, &visible);
            draft.put(SessionRecord { saved_status: Some(status.clone()), ..Arc::unwrap_or_clone(record) });
            Ok(status)
        });
        let (status, _revision) = save.await?;
        Ok(Response::new(wire::SaveSessionStatusResponse { status: Some(status) }))
    }

    async fn cancel_session(
        &self,
        request: Request<wire::CancelSessionRequest>,
    ) -> Result<Response<wire::CancelSessionResponse>, Status> {
        let session = Some(self.cancel(request.into_inner()).await?);
        Ok(Response::new(wire::CancelSessionResponse { session }))
    }

    async fn pause_session(
        &self,
        request: Request<wire::PauseSessionRequest>,
    ) -> Result<Response<wire::PauseSessionResponse>, Status> {
        let session = Some(self.pause(request.into_inner()).await?);
        Ok(Response::new(wire::PauseSessionResponse { session }))
    }

    async fn resume_session(
        &self,
        request: Request<wire::ResumeSessionRequest>,
    ) -> Result<Response<wire::ResumeSessionResponse>, Status> {
        let session = Some(self.resume(request.into_inner()).await?);
        Ok(Response::new(wire::ResumeSessionResponse { session }))
    }

    async fn retry_session(
        &self,
        request: Request<wire::RetrySessionRequest>,
    ) -> Result<Response<wire::RetrySessionResponse>, Status> {
        let session = Some(self.retry(request.into_inner()).await?);
        Ok(Response::new(wire::RetrySessionResponse { session }))
    }

    async fn apply_staged(
        &self,
        request: Request<wire::ApplyStagedRequest>,
    ) -> Result<Response<wire::ApplyStagedResponse>, Status> {
        Ok(Response::new(self.staging.apply(request.into_inner()).await?))
    }
}

/// Whether a call created its session.
struct IsNew(bool);

impl SessionRpc {
    pub(crate) async fn record(&self, tenant: &str, name: &str) -> Result<Arc<SessionRecord>, Fault> {
        let key = wanted_key(SessionRecord::KIND, tenant, name)?;
        self.shared.sessions.fresh().await?;
        let found = self.shared.sessions.view().get(&key);
        found.ok_or_else(|| Fault::not_found(SessionRecord::KIND, name))
    }

    /// Creates the session of `wish`. A session that is retried already is not retried again: the session that does is
    /// returned.
    pub(crate) async fn create(&self, wish: NewSession) -> Result<wire::Session, Fault> {
        let SessionDraft { session: created, basis } = self.shared.draft(wish).await?;
        self.check(&created, &basis.template, &basis.options).await?;
        self.check_plan(&created).await?;
        self.shared.check_size(&self.peers, &created).await?;
        let record = SessionRecord::new(created);
        let insert = self.shared.sessions.write_by(Actor::Client, move |draft| {
            if let Some(retried) = &record.session.retry_of
                && let Some(retry) = draft.select(|other| other.session.retries(&retried.id)).first()
            {
                return Ok((convert::session::to_wire(&retry.session), IsNew(false)));
            }
            if let Some(taken) = draft.get(&record.key) {
                let name = taken.session.name.clone();
                return Err(Fault::AlreadyExists { kind: SessionRecord::KIND.into(), name });
            }
            let session = convert::session::to_wire(&record.session);
            draft.put(record);
            Ok((session, IsNew(true)))
        });
        let ((session, IsNew(is_new)), revision) = insert.await?;
        Ok(if is_new { wire::Session { revision, ..session } } else { session })
    }

    async fn update(&self, key: Arc<str>, name: String, patch: SessionPatch) -> Result<wire::Session, Fault> {
        let shared = self.shared.clone();
        let update = self.shared.sessions.write_by(Actor::Client, move |draft| {
            let record = draft.get(&key).ok_or_else(|| Fault::not_found(SessionRecord::KIND, &name))?;
            let record = Arc::unwrap_or_clone(record);
            let session = session::patch(record.session.clone(), patch)?;
            let ends = session.progress == Progress::Complete && session.progress != record.session.progress;
            let result = if ends { Some(shared.result(&session, None)) } else { session.result.clone() };
            let session = Session { result, ..session };
            let answer = convert::session::to_wire(&session);
            draft.put(record.with(session));
            Ok(answer)
        });
        let (answer, revision) = update.await?;
        Ok(wire::Session { revision, ..answer })
    }

    /// Rejects a session whose plan does not hold any more.
    async fn check_plan(&self, session: &Session) -> Result<(), Fault> {
        let Some(plan) = session.plan else { return Ok(()) };
        let refused = |reason| Fault::Locked { kind: PLAN.into(), name: plan.to_string(), reason };
        match change_since_plan(&self.shared, &self.peers, session).await {
            Ok(None) => Ok(()),
            Ok(Some(change)) => Err(refused(format!("it does not hold any more: {change}"))),
            Err(DependencyError::Retryable(outage)) => {
                Err(Fault::unavailable(outage.what.text(), outage.error))
            }
            Err(DependencyError::Fatal(reason) | DependencyError::Idle { error: reason, .. }) => {
                Err(refused(format!("it does not hold any more: {reason}")))
            }
        }
    }

    /// Rejects a template that the session cannot use, and logs warnings (BOS reference 7.1).
    async fn check(
        &self,
        session: &Session,
        template: &SessionTemplate,
        options: &Options,
    ) -> Result<(), Fault> {
        if names_nid(&session.limit) {
            let limit = &session.limit;
            tracing::warn!(
                session = session.name,
                limit,
                "session limit has numeric node ids, which match no node"
            );
        }
        let rules = Rules { options, compatibility: self.shared.compatibility };
        let warnings = self.lookup.findings(template, session.operation, rules).await;
        let warnings = warnings
            .map_err(|finding| Invalid::new("", format!("Session template fails check: {finding}")))?;
        for finding in warnings {
            tracing::warn!(session = session.name, %finding, "session template has warnings");
        }
        Ok(())
    }
}
