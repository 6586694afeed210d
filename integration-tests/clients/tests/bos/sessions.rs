//! Sessions.

use std::time::Duration;

use csm_rs::{
    ShastaClient,
    bos::{BosSession, Operation},
};
use serde_json::{Value, json};

use crate::{
    gateway::{Refusal, TOKEN, client},
    templates::template,
};

/// Limit of a wait that takes a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A request for a session without optional members.
fn wish(template: &str, operation: Operation) -> BosSession {
    BosSession {
        name: None,
        tenant: None,
        operation: Some(operation),
        template_name: template.into(),
        limit: None,
        stage: None,
        components: None,
        include_disabled: None,
        status: None,
    }
}

/// Stores a template under `name` that boots `nodes`.
async fn store(client: &ShastaClient, name: &str, nodes: &[&str]) {
    client.bos_template_v2_put(TOKEN, &template("v1", nodes), name).await.unwrap();
}

/// Waits until a session is complete and returns it.
async fn complete(client: &ShastaClient, name: &str) -> BosSession {
    let looking = async {
        loop {
            let session = client.bos_session_v2_get(TOKEN, Some(name)).await.unwrap().remove(0);
            if shown(&session)["status"]["status"] == "complete" {
                return session;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("a session that completes")
}

/// A session as JSON, with a word in place of each time stamp.
fn shown(session: &BosSession) -> Value {
    let mut shown = serde_json::to_value(session).unwrap();
    for time in ["start_time", "end_time"] {
        if let Some(Value::String(text)) = shown["status"].get_mut(time) {
            assert!(is_time(text), "{time} is {text:?}");
            *text = "TIME".into();
        }
    }
    shown
}

/// Returns whether the text is a time as BOS writes it: `2026-11-20T09:05:00`, without a zone.
fn is_time(text: &str) -> bool {
    let zeros: String =
        text.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    zeros == "0000-00-00T00:00:00"
}

#[tokio::test]
async fn nodes_are_booted_rebooted_and_shut_down() {
    let (client, template) = (client(), "operated");
    store(&client, template, &["x1000c0s0b0n0", "x1000c0s0b0n1"]).await;
    for operation in [Operation::Boot, Operation::Reboot, Operation::Shutdown] {
        let word = operation.to_string();
        let name = format!("{template}-{word}");
        let wish = BosSession {
            name: Some(name.clone()),
            limit: Some("x1000c0s0b0n1".into()),
            ..wish(template, operation)
        };
        let created = client.bos_session_v2_post(TOKEN, wish).await.unwrap();
        let session = |components: &str, status: Value| {
            json!({
                "name": name,
                "operation": word,
                "template_name": template,
                "limit": "x1000c0s0b0n1",
                "stage": false,
                "include_disabled": false,
                "components": components,
                "status": status,
            })
        };
        assert_eq!(shown(&created), session("", json!({"start_time": "TIME", "status": "pending"})));

        let complete = complete(&client, &name).await;
        let status = json!({"start_time": "TIME", "end_time": "TIME", "status": "complete"});
        assert_eq!(shown(&complete), session("x1000c0s0b0n1", status));
    }
}

#[tokio::test]
async fn unnamed_session_gets_a_name_and_is_listed() {
    let (client, template) = (client(), "listed");
    store(&client, template, &["x1000c0s0b1n0"]).await;
    let created = client.bos_session_v2_post(TOKEN, wish(template, Operation::Boot)).await.unwrap();
    let name = created.name.expect("a name");
    assert_eq!(name.len(), "123e4567-e89b-12d3-a456-426614174000".len(), "{name}");

    let complete = complete(&client, &name).await;
    let listed = client.bos_session_v2_get(TOKEN, None).await.unwrap();
    let listed: Vec<_> =
        listed.iter().filter(|session| session.name.as_ref() == Some(&name)).map(shown).collect();
    assert_eq!(listed, [shown(&complete)]);
}

#[tokio::test]
async fn limit_without_nodes_completes_with_an_error() {
    let (client, template) = (client(), "limited");
    store(&client, template, &["x1000c0s0b1n1"]).await;
    let wish = BosSession { limit: Some("fakexname".into()), ..wish(template, Operation::Reboot) };
    let created = client.bos_session_v2_post(TOKEN, wish).await.unwrap();

    let complete = complete(&client, &created.name.expect("a name")).await;
    let status = complete.status.expect("a status");
    assert_eq!(status.error.as_deref(), Some("No nodes were found to act upon."));
}

#[tokio::test]
async fn a_staged_session_is_told_from_others() {
    let (client, template) = (client(), "staged");
    store(&client, template, &["x1000c0s1b0n0"]).await;
    let wish =
        BosSession { stage: Some(true), include_disabled: Some(true), ..wish(template, Operation::Reboot) };
    let created = client.bos_session_v2_post(TOKEN, wish).await.unwrap();
    assert_eq!((created.stage, created.include_disabled), (Some(true), Some(true)));
    client.bos_session_v2_delete(TOKEN, &created.name.expect("a name")).await.unwrap();
}

#[tokio::test]
async fn a_session_that_cannot_be_is_refused() {
    let (client, template) = (client(), "refusing");
    store(&client, template, &["x1000c0s1b0n1"]).await;
    let named = |name: &str, template: &str| BosSession {
        name: Some(name.into()),
        ..wish(template, Operation::Shutdown)
    };
    client.bos_session_v2_post(TOKEN, named("taken", template)).await.unwrap();

    let no_operation = BosSession { operation: None, ..named("refused", template) };
    let components = BosSession { components: Some("x1000c0s1b0n1".into()), ..named("refused", template) };
    for (refused, status, told) in [
        (named("taken", template), 409, "Session 'taken' already exists"),
        (named("refused", "nosuch"), 400, "Session Template Name invalid: nosuch"),
        (named("not a name", template), 400, "name"),
        (no_operation, 400, "operation"),
        (components, 400, "components"),
    ] {
        let refusal = Refusal::of(client.bos_session_v2_post(TOKEN, refused).await);
        assert_eq!(refusal.status, status, "{}", refusal.detail);
        assert!(refusal.detail.contains(told), "{told:?} is not in {:?}", refusal.detail);
    }
    assert_eq!(Refusal::of(client.bos_session_v2_get(TOKEN, Some("refused")).await), unknown("refused"));
}

#[tokio::test]
async fn a_deleted_session_is_gone() {
    let (client, template) = (client(), "forgotten");
    store(&client, template, &["x1000c0s1b1n0"]).await;
    let wish = BosSession { name: Some(template.into()), ..wish(template, Operation::Shutdown) };
    client.bos_session_v2_post(TOKEN, wish).await.unwrap();
    client.bos_session_v2_delete(TOKEN, template).await.unwrap();
    assert_eq!(Refusal::of(client.bos_session_v2_get(TOKEN, Some(template)).await), unknown(template));
    assert_eq!(Refusal::of(client.bos_session_v2_delete(TOKEN, template).await), unknown(template));
}

fn unknown(name: &str) -> Refusal {
    Refusal { status: 404, detail: format!("Session '{name}' does not exist") }
}
