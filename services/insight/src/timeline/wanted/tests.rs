use expect_test::expect;
use proto::event::{EventBody, EventDetail};

use super::*;

fn subject(resource: &str, key: &str) -> TimelineSubject {
    TimelineSubject { resource: resource.to_owned(), key: key.to_owned(), ..TimelineSubject::default() }
}

fn naming(node: &str) -> TimelineSubject {
    TimelineSubject { node: node.to_owned(), ..subject("transition", "") }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn shown(request: &HistoryRequest) -> String {
    let HistoryRequest { kind, begin, message, nodes } = request;
    let filter = message.filter.clone().unwrap_or_default();
    assert_eq!(filter.resource, kind.resource);
    assert_eq!(*begin, message.before.or(message.from));
    let mut line = kind.resource.to_owned();
    for (name, texts) in [
        ("keys", filter.keys),
        ("nodes", nodes.clone()),
        ("kinds", filter.kinds),
        ("reasons", filter.reasons),
        ("actors", filter.actors),
    ] {
        if !texts.is_empty() {
            line.push_str(&format!(" {name} {texts:?}"));
        }
    }
    if !filter.session.is_empty() {
        line.push_str(&format!(" session '{}' of '{}'", filter.session, filter.session_tenant));
    }
    let places = [("before", message.before), ("from", message.from)];
    for (word, place) in places.into_iter().filter_map(|(word, place)| Some((word, place?))) {
        line.push_str(&format!(" {word} {}.{}", place.revision, place.index));
    }
    line
}

#[test]
fn requests_reach_the_histories_that_they_select() {
    let mut lines = String::new();
    let of = |filter: TimelineFilter| ListTimelineRequest { filter: Some(filter), ..Default::default() };
    let subjects = |subjects: Vec<TimelineSubject>| TimelineFilter { subjects, ..Default::default() };
    let everything = TimelineFilter::default;
    let session = TimelineFilter { session: "s".to_owned(), tenant: "blue".to_owned(), ..everything() };
    for (name, request) in [
        ("all", of(everything())),
        ("node", of(subjects(vec![subject("component", "x1"), naming("x1")]))),
        ("session", of(session.clone())),
        (
            "node in a session",
            of(TimelineFilter { subjects: vec![subject("component", "x1")], ..session.clone() }),
        ),
        ("other session", of(TimelineFilter { subjects: vec![subject("session", "\ts")], ..session })),
        ("kinds", of(TimelineFilter { resources: words(["host", "options"]), ..everything() })),
        (
            "kind without the subject",
            of(TimelineFilter { resources: words(["host"]), ..subjects(vec![subject("component", "x1")]) }),
        ),
        (
            "words",
            of(TimelineFilter {
                events: words(["boot_reported"]),
                reasons: words(["differs"]),
                actors: words(["client"]),
                ..subjects(vec![subject("component", "x1")])
            }),
        ),
        (
            "before",
            ListTimelineRequest {
                before: "host:7:1,component:0:0".to_owned(),
                ..of(TimelineFilter { resources: words(["host", "component", "options"]), ..everything() })
            },
        ),
        (
            "after",
            ListTimelineRequest {
                after: "host:7:1".to_owned(),
                ..of(TimelineFilter { resources: words(["host", "component"]), ..everything() })
            },
        ),
        ("unknown kind", of(TimelineFilter { resources: words(["node"]), ..everything() })),
        ("unknown subject", of(subjects(vec![subject("node", "x1")]))),
        ("unknown event", of(TimelineFilter { events: words(["exploded"]), ..everything() })),
        (
            "event of another kind",
            of(TimelineFilter { events: words(["running"]), ..subjects(vec![subject("component", "x1")]) }),
        ),
        ("unknown place", ListTimelineRequest { after: "7".to_owned(), ..of(everything()) }),
        ("crowd", of(subjects(vec![subject("component", "x1"); 101]))),
    ] {
        let read = WantedTimeline::read(request).map(|wanted| {
            wanted.requests(wanted.begin.as_ref()).iter().map(shown).collect::<Vec<_>>().join(", ")
        });
        let line = read.unwrap_or_else(|invalid| format!("refused: {invalid}"));
        lines.push_str(&format!("{name}: {line}\n"));
    }
    expect![[r#"
        all: component, session, transition, session_template, options, host, host_document, host_secret, device, fleet, enrolment_request
        node: component keys ["x1"], transition nodes ["x1"]
        session: component session 's' of 'blue', session keys ["blue\ts"]
        node in a session: component keys ["x1"] session 's' of 'blue'
        other session: 
        kinds: options, host
        kind without the subject: 
        words: component keys ["x1"] kinds ["boot_reported"] reasons ["differs"] actors ["client"]
        before: host before 7.1
        after: component from 0.0, host from 7.1
        unknown kind: refused: resources: 'node' has no events
        unknown subject: refused: subjects: 'node' has no events
        unknown event: refused: events: 'exploded' is no kind of event of these resources
        event of another kind: refused: events: 'running' is no kind of event of these resources
        unknown place: refused: after: '7' is no position such as component:12:0
        crowd: refused: subjects: has more than 100 of a kind
    "#]].assert_eq(&lines);
}

#[test]
fn transitions_are_wanted_by_their_nodes() {
    let event = |nodes: &str| {
        let detail = EventDetail { name: "nodes".to_owned(), value: nodes.to_owned() };
        let body = EventBody { details: vec![detail], ..EventBody::default() };
        Event { body: Some(body), ..Event::default() }
    };
    let filter = Some(TimelineFilter { subjects: vec![naming("x1")], ..TimelineFilter::default() });
    let wanted = WantedTimeline::read(ListTimelineRequest { filter, ..Default::default() }).unwrap();
    let requests = wanted.requests(None);
    let verdicts = ["x1", "x2,x1", "x11", ""].map(|nodes| requests[0].wants(&event(nodes)));
    assert_eq!(verdicts, [true, true, false, false]);
}
