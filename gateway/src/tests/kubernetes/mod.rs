//! The face of Kubernetes in front of a registry in memory.

use std::{convert::Infallible, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
};
use chassis::{Context, Settings, process::capacity::ProcessCapacity};
use expect_test::{Expect, expect};
use futures_util::StreamExt;
use http::{Response, StatusCode, header::CONTENT_TYPE};
use proto::host::{HostCondition, HostStatus, ProvisioningStatus};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::ServiceExt;

use crate::{
    http::admission::AdmissionPlaces,
    kubernetes::{self, KubernetesFace},
    mesh::MeshHandle,
    port::{CallerChecks, FaceRouters},
};

mod ledger;
mod listener;
mod recorded;
mod registry;
mod writes;

use registry::HostRegistry;

/// Face and the registry behind it.
struct HostSite {
    registry: HostRegistry,
    context: Context,
    router: Router,
}

/// Answer with its JSON.
#[derive(Debug)]
struct ReadAnswer {
    status: StatusCode,
    warnings: Vec<String>,
    body: Value,
}

impl HostSite {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut settings = Settings::default();
        settings.component_registry.url = format!("http://{}", listener.local_addr().unwrap());
        let context = Context::new(settings.clone());
        let registry = HostRegistry::default();
        registry.clone().serve(&context, listener).await;
        let mesh = MeshHandle::new(&settings, context.tasks.shutdown()).unwrap();
        let face = KubernetesFace::start(&context, mesh).unwrap();
        let places = AdmissionPlaces::new(&settings.gateway, &ProcessCapacity::of_process(&settings));
        let router = kubernetes::router(face, &places);
        Self { registry, context, router }
    }

    async fn stop(self) {
        self.context.tasks.shutdown().cancel();
        self.context.tasks.finished(Duration::from_secs(5)).await.unwrap();
    }

    async fn answer(&self, request: Request) -> Response<Body> {
        let answer: Result<_, Infallible> = self.router.clone().oneshot(request).await;
        answer.unwrap()
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> ReadAnswer {
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = self.answer(request.body(body.into()).unwrap()).await;
        let status = response.status();
        let text = |name| {
            let values = response.headers().get_all(name).iter();
            values.map(|value: &http::HeaderValue| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let warnings = text(http::header::WARNING);
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        ReadAnswer { status, warnings, body }
    }

    async fn get(&self, path: &str) -> ReadAnswer {
        self.ask("GET", path, &[], Body::empty()).await
    }

    async fn write(&self, method: &str, path: &str, form: &str, body: Value) -> ReadAnswer {
        self.ask(method, path, &[("content-type", form)], body.to_string()).await
    }

    async fn create(&self, name: &str) -> ReadAnswer {
        self.write("POST", HOSTS, "application/json", host(name)).await
    }

    /// Returns the lines of a watch until it pauses.
    async fn watched(&self, path: &str) -> Vec<Value> {
        let response = self.answer(Request::get(path).body(Body::empty()).unwrap()).await;
        let mut lines = Vec::new();
        let mut body = response.into_body().into_data_stream();
        while let Ok(Some(chunk)) = tokio::time::timeout(Duration::from_millis(300), body.next()).await {
            let chunk = chunk.unwrap();
            let text = std::str::from_utf8(&chunk).unwrap().to_owned();
            lines.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
        }
        lines
    }
}

const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/m/baremetalhosts";
const MERGE: &str = "application/merge-patch+json";

fn host(name: &str) -> Value {
    json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name, "namespace": "m", "labels": { "rack": "r1" } },
        "spec": { "online": true, "bmc": { "address": "redfish://10.0.0.1/1", "credentialsName": "s" } },
    })
}

/// Returns an event of a watch in a line.
fn event(line: &Value) -> String {
    let object = &line["object"];
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or("-");
    format!(
        "{} {} {version}",
        line["type"].as_str().unwrap(),
        object["metadata"]["name"].as_str().unwrap_or("-")
    )
}

fn check(lines: &[String], expected: Expect) {
    let lines = lines.iter().flat_map(|line| line.lines()).map(str::trim_end).filter(|line| !line.is_empty());
    expected.assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

#[tokio::test]
async fn watches_begin_and_continue_where_they_are_told() {
    let site = HostSite::start().await;
    for name in ["a", "b"] {
        assert_eq!(site.create(name).await.status, StatusCode::CREATED);
    }
    let listed = site.get(HOSTS).await.body;
    let version = listed["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let labels = json!({ "metadata": { "labels": { "rack": "r2" } } });
    site.write("PATCH", &format!("{HOSTS}/a"), MERGE, labels).await;
    site.ask("DELETE", &format!("{HOSTS}/b"), &[], Body::empty()).await;
    site.create("c").await;
    let mut lines = Vec::new();
    for query in [
        "".to_owned(),
        format!("&resourceVersion={version}"),
        format!("&resourceVersion={version}&labelSelector=rack=r1"),
        format!("&resourceVersion={version}&labelSelector=rack=r2"),
        "&resourceVersion=0&fieldSelector=metadata.name=c".to_owned(),
        "&resourceVersion=1".to_owned(),
        "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        format!("&resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=0"),
    ] {
        lines.push(format!("watch{query}"));
        let events = site.watched(&format!("{HOSTS}?watch=true{query}")).await;
        lines.extend(events.iter().map(|line| format!("  {}", event(line))));
    }
    check(
        &lines,
        expect![[r#"
        watch
          ADDED a 4
          ADDED c 6
        watch&resourceVersion=3
          MODIFIED a 4
          DELETED b 5
          ADDED c 6
        watch&resourceVersion=3&labelSelector=rack=r1
          DELETED a 4
          DELETED b 5
          ADDED c 6
        watch&resourceVersion=3&labelSelector=rack=r2
          ADDED a 4
        watch&resourceVersion=0&fieldSelector=metadata.name=c
          ADDED c 6
        watch&resourceVersion=1
          ADDED a 2
          ADDED b 3
          MODIFIED a 4
          DELETED b 5
          ADDED c 6
        watch&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan
          ADDED a 4
          ADDED c 6
          BOOKMARK - 6
        watch&resourceVersion=3&allowWatchBookmarks=true&timeoutSeconds=0
          MODIFIED a 4
          DELETED b 5
          ADDED c 6
    "#]],
    );
    site.stop().await;
}

#[tokio::test]
async fn lists_are_of_one_moment_whatever_their_pages() {
    let site = HostSite::start().await;
    for name in ["a", "b", "c", "d"] {
        site.create(name).await;
    }
    let first = site.get(&format!("{HOSTS}?limit=2")).await.body;
    site.ask("DELETE", &format!("{HOSTS}/c"), &[], Body::empty()).await;
    site.create("bb").await;
    let next = first["metadata"]["continue"].as_str().unwrap();
    let second = site.get(&format!("{HOSTS}?limit=2&continue={next}")).await.body;
    let newest = site.get(HOSTS).await.body;
    let names = |list: &Value| {
        let names: Vec<_> =
            list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()).collect();
        format!("{} {}", Value::from(names), list["metadata"])
    };
    check(
        &[names(&first), names(&second), names(&newest)],
        expect![[r#"
        ["a","b"] {"continue":"eyJ2ZXJzaW9uIjo1LCJhZnRlciI6Im1cdTAwMDBiIn0","remainingItemCount":2,"resourceVersion":"5"}
        ["c","d"] {"resourceVersion":"5"}
        ["a","b","bb","d"] {"resourceVersion":"7"}
    "#]],
    );
    site.stop().await;
}

#[tokio::test]
async fn tables_have_the_printed_columns() {
    let site = HostSite::start().await;
    site.create("a").await;
    site.registry
        .hosts
        .change("m/a", None, false, |host| {
            let condition = HostCondition {
                r#type: "Ready".to_owned(),
                status: "True".to_owned(),
                reason: "Available".to_owned(),
                since: None,
            };
            let provisioning =
                ProvisioningStatus { state: "available".to_owned(), ..ProvisioningStatus::default() };
            host.status = Some(HostStatus {
                operational_status: "OK".to_owned(),
                provisioning: Some(provisioning),
                conditions: vec![condition],
                ..HostStatus::default()
            });
        })
        .unwrap();
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let table = site.ask("GET", HOSTS, &[("accept", accept)], Body::empty()).await.body;
    let single = site.ask("GET", &format!("{HOSTS}/a"), &[("accept", accept)], Body::empty()).await.body;
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns: Vec<_> =
        columns.map(|column| format!("{} {}", column["name"], column["priority"])).collect();
    let lines =
        [columns.join(", "), table["rows"][0]["cells"].to_string(), single["rows"][0]["cells"].to_string()];
    check(
        &lines,
        expect![[r#"
        "Name" 0, "Status" 1, "State" 0, "Consumer" 0, "BMC" 1, "Online" 0, "Error" 0, "Age" 0
        ["a","OK","available",null,"redfish://10.0.0.1/1","true",null,"0s"]
        ["a","OK","available",null,"redfish://10.0.0.1/1","true",null,"0s"]
    "#]],
    );
    site.stop().await;
}

#[tokio::test]
async fn common_port_has_the_face_under_a_prefix() {
    let site = HostSite::start().await;
    let mesh = MeshHandle::new(&site.context.settings, site.context.tasks.shutdown()).unwrap();
    let places = AdmissionPlaces::new(
        &site.context.settings.gateway,
        &ProcessCapacity::of_process(&site.context.settings),
    );
    let faces = FaceRouters { kubernetes: site.router.clone(), ..FaceRouters::default() };
    let app = crate::port::app(&site.context.settings, mesh, &places, faces, CallerChecks::default());
    let mut lines = Vec::new();
    for path in ["/kubernetes/version", "/kubernetes/api/v1/namespaces?limit=1", "/kubernetes/nope", "/v2"] {
        let Ok(response) = app.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await;
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        lines.push(format!("{path} -> {status} {} {}", body["kind"], body["reason"]));
    }
    check(
        &lines,
        expect![[r#"
        /kubernetes/version -> 200 null null
        /kubernetes/api/v1/namespaces?limit=1 -> 200 "NamespaceList" null
        /kubernetes/nope -> 404 "Status" "NotFound"
        /v2 -> 200 null null
    "#]],
    );
    site.stop().await;
}
