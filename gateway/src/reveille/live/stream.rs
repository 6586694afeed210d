//! A live stream on its way to its client.
//!
//! The stream has no queue: while its client does not read, nothing is taken of the watches behind it, and a watch that is
//! behind gets the newest state instead of every step. A client that keeps stalling loses its connection to the pace that
//! every answer has to be read at.

use std::{collections::HashSet, time::Duration};

use bytes::Bytes;
use chassis::{
    Fault,
    kinds::history::{COMPONENT, SEPARATOR, SESSION},
    store::ledger::ResumeToken,
};
use futures_util::{
    Stream, StreamExt,
    future::try_join_all,
    stream::{self, BoxStream, SelectAll, select_all},
};
use proto::{WatchBatch, component::Component, event::Event, insight::TimelineEntry, session::Session};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    place::LivePlace,
    shown::{EventChunk, GoneResource, LiveComponent, NamedSource},
    source::{LiveNews, LiveSource, SourceChange},
    wanted::LiveFilter,
};
use crate::{
    mesh::MeshHandle,
    reveille::{history::ShownEntry, sessions::ShownSession},
};

/// Time between two bookmarks: shorter than the patience of proxies.
const BOOKMARKS: Duration = Duration::from_secs(15);

/// Time that a client waits before it comes back, in milliseconds.
const RETRY: u32 = 2000;

/// Live stream of one client.
pub(super) struct LiveStream {
    filter: LiveFilter,
    changes: SelectAll<BoxStream<'static, Result<SourceChange, Fault>>>,
    /// Place after which a client resumes.
    place: LivePlace,
    /// Sources of records whose present state was delivered as a whole.
    synced: HashSet<&'static str>,
    /// Components that the client was shown, if it has to be told when they are no longer wanted.
    shown: HashSet<String>,
    /// Whether the client may have been shown components by an earlier stream.
    is_resumed: bool,
    next_bookmark: Instant,
    is_first: bool,
    shutdown: CancellationToken,
}

impl LiveStream {
    /// Begins a stream at a place.
    ///
    /// # Errors
    /// A service does not answer.
    pub(super) async fn begin(
        mesh: &MeshHandle,
        filter: LiveFilter,
        place: LivePlace,
    ) -> Result<Self, Fault> {
        let watches = filter.sources().into_iter().map(|source| {
            let (events, resume) = (filter.events_of(source), place.of(source));
            async move { source.watch(mesh, &events, resume).await }
        });
        let changes = select_all(try_join_all(watches).await?);
        let is_resumed = place.has(LiveSource::Components);
        Ok(Self {
            changes,
            is_resumed,
            shutdown: mesh.shutdown.clone(),
            filter,
            place,
            synced: HashSet::new(),
            shown: HashSet::new(),
            next_bookmark: Instant::now() + BOOKMARKS,
            is_first: true,
        })
    }

    /// Returns the chunks of the stream. The stream ends when a watch behind it breaks, or the process ends; the client
    /// comes back and resumes.
    pub(super) fn chunks(self) -> impl Stream<Item = Result<Bytes, Fault>> {
        stream::try_unfold(self, |mut live| async move {
            Ok(live.next().await?.map(|chunk| (chunk.into_bytes(), live)))
        })
    }

    async fn next(&mut self) -> Result<Option<EventChunk>, Fault> {
        if std::mem::take(&mut self.is_first) {
            let mut chunk = EventChunk::default();
            chunk.add_retry(RETRY);
            return Ok(Some(chunk));
        }
        loop {
            let change = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return Ok(None),
                change = self.changes.next() => change,
                () = tokio::time::sleep_until(self.next_bookmark) => return self.bookmark().map(Some),
            };
            let change = match change {
                Some(Ok(change)) => change,
                Some(Err(fault)) => {
                    tracing::debug!(%fault, "live stream ended");
                    return Ok(None);
                }
                None => return Ok(None),
            };
            let mut chunk = EventChunk::default();
            self.take(change, &mut chunk)?;
            if !chunk.is_empty() {
                self.place.text().into_iter().for_each(|place| chunk.add_place(&place));
                return Ok(Some(chunk));
            }
        }
    }

    /// Returns the event of an idle time, with the place up to which nothing else was wanted.
    fn bookmark(&mut self) -> Result<EventChunk, Fault> {
        self.next_bookmark = Instant::now() + BOOKMARKS;
        let mut chunk = EventChunk::default();
        chunk.add("bookmark", &json!({}))?;
        self.place.text().into_iter().for_each(|place| chunk.add_place(&place));
        Ok(chunk)
    }

    fn take(&mut self, change: SourceChange, chunk: &mut EventChunk) -> Result<(), Fault> {
        let SourceChange { source, incarnation, news } = change;
        let at = |revision| ResumeToken { incarnation, revision };
        match news {
            LiveNews::Components(batch) => {
                let (revision, synced) = (batch.revision, batch.synced);
                self.components(batch, chunk)?;
                self.delivered(source, at(revision), synced, chunk)
            }
            LiveNews::Sessions(batch) => {
                let (revision, synced) = (batch.revision, batch.synced);
                self.sessions(batch, chunk)?;
                self.delivered(source, at(revision), synced, chunk)
            }
            LiveNews::Events(events, revision) => {
                self.events(events, chunk)?;
                self.place.set(source, at(revision));
                Ok(())
            }
            LiveNews::Reset => {
                self.place.forget(source);
                // The client forgets what it was shown.
                self.is_resumed &= source != LiveSource::Components;
                chunk.add("reset", &NamedSource { resource: source.word() })
            }
        }
    }

    /// Notes how far a source of records was delivered. Before its present state is whole nothing can be resumed.
    fn delivered(
        &mut self,
        source: LiveSource,
        token: ResumeToken,
        is_synced: bool,
        chunk: &mut EventChunk,
    ) -> Result<(), Fault> {
        if is_synced && self.synced.insert(source.word()) {
            chunk.add("synced", &NamedSource { resource: source.word() })?;
        }
        if self.synced.contains(source.word()) {
            self.place.set(source, token);
        }
        Ok(())
    }

    fn components(&mut self, batch: WatchBatch<Component>, chunk: &mut EventChunk) -> Result<(), Fault> {
        let may_lose = self.filter.may_lose_components();
        for component in batch.changed {
            if self.filter.wants_component(&component) {
                if may_lose {
                    self.shown.insert(component.id.clone());
                }
                chunk.add("component", &LiveComponent::from(component))?;
            } else if may_lose && self.filter.is_about(&component.id) && self.was_shown(&component.id) {
                chunk.add("deselected", &gone_component(&component.id))?;
            }
        }
        for deletion in batch.deletions.iter().filter(|deletion| self.filter.is_about(&deletion.key)) {
            chunk.add("deleted", &gone_component(&deletion.key))?;
        }
        Ok(())
    }

    /// Returns whether the client may have been shown a component, and forgets that it was.
    fn was_shown(&mut self, id: &str) -> bool {
        let is_catching_up = self.is_resumed && !self.synced.contains(COMPONENT);
        self.shown.remove(id) || is_catching_up
    }

    fn sessions(&self, batch: WatchBatch<Session>, chunk: &mut EventChunk) -> Result<(), Fault> {
        for session in batch.changed.into_iter().filter(|session| self.filter.wants_session(session)) {
            chunk.add("session", &ShownSession::from(session))?;
        }
        for deletion in &batch.deletions {
            let (tenant, name) = deletion.key.rsplit_once(SEPARATOR).unwrap_or(("", &deletion.key));
            let of = Session { name: name.to_owned(), tenant: tenant.to_owned(), ..Session::default() };
            if self.filter.wants_session(&of) {
                chunk.add("deleted", &GoneResource { resource: SESSION, name, tenant })?;
            }
        }
        Ok(())
    }

    fn events(&self, events: Vec<Event>, chunk: &mut EventChunk) -> Result<(), Fault> {
        for event in events.into_iter().filter(|event| self.filter.wants_event(event)) {
            let entry = TimelineEntry { event: Some(event), origin: None };
            chunk.add("event", &ShownEntry::from(entry))?;
        }
        Ok(())
    }
}

fn gone_component(id: &str) -> GoneResource<'_> {
    GoneResource { resource: COMPONENT, name: id, tenant: "" }
}
