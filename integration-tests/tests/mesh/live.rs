//! Live changes, as a browser or a program follows them.

use std::collections::VecDeque;

use integration_tests::{PATIENCE, mesh::Mesh};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Client of a live stream.
struct LiveClient {
    response: reqwest::Response,
    text: String,
    waiting: VecDeque<(String, Value)>,
    /// Id of the last event.
    place: String,
}

impl LiveClient {
    async fn follow(mesh: &Mesh, query: &str, place: &str) -> Self {
        let url = format!("{}/reveille/v1/live?{query}", mesh.bos.url());
        let response = reqwest::Client::new().get(url).header("last-event-id", place).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new(), waiting: VecDeque::new(), place: place.to_owned() }
    }

    /// Returns the next event with its data.
    async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return event;
            }
            let chunk = timeout(PATIENCE, self.response.chunk()).await.expect("an event").unwrap();
            self.text.push_str(std::str::from_utf8(&chunk.expect("a stream without end")).unwrap());
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let value = |name: &str| {
                    let mut lines = event.lines();
                    lines.find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
                };
                let (name, data, id) = (value("event: "), value("data: "), value("id: "));
                if !id.is_empty() {
                    self.place = id;
                }
                if !data.is_empty() {
                    self.waiting.push_back((name, serde_json::from_str(&data).unwrap()));
                }
                self.text = rest.to_owned();
            }
        }
    }

    /// Returns the ids of components that come before the mark of that name, and the place at it.
    async fn components_until(&mut self, mark: &str) -> Vec<String> {
        let mut ids = Vec::new();
        loop {
            let (name, data) = self.next().await;
            match name.as_str() {
                "component" => ids.push(data["id"].as_str().unwrap().to_owned()),
                name if name == mark => return ids,
                other => panic!("{other} before {mark}: {data}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_resumes_after_the_last_id() {
    let mesh = Mesh::start(async |_| {}).await;
    let mut client = LiveClient::follow(&mesh, "kind=component", "").await;
    let all = client.components_until("synced").await;
    assert_eq!(all.len(), 8, "{all:?}");
    // The id that stands behind the state comes with the same chunk or the next one.
    let error = |text: &str| json!({ "error": text });
    let path = |id: &str| format!("/v2/components/{id}");
    mesh.bos.expect(Method::PATCH, &path(&all[0]), Some(&error("seen"))).await;
    assert_eq!(client.next().await.1["error"], "seen");
    let place = client.place.clone();
    drop(client);

    mesh.bos.expect(Method::PATCH, &path(&all[1]), Some(&error("missed"))).await;
    mesh.bos.expect(Method::DELETE, &path(&all[2]), None).await;
    let mut resumed = LiveClient::follow(&mesh, "kind=component", &place).await;
    let mut missed = [resumed.next().await, resumed.next().await];
    missed.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!((&*missed[0].0, &missed[0].1["id"]), ("component", &json!(all[1])));
    assert_eq!((&*missed[1].0, &missed[1].1["name"]), ("deleted", &json!(all[2])));
    assert_eq!(resumed.next().await.0, "synced");

    let mut late = LiveClient::follow(&mesh, "kind=component", "component:1000000").await;
    assert_eq!(late.next().await, ("reset".to_owned(), json!({ "resource": "component" })));
    assert_eq!(late.components_until("synced").await.len(), 7);
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_leaves_only_its_session_and_nodes() {
    let mesh = Mesh::start(async |_| {}).await;
    let bos = &mesh.bos;
    bos.template("image-1").await;
    let components = bos.get("/v2/components").await;
    let ids: Vec<_> =
        components.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    let mut node = LiveClient::follow(&mesh, &format!("kind=event&component={}", ids[0]), "").await;
    let session = bos.session_of("image-1", "boot", &ids[..2]).await;
    let mut client = LiveClient::follow(&mesh, &format!("session={session}"), "").await;
    loop {
        let (name, data) = client.next().await;
        match name.as_str() {
            "component" => assert!(ids[..2].contains(&data["id"].as_str().unwrap().to_owned()), "{data}"),
            "event" => assert_eq!(data["session"]["name"], json!(session), "{data}"),
            "session" if data["progress"] == "complete" => break,
            "session" => assert_eq!(data["name"], json!(session)),
            _ => {}
        }
    }
    loop {
        let (_, data) = node.next().await;
        assert_eq!(data["name"], json!(ids[0]), "{data}");
        if data["kind"] == "boot_reported" {
            break;
        }
    }
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_filters_and_places_are_named() {
    let mesh = Mesh::start(async |_| {}).await;
    for (query, named) in [("node=x1", "'node'"), ("kind=host", "'kind'"), ("component=x[", "'component'")] {
        let answer = mesh.bos.send(Method::GET, &format!("/reveille/v1/live?{query}"), None).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(named), "{query}: {answer:?}");
    }
    let url = format!("{}/reveille/v1/live", mesh.bos.url());
    let refused = reqwest::Client::new().get(url).header("last-event-id", "x").send().await.unwrap();
    assert_eq!(refused.status(), 400);
    let of_tenant = mesh.bos.of_tenant("blue").send(Method::GET, "/reveille/v1/live", None).await;
    assert_eq!(of_tenant.status, 403);
    mesh.stop().await;
}
