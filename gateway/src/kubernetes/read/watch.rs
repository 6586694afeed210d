//! Watches.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::StatusCode;
use proto::event::WatchEventsResponse;
use serde_json::Value;
use tokio::{sync::watch::Receiver, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::Streaming;

use super::{
    super::{
        answer::json_answer,
        face::{ApiRequest, KubernetesFace, ObjectSelection},
        failure::{ApiFailure, FailureCause},
        kinds::{ObjectSource, ResourceKind},
        records::EventReader,
        store::{CachedChange, CachedRecord, RecordCache, WatchPosition, read_version},
    },
    render::ShownForm,
};

/// Time between two bookmarks.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// Most lines that are rendered at a time.
const LINES: usize = 64;

/// Time after which a watch ends that sets no time, in seconds.
const LONGEST: u64 = 45 * 60;

/// Answers with changes as they happen.
///
/// # Errors
/// When the request is wrong. A version that is too old is an event.
pub(crate) async fn watch(face: &KubernetesFace, request: &ApiRequest) -> Result<Response, ApiFailure> {
    let kind = request.path.kind;
    let options = WatchOptions::read(face, request)?;
    let body = match kind.source {
        ObjectSource::Events => {
            let begun = EventWatch::begin(face, options, read_version(&version_of(request))?).await;
            begun.map(|watch| Body::from_stream(watch.lines()))
        }
        ObjectSource::Nowhere | ObjectSource::Question => Ok(Body::from_stream(silence(options))),
        ObjectSource::Hosts | ObjectSource::Documents(_) | ObjectSource::Secrets => {
            let begun = RecordWatch::begin(face, request, options).await;
            begun.map(|watch| Body::from_stream(watch.lines()))
        }
    };
    match body {
        Ok(body) => Ok(json_answer(StatusCode::OK, body)),
        // Clients expect this refusal as an event.
        Err(failure) if failure.code == StatusCode::GONE => {
            Ok(json_answer(StatusCode::OK, line("ERROR", failure.status())))
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the watch of a kind that has no objects.
fn silence(options: WatchOptions) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let WatchOptions { kind, form, marks_initial, end, shutdown, .. } = options;
    let mark = marks_initial.then(|| Ok(line("BOOKMARK", form.bookmark(kind, 1, true))));
    let silence = stream::once(async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep_until(end) => {}
        }
        Ok(Bytes::new())
    });
    stream::iter(mark).chain(silence)
}

fn version_of(request: &ApiRequest) -> String {
    request.parameters.text("resourceVersion").unwrap_or_default().to_owned()
}

fn line(kind: &str, object: Value) -> Bytes {
    // Clients read the type first.
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into()
}

/// Appends the line of an event about a whole object, which is neither parsed nor copied.
fn append_line(lines: &mut Vec<u8>, kind: &str, record: &CachedRecord) {
    lines.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
    record.append_to(lines);
    lines.extend_from_slice(b"}\n");
}

/// Wishes of a watcher.
struct WatchOptions {
    kind: &'static ResourceKind,
    namespace: Option<String>,
    selection: ObjectSelection,
    form: ShownForm,
    /// Whether bookmarks are wanted.
    bookmarks: bool,
    /// Whether the end of the present objects is to be marked.
    marks_initial: bool,
    end: Instant,
    shutdown: CancellationToken,
}

impl WatchOptions {
    fn read(face: &KubernetesFace, request: &ApiRequest) -> Result<Self, ApiFailure> {
        let parameters = &request.parameters;
        let seconds = parameters.number("timeoutSeconds")?.unwrap_or(LONGEST).clamp(1, 24 * 3600);
        let bookmarks = parameters.is_set("allowWatchBookmarks");
        let marks_initial = parameters.is_set("sendInitialEvents");
        let is_list = parameters.text("resourceVersionMatch") == Some("NotOlderThan");
        if marks_initial && !(bookmarks && is_list) {
            let why =
                "sendInitialEvents needs allowWatchBookmarks=true and resourceVersionMatch=NotOlderThan";
            let cause = FailureCause::new("FieldValueForbidden", "sendInitialEvents", why);
            return Err(ApiFailure::invalid(request.path.kind, "", vec![cause]));
        }
        Ok(Self {
            kind: request.path.kind,
            namespace: request.path.namespace.clone(),
            selection: ObjectSelection::read(request)?,
            form: ShownForm::read(&request.headers, parameters)?,
            bookmarks,
            marks_initial,
            end: Instant::now() + Duration::from_secs(seconds),
            shutdown: face.shutdown.clone(),
        })
    }

    fn wants(&self, record: &CachedRecord) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| record.namespace() == namespace)
            && self.selection.matches(record)
    }
}

/// Line that waits to be sent.
enum WatchLine {
    /// Event of that kind about a record, at a version. It is rendered when the client takes it, so that a crowd of
    /// watchers shares the records that wait.
    Record(&'static str, Arc<CachedRecord>, u64),
    Text(Bytes),
}

/// Watch of records, from a copy of them.
struct RecordWatch {
    options: WatchOptions,
    cache: Arc<RecordCache>,
    position: WatchPosition,
    advances: Receiver<u64>,
    /// Lines to be sent, the next one first.
    ready: VecDeque<WatchLine>,
    /// Version up to which everything was sent.
    version: u64,
    next_bookmark: Instant,
    /// Whether no object was sent yet.
    is_first: bool,
    is_over: bool,
}

impl RecordWatch {
    async fn begin(
        face: &KubernetesFace,
        request: &ApiRequest,
        options: WatchOptions,
    ) -> Result<Self, ApiFailure> {
        let cache = Arc::clone(face.cache(options.kind));
        let asked = read_version(&version_of(request))?;
        let is_initial = asked == 0 || options.marks_initial;
        if options.marks_initial && asked == 0 {
            face.catch_up(options.kind).await?;
        }
        cache.reach(asked).await?;
        if !is_initial {
            let position = cache.position_after(asked)?;
            return Ok(Self::at(options, cache, position, asked));
        }
        let snapshot = cache.snapshot(options.namespace.as_deref(), None)?;
        let mut watch = Self::at(options, cache, snapshot.position, snapshot.version);
        for record in &snapshot.records {
            if watch.options.wants(record) {
                watch.push("ADDED", Arc::clone(record), record.version);
            }
        }
        if watch.options.marks_initial {
            let bookmark = watch.options.form.bookmark(watch.options.kind, snapshot.version, true);
            watch.ready.push_back(WatchLine::Text(line("BOOKMARK", bookmark)));
        }
        Ok(watch)
    }

    fn at(options: WatchOptions, cache: Arc<RecordCache>, position: WatchPosition, version: u64) -> Self {
        let mut advances = cache.advances();
        // The copy may have advanced since the place was found.
        advances.mark_changed();
        Self {
            advances,
            options,
            cache,
            position,
            ready: VecDeque::new(),
            version,
            next_bookmark: Instant::now() + BOOKMARKS,
            is_first: true,
            is_over: false,
        }
    }

    fn lines(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut watch| async move {
            let line = watch.next().await?;
            Some((Ok(line), watch))
        })
    }

    /// Returns the next lines, or the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.ready.is_empty() {
                let waiting: Vec<_> = self.ready.drain(..self.ready.len().min(LINES)).collect();
                let mut lines = Vec::new();
                waiting.into_iter().for_each(|line| self.render(line, &mut lines));
                return Some(lines.into());
            }
            if self.is_over {
                return None;
            }
            tokio::select! {
                biased;
                () = self.options.shutdown.cancelled() => self.finish(),
                () = tokio::time::sleep_until(self.options.end) => self.finish(),
                Ok(()) = self.advances.changed() => self.collect(),
                () = tokio::time::sleep_until(self.next_bookmark), if self.options.bookmarks => self.bookmark(),
            }
        }
    }

    fn finish(&mut self) {
        self.collect();
        if self.options.bookmarks {
            self.bookmark();
        }
        self.is_over = true;
    }

    fn bookmark(&mut self) {
        self.next_bookmark = Instant::now() + BOOKMARKS;
        let bookmark = self.options.form.bookmark(self.options.kind, self.version, false);
        self.ready.push_back(WatchLine::Text(line("BOOKMARK", bookmark)));
    }

    fn collect(&mut self) {
        match self.cache.changes(self.position) {
            Ok((changes, position, version)) => {
                self.position = position;
                self.version = version;
                changes.iter().for_each(|change| self.note(change));
            }
            Err(failure) => {
                self.ready.push_back(WatchLine::Text(line("ERROR", failure.status())));
                self.is_over = true;
            }
        }
    }

    /// Sends a change as the selection sees it.
    fn note(&mut self, change: &CachedChange) {
        let before = change.before.as_ref().filter(|record| self.options.wants(record)).cloned();
        let after = change.after.as_ref().filter(|record| self.options.wants(record)).cloned();
        match (before, after) {
            (None, None) => {}
            (None, Some(after)) => self.push("ADDED", after, change.version),
            (Some(_), Some(after)) => self.push("MODIFIED", after, change.version),
            (Some(before), None) => self.push("DELETED", before, change.version),
        }
    }

    fn push(&mut self, kind: &'static str, record: Arc<CachedRecord>, version: u64) {
        self.ready.push_back(WatchLine::Record(kind, record, version));
    }

    fn render(&mut self, waiting: WatchLine, lines: &mut Vec<u8>) {
        match waiting {
            WatchLine::Text(text) => lines.extend_from_slice(&text),
            WatchLine::Record(kind, record, version) => {
                let is_first = std::mem::take(&mut self.is_first);
                if self.options.form.is_whole() && record.version == version {
                    return append_line(lines, kind, &record);
                }
                let object = record.object_at(version);
                let shown = self.options.form.watched(self.options.kind, object, is_first);
                lines.extend_from_slice(&line(kind, shown));
            }
        }
    }
}

/// Watch of durable events.
struct EventWatch {
    options: WatchOptions,
    reader: EventReader,
    answers: Streaming<WatchEventsResponse>,
    ready: VecDeque<Bytes>,
    is_first: bool,
}

impl EventWatch {
    async fn begin(face: &KubernetesFace, options: WatchOptions, asked: u64) -> Result<Self, ApiFailure> {
        let reader = face.events.clone();
        let namespace = options.namespace.as_deref();
        let mut ready = VecDeque::new();
        let mut version = asked;
        let mut is_first = true;
        if asked == 0 || options.marks_initial {
            let list = reader.list(namespace, &options.selection.fields).await?;
            version = list.version;
            for event in list.events {
                ready.push_back(line("ADDED", options.form.watched(options.kind, event, is_first)));
                is_first = false;
            }
        }
        if options.marks_initial {
            ready.push_back(line("BOOKMARK", options.form.bookmark(options.kind, version, true)));
        }
        let answers = reader.watch(namespace, &options.selection.fields, version).await?;
        Ok(Self { options, reader, answers, ready, is_first })
    }

    fn lines(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut watch| async move {
            let line = watch.next().await?;
            Some((Ok(line), watch))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            let answer = tokio::select! {
                biased;
                () = self.options.shutdown.cancelled() => return None,
                () = tokio::time::sleep_until(self.options.end) => return None,
                answer = self.answers.message() => answer.ok()??,
            };
            let namespace = self.options.namespace.as_deref();
            for event in self.reader.selected(answer, namespace, &self.options.selection.fields) {
                self.ready.push_back(line(
                    "ADDED",
                    self.options.form.watched(self.options.kind, event, self.is_first),
                ));
                self.is_first = false;
            }
        }
    }
}
