use chassis::kinds::history::HISTORY_KINDS;
use expect_test::expect;

use super::*;

fn at(seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds, nanos: 0 }
}

fn events(source: usize, revisions: impl Iterator<Item = u64>, times: &[i64]) -> Vec<Event> {
    let events = revisions.zip(times).map(|(revision, seconds)| Event {
        key: HISTORY_KINDS[source].resource.to_owned(),
        revision,
        time: Some(at(*seconds)),
        ..Event::default()
    });
    events.collect()
}

/// A page with events of these times, whose revisions go down to 1; `examined`: the time from which it has examined.
fn older(source: usize, times: &[i64], examined: Option<i64>) -> SourcePage {
    let newest = times.len() as u64;
    let answer = ListEventsResponse {
        events: events(source, (1..=newest).rev(), times),
        revision: newest,
        older: examined.map(|_| EventPosition { revision: 1, index: 0 }),
        examined_from: examined.map(at),
        ..ListEventsResponse::default()
    };
    SourcePage::older(&HISTORY_KINDS[source], None, answer)
}

/// A page with events of these times, whose revisions go up from 1; `examined`: the time to which it has examined.
fn newer(source: usize, times: &[i64], examined: Option<i64>) -> SourcePage {
    let answer = ListEventsResponse {
        events: events(source, 1.., times),
        revision: 20,
        newer: examined.map(|_| EventPosition { revision: 10, index: 0 }),
        examined_to: examined.map(at),
        ..ListEventsResponse::default()
    };
    SourcePage::newer(&HISTORY_KINDS[source], EventPosition { revision: 1, index: 0 }, answer)
}

fn line(name: &str, merged: &TimelinePage) -> String {
    let events = merged.events.iter().map(|event| format!("{}@{}", event.key, time(event).0));
    let events: Vec<_> = events.collect();
    let last = if merged.is_last { " last" } else { "" };
    format!("{name}: {} -> {} .. {}{last}\n", events.join(" "), merged.begin.text(), merged.end.text())
}

#[test]
fn older_pages_are_merged_by_time_without_a_gap() {
    let mut lines = String::new();
    for (name, pages, most) in [
        ("nothing", vec![older(0, &[], None), older(1, &[], None)], 9),
        ("all", vec![older(0, &[9, 5], None), older(1, &[7, 5], None)], 9),
        ("cut", vec![older(0, &[9, 5], None), older(1, &[7, 5], None)], 2),
        ("cut before the first of one", vec![older(0, &[9, 5], None), older(1, &[4], None)], 1),
        ("more of one", vec![older(0, &[9, 5], Some(5)), older(1, &[7, 4], None)], 9),
        ("nothing found yet", vec![older(0, &[], Some(8)), older(1, &[7, 4], None)], 9),
        ("a clock was set back", vec![older(0, &[9, 2, 7], None), older(1, &[5], None)], 9),
        ("clocks that contradict", vec![older(0, &[3], Some(9)), older(1, &[2], Some(5))], 9),
    ] {
        lines.push_str(&line(name, &merge(PageDirection::Older, pages, most)));
    }
    expect![[r#"
        nothing:  -> component:1:0,session:1:0 .. component:0:0,session:0:0 last
        all: component@9 session@7 component@5 session@5 -> component:3:0,session:3:0 .. component:0:0,session:0:0 last
        cut: component@9 session@7 -> component:3:0,session:3:0 .. component:2:0,session:2:0
        cut before the first of one: component@9 -> component:3:0,session:2:0 .. component:2:0,session:2:0
        more of one: component@9 session@7 component@5 -> component:3:0,session:3:0 .. component:1:0,session:2:0
        nothing found yet:  -> component:1:0,session:3:0 .. component:1:0,session:3:0
        a clock was set back: component@9 session@5 component@2 component@7 -> component:4:0,session:2:0 .. component:0:0,session:0:0 last
        clocks that contradict: component@3 session@2 -> component:2:0,session:2:0 .. component:1:0,session:1:0
    "#]].assert_eq(&lines);
}

#[test]
fn newer_pages_are_merged_by_time_without_a_gap() {
    let mut lines = String::new();
    for (name, pages, most) in [
        ("nothing", vec![newer(0, &[], None), newer(1, &[], None)], 9),
        ("all", vec![newer(0, &[5, 9], None), newer(1, &[5, 7], None)], 9),
        ("cut", vec![newer(0, &[5, 9], None), newer(1, &[5, 7], None)], 3),
        ("more of one", vec![newer(0, &[5, 6], Some(6)), newer(1, &[4, 7], None)], 9),
        ("nothing found yet", vec![newer(0, &[], Some(4)), newer(1, &[5], None)], 9),
    ] {
        lines.push_str(&line(name, &merge(PageDirection::Newer, pages, most)));
    }
    expect![[r#"
        nothing:  -> component:1:0,session:1:0 .. component:21:0,session:21:0 last
        all: session@5 component@5 session@7 component@9 -> component:1:0,session:1:0 .. component:21:0,session:21:0 last
        cut: session@5 component@5 session@7 -> component:1:0,session:1:0 .. component:1:1,session:21:0
        more of one: session@4 component@5 component@6 -> component:1:0,session:1:0 .. component:10:0,session:1:1
        nothing found yet:  -> component:1:0,session:1:0 .. component:10:0,session:1:0
    "#]].assert_eq(&lines);
}
