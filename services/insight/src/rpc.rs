//! The explain service.

use std::{collections::HashMap, time::Duration};

use chassis::{Fault, process::clock, store::resource::Resource};
use domain::{
    boot::{
        component::{Component, PauseHolder},
        explanation::{BatchSight, HolderSight, SiteTools, explain_session},
    },
    core::id::Tenant,
    host::explanation::explain_host,
};
use proto::insight::{
    ExplainComponentRequest, ExplainComponentResponse, ExplainDeviceRequest, ExplainDeviceResponse,
    ExplainHostRequest, ExplainHostResponse, ExplainSessionRequest, ExplainSessionResponse,
    explain_service_server::ExplainService,
};
use tonic::{Request, Response, Status};

use crate::{
    convert, members,
    mirrors::InsightMirrors,
    peers::InsightPeers,
    records::RecordPeers,
    traces::{NodeTraces, UnansweredParts},
};

/// Wait for records that are not copied yet. A start takes less, and a longer outage is worth an error.
const PATIENCE: Duration = Duration::from_secs(2);

/// Name of the session manager in answers.
const SESSIONS: &str = "session manager";

/// Name in answers of the service that the power controller asks.
const POWER_SERVICE: &str = "power service";

pub(crate) struct ExplainRpc {
    pub(crate) mirrors: InsightMirrors,
    pub(crate) peers: InsightPeers,
    pub(crate) records: RecordPeers,
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

    /// Returns the transitions that hold those of the components whose power is waited for, by component. There are none if
    /// the power service does not answer.
    async fn holders(
        &self,
        mut ids: Vec<String>,
        unanswered: &mut UnansweredParts,
    ) -> HashMap<String, HolderSight> {
        ids.retain(|id| self.mirrors.component(id).is_some_and(|one| self.mirrors.waits_for_power(&one)));
        if ids.is_empty() {
            return HashMap::new();
        }
        unanswered.note(POWER_SERVICE, self.peers.holders(ids).await).unwrap_or_default()
    }

    /// Returns the mirrors once they are complete, which takes a moment after a start: without the records every component
    /// would be unknown.
    async fn complete(&self) -> Result<&InsightMirrors, Fault> {
        // Who asks learns below which kind is missing.
        let _late = tokio::time::timeout(PATIENCE, self.mirrors.subjects_reached()).await;
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
        let mirrors = self.complete().await?;
        let component = mirrors.component(&id).ok_or_else(|| Fault::not_found(Component::KIND, &id))?;
        let mut unanswered = UnansweredParts::default();
        let traces = NodeTraces::read(&self.peers, &[id], &mut unanswered).await;
        let mut traces = traces.into_values().next().unwrap_or(NodeTraces::UNREAD);
        traces.batch = self.batch(&component, &mut unanswered).await;
        let mut holders = self.holders(vec![component.id.as_str().to_owned()], &mut unanswered).await;
        traces.holder = holders.remove(component.id.as_str());
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
        let mirrors = self.complete().await?;
        let (session, left_out) =
            tokio::join!(self.peers.session(&name, &tenant), self.peers.left_out(&name, &tenant));
        let (session, rollout) = session?;
        let mut unanswered = UnansweredParts::default();
        let left_out = unanswered.note(SESSIONS, left_out);
        let failed = members::failed(&session, mirrors);
        let mut traces = NodeTraces::read(&self.peers, &failed, &mut unanswered).await;
        for (id, holder) in self.holders(session.components.clone(), &mut unanswered).await {
            traces.entry(id).or_insert(NodeTraces::UNREAD).holder = Some(holder);
        }
        let now = clock::now();
        let members = members::explain(&session, mirrors, &traces, self.tools, now);
        let evidence = convert::session_evidence(session, rollout, members, left_out, self.tools);
        let explanation = explain_session(&evidence);
        let explanation = Some(convert::explanation(&explanation, unanswered.0, now));
        Ok(Response::new(ExplainSessionResponse { explanation }))
    }

    async fn explain_host(
        &self,
        request: Request<ExplainHostRequest>,
    ) -> Result<Response<ExplainHostResponse>, Status> {
        let ExplainHostRequest { namespace, name } = request.into_inner();
        let host = self.records.host(namespace, name).await?;
        let explanation = convert::host::explanation(&explain_host(&host), Vec::new(), clock::now());
        Ok(Response::new(ExplainHostResponse { explanation: Some(explanation) }))
    }

    async fn explain_device(
        &self,
        request: Request<ExplainDeviceRequest>,
    ) -> Result<Response<ExplainDeviceResponse>, Status> {
        let name = request.into_inner().name;
        let mut unanswered = UnansweredParts::default();
        let subject = self.records.device(&name, &mut unanswered).await?;
        let now = clock::now();
        let explanation = convert::device::explanation(&subject.explain(now), unanswered.0, now);
        Ok(Response::new(ExplainDeviceResponse { explanation: Some(explanation) }))
    }
}
