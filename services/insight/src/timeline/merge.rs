//! Pages of several histories in one page.
//!
//! Each history is in the order of its commits, which its times need not follow: a clock may be set. So the pages are
//! merged by the times of their first events and never sorted, and what was taken of a history is a part without gap.

use std::{cmp::Reverse, collections::VecDeque};

use chassis::kinds::history::HistoryKind;
use proto::event::{Event, EventPosition, ListEventsResponse};

use super::cursor::{BEGINNING, TimelineCursor};

/// Direction in which a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageDirection {
    /// To older events.
    Older,
    /// To newer events.
    Newer,
}

/// Page of the history of one kind, in the direction in which it was read.
pub(super) struct SourcePage {
    kind: &'static HistoryKind,
    direction: PageDirection,
    /// Position at which the page begins.
    begin: EventPosition,
    /// Position up to which events were taken.
    taken: EventPosition,
    events: VecDeque<Event>,
    /// Position at which the next page begins, once every event is taken.
    end: EventPosition,
    /// Time up to which every event is in the page; `None`: any.
    examined: Option<EventTime>,
}

/// Page of the timeline.
#[derive(Debug, Default)]
pub(super) struct TimelinePage {
    /// Events in the direction of the page.
    pub(super) events: Vec<Event>,
    /// Place at which the page begins.
    pub(super) begin: TimelineCursor,
    /// Place at which the next page in the same direction begins.
    pub(super) end: TimelineCursor,
    /// Whether nothing was examined beyond the page that is wanted.
    pub(super) is_last: bool,
}

/// Seconds and nanoseconds.
type EventTime = (i64, i32);

impl SourcePage {
    /// Takes the answer to a request for older events, the newest first, before a position; `None`: the newest.
    pub(super) fn older(
        kind: &'static HistoryKind,
        before: Option<EventPosition>,
        answer: ListEventsResponse,
    ) -> Self {
        let begin = before.unwrap_or_else(|| newest(&answer));
        Self {
            kind,
            direction: PageDirection::Older,
            begin,
            taken: begin,
            events: answer.events.into(),
            end: answer.older.unwrap_or(BEGINNING),
            examined: answer.examined_from.map(|time| (time.seconds, time.nanos)),
        }
    }

    /// Takes the answer to a request for newer events, the oldest first, from a position on.
    pub(super) fn newer(kind: &'static HistoryKind, from: EventPosition, answer: ListEventsResponse) -> Self {
        Self {
            kind,
            direction: PageDirection::Newer,
            begin: from,
            taken: from,
            end: answer.newer.unwrap_or_else(|| newest(&answer)),
            examined: answer.examined_to.map(|time| (time.seconds, time.nanos)),
            events: answer.events.into(),
        }
    }

    /// Leaves out events about which `wanted` says no.
    pub(super) fn retain(&mut self, wanted: impl FnMut(&Event) -> bool) {
        self.events.retain(wanted);
    }

    fn take(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.taken = match self.direction {
            PageDirection::Older => EventPosition { revision: event.revision, index: event.index },
            PageDirection::Newer => after(&event),
        };
        Some(event)
    }

    /// Returns the position at which the next page begins.
    fn rest(&self) -> EventPosition {
        if self.events.is_empty() { self.end } else { self.taken }
    }

    fn has_examined_in_vain(&self) -> bool {
        self.events.is_empty() && self.examined.is_some()
    }
}

/// Returns the position after every event that an answer could have, so that a later page begins there.
fn newest(answer: &ListEventsResponse) -> EventPosition {
    let known = EventPosition { revision: answer.revision.saturating_add(1), index: 0 };
    // Events may have been committed since the service read the revision.
    let seen = answer.events.iter().map(after);
    seen.chain([known]).max_by_key(|position| (position.revision, position.index)).unwrap_or(known)
}

fn after(event: &Event) -> EventPosition {
    EventPosition { revision: event.revision, index: event.index.saturating_add(1) }
}

/// Takes up to `most` events. An event beyond the time up to which another page was examined is left to the next page.
pub(super) fn merge(direction: PageDirection, mut pages: Vec<SourcePage>, most: usize) -> TimelinePage {
    let is_vain = pages.iter().any(SourcePage::has_examined_in_vain);
    let mut events = take(direction, &mut pages, most, true);
    if events.is_empty() && !is_vain {
        // Only times that contradict the order of commits lead here; the list has to go on nevertheless.
        events = take(direction, &mut pages, most, false);
    }
    let mut merged = TimelinePage { events, ..TimelinePage::default() };
    merged.is_last = pages.iter().all(|page| page.events.is_empty() && page.examined.is_none());
    for page in &pages {
        merged.begin.set(page.kind, page.begin);
        merged.end.set(page.kind, page.rest());
    }
    merged
}

fn take(direction: PageDirection, pages: &mut [SourcePage], most: usize, in_order: bool) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < most {
        let Some(place) = next(direction, pages, in_order) else { break };
        events.extend(pages[place].take());
    }
    events
}

/// Returns the page with the next event that may be taken.
fn next(direction: PageDirection, pages: &[SourcePage], in_order: bool) -> Option<usize> {
    let heads =
        pages.iter().enumerate().filter_map(|(place, page)| Some((time(page.events.front()?), place)));
    let allowed = heads.filter(|(time, place)| !in_order || is_known(direction, pages, *place, *time));
    match direction {
        PageDirection::Older => allowed.max_by_key(|(time, place)| (*time, Reverse(*place))),
        PageDirection::Newer => allowed.min_by_key(|(time, place)| (*time, Reverse(*place))),
    }
    .map(|(_, place)| place)
}

/// Returns whether all pages but that one are known up to a time.
fn is_known(direction: PageDirection, pages: &[SourcePage], but: usize, time: EventTime) -> bool {
    let others = pages.iter().enumerate().filter(|(place, _)| *place != but);
    others.filter_map(|(_, page)| page.examined).all(|examined| match direction {
        PageDirection::Older => time >= examined,
        PageDirection::Newer => time <= examined,
    })
}

fn time(event: &Event) -> EventTime {
    event.time.map(|time| (time.seconds, time.nanos)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
