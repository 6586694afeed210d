//! Pages of the events from a position on, the oldest first.
//!
//! A record names its latest change, and each change the one before. So there is no way forward along the story of one
//! resource, and rows are examined one after the other.

use std::collections::BTreeSet;

use sea_orm::DbErr;

use super::{
    EventHistory, PageRest, ROWS, WantedEvents,
    page::{EXAMINED, EventPage, EventPlace},
};
use crate::store::{ledger::events, resource::Resource};

impl<R: Resource> EventHistory<R> {
    /// Returns the oldest of the wanted events that are not before a place. The rest of the page is the place from which
    /// later events may be wanted.
    pub(super) async fn later_page(
        &self,
        filter: &WantedEvents,
        from: EventPlace,
        most: usize,
    ) -> Result<EventPage, DbErr> {
        let mut page = EventPage::default();
        let mut after = from.before_revision();
        let mut examined = 0;
        while page.events.len() <= most && examined < EXAMINED {
            let rows = events::rows_after(&self.database, R::KIND, after, filter.since, ROWS).await?;
            let wanted = rows.iter().take_while(|row| row.time < filter.until);
            let events = wanted.clone().flat_map(|row| filter.of_row(row, R::KIND, &BTreeSet::new()));
            page.events.extend(events.filter(|event| EventPlace::of(event) >= from));
            let Some(last) = wanted.clone().last().filter(|_| wanted.count() as u64 == ROWS) else {
                return Ok(cut(EventPage { rest: None, ..page }, most));
            };
            examined += rows.len();
            after = last.revision;
            page.rest = Some(PageRest { place: EventPlace::at(after + 1), time: last.time });
        }
        Ok(cut(page, most))
    }
}

/// Leaves all events but `most` to the next page.
fn cut(mut page: EventPage, most: usize) -> EventPage {
    if page.events.len() > most {
        page.events.truncate(most);
        page.rest = page.events.last().map(|last| PageRest {
            place: EventPlace::of(last).next(),
            time: last.time.map(crate::mesh::time::from_wire).unwrap_or_default(),
        });
    }
    page
}
