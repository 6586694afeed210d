//! Agents in trouble: they report nonsense, break off, and poll while the registry is away.

use std::time::Duration;

use expect_test::expect;
use futures_util::future::join_all;
use serde_json::{Value, json};
use test_registry::CallFault;
use tokio::time::{sleep, timeout};

use super::world::{AgentWorld, PATIENCE, POLL, TestAgent};

/// Number of polls that are open while the registry restarts.
const OPEN_POLLS: usize = 40;

impl AgentWorld {
    /// Returns the revision of a device.
    async fn revision(&self, agent: &TestAgent) -> Value {
        let (status, device) = self.person("GET", &agent.path(""), None).await;
        assert_eq!(status, 200, "{device}");
        device["metadata"]["resourceVersion"].clone()
    }

    /// Returns an agent that has the first version of its spec, and that version.
    async fn up_to_date(&self) -> (TestAgent, String) {
        let agent = self.enrolled().await;
        self.wish(&agent, "os:1").await;
        let known = self.poll(&agent, "0").await;
        (agent, known)
    }

    /// Polls again while the registry is away, as agents do.
    async fn poll_until_served(&self, agent: &TestAgent, known: &str) -> String {
        loop {
            match self.poll_once(agent, known).await {
                (200, Some(version)) => return version,
                (status, _) => assert!(matches!(status, 204 | 503), "{status}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Condition of an agent that prepares an update since a moment.
fn updating(since: &str) -> Value {
    json!({
        "type": "Updating", "status": "True", "reason": "Preparing", "message": "", "lastTransitionTime": since,
    })
}

#[tokio::test]
async fn documents_that_lie_are_refused_with_their_field() {
    let world = AgentWorld::start().await;
    let agent = world.enrolled().await;
    let before = world.revision(&agent).await;
    let huge = "x".repeat(2 << 20);
    let rows: Vec<(&str, &str, Value)> = vec![
        ("a word that nobody knows", "/status/resources/cpu", json!("Splendid")),
        ("a word of another field", "/status/applicationsSummary/status", json!("Online")),
        ("a number for a text", "/status/systemInfo/bootID", json!(7)),
        ("a text for a list", "/status/applications", json!("none")),
        ("a time that is none", "/status/conditions/0/lastTransitionTime", json!("yesterday")),
        ("another kind", "/kind", json!("Fleet")),
        ("another version of the contract", "/apiVersion", json!("v1alpha1")),
        ("no status", "/status", Value::Null),
        ("more than a device has to say", "/status/systemInfo/agentVersion", json!(&huge)),
    ];
    let mut lines = String::new();
    for (about, field, value) in rows {
        let mut report = agent.report("1", json!([updating("2026-01-01T00:00:00Z")]));
        *report.pointer_mut(field).unwrap() = value;
        let line = world.line(Some(&agent.certificate), ("PUT", &agent.path("/status"), Some(report))).await;
        lines += &format!("{about}: {line}\n");
    }
    expect![[r#"
        a word that nobody knows: 400 unknown variant `Splendid`, expected one of `Healthy`, `Warning`, `Critical`, `Error`, `Unknown` - 'status.resources.cpu'
        a word of another field: 400 unknown variant `Online`, expected one of `Healthy`, `Degraded`, `Error`, `Unknown`, `NoApplications` - 'status.applicationsSummary.status'
        a number for a text: 400 invalid type: integer `7`, expected a string - 'status.systemInfo.bootID'
        a text for a list: 400 invalid type: string "none", expected a sequence - 'status.applications'
        a time that is none: 400 'yesterday' is no time such as 2026-01-31T12:00:00Z - 'status.conditions[0].lastTransitionTime'
        another kind: 400 unknown variant `Fleet`, expected `Device` - 'kind'
        another version of the contract: 400 unknown variant `v1alpha1`, expected one of `flightctl.io/v1beta1`, `v1beta1`, `` - 'apiVersion'
        no status: 400 status: is missing
        more than a device has to say: 400 status: has 2097290 bytes when encoded, more than the 262144 that are allowed
    "#]].assert_eq(&lines);
    assert_eq!(world.revision(&agent).await, before);

    let mut enrolling = TestAgent::new().enrolment();
    enrolling["spec"]["deviceStatus"] = agent.report("1", json!([]))["status"].clone();
    enrolling["spec"]["deviceStatus"]["systemInfo"]["agentVersion"] = json!(huge);
    let asked = ("POST", "/enrollmentrequests", Some(enrolling));
    let line = world.line(Some(&world.enrolling()), asked).await;
    assert!(
        line.starts_with("400 spec: has 2097") && line.ends_with("the 262144 that are allowed"),
        "{line}"
    );
    world.end().await;
}

#[tokio::test]
async fn half_a_report_changes_nothing() {
    let world = AgentWorld::start().await;
    let agent = world.enrolled().await;
    let before = world.revision(&agent).await;
    let report = agent.report("1", json!([]));
    for _ in 0..20 {
        let mut connection = world.connect(Some(&agent.certificate)).await.unwrap();
        connection.send_half("PUT", &agent.path("/status"), &report).await.unwrap();
    }
    assert_eq!(world.revision(&agent).await, before);
    assert_eq!(world.registry().proxy.count("ReportDeviceStatus"), 0);
    let path = agent.path("/status");
    assert_eq!(world.ask(Some(&agent.certificate), "PUT", &path, Some(report)).await.unwrap().0, 200);
    world.end().await;
}

#[tokio::test]
async fn clocks_of_agents_do_not_say_when_they_were_seen() {
    let world = AgentWorld::start().await;
    let agent = world.enrolled().await;
    let mut seen = Vec::new();
    for moment in ["1970-01-01T00:00:00Z", "2199-01-01T00:00:00Z"] {
        let report = agent.report("1", json!([updating(moment)]));
        let path = agent.path("/status");
        let (status, device) = world.ask(Some(&agent.certificate), "PUT", &path, Some(report)).await.unwrap();
        assert_eq!((status, &device["status"]["summary"]["status"]), (200, &json!("Online")), "{device}");
        let (_, answer) = world.person("GET", &agent.path("/lastseen"), None).await;
        seen.push(answer["lastSeen"].as_str().expect("a time").to_owned());
    }
    let year = |text: &String| text[..4].parse::<u32>().unwrap();
    assert!(seen.iter().map(year).all(|year| (2026..2199).contains(&year)), "{seen:?}");
    world.end().await;
}

#[tokio::test]
async fn polls_end_with_the_registry_and_go_on_when_it_is_back() {
    let world = AgentWorld::start().await;
    let (agent, known) = world.up_to_date().await;
    let already = world.polls();

    let stopped = async {
        world.polls_open(already + OPEN_POLLS).await;
        world.registry().stop().await;
    };
    let open = join_all((0..OPEN_POLLS).map(|_| world.poll_once(&agent, &known)));
    let (ended, ()) = timeout(PATIENCE, async { tokio::join!(open, stopped) }).await.expect("polls end");
    assert_eq!(ended, vec![(503, None); OPEN_POLLS]);

    world.registry().resume().await;
    let already = world.polls();
    let wished = async {
        world.polls_open(already + OPEN_POLLS).await;
        world.wish(&agent, "os:2").await;
    };
    let polls = join_all((0..OPEN_POLLS).map(|_| world.poll_until_served(&agent, &known)));
    let (served, ()) = timeout(PATIENCE, async { tokio::join!(polls, wished) }).await.expect("a version");
    assert!(served.iter().all(|version| version != &known), "{known}: {served:?}");
    world.end().await;
}

#[tokio::test]
async fn a_version_whose_delivery_was_lost_is_delivered_again() {
    let world = AgentWorld::start().await;
    let (agent, known) = world.up_to_date().await;
    let already = world.polls();
    world.registry().proxy.fault(POLL, CallFault::Unanswered);
    let lost = async {
        world.polls_open(already + 1).await;
        world.wish(&agent, "os:2").await;
    };
    // The agent gives up when its version was delivered to nobody.
    tokio::select! {
        turn = world.poll_once(&agent, &known) => panic!("{turn:?}"),
        () = lost => {}
    }
    world.registry().proxy.mend(POLL);
    let next = timeout(PATIENCE, world.poll_until_served(&agent, &known)).await.expect("a version");
    assert_ne!(next, known);
    world.end().await;
}
