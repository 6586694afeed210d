//! The API of a registry as any client meets it, in the terms of the history.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::BoxStream};
use integration_tests::PATIENCE;
use proto::component::{
    ActualState, AssignSessionRequest, Assignment, BootArtifacts, Component, DeleteComponentRequest,
    ListComponentsRequest, PatchComponentsRequest, PatchEach, PatchMany, PutComponentsRequest,
    WatchComponentsRequest, WatchComponentsResponse, component_service_client::ComponentServiceClient,
    patch_components_request::Selection, report_service_client::ReportServiceClient,
};
use tokio::time::timeout;
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};

use crate::history::{ComponentEvent, ERROR, Key, REPORT, SESSION, WriteChange};

/// Largest message: some thousand components.
const LARGEST: usize = 64 << 20;

/// Batches of a watch as they come.
pub type Batches = BoxStream<'static, Result<WatchComponentsResponse, Status>>;

/// Way of requesting a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCall {
    Put,
    PatchEach,
    PatchMany,
    Assign,
    Delete,
}

/// A connection to one registry.
#[derive(Clone)]
pub struct RegistryClient {
    components: ComponentServiceClient<Channel>,
    reports: ReportServiceClient<Channel>,
}

impl RegistryClient {
    /// Connects when it is first used. A stream that is not read takes about `window` bytes.
    pub fn new(url: &str, window: u32) -> Self {
        let endpoint = Endpoint::from_shared(url.to_owned()).unwrap();
        let channel = endpoint
            .connect_timeout(Duration::from_secs(3))
            .tcp_nodelay(true)
            .initial_stream_window_size(window)
            .connect_lazy();
        Self {
            components: ComponentServiceClient::new(channel.clone()).max_decoding_message_size(LARGEST),
            reports: ReportServiceClient::new(channel),
        }
    }

    /// Returns all components, and the revision of the list; `None` when there are none.
    pub async fn list(&self) -> Result<Option<(Vec<ComponentEvent>, u64)>, Status> {
        let mut pages =
            self.components.clone().list_components(ListComponentsRequest::default()).await?.into_inner();
        let mut listed = None;
        while let Some(page) = pages.message().await? {
            let (events, _) = listed.get_or_insert_with(|| (Vec::new(), page.revision));
            events.extend(page.components.into_iter().map(event));
        }
        Ok(listed)
    }

    /// Watches for changes after a revision.
    pub async fn watch(&self, from: u64) -> Result<Batches, Status> {
        let request = WatchComponentsRequest { resume_revision: from };
        Ok(self.components.clone().watch_components(request).await?.into_inner().boxed())
    }

    /// Writes, and returns the changed components and the revision that includes the write, if the answer names one.
    pub async fn write(
        &self,
        call: WriteCall,
        keys: &[Key],
        change: &WriteChange,
    ) -> Result<(Vec<Key>, Option<u64>), Status> {
        let silent = |_| Err(Status::deadline_exceeded("no answer"));
        timeout(PATIENCE, self.ask(call, keys, change)).await.unwrap_or_else(silent)
    }

    async fn ask(
        &self,
        call: WriteCall,
        keys: &[Key],
        change: &WriteChange,
    ) -> Result<(Vec<Key>, Option<u64>), Status> {
        let mut components = self.components.clone();
        let each = || keys.iter().map(|key| component(key, change)).collect();
        let stored = match call {
            WriteCall::Put => {
                let request = PutComponentsRequest { components: each(), ..Default::default() };
                components.put_components(request).await?.into_inner().components
            }
            WriteCall::PatchEach => {
                let selection = Selection::Each(PatchEach { patches: each() });
                let request = PatchComponentsRequest { selection: Some(selection), ..Default::default() };
                components.patch_components(request).await?.into_inner().components
            }
            WriteCall::PatchMany => {
                let many =
                    PatchMany { patch: Some(component("", change)), ids: ids(keys), ..Default::default() };
                let selection = Some(Selection::Many(many));
                let request = PatchComponentsRequest { selection, skip_bad_ids: true, ..Default::default() };
                components.patch_components(request).await?.into_inner().components
            }
            WriteCall::Assign => return self.assign(keys, change).await,
            WriteCall::Delete => {
                let request = DeleteComponentRequest { id: keys[0].to_string(), ..Default::default() };
                components.delete_component(request).await?;
                return Ok((keys.to_vec(), None));
            }
        };
        Ok((stored.into_iter().map(|component| component.id.into()).collect(), None))
    }

    async fn assign(&self, keys: &[Key], change: &WriteChange) -> Result<(Vec<Key>, Option<u64>), Status> {
        let session = change.sets(SESSION).flatten().unwrap_or_default().to_owned();
        let assignment = Assignment {
            ids: ids(keys),
            boot_artifacts: Some(artifacts("kernel of a session")),
            ..Default::default()
        };
        let request = AssignSessionRequest {
            // Ids sort by when their sessions began.
            assignment_id: format!("{:0>12}", session.trim_start_matches('w')),
            session,
            assignments: vec![assignment],
            ..Default::default()
        };
        let answer = self.reports.clone().assign_session(request).await?.into_inner();
        Ok((answer.assigned_ids.into_iter().map(Key::from).collect(), Some(answer.revision)))
    }
}

/// Returns whether the status of a failed call rules out any effect.
pub fn has_no_effect(status: &Status) -> bool {
    matches!(status.code(), Code::NotFound | Code::InvalidArgument | Code::FailedPrecondition)
}

/// Returns whether a watch has to start over.
pub fn is_expired(status: &Status) -> bool {
    use tonic_types::StatusExt;
    let details = status.get_error_details();
    details.error_info().is_some_and(|info| info.reason == "RESUME_TOKEN_EXPIRED")
}

/// A component of the wire as a change.
pub fn event(component: Component) -> ComponentEvent {
    let text = |text: Option<String>| Arc::from(text.unwrap_or_default());
    let report = component.actual_state.and_then(|actual| actual.boot_artifacts?.kernel);
    let lanes = [text(component.error), text(report), text(component.session)];
    ComponentEvent { key: component.id.into(), revision: component.revision, lanes: Some(lanes) }
}

/// The record or patch that makes a change.
fn component(key: &str, change: &WriteChange) -> Component {
    let text = |lane| change.sets(lane).flatten().map(str::to_owned);
    let report = text(REPORT).filter(|report| !report.is_empty());
    let actual_state =
        report.map(|kernel| ActualState { boot_artifacts: Some(artifacts(&kernel)), ..Default::default() });
    let session = text(SESSION).filter(|session| !session.is_empty());
    Component { id: key.to_owned(), error: text(ERROR), actual_state, session, ..Default::default() }
}

fn artifacts(kernel: &str) -> BootArtifacts {
    BootArtifacts { kernel: Some(kernel.to_owned()), ..Default::default() }
}

fn ids(keys: &[Key]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}
