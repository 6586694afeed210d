use std::{collections::HashMap, fmt::Write as _};

use domain::core::time::Timestamp;
use expect_test::expect;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::{
    driver::RecordedIds,
    testing::pcs::{FakePcs, PcsTrouble},
};

/// Far above what an answer takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// Deadline of a call that gets no answer.
const SHORT: Duration = Duration::from_millis(300);

fn ids(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

fn driver(fake: &FakePcs) -> PcsDriver {
    PcsDriver::new(&fake.settings()).unwrap()
}

fn show(mut readings: Vec<(String, NodeReading)>) -> String {
    readings.sort_by(|a, b| a.0.cmp(&b.0));
    let lines = readings.into_iter().map(|(id, NodeReading { reading, error, as_of })| {
        let as_of = as_of.map(|at| format!(" as of {}", at.0)).unwrap_or_default();
        format!("{id} {reading:?} {error:?}{as_of}\n")
    });
    lines.collect()
}

#[tokio::test]
async fn only_on_and_off_are_states() {
    let fake = FakePcs::start().await;
    for (id, entry) in [
        ("x1", json!({"xname": "x1", "powerState": "on", "error": null, "lastUpdated": ""})),
        ("x2", json!({"xname": "x2", "powerState": "OFF", "lastUpdated": "2026-11-20T12:00:00.5Z"})),
        (
            "x3",
            json!({"xname": "x3", "powerState": "off", "lastUpdated": "2026-11-20T13:00:00.123456789+01:00"}),
        ),
        ("x4", json!({"xname": "x4", "powerState": "undefined", "error": ""})),
        ("x5", json!({"xname": "x5", "powerState": "", "error": "Component not found in component map."})),
        ("x6", json!({"xname": "x6", "powerState": "on", "error": "BMC\n does not  answer"})),
        ("x7", json!({"xname": "x7", "powerState": "dancing", "error": ""})),
        ("x8", json!({"xname": "x8"})),
        ("x9", json!({"xname": "stranger", "powerState": "on"})),
        (
            "x11",
            json!({"xname": "x11", "powerState": "on", "managementState": "unavailable", "error": "timeout"}),
        ),
        ("x12", json!({"xname": "x12", "powerState": "undefined", "managementState": "unavailable"})),
    ] {
        fake.set_entry(id, Some(entry));
    }
    let asked = "x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12";
    let readings = driver(&fake).power(ids(asked), DEADLINE).await.unwrap();
    expect![[r#"
        stranger On ""
        x1 On ""
        x11 Undefined "PCS cannot reach the node's BMC (timeout)"
        x12 Undefined "PCS cannot reach the node's BMC"
        x2 Off "" as of 1795176000500
        x3 Off "" as of 1795176000123
        x4 Undefined ""
        x5 Undefined "Component not found in component map."
        x6 On "BMC does not answer"
        x7 Undefined "PCS reports the power state 'dancing'"
        x8 Undefined ""
    "#]]
    .assert_eq(&show(readings));
    assert_eq!(fake.last_body(), json!({"xname": ids(asked)}));
    assert_eq!(fake.calls(), ["POST /power-status"]);
}

#[tokio::test]
async fn one_bad_id_hides_no_other_and_costs_its_search_once() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    let mut asked: Vec<_> = (0..64).map(|n| format!("x{n:02}")).collect();
    for id in &asked {
        fake.set_power(&[id], "off", "");
    }
    asked.insert(20, "bogus".to_owned());
    let readings: HashMap<_, _> = pcs.power(asked.clone(), DEADLINE).await.unwrap().into_iter().collect();
    assert_eq!(readings.len(), 65);
    assert_eq!(readings["x20"].reading, proto::power::PowerReading::Off);
    let told = show(vec![("bogus".to_owned(), readings["bogus"].clone())]);
    expect![[r#"
        bogus Undefined "PCS at HOST (refused POST /power-status: 400 Bad Request: invalid xnames detected: bogus)"
    "#]]
    .assert_eq(&told.replace(fake.url.trim_start_matches("http://"), "HOST"));
    let calls = fake.calls().len();
    assert!(calls <= 17, "{calls}");
    let again: HashMap<_, _> = pcs.power(asked, DEADLINE).await.unwrap().into_iter().collect();
    assert_eq!(again, readings);
    assert_eq!(fake.calls().len(), calls + 1);
}

#[tokio::test]
async fn refusal_of_everybody_costs_few_calls_and_sets_nobody_aside() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    let asked: Vec<_> = (0..2_000).map(|n| format!("x{n:04}")).collect();
    asked.iter().for_each(|id| fake.set_power(&[id], "off", ""));
    fake.trouble("status", Some(PcsTrouble::Answers(400, r#"{"detail": "no"}"#.into())));
    let refused = pcs.power(asked.clone(), DEADLINE).await;
    assert!(matches!(refused, Err(DriverFailure::Unreachable(_))), "{refused:?}");
    assert!(fake.calls().len() <= 4, "{} calls", fake.calls().len());
    assert!(pcs.power(asked.clone(), DEADLINE).await.is_err());
    assert!(fake.calls().len() <= 5, "{} calls", fake.calls().len());
    fake.trouble("status", None);
    let readings = pcs.power(asked, DEADLINE).await.unwrap();
    assert!(readings.iter().all(|(_, one)| one.reading == proto::power::PowerReading::Off));
}

#[tokio::test]
async fn nodes_beside_refused_probes_are_read_in_the_end() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    let asked = ids("x0 bogus1 bogus2 x3 bogus4");
    fake.set_power(&["x0", "x3"], "off", "");
    let mut outcomes = String::new();
    for _ in 0..3 {
        let readings = pcs.power(asked.clone(), DEADLINE).await.unwrap_or_default();
        let off = readings.iter().filter(|(_, one)| one.reading == proto::power::PowerReading::Off).count();
        writeln!(outcomes, "{off} of {}", readings.len()).unwrap();
    }
    assert_eq!(outcomes, "0 of 0\n0 of 0\n2 of 5\n");
}

#[tokio::test]
async fn lone_refused_node_is_blamed_once_others_are_taken_twice() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    fake.set_power(&["x1", "x2"], "off", "");
    fake.trouble("status", Some(PcsTrouble::Refuses("x2".into(), 400, r#"{"detail": "no"}"#.into())));
    for _ in 0..2 {
        let refused = pcs.power(ids("x2"), DEADLINE).await;
        assert!(matches!(refused, Err(DriverFailure::Unreachable(_))), "{refused:?}");
        pcs.power(ids("x1"), DEADLINE).await.unwrap();
    }
    assert!(show(pcs.power(ids("x2"), DEADLINE).await.unwrap()).starts_with("x2 Undefined"));
}

#[tokio::test]
async fn a_node_that_was_set_aside_is_asked_for_in_its_next_generation() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    fake.set_power(&["x1", "x2"], "off", "");
    fake.trouble("status", Some(PcsTrouble::Refuses("x2".into(), 400, r#"{"detail": "no"}"#.into())));
    pcs.power(ids("x1 x2"), DEADLINE).await.unwrap();
    fake.trouble("status", None);
    let reading = async || show(pcs.power(ids("x2"), DEADLINE).await.unwrap());
    assert!(reading().await.starts_with("x2 Undefined"));
    pcs.reconsider("x2");
    assert_eq!(reading().await, "x2 Off \"\"\n");
}

#[tokio::test]
async fn a_node_that_was_set_aside_by_mistake_is_read_again_soon() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    fake.set_power(&["x1", "x2", "x3"], "off", "");
    fake.trouble("status", Some(PcsTrouble::Refuses("x2".into(), 400, r#"{"detail": "no"}"#.into())));
    let reading = async || show(pcs.power(ids("x1 x2 x3"), DEADLINE).await.unwrap());
    assert!(reading().await.contains("x2 Undefined"));
    let asked = fake.calls().len();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(15)).await;
    tokio::time::resume();
    assert!(reading().await.contains("x2 Undefined"));
    assert_eq!(fake.calls().len() - asked, 2, "one call for it, and one for the others");
    fake.trouble("status", None);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(30)).await;
    tokio::time::resume();
    assert!(reading().await.contains("x2 Off"));
}

#[tokio::test]
async fn nobody_is_asked_about_nothing() {
    let fake = FakePcs::start().await;
    assert_eq!(driver(&fake).power(Vec::new(), DEADLINE).await.unwrap(), []);
    assert_eq!(fake.calls(), [] as [String; 0], "an empty list would mean every node");
}

#[tokio::test]
async fn transitions_are_asked_for_as_the_service_knows_them() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    let mut bodies = String::new();
    for action in [Action::PoweringOn, Action::PoweringOffGracefully, Action::PoweringOffForcefully] {
        let id = pcs.start(action, ids("x1 x2"), DEADLINE, || true).await.unwrap();
        writeln!(bodies, "{id}: {}", fake.last_body()).unwrap();
    }
    expect![[r#"
        t-1: {"location":[{"xname":"x1"},{"xname":"x2"}],"operation":"On","taskDeadlineMinutes":1}
        t-2: {"location":[{"xname":"x1"},{"xname":"x2"}],"operation":"Soft-Off","taskDeadlineMinutes":1}
        t-3: {"location":[{"xname":"x1"},{"xname":"x2"}],"operation":"Force-Off","taskDeadlineMinutes":1}
    "#]]
    .assert_eq(&bodies);
    let other = pcs.start(Action::SessionSetup, ids("x1"), DEADLINE, || true).await;
    assert!(matches!(other, Err(DriverFailure::Refused(_))), "{other:?}");
}

#[tokio::test]
async fn a_transition_that_was_handed_over_meanwhile_is_not_asked_for() {
    let fake = FakePcs::start().await;
    let left = driver(&fake).start(Action::PoweringOn, ids("x1"), DEADLINE, || false).await;
    assert!(matches!(left, Err(DriverFailure::Unreachable(_))), "{left:?}");
    assert_eq!(fake.calls(), [] as [String; 0]);
}

/// Returns the outcomes of a transition and of a power request in trouble.
async fn in_trouble(trouble: PcsTrouble) -> String {
    let deadline = if matches!(trouble, PcsTrouble::Hangs) { SHORT } else { DEADLINE };
    let fake = FakePcs::start().await;
    fake.set_power(&["x1", "x2"], "on", "");
    for kind in ["create", "status"] {
        fake.trouble(kind, Some(trouble.clone()));
    }
    let pcs = driver(&fake);
    let kind = |failure: DriverFailure| {
        let (kind, text) = match failure {
            DriverFailure::Refused(text) => ("refused", text),
            DriverFailure::TooLarge(text) => ("too large", text),
            DriverFailure::Denied(text) => ("denied", text),
            DriverFailure::Unreachable(text) => ("unreachable", text),
            DriverFailure::Ambiguous(text) => ("ambiguous", text),
        };
        assert!(text.contains("PCS"), "{text}");
        kind.to_owned()
    };
    let started = pcs.start(Action::PoweringOn, ids("x1 x2"), deadline, || true).await;
    let read = pcs.power(ids("x1 x2"), deadline).await;
    let read = read.map_or_else(kind, |readings| {
        let known = readings.iter().filter(|(_, one)| one.error.is_empty()).count();
        format!("{known} of {}", readings.len())
    });
    let most = pcs.most_nodes();
    format!("{}, then at most {most}; power: {read}", started.unwrap_or_else(kind))
}

#[tokio::test]
async fn trouble_is_told_by_what_it_did() {
    let problem = |detail: &str| json!({"detail": detail}).to_string();
    let rows = [
        ("hangs", PcsTrouble::Hangs),
        ("bad request", PcsTrouble::Answers(400, problem("invalid xnames"))),
        ("unauthorised", PcsTrouble::Answers(401, String::new())),
        ("unknown path", PcsTrouble::Answers(404, "no such page".into())),
        ("too large for the proxy", PcsTrouble::Over(1, 413, String::new())),
        ("too large for the store", PcsTrouble::Over(1, 500, problem("etcdserver: request is too large"))),
        ("busy", PcsTrouble::Answers(429, String::new())),
        ("broken", PcsTrouble::Answers(500, problem("etcdserver: leader changed"))),
        ("restarting", PcsTrouble::Answers(502, String::new())),
        ("not JSON", PcsTrouble::Answers(200, "<html>".into())),
        ("JSON of something else", PcsTrouble::Answers(200, "{}".into())),
        ("an id that leads elsewhere", PcsTrouble::Answers(200, r#"{"transitionID": "../locks"}"#.into())),
        ("an answer about power without nodes", PcsTrouble::Answers(200, r#"{"status": null}"#.into())),
    ];
    let mut table = String::new();
    for (name, trouble) in rows {
        writeln!(table, "{name}: {}", in_trouble(trouble).await).unwrap();
    }
    expect![[r#"
        hangs: ambiguous, then at most 2500; power: ambiguous
        bad request: refused, then at most 2500; power: unreachable
        unauthorised: denied, then at most 2500; power: denied
        unknown path: denied, then at most 2500; power: denied
        too large for the proxy: too large, then at most 100; power: 2 of 2
        too large for the store: too large, then at most 100; power: 2 of 2
        busy: unreachable, then at most 2500; power: unreachable
        broken: ambiguous, then at most 2500; power: ambiguous
        restarting: ambiguous, then at most 2500; power: ambiguous
        not JSON: ambiguous, then at most 2500; power: ambiguous
        JSON of something else: ambiguous, then at most 2500; power: ambiguous
        an id that leads elsewhere: ambiguous, then at most 2500; power: ambiguous
        an answer about power without nodes: ambiguous, then at most 2500; power: ambiguous
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn a_service_that_is_not_there_was_not_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let pcs = PcsDriver::new(&settings::Peer { url, ..FakePcs::start().await.settings() }).unwrap();
    let started = pcs.start(Action::PoweringOn, ids("x1"), DEADLINE, || true).await;
    assert!(matches!(started, Err(DriverFailure::Unreachable(_))), "{started:?}");
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    let peer = |url: &str| settings::Peer { url: url.into(), ..settings::Power::default().pcs };
    for url in ["", "http://pcs"] {
        let error = PcsDriver::new(&peer(url)).err().expect("an error").to_string();
        assert!(error.starts_with("power.pcs.url: "), "{error}");
    }
}

#[tokio::test]
async fn tasks_tell_what_becomes_of_nodes_and_the_transition_when_it_is_over() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    let task = |id: &str, status: &str, description: &str, error: &str| json!({"xname": id, "taskStatus": status, "taskStatusDescription": description, "error": error});
    let tasks = [
        task("x1", "new", "Gathering data", ""),
        task("x2", "in-progress", "Confirming successful transition, on", ""),
        task("x3", "succeeded", "Transition confirmed, on", ""),
        task("x4", "failed", "Failed to achieve transition", "Unable to reserve component"),
        task("x5", "failed", "", "Missing xname"),
        task("x6", "failed", "Aborted. Last status - Gathering data", ""),
        json!({"xname": "x7", "taskStatus": "failed"}),
        task("x8", "unsupported", "", "Unsupported for transition operation"),
        task("x9", "dancing", "", ""),
        task("y1", "failed", "Failed to apply transition, gracefulshutdown", "BMC answered 503: busy"),
        task(
            "y2",
            "failed",
            "Failed to achieve transition",
            "Timeout waiting for transition, gracefulshutdown.",
        ),
        task("y3", "failed", "Failed to confirm transition", ""),
        task("y4", "failed", "Aborted. Last status - Confirming successful transition", "Transition aborted"),
    ];
    let mut table = String::new();
    for status in ["new", "in-progress", "abort-signaled", "completed", "aborted", "dancing"] {
        fake.forget_transitions();
        fake.add_transition(json!({"transitionID": "t", "transitionStatus": status, "tasks": tasks}));
        let progress = pcs.follow("t", DEADLINE).await.unwrap();
        writeln!(table, "{status}: ended {}", progress.ended).unwrap();
        if status == "completed" {
            progress
                .tasks
                .iter()
                .for_each(|task| writeln!(table, "  {}: {:?}", task.id, task.state).unwrap());
        }
    }
    let unknown = pcs.follow("u", DEADLINE).await.unwrap();
    writeln!(table, "not known any more: ended {} {:?}", unknown.ended, unknown.tasks).unwrap();
    expect![[r#"
        new: ended false
        in-progress: ended false
        abort-signaled: ended false
        completed: ended true
          x1: Pending
          x2: Begun
          x3: Succeeded
          x4: Refused { words: "PCS: Unable to reserve component (Failed to achieve transition)", reserved: true }
          x5: Refused { words: "PCS: Missing xname", reserved: false }
          x6: Failed("PCS: Aborted. Last status - Gathering data")
          x7: Failed("PCS reports the task as failed")
          x8: Refused { words: "PCS: Unsupported for transition operation", reserved: false }
          x9: Pending
          y1: Failed("PCS: BMC answered 503: busy (Failed to apply transition, gracefulshutdown)")
          y2: TimedOut("PCS: Timeout waiting for transition, gracefulshutdown. (Failed to achieve transition)")
          y3: TimedOut("PCS: Failed to confirm transition")
          y4: TimedOut("PCS: Transition aborted (Aborted. Last status - Confirming successful transition)")
        aborted: ended true
        dancing: ended false
        not known any more: ended true []
    "#]]
    .assert_eq(&table);
    fake.trouble("get", Some(PcsTrouble::Answers(500, String::new())));
    assert!(pcs.follow("t", DEADLINE).await.is_err());
}

#[tokio::test]
async fn a_transition_is_forgotten_only_if_the_list_lacks_it_too() {
    let fake = FakePcs::start().await;
    for (id, status) in [("t1", "in-progress"), ("t2", "completed")] {
        fake.add_transition(json!({"transitionID": id, "transitionStatus": status, "tasks": []}));
    }
    let page = || Some(PcsTrouble::Answers(404, "<html>no such page</html>".into()));
    for kind in ["get", "abort"] {
        fake.trouble(kind, page());
    }
    let mut table = String::new();
    for (list, trouble) in [
        ("read", None),
        ("not found", page()),
        ("in trouble", Some(PcsTrouble::Answers(503, String::new()))),
        ("no list", Some(PcsTrouble::Answers(200, "{}".into()))),
    ] {
        fake.trouble("list", trouble);
        for id in ["t1", "t2", "t3"] {
            // Another driver has not met the trouble of the list yet.
            let (pcs, calls) = (driver(&fake), fake.calls().len());
            let followed = pcs.follow(id, DEADLINE).await.map(|progress| progress.ended);
            let called = fake.calls()[calls..].join(", ");
            let followed = followed.map_or_else(|_| "failed", |ended| if ended { "ended" } else { "open" });
            let aborted = pcs.abort(id, DEADLINE, || true).await.map_or("failed", |()| "done");
            writeln!(table, "list {list}: {id} {followed}, abort {aborted} ({called})").unwrap();
        }
    }
    expect![[r#"
        list read: t1 failed, abort failed (GET /transitions/t1, GET /transitions)
        list read: t2 failed, abort failed (GET /transitions/t2, GET /transitions)
        list read: t3 ended, abort done (GET /transitions/t3, GET /transitions)
        list not found: t1 failed, abort failed (GET /transitions/t1, GET /transitions)
        list not found: t2 failed, abort failed (GET /transitions/t2, GET /transitions)
        list not found: t3 failed, abort failed (GET /transitions/t3, GET /transitions)
        list in trouble: t1 failed, abort failed (GET /transitions/t1, GET /transitions)
        list in trouble: t2 failed, abort failed (GET /transitions/t2, GET /transitions)
        list in trouble: t3 failed, abort failed (GET /transitions/t3, GET /transitions)
        list no list: t1 failed, abort failed (GET /transitions/t1, GET /transitions)
        list no list: t2 failed, abort failed (GET /transitions/t2, GET /transitions)
        list no list: t3 failed, abort failed (GET /transitions/t3, GET /transitions)
    "#]]
    .assert_eq(&table);
    fake.trouble("list", None);
    let pcs = driver(&fake);
    let text = pcs.follow("t1", DEADLINE).await.unwrap_err().to_string();
    let text = text.replace(fake.url.trim_start_matches("http://"), "HOST");
    expect!["PCS at HOST (refused GET /transitions/t1: 404 Not Found: <html>no such page</html>), but its list of transitions still has it"].assert_eq(&text);
    fake.trouble("get", None);
    assert!(!pcs.follow("t1", DEADLINE).await.unwrap().ended);
}

#[tokio::test]
async fn search_fails_on_404_of_a_listed_transition() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    pcs.start(Action::PoweringOn, ids("x1"), DEADLINE, || true).await.unwrap();
    fake.trouble("get", Some(PcsTrouble::Answers(404, "<html>".into())));
    assert!(pcs.holders(&["x1".to_owned()].into(), DEADLINE).await.is_err());
    fake.trouble("get", None);
    assert_eq!(pcs.holders(&["x1".to_owned()].into(), DEADLINE).await.unwrap().len(), 1);
}

#[tokio::test]
async fn foreign_transitions_are_the_open_ones_and_the_recent_ones() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    let now = chrono::Utc::now();
    for (id, age, status) in [
        ("ours", 10, "in-progress"),
        ("ours-again", 15, "in-progress"),
        ("ours-over", 20, "completed"),
        ("open", 10, "in-progress"),
        ("old-open", 7200, "in-progress"),
        ("ended", 30, "completed"),
        ("aborted", 60, "aborted"),
        ("old", 7200, "completed"),
    ] {
        let created = (now - chrono::Duration::seconds(age)).to_rfc3339();
        let task = |xname: &str, status: &str, error: &str| json!({"xname": xname, "taskStatus": status, "error": error});
        let tasks = [
            task("x1", "succeeded", ""),
            task("x2", "failed", "Timeout waiting for transition"),
            task("x3", "failed", "Unable to reserve component"),
        ];
        fake.add_transition(json!({"transitionID": id, "operation": "Soft-Off", "createTime": created,
            "transitionStatus": status, "tasks": tasks}));
    }
    let query = |ended: Option<&str>, age| ForeignQuery {
        recorded: RecordedIds {
            all: ["ours", "ours-again", "ours-over"].map(str::to_owned).into(),
            accounted: ["ours"].map(str::to_owned).into(),
        },
        ended: ended.map(|ids| Arc::new(ids.split(' ').map(str::to_owned).collect())),
        ended_since: Timestamp(now.timestamp_millis()).minus(Duration::from_secs(age)),
    };
    let mut table = String::new();
    for (name, query) in [
        ("first, 600 s", query(None, 600)),
        ("first, 45 s", query(None, 45)),
        ("later", query(Some("ended old"), 0)),
        ("later, nothing new", query(Some("ended aborted old"), 600)),
    ] {
        let answer = pcs.foreign(&query, DEADLINE).await.unwrap();
        let found = answer.found.iter().map(|one| format!("{} {}", one.id, one.ids.join(" ")));
        table += &format!("{name}: {}\n", found.collect::<Vec<_>>().join(", "));
        assert_eq!((answer.listed.len(), answer.ended.len()), (8, 3));
    }
    expect![[r#"
        first, 600 s: open x1 x2, ours-again x1 x2, ended x1 x2, aborted x1 x2, old-open x1 x2
        first, 45 s: open x1 x2, ours-again x1 x2, ended x1 x2, old-open x1 x2
        later: open x1 x2, ours-again x1 x2, aborted x1 x2, old-open x1 x2
        later, nothing new: open x1 x2, ours-again x1 x2, old-open x1 x2
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn transition_that_can_only_be_listed_is_looked_up_without_nodes() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    pcs.start(Action::PoweringOn, ids("x1"), DEADLINE, || true).await.unwrap();
    for answer in [(404, "<html>"), (500, "its row cannot be read")] {
        fake.trouble("get", Some(PcsTrouble::Answers(answer.0, answer.1.into())));
        let found = pcs.look_up("t-1", DEADLINE).await.unwrap().unwrap();
        assert_eq!((found.open, found.ids.len(), found.complete), (true, 0, false));
        let query = ForeignQuery { recorded: RecordedIds::default(), ended: None, ended_since: Timestamp(0) };
        let failure = pcs.foreign(&query, DEADLINE).await.unwrap_err().to_string();
        assert!(failure.ends_with(", about transition t-1"), "{failure}");
    }
    assert!(pcs.look_up("t-2", DEADLINE).await.is_err(), "it is not listed, and nobody knows");
}

#[tokio::test]
async fn impossible_id_is_not_looked_up() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    for id in ["../power-status", "a/b", "t 1"] {
        assert_eq!(pcs.look_up(id, DEADLINE).await, Ok(None), "{id}");
    }
    assert!(fake.calls().is_empty());
}

#[tokio::test]
async fn a_transition_is_ended_once_and_one_that_is_over_needs_no_end() {
    let fake = FakePcs::start().await;
    let pcs = driver(&fake);
    for (id, status) in [("t1", "in-progress"), ("t2", "completed")] {
        fake.add_transition(json!({"transitionID": id, "transitionStatus": status, "tasks": []}));
    }
    for id in ["t1", "t2", "t3"] {
        assert_eq!(pcs.abort(id, DEADLINE, || true).await, Ok(()), "{id}");
    }
    fake.trouble("abort", Some(PcsTrouble::Answers(500, String::new())));
    assert!(pcs.abort("t1", DEADLINE, || true).await.is_err());
}

#[tokio::test]
async fn only_transitions_that_may_be_ours_are_looked_into_the_newest_first() {
    let fake = FakePcs::start().await;
    let transition = |id: &str, operation: &str, time: &str, status: &str, nodes: &str| {
        let tasks: Vec<_> = ids(nodes).into_iter().map(|id| json!({"xname": id})).collect();
        json!({"transitionID": id, "operation": operation, "createTime": time,
            "transitionStatus": status, "tasks": tasks})
    };
    for one in [
        transition("before", "On", "2026-11-20T11:59:50Z", "in-progress", "x1 x2"),
        transition("same", "on", "2026-11-20T12:00:00Z", "in-progress", "x2 x1"),
        transition("other", "Off", "2026-11-20T12:00:01Z", "in-progress", "x1 x2"),
        transition("known", "On", "2026-11-20T12:00:01Z", "in-progress", "x1 x2"),
        transition("larger", "On", "2026-11-20T12:00:01Z", "in-progress", "x1 x2 x3"),
        transition("over", "On", "2026-11-20T12:00:02Z", "completed", "x1 x3"),
        transition("begun", "On", "2026-11-20T12:00:03Z", "new", ""),
        transition("../evil", "On", "2026-11-20T12:00:04Z", "new", ""),
    ] {
        fake.add_transition(one);
    }
    let search = UpstreamSearch {
        from: wire::time("2026-11-20T12:00:00Z").unwrap(),
        until: domain::core::time::Timestamp(i64::MAX),
        actions: vec![Action::PoweringOn],
        sizes: [2].into(),
        known: ["known".to_owned()].into(),
    };
    let found = driver(&fake).find(&search, DEADLINE).await.unwrap();
    let lines = found.accepted.iter().map(|one| {
        let action = one.action.map(Action::word);
        format!("{} {action:?} {:?} complete {} at {}\n", one.id, one.ids, one.complete, one.at.0)
    });
    expect![[r#"
        begun Some("powering_on") [] complete false at 1795176003000
        over Some("powering_on") ["x1", "x3"] complete true at 1795176002000
        same Some("powering_on") ["x1", "x2"] complete true at 1795176000000
    "#]]
    .assert_eq(&lines.collect::<String>());
    assert_eq!(
        fake.calls(),
        ["GET /transitions", "GET /transitions/begun", "GET /transitions/over", "GET /transitions/same"]
    );
}
