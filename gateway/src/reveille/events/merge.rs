//! Pages of several histories in one page, the newest event first.
//!
//! Each history is in the order of its commits, which its times need not follow: a clock may be set. So the pages are
//! merged by the times of their first events and never sorted, and what was taken of a history is a part without gap.

use std::{cmp::Reverse, collections::VecDeque};

use proto::event::{Event, EventPosition, ListEventsResponse};

use super::{position::EventPositions, source::EventSource};

/// Page of the history of one kind.
pub(super) struct SourcePage {
    source: &'static EventSource,
    /// Position before which the next event is.
    before: EventPosition,
    /// The newest event first.
    events: VecDeque<Event>,
    older: Option<EventPosition>,
    /// Time from which every event is in the page, in seconds and nanoseconds; `None`: any.
    examined_from: Option<EventTime>,
}

type EventTime = (i64, i32);

impl SourcePage {
    /// Takes the answer to a request for events before a position; `None`: for the newest ones.
    pub(super) fn new(
        source: &'static EventSource,
        before: Option<EventPosition>,
        answer: ListEventsResponse,
    ) -> Self {
        // Later pages leave out what happens from now on.
        let newest = EventPosition { revision: answer.revision.saturating_add(1), index: 0 };
        Self {
            source,
            before: before.unwrap_or(newest),
            events: answer.events.into(),
            older: answer.older,
            examined_from: answer.examined_from.map(|time| (time.seconds, time.nanos)),
        }
    }

    fn take(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.before = EventPosition { revision: event.revision, index: event.index };
        Some(event)
    }

    /// Returns the position before which the next page begins; `None`: the history is over.
    fn rest(&self) -> Option<EventPosition> {
        if self.events.is_empty() { self.older } else { Some(self.before) }
    }

    fn has_examined_in_vain(&self) -> bool {
        self.events.is_empty() && self.older.is_some()
    }
}

/// Takes up to `most` events, the newest first, and returns the positions of the next page. An event that is older than
/// what another page has examined waits for a later page, so that the order holds over all pages.
pub(super) fn merge(mut pages: Vec<SourcePage>, most: usize) -> (Vec<Event>, EventPositions) {
    let is_vain = pages.iter().any(SourcePage::has_examined_in_vain);
    let mut events = take(&mut pages, most, true);
    if events.is_empty() && !is_vain {
        // Only times that contradict the order of commits lead here; the list has to go on nevertheless.
        events = take(&mut pages, most, false);
    }
    let mut positions = EventPositions::default();
    for page in &pages {
        page.rest().into_iter().for_each(|rest| positions.add(page.source, rest));
    }
    (events, positions)
}

fn take(pages: &mut [SourcePage], most: usize, in_order: bool) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < most {
        let Some(place) = newest(pages, in_order) else { break };
        events.extend(pages[place].take());
    }
    events
}

/// Returns the page with the newest first event that may be taken.
fn newest(pages: &[SourcePage], in_order: bool) -> Option<usize> {
    let heads =
        pages.iter().enumerate().filter_map(|(place, page)| Some((time(page.events.front()?), place)));
    let allowed = heads.filter(|(time, place)| !in_order || *time >= examined_from(pages, *place));
    allowed.max_by_key(|(time, place)| (*time, Reverse(*place))).map(|(_, place)| place)
}

/// Returns the time from which all pages but that one are known.
fn examined_from(pages: &[SourcePage], but: usize) -> EventTime {
    let others = pages.iter().enumerate().filter(|(place, _)| *place != but);
    others.filter_map(|(_, page)| page.examined_from).max().unwrap_or((i64::MIN, 0))
}

fn time(event: &Event) -> EventTime {
    event.time.map(|time| (time.seconds, time.nanos)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{super::source::SOURCES, *};

    fn at(seconds: i64) -> prost_types::Timestamp {
        prost_types::Timestamp { seconds, nanos: 0 }
    }

    /// A page with events of these times, whose revisions go down to 1; `older`: the time from which it has examined.
    fn page(source: usize, times: &[i64], older: Option<i64>) -> SourcePage {
        let revisions = (1..=times.len() as u64).rev();
        let events = revisions.zip(times).map(|(revision, seconds)| Event {
            key: SOURCES[source].resource.to_owned(),
            revision,
            time: Some(at(*seconds)),
            ..Event::default()
        });
        let answer = ListEventsResponse {
            events: events.collect(),
            revision: times.len() as u64,
            older: older.map(|_| EventPosition::default()),
            examined_from: older.map(at),
        };
        SourcePage::new(&SOURCES[source], None, answer)
    }

    #[test]
    fn pages_are_merged_by_time_without_a_gap() {
        let mut lines = String::new();
        for (name, pages, most) in [
            ("nothing", vec![page(0, &[], None), page(1, &[], None)], 9),
            ("all", vec![page(0, &[9, 5], None), page(1, &[7, 5], None)], 9),
            ("cut", vec![page(0, &[9, 5], None), page(1, &[7, 5], None)], 2),
            ("cut before the first of one", vec![page(0, &[9, 5], None), page(1, &[4], None)], 1),
            ("more of one", vec![page(0, &[9, 5], Some(5)), page(1, &[7, 4], None)], 9),
            ("nothing found yet", vec![page(0, &[], Some(8)), page(1, &[7, 4], None)], 9),
            ("a clock was set back", vec![page(0, &[9, 2, 7], None), page(1, &[5], None)], 9),
            ("clocks that contradict", vec![page(0, &[3], Some(9)), page(1, &[2], Some(5))], 9),
        ] {
            let (events, positions) = merge(pages, most);
            let events: Vec<_> =
                events.iter().map(|event| format!("{}@{}", event.key, time(event).0)).collect();
            lines.push_str(&format!("{name}: {} -> {:?}\n", events.join(" "), positions.text()));
        }
        expect![[r#"
            nothing:  -> None
            all: component@9 session@7 component@5 session@5 -> None
            cut: component@9 session@7 -> Some("component:2:0,session:2:0")
            cut before the first of one: component@9 -> Some("component:2:0,session:2:0")
            more of one: component@9 session@7 component@5 -> Some("component:0:0,session:2:0")
            nothing found yet:  -> Some("component:0:0,session:3:0")
            a clock was set back: component@9 session@5 component@2 component@7 -> None
            clocks that contradict: component@3 session@2 -> Some("component:0:0,session:0:0")
        "#]]
        .assert_eq(&lines);
    }
}
