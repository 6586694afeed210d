//! Sources of live changes: watches of records, and of events.

use chassis::{
    Fault,
    kinds::history::{COMPONENT, SESSION},
    mesh::channel::LARGEST_MESSAGE,
    store::ledger::{ResumeToken, named_incarnation},
};
use futures_util::{
    StreamExt,
    stream::{BoxStream, once},
};
use proto::{
    WatchBatch,
    component::{Component, WatchComponentsRequest},
    event::{Event, EventFilter, WatchEventsRequest},
    session::{Session, WatchSessionsRequest},
};
use tonic::Status;
use uuid::Uuid;

use crate::{
    http::call::fault,
    mesh::{EventClient, MeshHandle, REGISTRY, SESSIONS},
};

/// Source of live changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LiveSource {
    Components,
    Sessions,
    ComponentEvents,
    SessionEvents,
}

/// Changes from a source.
pub(super) enum LiveNews {
    Components(WatchBatch<Component>),
    Sessions(WatchBatch<Session>),
    Events(Vec<Event>, u64),
    /// The source cannot be resumed, and begins from the start.
    Reset,
}

/// Changes of a source, with the incarnation of their revisions.
pub(super) struct SourceChange {
    pub(super) source: LiveSource,
    pub(super) incarnation: Option<Uuid>,
    pub(super) news: LiveNews,
}

type SourceStream = BoxStream<'static, Result<SourceChange, Fault>>;

impl LiveSource {
    /// Every source.
    pub(super) const ALL: [Self; 4] =
        [Self::Components, Self::Sessions, Self::ComponentEvents, Self::SessionEvents];

    /// Returns the word in places.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Components => COMPONENT,
            Self::Sessions => SESSION,
            Self::ComponentEvents => "component_event",
            Self::SessionEvents => "session_event",
        }
    }

    /// Returns the source of that word.
    pub(super) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.word() == word)
    }

    fn part(self) -> &'static str {
        match self {
            Self::Components | Self::ComponentEvents => REGISTRY,
            Self::Sessions | Self::SessionEvents => SESSIONS,
        }
    }

    /// Begins the watch of the source after `resume`, of events by `filter`; one that cannot be resumed begins from the start.
    ///
    /// # Errors
    /// The service does not answer.
    pub(super) async fn watch(
        self,
        mesh: &MeshHandle,
        filter: &EventFilter,
        resume: ResumeToken,
    ) -> Result<SourceStream, Fault> {
        match self.watch_after(mesh, filter, resume).await {
            Err(Fault::ResumeExpired(_)) => {
                let fresh = self.watch_after(mesh, filter, ResumeToken::default()).await?;
                let reset = SourceChange { source: self, incarnation: None, news: LiveNews::Reset };
                Ok(once(async move { Ok(reset) }).chain(fresh).boxed())
            }
            begun => begun,
        }
    }

    async fn watch_after(
        self,
        mesh: &MeshHandle,
        filter: &EventFilter,
        resume: ResumeToken,
    ) -> Result<SourceStream, Fault> {
        let begun = match self {
            Self::Components => {
                let request = WatchComponentsRequest { resume_revision: resume.revision };
                let answer = mesh.components.clone().watch_components(resume.request(request)).await;
                answer.map(|answer| self.changes(answer, |batch| LiveNews::Components(batch.into())))
            }
            Self::Sessions => {
                let request = WatchSessionsRequest { resume_revision: resume.revision };
                let answer = mesh.sessions.clone().watch_sessions(resume.request(request)).await;
                answer.map(|answer| self.changes(answer, |batch| LiveNews::Sessions(batch.into())))
            }
            Self::ComponentEvents => self.events(&mesh.component_events, filter, resume).await,
            Self::SessionEvents => self.events(&mesh.session_events, filter, resume).await,
        };
        begun.map_err(|status| fault(self.part(), status))
    }

    async fn events(
        self,
        client: &EventClient,
        filter: &EventFilter,
        resume: ResumeToken,
    ) -> Result<SourceStream, Status> {
        let request = WatchEventsRequest {
            filter: Some(filter.clone()),
            resume_revision: Some(resume.revision).filter(|revision| *revision > 0),
        };
        let mut client = client.clone().max_decoding_message_size(LARGEST_MESSAGE);
        let answer = client.watch_events(resume.request(request)).await?;
        Ok(self.changes(answer, |answer| LiveNews::Events(answer.events, answer.revision)))
    }

    /// Returns the messages of an answer as changes of this source, and a fault when they end.
    fn changes<M: Send + 'static>(
        self,
        answer: tonic::Response<tonic::Streaming<M>>,
        news: fn(M) -> LiveNews,
    ) -> SourceStream {
        let incarnation = named_incarnation(answer.metadata());
        let changes = answer.into_inner().map(move |message| match message {
            Ok(message) => Ok(SourceChange { source: self, incarnation, news: news(message) }),
            Err(status) => Err(fault(self.part(), status)),
        });
        // A stream that went on without one of its watches would look complete.
        let end = once(async move { Err(Fault::unavailable(self.part(), "the watch ended")) });
        changes.chain(end).boxed()
    }
}
