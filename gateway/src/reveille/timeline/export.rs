//! The timeline as lines of JSON, page by page, so that it is never in memory as a whole.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use chassis::Fault;
use futures_util::{Stream, stream};
use http::{HeaderValue, header::CONTENT_TYPE};
use proto::insight::{ListTimelineRequest, ListTimelineResponse, TimelineEntry};

use super::wanted::WantedEntries;
use crate::{
    mesh::MeshHandle,
    reveille::history::{self, ShownEntry},
};

/// Media type of lines of JSON.
pub(super) const MEDIA_TYPE: &str = "application/x-ndjson";

/// Entries of a page: some hundred kilobytes.
const PAGE: u32 = 250;

/// Answers with the wanted entries, one a line: from the newest to the oldest, and after a place from the oldest to the
/// newest.
///
/// # Errors
/// The first page is refused. A later failure breaks the answer off, which clients notice by the missing end.
pub(super) async fn lines(mesh: MeshHandle, wanted: WantedEntries) -> Result<Response, Fault> {
    let WantedEntries { filter, limit, before, after } = wanted;
    let request = ListTimelineRequest { filter: Some(filter), page_size: PAGE, before, after };
    let page = history::page(&mesh, request.clone()).await?;
    let export = TimelineExport { mesh, request, left: limit, page: Some(page) };
    let headers = [(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))];
    Ok((headers, Body::from_stream(export.chunks())).into_response())
}

/// Export on its way to the client.
struct TimelineExport {
    mesh: MeshHandle,
    request: ListTimelineRequest,
    /// Entries that are still wanted; `None`: all.
    left: Option<u32>,
    /// Page that was received; `None`: the next one is to be asked for.
    page: Option<ListTimelineResponse>,
}

impl TimelineExport {
    fn chunks(self) -> impl Stream<Item = Result<Bytes, Fault>> {
        stream::try_unfold(Some(self), |export| async move {
            let Some(export) = export else { return Ok(None) };
            export.step().await.inspect_err(|error| tracing::warn!(%error, "export broken off")).map(Some)
        })
    }

    /// Returns the lines of the next page, and the export unless the page is the last.
    async fn step(mut self) -> Result<(Bytes, Option<Self>), Fault> {
        let page = match self.page.take() {
            Some(page) => page,
            None => history::page(&self.mesh, self.request.clone()).await?,
        };
        let is_forward = !self.request.after.is_empty();
        let mut entries = page.entries;
        let place = if is_forward { &mut self.request.after } else { &mut self.request.before };
        *place = if is_forward { page.newer } else { page.older };
        let mut is_over = if is_forward { entries.is_empty() } else { place.is_empty() };
        if is_forward {
            entries.reverse();
        }
        if let Some(left) = &mut self.left {
            entries.truncate(*left as usize);
            *left -= u32::try_from(entries.len()).unwrap_or(*left);
            is_over |= *left == 0;
        }
        Ok((render(entries)?, (!is_over).then_some(self)))
    }
}

fn render(entries: Vec<TimelineEntry>) -> Result<Bytes, Fault> {
    let mut lines = Vec::new();
    for entry in entries {
        let written = serde_json::to_writer(&mut lines, &ShownEntry::from(entry));
        written.map_err(|error| Fault::Internal(error.to_string()))?;
        lines.push(b'\n');
    }
    Ok(lines.into())
}
