//! Timeline: the events of all services as one history, with the sessions behind them.

mod clients;
mod cursor;
mod merge;
mod origin;
mod wanted;

use std::time::Duration;

use futures_util::future::try_join_all;
use proto::insight::{ListTimelineRequest, ListTimelineResponse, timeline_service_server::TimelineService};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

pub(crate) use self::clients::HistoryClients;
use self::{
    cursor::TimelineCursor,
    merge::{PageDirection, TimelinePage, merge},
    origin::SessionOrigins,
    wanted::WantedTimeline,
};
use crate::traces::UnansweredParts;

/// Time for which a page is looked for in histories that have examined in vain, before it is answered empty.
const PATIENCE: Duration = Duration::from_secs(5);

/// Name of the session manager in answers.
const SESSIONS: &str = "session manager";

/// The timeline service.
pub(crate) struct TimelineRpc(pub(crate) HistoryClients);

impl TimelineRpc {
    /// Returns the page, or the first one after it that has an event.
    async fn page(&self, wanted: &WantedTimeline) -> Result<TimelinePage, Status> {
        let until = Instant::now() + PATIENCE;
        let mut page = self.page_at(wanted, wanted.begin.as_ref()).await?;
        while page.events.is_empty() && !page.is_last && Instant::now() < until {
            let next = self.page_at(wanted, Some(&page.end)).await?;
            page = TimelinePage { begin: page.begin, ..next };
        }
        Ok(page)
    }

    async fn page_at(
        &self,
        wanted: &WantedTimeline,
        begin: Option<&TimelineCursor>,
    ) -> Result<TimelinePage, Status> {
        let requests = wanted.requests(begin).into_iter();
        let pages = requests.map(|request| self.0.page(wanted.direction, request));
        Ok(merge(wanted.direction, try_join_all(pages).await?, wanted.most as usize))
    }
}

/// Returns the answer with a page. Its origins are looked up in `origins`.
fn answer(direction: PageDirection, page: TimelinePage, origins: &SessionOrigins) -> ListTimelineResponse {
    let TimelinePage { mut events, begin, end, is_last: _ } = page;
    let (older, newer) = match direction {
        PageDirection::Older => (end, begin),
        PageDirection::Newer => {
            events.reverse();
            (begin, end)
        }
    };
    ListTimelineResponse {
        entries: events.into_iter().map(|event| origins.entry(event)).collect(),
        older: if older.is_beginning() { String::new() } else { older.text() },
        newer: newer.text(),
        unanswered: Vec::new(),
    }
}

#[tonic::async_trait]
impl TimelineService for TimelineRpc {
    async fn list_timeline(
        &self,
        request: Request<ListTimelineRequest>,
    ) -> Result<Response<ListTimelineResponse>, Status> {
        let wanted = WantedTimeline::read(request.into_inner()).map_err(chassis::Fault::from)?;
        let page = self.page(&wanted).await?;
        let mut unanswered = UnansweredParts::default();
        let creations = self.0.creations(&origin::sessions(&page.events)).await;
        let origins = SessionOrigins::of(unanswered.note(SESSIONS, creations).unwrap_or_default());
        let answer = answer(wanted.direction, page, &origins);
        Ok(Response::new(ListTimelineResponse { unanswered: unanswered.0, ..answer }))
    }
}
