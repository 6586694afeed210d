//! Events of the changes of a ledger.

use chassis::{
    Context, Fault, Settings,
    mesh::request_id,
    store::ledger::{Draft, EventHistories, Ledger},
};
use domain::core::event::Actor;
use futures_util::StreamExt;
use proto::event::{
    Event, EventFilter, EventPosition, ListEventsRequest, ListEventsResponse, WatchEventsRequest,
    WatchEventsResponse, event_service_server::EventService,
};
use tonic::{Code, Request};

use crate::{
    PATIENCE,
    note::{self, Note, Notes},
    put, stop,
};

fn about(keys: &[&str]) -> EventFilter {
    EventFilter { keys: keys.iter().map(|key| (*key).to_owned()).collect(), ..EventFilter::default() }
}

async fn list(ledger: &Ledger<Notes>, filter: EventFilter, page_size: u32) -> Vec<String> {
    let request = ListEventsRequest { filter: Some(filter), page_size, ..ListEventsRequest::default() };
    page(ledger, request).await.events.iter().map(shown).collect()
}

async fn page(ledger: &Ledger<Notes>, request: ListEventsRequest) -> ListEventsResponse {
    let histories = EventHistories::default().with(ledger);
    let answer = histories.list_events(Request::new(request)).await.unwrap().into_inner();
    assert_eq!(answer.revision, ledger.view().revision());
    answer
}

/// Every page of events, the newest first, as positions. A page is over without an older one.
async fn pages(ledger: &Ledger<Notes>, filter: EventFilter, page_size: u32) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut before = None;
    loop {
        let filter = Some(filter.clone());
        let request = ListEventsRequest { filter, page_size, newest_first: true, before, from: None };
        let answer = page(ledger, request).await;
        assert_eq!(answer.older.is_some(), answer.examined_from.is_some());
        pages.push(answer.events.iter().map(|event| format!("{}.{}", event.revision, event.index)).collect());
        before = answer.older;
        if before.is_none() {
            return pages;
        }
    }
}

fn shown(event: &Event) -> String {
    assert_eq!(event.resource, "note");
    assert!(event.time.is_some());
    let body = event.body.clone().unwrap();
    let parts = [&event.key, &event.actor, &event.request_id, &body.kind, &body.reason, &body.text];
    let parts: Vec<&str> = parts.into_iter().map(|part| &**part).filter(|part| !part.is_empty()).collect();
    format!("{}: {}", event.revision, parts.join(" "))
}

async fn open(database: &test_databases::EmptyDatabase) -> (Context, Ledger<Notes>) {
    let context = Context::new(Settings::default());
    let ledger = Ledger::open(&context, note::connect(database).await).await.unwrap();
    (context, ledger)
}

#[tokio::test]
async fn events_outlive_restart_and_deletion() {
    for database in test_databases::every_kind().await {
        let (context, ledger) = open(&database).await;
        put(&ledger, "a", "one").await;
        put(&ledger, "b", "").await;
        put(&ledger, "a", "one").await;
        let decided = ledger.write_by(Actor::Service("evaluator"), |draft| {
            draft.put_because(Note::new("a", "two"), "better");
            Ok(())
        });
        decided.await.unwrap();
        stop(context).await;

        let (context, ledger) = open(&database).await;
        let written = ledger.write_by(Actor::Client, |draft| {
            draft.put(Note::new("a", "three"));
            draft.put(Note::new("a", "four"));
            Ok(())
        });
        request_id::scope("r1".to_owned(), written).await.unwrap();
        let story = [
            "1: a note-keeper written one",
            "4: a evaluator written better two",
            "5: a client r1 written three",
            "5: a client r1 written four",
        ];
        assert_eq!(list(&ledger, about(&["a"]), 0).await, story, "{}", database.kind);
        assert_eq!(list(&ledger, about(&["a"]), 2).await, story[2..]);
        assert_eq!(list(&ledger, about(&["c"]), 0).await, [""; 0]);
        let erase = |draft: &mut chassis::store::ledger::Draft<'_, Note>| {
            draft.delete("a");
            Ok(())
        };
        ledger.write(erase).await.unwrap();
        let erased = "6: a note-keeper erased";
        assert_eq!(list(&ledger, about(&["a"]), 0).await, [&story[..], &[erased]].concat());
        assert_eq!(list(&ledger, about(&[]), 0).await.len(), 6);
        let prefix = EventFilter { key_prefix: "b".to_owned(), ..EventFilter::default() };
        assert_eq!(list(&ledger, prefix, 0).await.len(), 1);
        let kinds = EventFilter { kinds: vec!["erased".to_owned()], ..EventFilter::default() };
        assert_eq!(list(&ledger, kinds, 0).await, [erased]);
        let later = prost_types::Timestamp { seconds: i64::MAX / 1000, nanos: 0 };
        let since = EventFilter { since: Some(later), ..EventFilter::default() };
        assert_eq!(list(&ledger, since, 0).await, [""; 0]);
        stop(context).await;
    }
}

#[tokio::test]
async fn refused_change_has_no_event() {
    for database in test_databases::every_kind().await {
        let (context, ledger) = open(&database).await;
        let refused = ledger.write(|draft| {
            draft.put(Note::new("a", "refused"));
            Err::<(), _>(Fault::not_found("note", "a"))
        });
        refused.await.unwrap_err();
        put(&ledger, "a", "accepted").await;
        assert_eq!(list(&ledger, about(&[]), 0).await, ["1: a note-keeper written accepted"]);
        stop(context).await;
    }
}

/// A fleet that changes together shares rows, and yet every resource has its own story.
#[tokio::test]
async fn each_of_a_fleet_has_its_story() {
    for database in test_databases::every_kind().await {
        let (context, ledger) = open(&database).await;
        for text in ["one", "two", "three"] {
            let write = ledger.write(move |draft| {
                for n in 0..600 {
                    draft.put(Note::new(&format!("n{n:03}"), if n == 300 { "odd" } else { text }));
                }
                Ok(())
            });
            write.await.unwrap();
        }
        for (key, story) in [
            ("n000", &["1: n000 note-keeper written one", "601: n000 note-keeper written two"][..]),
            ("n255", &["256: n255 note-keeper written one", "856: n255 note-keeper written two"]),
            ("n300", &["301: n300 note-keeper written odd"]),
            ("n599", &["600: n599 note-keeper written one", "1200: n599 note-keeper written two"]),
        ] {
            let mut seen = list(&ledger, about(&[key]), 0).await;
            seen.truncate(2);
            assert_eq!(seen, story, "{key} {}", database.kind);
        }
        let several = list(&ledger, about(&["n001", "n300", "n599"]), 0).await;
        assert_eq!(several.len(), 7);
        assert_eq!(list(&ledger, about(&[]), 0).await.len(), 1000);
        stop(context).await;
    }
}

#[tokio::test]
async fn pages_go_back_without_gap_or_repetition() {
    for database in test_databases::every_kind().await {
        let (context, ledger) = open(&database).await;
        for text in ["one", "two"] {
            put(&ledger, "a", text).await;
            put(&ledger, "b", text).await;
        }
        // Two events of one revision.
        let twice = |draft: &mut Draft<'_, Note>| {
            draft.put_because(Note::new("a", "three"), "first");
            draft.put_because(Note::new("a", "four"), "second");
            Ok(())
        };
        ledger.write(twice).await.unwrap();
        let erase = |draft: &mut Draft<'_, Note>| {
            draft.delete("b");
            Ok(())
        };
        ledger.write(erase).await.unwrap();
        put(&ledger, "b", "again").await;
        let everything = [["7.0", "6.0"], ["5.1", "5.0"], ["4.0", "3.0"], ["2.0", "1.0"]];
        let whole: Vec<_> = everything.concat();
        for (name, filter, size, expected) in [
            ("all at once", about(&[]), 0, vec![&whole[..]]),
            ("all", about(&[]), 2, everything.iter().map(|page| &page[..]).collect()),
            ("within a revision", about(&["a"]), 1, vec![&["5.1"], &["5.0"], &["3.0"], &["1.0"], &[]]),
            (
                "a record and the one before",
                about(&["b"]),
                1,
                vec![&["7.0"], &["6.0"], &["4.0"], &["2.0"], &[]],
            ),
            (
                "two of three",
                about(&["a", "b"]),
                3,
                vec![&["7.0", "5.1", "5.0"], &["4.0", "3.0", "2.0"], &["1.0"]],
            ),
            ("reason", EventFilter { reasons: vec!["second".to_owned()], ..about(&[]) }, 1, vec![&["5.1"]]),
            ("nothing", about(&["c"]), 5, vec![&[]]),
            (
                "before a time",
                EventFilter { until: Some(prost_types::Timestamp::default()), ..about(&["a"]) },
                0,
                vec![&[], &[]],
            ),
        ] {
            assert_eq!(pages(&ledger, filter, size).await, expected, "{name} {}", database.kind);
        }
        stop(context).await;
    }
}

/// Every page of events from a position on, the oldest first, as positions, and the position of a further page.
async fn later_pages(
    ledger: &Ledger<Notes>,
    filter: EventFilter,
    page_size: u32,
    from: EventPosition,
) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut from = Some(from);
    while let Some(place) = from {
        let (filter, from_place) = (Some(filter.clone()), Some(place));
        let request = ListEventsRequest { filter, page_size, from: from_place, ..Default::default() };
        let answer = page(ledger, request).await;
        assert_eq!(answer.newer.is_some(), answer.examined_to.is_some());
        assert_eq!(answer.older, None);
        pages.push(answer.events.iter().map(|event| format!("{}.{}", event.revision, event.index)).collect());
        from = answer.newer;
    }
    pages
}

#[tokio::test]
async fn pages_go_forth_without_gap_or_repetition() {
    for database in test_databases::every_kind().await {
        let (context, ledger) = open(&database).await;
        put(&ledger, "a", "one").await;
        put(&ledger, "b", "one").await;
        let twice = |draft: &mut Draft<'_, Note>| {
            draft.put_because(Note::new("a", "three"), "first");
            draft.put_because(Note::new("a", "four"), "second");
            Ok(())
        };
        ledger.write_by(Actor::Client, twice).await.unwrap();
        put(&ledger, "b", "two").await;
        let at = |revision, index| EventPosition { revision, index };
        let clients = EventFilter { actors: vec!["client".to_owned()], ..about(&[]) };
        let ended = EventFilter { until: Some(prost_types::Timestamp::default()), ..about(&[]) };
        let elsewhere = EventFilter { session: "s".to_owned(), ..about(&[]) };
        for (name, filter, size, from, expected) in [
            ("all", about(&[]), 0, at(0, 0), vec![&["1.0", "2.0", "3.0", "3.1", "4.0"][..]]),
            ("by two", about(&[]), 2, at(0, 0), vec![&["1.0", "2.0"], &["3.0", "3.1"], &["4.0"]]),
            ("from within a revision", about(&[]), 0, at(3, 1), vec![&["3.1", "4.0"]]),
            ("one", about(&["b"]), 1, at(0, 0), vec![&["2.0"], &["4.0"]]),
            ("of an author", clients, 0, at(0, 0), vec![&["3.0", "3.1"]]),
            ("before a time", ended, 0, at(0, 0), vec![&[]]),
            ("of a session", elsewhere, 0, at(0, 0), vec![&[]]),
            ("none", about(&[]), 0, at(5, 0), vec![&[]]),
        ] {
            assert_eq!(later_pages(&ledger, filter, size, from).await, expected, "{name} {}", database.kind);
        }
        stop(context).await;
    }
}

#[tokio::test]
async fn watch_resumes_without_gap() {
    for database in test_databases::every_kind().await {
        let (context, ledger) = open(&database).await;
        put(&ledger, "a", "one").await;
        put(&ledger, "b", "two").await;
        put(&ledger, "a", "three").await;
        let watch = async |resume_revision, filter| {
            let request = WatchEventsRequest { filter: Some(filter), resume_revision };
            EventHistories::default()
                .with(&ledger)
                .watch_events(Request::new(request))
                .await
                .map(tonic::Response::into_inner)
        };
        let refused = watch(Some(4), about(&[])).await.err().map(|status| status.code());
        assert_eq!(refused, Some(Code::OutOfRange));

        let mut resumed = watch(Some(1), about(&[])).await.unwrap();
        let mut new = watch(None, about(&["b"])).await.unwrap();
        let later = ["2: b note-keeper written two", "3: a note-keeper written three"];
        assert_eq!(next(&mut resumed).await, (later.map(str::to_owned).to_vec(), 3));
        assert_eq!(next(&mut new).await, (Vec::new(), 3));
        put(&ledger, "a", "four").await;
        put(&ledger, "b", "five").await;
        let (seen, revision) = next(&mut new).await;
        assert_eq!((&seen[..], revision), (&["5: b note-keeper written five".to_owned()][..], 5));
        stop(context).await;
    }
}

async fn next<S>(watch: &mut S) -> (Vec<String>, u64)
where
    S: futures_util::Stream<Item = Result<WatchEventsResponse, tonic::Status>> + Unpin,
{
    let response = tokio::time::timeout(PATIENCE, watch.next()).await;
    let response = response.unwrap().unwrap().unwrap();
    (response.events.iter().map(shown).collect(), response.revision)
}
