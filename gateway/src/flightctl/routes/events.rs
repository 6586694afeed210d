//! `/events`: the newest first.

use axum::{extract::State, response::Response};
use http::StatusCode;
use proto::event::{EventPosition, ListEventsRequest};
use serde::{Deserialize, Serialize};

use super::selection::selector;
use crate::{
    flightctl::{
        FlightctlFace,
        events::EventSelector,
        pages::{WantedPage, token},
        problem::FlightctlProblem,
        wire::{
            event::{Event, EventList},
            meta::ListMeta,
        },
    },
    http::{
        answer::json,
        call::{answer, call},
        query::QueryParameters,
    },
    mesh::REGISTRY,
};

/// Kind of the resources with events, in the words of the contract and of the registry.
const DEVICE: (&str, &str) = ("Device", "device");

/// Part that notes the events of devices.
const COMPONENT: &str = "component-registry";

/// Calls for one page. Few of many events may be selected, and clients ask for further pages anyway.
const MOST_CALLS: u32 = 10;

/// Place at which a page of events begins.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct EventPlace {
    /// Revision before which events are wanted.
    revision: u64,
    /// Number of wanted events with that revision.
    index: u32,
}

pub(super) async fn list(
    State(face): State<FlightctlFace>,
    query: QueryParameters,
) -> Result<Response, FlightctlProblem> {
    let selector = EventSelector::parse(&selector(&query, "fieldSelector")?)?;
    let page = WantedPage::<EventPlace>::read(&query)?;
    let (items, next) = match selector.concerns(DEVICE.0) {
        true => listed(&face, &selector, page).await?,
        false => (Vec::new(), None),
    };
    let metadata = ListMeta {
        // Nobody counts events. A client learns that there is at least one more.
        remaining_item_count: next.map(|_| 1),
        next: next.map(|place| token(&place)),
    };
    Ok(json(StatusCode::OK, &EventList::new(metadata, items))?)
}

/// Returns the events of a page, and the place of the next one.
async fn listed(
    face: &FlightctlFace,
    selector: &EventSelector,
    page: WantedPage<EventPlace>,
) -> Result<(Vec<Event>, Option<EventPlace>), FlightctlProblem> {
    let limit = page.limit as usize;
    let mut before = page.place.map(|EventPlace { revision, index }| EventPosition { revision, index });
    let mut found = Vec::new();
    for _ in 0..MOST_CALLS {
        let request = ListEventsRequest {
            filter: Some(selector.filter(DEVICE.1)),
            page_size: u32::try_from(limit - found.len()).unwrap_or(page.limit),
            newest_first: true,
            before,
            from: None,
        };
        let answer = answer(REGISTRY, face.mesh.component_events.clone().list_events(call(request))).await?;
        let events = answer.events.into_iter().map(|event| Event::shown(event, DEVICE.0, COMPONENT));
        found.extend(events.filter(|event| selector.matches(event)));
        before = answer.older;
        if before.is_none() || found.len() >= limit {
            break;
        }
    }
    Ok((found, before.map(|EventPosition { revision, index }| EventPlace { revision, index })))
}
