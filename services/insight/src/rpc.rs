//! The explain service.

use chassis::{Fault, process::clock, store::resource::Resource};
use domain::{
    boot::{
        component::{Component, PauseHolder},
        explanation::{BatchSight, SiteTools, explain_session},
    },
    core::id::Tenant,
};
use proto::insight::{
    ExplainComponentRequest, ExplainComponentResponse, ExplainSessionRequest, ExplainSessionResponse,
    explain_service_server::ExplainService,
};
use tonic::{Request, Response, Status};

use crate::{
    convert, members,
    mirrors::InsightMirrors,
    peers::InsightPeers,
    traces::{NodeTraces, UnansweredParts},
};

/// Name of the session manager in answers.
const SESSIONS: &str = "session manager";

pub(crate) struct ExplainRpc {
    pub(crate) mirrors: InsightMirrors,
    pub(crate) peers: InsightPeers,
    pub(crate) tools: SiteTools,
}

impl ExplainRpc {
    /// Returns the batch of a component that waits for it; `None`: it waits for none, or the session cannot be read.
    async fn batch(&self, component: &Component, unanswered: &mut UnansweredParts) -> Option<BatchSight> {
        let mark = component.wish.pause.as_ref()?;
        if mark.holder != PauseHolder::Rollout {
            return None;
        }
        let tenant = component.wish.session_tenant.as_ref().map(Tenant::as_str).unwrap_or_default();
        let answer = self.peers.session(component.session_name(), tenant).await;
        let (session, rollout) = unanswered.note(SESSIONS, answer)?;
        convert::batch(&session, rollout, component.id.as_str())
    }

    /// Returns the mirrors if they are complete: without the records every component would be unknown.
    fn complete(&self) -> Result<&InsightMirrors, Fault> {
        match self.mirrors.lacking() {
            None => Ok(&self.mirrors),
            Some(kind) => Err(Fault::unavailable("evidence", format!("{kind} is not copied yet"))),
        }
    }
}

#[tonic::async_trait]
impl ExplainService for ExplainRpc {
    async fn explain_component(
        &self,
        request: Request<ExplainComponentRequest>,
    ) -> Result<Response<ExplainComponentResponse>, Status> {
        let id = request.into_inner().component_id;
        let mirrors = self.complete()?;
        let component = mirrors.component(&id).ok_or_else(|| Fault::not_found(Component::KIND, &id))?;
        let mut unanswered = UnansweredParts::default();
        let traces = NodeTraces::read(&self.peers, &[id], &mut unanswered).await;
        let mut traces = traces.into_values().next().unwrap_or(NodeTraces::UNREAD);
        traces.batch = self.batch(&component, &mut unanswered).await;
        let now = clock::now();
        let explanation = mirrors.explain(&component, &traces, self.tools, now);
        let explanation = Some(convert::explanation(&explanation, unanswered.0, now));
        Ok(Response::new(ExplainComponentResponse { explanation }))
    }

    async fn explain_session(
        &self,
        request: Request<ExplainSessionRequest>,
    ) -> Result<Response<ExplainSessionResponse>, Status> {
        let ExplainSessionRequest { name, tenant } = request.into_inner();
        let mirrors = self.complete()?;
        let (session, left_out) =
            tokio::join!(self.peers.session(&name, &tenant), self.peers.left_out(&name, &tenant));
        let (session, rollout) = session?;
        let mut unanswered = UnansweredParts::default();
        let left_out = unanswered.note(SESSIONS, left_out);
        let failed = members::failed(&session, mirrors);
        let traces = NodeTraces::read(&self.peers, &failed, &mut unanswered).await;
        let now = clock::now();
        let members = members::explain(&session, mirrors, &traces, self.tools, now);
        let evidence = convert::session_evidence(session, rollout, members, left_out, self.tools);
        let explanation = explain_session(&evidence);
        let explanation = Some(convert::explanation(&explanation, unanswered.0, now));
        Ok(Response::new(ExplainSessionResponse { explanation }))
    }
}
