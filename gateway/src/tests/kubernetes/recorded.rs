//! Requests as real clients sent them: kubectl 1.20 to 1.33, the Python client, and the crate `kube`. Each is sent to a
//! face that is in the state which the request needs, and answered with the recorded status and media type.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use super::*;

/// Request, and facts about its answer.
#[derive(Clone, Deserialize)]
struct RecordedRequest {
    client: String,
    method: String,
    path: String,
    headers: std::collections::BTreeMap<String, String>,
    body: Value,
    status: u16,
    #[serde(rename = "type")]
    media_type: Option<String>,
}

const APPLY: &str = "application/apply-patch+yaml";

impl RecordedRequest {
    /// Returns path and name of the object that the request is about.
    fn object(&self) -> Option<(String, String)> {
        let path = self.path.split('?').next().unwrap_or_default();
        let path = path.strip_suffix("/status").unwrap_or(path);
        if self.method == "POST" {
            let name = self.body.get("metadata")?.get("name")?.as_str()?;
            return Some((path.to_owned(), name.to_owned()));
        }
        let (collection, name) = path.rsplit_once('/')?;
        let is_object =
            ["baremetalhosts", "secrets", "api/v1/namespaces"].iter().any(|end| collection.ends_with(end));
        is_object.then(|| (collection.to_owned(), name.to_owned()))
    }

    fn is_apply(&self) -> bool {
        self.headers.get("content-type").is_some_and(|form| form == APPLY)
    }
}

impl HostSite {
    /// Makes an object exist, with nothing in it that others own.
    async fn ensure(&self, collection: &str, name: &str) {
        let body = match collection.rsplit('/').next() {
            Some("baremetalhosts") => {
                let mut host = host(name);
                host["spec"]["image"] = json!({ "url": "http://i", "checksum": "c" });
                host
            }
            _ => json!({ "metadata": { "name": name }, "data": { "password": "cA==" } }),
        };
        self.write("POST", collection, "application/json", body).await;
    }

    async fn remove(&self, collection: &str, name: &str) {
        let path = format!("{collection}/{name}");
        self.write("PATCH", &path, MERGE, json!({ "metadata": { "finalizers": null } })).await;
        self.ask("DELETE", &path, &[], Body::empty()).await;
    }

    /// Brings the face into the state that a request needs.
    async fn prepare(&self, request: &RecordedRequest) {
        let Some((collection, name)) = request.object() else { return };
        self.remove(&collection, &name).await;
        let is_status = request.path.contains("/status");
        match (&*request.method, request.status) {
            ("POST", 409) => self.ensure(&collection, &name).await,
            ("POST", _) | (_, 404 | 201) => {}
            // The same writer has applied the same before.
            ("PATCH", 200) if request.is_apply() && !is_status => {
                let path = request.path.replace("dryRun=All&", "");
                drop(self.send(&RecordedRequest { path, ..request.clone() }).await);
            }
            // A test that is to fail is about another value.
            ("PATCH", 422) if request.body.is_array() => {
                self.ensure(&collection, &name).await;
                let off = json!({ "spec": { "online": false } });
                self.write("PATCH", &format!("{collection}/{name}"), MERGE, off).await;
            }
            _ => self.ensure(&collection, &name).await,
        }
    }

    /// Sends a request, with the versions and tokens of this face in place of the recorded ones.
    async fn send(&self, request: &RecordedRequest) -> Response<Body> {
        let path = self.path_here(request).await;
        let sent = Request::builder().method(&*request.method).uri(path);
        let sent = request.headers.iter().fold(sent, |sent, (name, value)| sent.header(name, value));
        let body = match &request.body {
            Value::Null => Vec::new(),
            Value::Object(body) if body.contains_key("base64") => {
                STANDARD.decode(body["base64"].as_str().unwrap()).unwrap()
            }
            body => self.body_here(request, body.clone()).await.to_string().into_bytes(),
        };
        self.answer(sent.body(body.into()).unwrap()).await
    }

    async fn path_here(&self, request: &RecordedRequest) -> String {
        let Some((path, query)) = request.path.split_once('?') else { return request.path.clone() };
        let listed = self.get(&format!("{path}?limit=1")).await.body;
        let text = |member: &str| listed["metadata"][member].as_str().unwrap_or_default().to_owned();
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some(("resourceVersion", version)) if version != "0" => {
                format!("resourceVersion={}", text("resourceVersion"))
            }
            Some(("continue", _)) => format!("continue={}", text("continue")),
            _ => pair.to_owned(),
        });
        format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
    }

    /// Returns a body with the version and the id of the present object.
    async fn body_here(&self, request: &RecordedRequest, mut body: Value) -> Value {
        let Some((collection, name)) = request.object().filter(|_| request.status == 200) else {
            return body;
        };
        let present = self.get(&format!("{collection}/{name}")).await.body["metadata"].take();
        for holder in ["metadata", "preconditions"] {
            let members = body.get_mut(holder).and_then(Value::as_object_mut).into_iter().flatten();
            for (member, value) in
                members.filter(|(member, _)| matches!(&***member, "resourceVersion" | "uid"))
            {
                *value = present[member].clone();
            }
        }
        for step in body.as_array_mut().into_iter().flatten() {
            if step["path"] == "/metadata/resourceVersion" {
                step["value"] = present["resourceVersion"].clone();
            }
        }
        body
    }
}

#[tokio::test]
async fn recorded_clients_get_the_answers_they_are_used_to() {
    let site = HostSite::start().await;
    for namespace in ["m", "default"] {
        site.ensure("/api/v1/namespaces", namespace).await;
    }
    for name in ["node-1", "node-2"] {
        site.create(name).await;
    }
    let mut differences = Vec::new();
    for line in include_str!("recorded.jsonl").lines() {
        let request: RecordedRequest = serde_json::from_str(line).unwrap();
        site.prepare(&request).await;
        let response = site.send(&request).await;
        let media_type = response.headers().get(CONTENT_TYPE).map(|value| value.to_str().unwrap().to_owned());
        let is_watch = request.path.contains("watch=");
        if response.status().as_u16() == request.status && (media_type == request.media_type || is_watch) {
            continue;
        }
        let status = response.status().as_u16();
        let told = match is_watch {
            true => bytes::Bytes::new(),
            false => to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default(),
        };
        let told: String = String::from_utf8_lossy(&told).chars().take(150).collect();
        let RecordedRequest { client, method, path, status: recorded, .. } = request;
        differences
            .push(format!("{client} {method} {path} -> {status} {media_type:?}, not {recorded}: {told}"));
    }
    check(
        &differences,
        expect![[r#"
            kubectl-1.32.5 POST /api/v1/namespaces/m/events?fieldManager=kubectl-create&fieldValidation=Strict -> 405 Some("application/json"), not 201: {"apiVersion":"v1","code":405,"details":{"kind":"events"},"kind":"Status","message":"the server does not allow this method on events","metadata":{},"r
            kubectl-1.20.2 POST /api/v1/namespaces/m/events?fieldManager=kubectl-create -> 405 Some("application/json"), not 201: {"apiVersion":"v1","code":405,"details":{"kind":"events"},"kind":"Status","message":"the server does not allow this method on events","metadata":{},"r
            kube-rs GET /apis/metal3.io/v1alpha1/namespaces/m/baremetalhosts?&watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0 -> 200 Some("application/json"), not 422:
        "#]],
    );
    site.stop().await;
}
