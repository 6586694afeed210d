//! Requests for the timeline, as requests to the histories of the kinds that they select.

use chassis::kinds::history::{COMPONENT, HISTORY_KINDS, HistoryKind, SESSION, TRANSITION, session_key};
use domain::core::invalid::Invalid;
use proto::{
    event::{Event, EventFilter, EventPosition, ListEventsRequest},
    insight::{ListTimelineRequest, TimelineFilter, TimelineSubject},
};

use super::{
    cursor::{BEGINNING, TimelineCursor},
    merge::PageDirection,
};

/// Most events of an answer.
const MOST: u32 = 1000;

/// Most subjects of a kind.
const MOST_SUBJECTS: usize = 100;

/// Wishes of a caller.
pub(super) struct WantedTimeline {
    selection: Vec<WantedHistory>,
    pub(super) direction: PageDirection,
    /// Place at which the page begins; `None`: at the newest events.
    pub(super) begin: Option<TimelineCursor>,
    pub(super) most: u32,
}

/// History of one kind, of which events are wanted.
#[derive(Debug, Clone)]
struct WantedHistory {
    kind: &'static HistoryKind,
    filter: EventFilter,
    /// Ids of components: transitions that name one of them are wanted. Empty: any.
    nodes: Vec<String>,
}

/// Request to the history of one kind.
#[derive(Debug)]
pub(super) struct HistoryRequest {
    pub(super) kind: &'static HistoryKind,
    /// Position at which the page begins; `None`: at the newest events.
    pub(super) begin: Option<EventPosition>,
    pub(super) message: ListEventsRequest,
    nodes: Vec<String>,
}

impl WantedTimeline {
    /// Reads a request.
    ///
    /// # Errors
    /// The request has an unknown word or place, or too many subjects.
    pub(super) fn read(request: ListTimelineRequest) -> Result<Self, Invalid> {
        let ListTimelineRequest { filter, page_size, before, after } = request;
        let (direction, place) = match (before.is_empty(), after.is_empty()) {
            (_, false) => (PageDirection::Newer, Some(("after", after))),
            (false, true) => (PageDirection::Older, Some(("before", before))),
            (true, true) => (PageDirection::Older, None),
        };
        let begin = place.map(|(field, text)| TimelineCursor::read(field, &text)).transpose()?;
        let selection = selection(&filter.unwrap_or_default())?;
        let most = if page_size == 0 { MOST } else { MOST.min(page_size) };
        Ok(Self { selection, direction, begin, most })
    }

    /// Returns the requests for a page that begins at a place. A history that is at its beginning has no older events.
    pub(super) fn requests(&self, begin: Option<&TimelineCursor>) -> Vec<HistoryRequest> {
        let requests = self.selection.iter().map(|wanted| {
            let WantedHistory { kind, filter, nodes } = wanted.clone();
            let begin = begin.map(|begin| begin.of(kind));
            let is_older = self.direction == PageDirection::Older;
            let message = ListEventsRequest {
                filter: Some(filter),
                page_size: self.most,
                newest_first: is_older,
                before: begin.filter(|_| is_older),
                from: begin.filter(|_| !is_older),
            };
            HistoryRequest { kind, begin, message, nodes }
        });
        let is_over = |request: &HistoryRequest| {
            self.direction == PageDirection::Older && request.begin == Some(BEGINNING)
        };
        requests.filter(|request| !is_over(request)).collect()
    }
}

impl HistoryRequest {
    /// Returns whether an event of the history is wanted, as far as the service that keeps it cannot judge.
    pub(super) fn wants(&self, event: &Event) -> bool {
        self.nodes.is_empty() || self.nodes.iter().any(|node| names(event, node))
    }
}

/// Returns whether an event of a transition names a node among its members.
fn names(event: &Event, node: &str) -> bool {
    let details = event.body.iter().flat_map(|body| &body.details);
    let mut nodes = details.filter(|detail| detail.name == domain::boot::power::event::NODES);
    nodes.any(|detail| detail.value.split(',').any(|member| member == node))
}

fn selection(filter: &TimelineFilter) -> Result<Vec<WantedHistory>, Invalid> {
    let known = |field: &str, word: &str| match HistoryKind::named(word) {
        Some(_) => Ok(()),
        None => Err(Invalid::new(field, format!("'{word}' has no events"))),
    };
    filter.resources.iter().try_for_each(|word| known("resources", word))?;
    filter.subjects.iter().try_for_each(|subject| known("subjects", &subject.resource))?;
    let wanted = HISTORY_KINDS.iter().filter_map(|kind| wanted(kind, filter));
    let wanted: Vec<_> = wanted.collect();
    if wanted.iter().any(|one| one.filter.keys.len().max(one.nodes.len()) > MOST_SUBJECTS) {
        return Err(Invalid::new("subjects", format!("has more than {MOST_SUBJECTS} of a kind")));
    }
    let is_known = |word: &&String| wanted.iter().any(|one| one.kind.words.contains(&word.as_str()));
    match filter.events.iter().find(|word| !is_known(word)) {
        Some(word) => Err(Invalid::new("events", format!("'{word}' is no kind of event of these resources"))),
        None => Ok(wanted),
    }
}

/// Returns the wanted events of a kind; `None`: the kind is not wanted.
fn wanted(kind: &'static HistoryKind, filter: &TimelineFilter) -> Option<WantedHistory> {
    let is_kind = filter.resources.is_empty() || filter.resources.iter().any(|word| word == kind.resource);
    let of_kind = filter.subjects.iter().filter(|subject| subject.resource == kind.resource);
    let (keyed, by_node): (Vec<_>, Vec<_>) = of_kind.partition(|subject| !subject.key.is_empty());
    let is_subject = filter.subjects.is_empty() || !keyed.is_empty() || !by_node.is_empty();
    if !is_kind || !is_subject {
        return None;
    }
    let mut history = WantedHistory {
        kind,
        filter: EventFilter {
            keys: texts(&keyed, |subject| &subject.key),
            kinds: filter.events.clone(),
            since: filter.since,
            resource: kind.resource.to_owned(),
            reasons: filter.reasons.clone(),
            actors: filter.actors.clone(),
            until: filter.until,
            ..EventFilter::default()
        },
        nodes: match kind.resource {
            TRANSITION => texts(&by_node, |subject| &subject.node),
            _ => Vec::new(),
        },
    };
    (filter.session.is_empty() || narrow(&mut history, filter)).then_some(history)
}

fn texts(subjects: &[&TimelineSubject], text: fn(&TimelineSubject) -> &String) -> Vec<String> {
    subjects.iter().map(|subject| text(subject).clone()).collect()
}

/// Leaves only the events of a session, and returns whether the kind can have any.
fn narrow(history: &mut WantedHistory, filter: &TimelineFilter) -> bool {
    match history.kind.resource {
        COMPONENT => {
            history.filter.session.clone_from(&filter.session);
            history.filter.session_tenant.clone_from(&filter.tenant);
            true
        }
        SESSION => {
            let key = session_key(&filter.tenant, &filter.session);
            let keys = std::mem::replace(&mut history.filter.keys, vec![key.clone()]);
            keys.is_empty() || keys.contains(&key)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
