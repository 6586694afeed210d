//! Questions of operators that one request for the timeline answers.

use integration_tests::{bos::Bos, mesh::Mesh};
use reqwest::Method;
use serde_json::{Value, json};

async fn timeline(bos: &Bos, query: &str) -> Value {
    bos.get(&format!("/reveille/v1/timeline?{query}")).await
}

async fn newest(bos: &Bos, query: &str) -> Value {
    let found = timeline(bos, &format!("{query}&limit=1")).await;
    found["entries"].get(0).unwrap_or_else(|| panic!("no entry of {query}")).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_names_session_author_and_image() {
    let mesh = Mesh::start(async |_| {}).await;
    let bos = &mesh.bos;
    for image in ["image-1", "image-2"] {
        bos.template(image).await;
    }
    let first = bos.session("image-1", "boot").await;
    bos.complete(&first).await;
    let components = bos.get("/v2/components").await;
    let id = components[0]["id"].as_str().unwrap().to_owned();
    let ran = bos.component(&id).await["actual_state"]["boot_artifacts"]["kernel"].clone();
    let of_node = format!("resource=component&name={id}");

    let booted = newest(bos, &format!("{of_node}&kind=desired_state_set")).await;
    let origin = &booted["session"];
    assert_eq!([&origin["name"], &origin["operation"], &origin["template"]], [&first, "boot", "image-1"]);
    assert_eq!(origin["actor"], "client", "{booted:#}");
    assert!(origin["request_id"].is_string(), "{booted:#}");

    let second = bos.session("image-2", "reboot").await;
    bos.complete(&second).await;
    let off = newest(bos, &format!("{of_node}&kind=power_action_began&reason=powering_off_gracefully")).await;
    let origin = &off["session"];
    let told = [&off["actor"], &origin["name"], &origin["operation"], &origin["actor"]];
    assert_eq!(told, [&json!("power-controller"), &json!(second), &json!("reboot"), &json!("client")]);

    let until = booted_again(bos, &of_node).await;
    let earlier = newest(bos, &format!("{of_node}&kind=boot_reported&until={until}")).await;
    assert_eq!(earlier["details"]["kernel"], ran, "{earlier:#}");
    assert_eq!(earlier["session"]["name"], json!(first));
    mesh.stop().await;
}

/// Returns the time of the latest report of a boot.
async fn booted_again(bos: &Bos, of_node: &str) -> String {
    let latest = newest(bos, &format!("{of_node}&kind=boot_reported")).await;
    latest["time"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_lines_of_a_session_are_the_same() {
    let mesh = Mesh::start(async |_| {}).await;
    let bos = &mesh.bos;
    bos.template("image-1").await;
    let session = bos.session("image-1", "boot").await;
    bos.complete(&session).await;
    let of_session = format!("session={session}");
    let whole = timeline(bos, &format!("{of_session}&limit=1000")).await;
    let all = whole["entries"].as_array().unwrap().clone();
    assert!(all.iter().any(|entry| entry["resource"] == "session" && entry["kind"] == "complete"));
    assert!(all.iter().any(|entry| entry["resource"] == "component" && entry["kind"] == "boot_reported"));

    let mut backwards = Vec::new();
    let mut page = timeline(bos, &format!("{of_session}&limit=7")).await;
    let mut last = page.clone();
    loop {
        backwards.extend(page["entries"].as_array().unwrap().clone());
        let Some(older) = page["older"].as_str() else { break };
        last = page.clone();
        page = timeline(bos, &format!("{of_session}&limit=7&before={older}")).await;
    }
    assert_eq!(backwards, all);
    assert_ne!(last["newer"], page["newer"]);

    let mut forwards = Vec::new();
    let mut place = page["older"].as_str().or(last["older"].as_str()).unwrap().to_owned();
    let beginning = all.len() - page["entries"].as_array().unwrap().len();
    loop {
        let page = timeline(bos, &format!("{of_session}&limit=5&after={place}")).await;
        let mut entries = page["entries"].as_array().unwrap().clone();
        if entries.is_empty() {
            break;
        }
        entries.reverse();
        forwards.extend(entries);
        place = page["newer"].as_str().unwrap().to_owned();
    }
    forwards.reverse();
    assert_eq!(forwards, all[..beginning]);

    let url = format!("{}/reveille/v1/timeline?{of_session}", bos.url());
    let lines =
        reqwest::Client::new().get(url).header("accept", "application/x-ndjson").send().await.unwrap();
    assert_eq!(lines.headers()["content-type"], "application/x-ndjson");
    let lines = lines.text().await.unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, all);
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_filters_are_named() {
    let mesh = Mesh::start(async |_| {}).await;
    for (query, named) in [
        ("node=x1", "'node'"),
        ("resource=node", "'resource'"),
        ("kind=exploded", "'kind'"),
        ("before=x", "'before'"),
        ("name=x1", "'name'"),
    ] {
        let answer = mesh.bos.send(Method::GET, &format!("/reveille/v1/timeline?{query}"), None).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(named), "{query}: {answer:?}");
    }
    let of_tenant = mesh.bos.of_tenant("blue").send(Method::GET, "/reveille/v1/timeline", None).await;
    assert_eq!(of_tenant.status, 403);
    mesh.stop().await;
}
