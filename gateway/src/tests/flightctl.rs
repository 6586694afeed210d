//! The face of Flight Control without services behind it: what it judges itself, and the form of its answers.

use std::fmt::Write as _;

use axum::{body::Body, extract::Request};
use chassis::Settings;
use expect_test::expect;
use http::{Response, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tower::ServiceExt;

/// Settings with services that do not answer.
fn alone() -> Settings {
    let mut settings = Settings::default();
    settings.component_registry.url = "http://127.0.0.1:1".into();
    settings.fleet_manager.url = "http://127.0.0.1:1".into();
    settings
}

async fn ask(settings: &Settings, method: &str, path: &str, body: Option<Value>) -> Response<Body> {
    let request = Request::builder().method(method).uri(format!("/flightctl/api/v1{path}"));
    let request = match body {
        Some(body) => request.header(CONTENT_TYPE, "application/json").body(body.to_string().into()),
        None => request.body(Body::empty()),
    };
    let Ok(response) = super::app(settings).oneshot(request.unwrap()).await;
    response
}

async fn value(response: Response<Body>) -> Value {
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap_or_default()
}

fn device(name: &str) -> Value {
    json!({ "apiVersion": "flightctl.io/v1beta1", "kind": "Device", "metadata": { "name": name } })
}

/// A request of an agent without a name.
fn enrolment(spec: Value) -> Value {
    json!({ "apiVersion": "v1beta1", "kind": "EnrollmentRequest", "metadata": {}, "spec": spec })
}

fn named(mut document: Value, name: &str) -> Value {
    document["metadata"]["name"] = json!(name);
    document
}

/// A device with a report, one member of which is replaced.
fn reported(member: &str, replacement: Value) -> Value {
    let mut status = json!({
        "conditions": [], "applications": [], "applicationsSummary": { "status": "Healthy" },
        "systemInfo": { "architecture": "", "bootID": "", "operatingSystem": "", "agentVersion": "" },
        "resources": { "cpu": "Healthy", "memory": "Healthy", "disk": "Healthy" },
        "integrity": { "status": "Unknown" }, "config": { "renderedVersion": "" },
        "os": { "image": "", "imageDigest": "" }, "updated": { "status": "Unknown" },
        "summary": { "status": "Unknown" }, "lifecycle": { "status": "Unknown" },
    });
    status[member] = replacement;
    let mut device = device("d");
    device["status"] = status;
    device
}

#[tokio::test]
async fn refusals_are_statuses_that_name_the_field() {
    let settings = alone();
    let both =
        json!({ "os": { "image": "a", "catalogItemRef": { "catalog": "a", "item": "b", "version": "c" } } });
    let mut two_systems = device("d");
    two_systems["spec"] = both;
    let mut listed = device("d");
    listed["spec"] = json!({ "os": [null, null] });
    let mut unknown = device("d");
    unknown["nothing"] = json!(1);
    let mut old = device("d");
    old["metadata"]["resourceVersion"] = json!("x");
    let rows = [
        ("GET", "/nothing", None),
        ("DELETE", "/devices", None),
        ("GET", "/devices?limit=1001", None),
        ("GET", "/devices?limit=-1", None),
        ("GET", "/devices?continue=nonsense", None),
        ("GET", "/devices?summaryOnly=true&limit=1", None),
        ("GET", "/labels", None),
        ("GET", "/events?fieldSelector=metadata.name=x", None),
        ("POST", "/deviceactions/resume", Some(json!({}))),
        ("POST", "/devices", Some(json!({ "apiVersion": "v1", "kind": "Device", "metadata": {} }))),
        ("POST", "/devices", Some(json!({ "apiVersion": "", "kind": "Device", "metadata": {} }))),
        ("PUT", "/devices/e", Some(device("d"))),
        ("PUT", "/devices/d", Some(unknown)),
        ("PUT", "/devices/d", Some(old)),
        ("PUT", "/devices/d", Some(two_systems)),
        ("PUT", "/devices/d", Some(listed)),
        ("PUT", "/devices/d/status", Some(device("d"))),
        ("PUT", "/devices/d/status", Some(reported("summary", json!({ "status": "Offline" })))),
        ("PUT", "/devices/d/status", Some(reported("nothing", json!(1)))),
        ("PUT", "/devices/d/status", Some(reported("config", Value::Null))),
        ("PATCH", "/devices/d", Some(json!([{ "op": "move", "path": "/a", "from": "/b" }]))),
        ("PUT", "/devices/d/decommission", Some(json!({ "target": "Nothing" }))),
        ("POST", "/enrollmentrequests", Some(enrolment(json!({ "csr": "" })))),
        ("PUT", "/enrollmentrequests/e", Some(named(enrolment(json!({ "csr": "" })), "d"))),
        ("PUT", "/enrollmentrequests/d", Some(named(enrolment(json!({ "osMode": "image" })), "d"))),
        ("PUT", "/enrollmentrequests/d", Some(named(enrolment(json!({ "csr": "", "osMode": "x" })), "d"))),
        ("PUT", "/enrollmentrequests/d/approval", Some(json!({ "labels": {} }))),
        ("GET", "/devices/d", None),
        ("GET", "/fleets/f", None),
        ("GET", "/enrollmentrequests/d", None),
    ];
    let mut told = String::new();
    for (method, path, body) in rows {
        let response = ask(&settings, method, path, body).await;
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let answer = value(response).await;
        assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Failure")));
        let message = answer["message"].as_str().unwrap();
        writeln!(told, "{method} {path} -> {} {}: {message}", answer["code"], answer["reason"]).unwrap();
    }
    expect![[r#"
        GET /nothing -> 404 "Not Found": no such path
        DELETE /devices -> 405 "Method Not Allowed": the method is not possible for this path
        GET /devices?limit=1001 -> 400 "Bad Request": query parameter 'limit': 1001 is not between 0 and 1000
        GET /devices?limit=-1 -> 400 "Bad Request": query parameter 'limit': -1 is not between 0 and 1000
        GET /devices?continue=nonsense -> 400 "Bad Request": query parameter 'continue': is not valid
        GET /devices?summaryOnly=true&limit=1 -> 400 "Bad Request": query parameter 'limit': is not possible together with 'summaryOnly'
        GET /labels -> 503 "Service Unavailable": component registry: Connection refused
        GET /events?fieldSelector=metadata.name=x -> 400 "Bad Request": fieldSelector: 'metadata.name' is no field of events, which are involvedObject.kind, involvedObject.name, reason, type
        POST /deviceactions/resume -> 400 "Bad Request": labelSelector, fieldSelector: one of them is needed
        POST /devices -> 400 "Bad Request": unknown variant `v1`, expected one of `flightctl.io/v1beta1`, `v1beta1`, `` - 'apiVersion'
        POST /devices -> 400 "Bad Request": metadata.name: is missing
        PUT /devices/e -> 400 "Bad Request": metadata.name: is 'd', but 'e' in the path
        PUT /devices/d -> 400 "Bad Request": unknown field `nothing`, expected one of `apiVersion`, `kind`, `metadata`, `spec`, `status` - 'nothing'
        PUT /devices/d -> 400 "Bad Request": metadata.resourceVersion: 'x' is no version of a resource
        PUT /devices/d -> 400 "Bad Request": spec.os: has both image and catalogItemRef, of which one is possible
        PUT /devices/d -> 400 "Bad Request": invalid type: sequence, expected an object - 'spec.os'
        PUT /devices/d/status -> 400 "Bad Request": status: is missing
        PUT /devices/d/status -> 400 "Bad Request": unknown variant `Offline`, expected one of `Online`, `Degraded`, `Error`, `Rebooting`, `PoweredOff`, `Unknown`, `AwaitingReconnect`, `ConflictPaused` - 'status.summary.status'
        PUT /devices/d/status -> 400 "Bad Request": unknown field `nothing`, expected one of `conditions`, `systemInfo`, `applications`, `applicationsSummary`, `resources`, `integrity`, `config`, `os`, `updated`, `summary`, `lifecycle`, `systemd`, `dependencySync`, `capabilities`, `lastSeen` - 'status.nothing'
        PUT /devices/d/status -> 400 "Bad Request": invalid type: null, expected struct RunningConfig - 'status.config'
        PATCH /devices/d -> 400 "Bad Request": unknown field `from`, expected one of `op`, `path`, `value` - '[0].from'
        PUT /devices/d/decommission -> 400 "Bad Request": unknown variant `Nothing`, expected `Unenroll` or `FactoryReset` - 'target'
        POST /enrollmentrequests -> 400 "Bad Request": metadata.name: is missing
        PUT /enrollmentrequests/e -> 400 "Bad Request": metadata.name: is 'd', but 'e' in the path
        PUT /enrollmentrequests/d -> 400 "Bad Request": missing field `csr` - 'spec'
        PUT /enrollmentrequests/d -> 400 "Bad Request": unknown variant `x`, expected `image` or `package` - 'spec.osMode'
        PUT /enrollmentrequests/d/approval -> 400 "Bad Request": missing field `approved`
        GET /devices/d -> 503 "Service Unavailable": component registry: Connection refused
        GET /fleets/f -> 503 "Service Unavailable": fleet manager: Connection refused
        GET /enrollmentrequests/d -> 503 "Service Unavailable": fleet manager: Connection refused
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn answers_name_the_version_and_another_is_refused() {
    let settings = alone();
    let mut told = String::new();
    for wanted in [None, Some("v1beta1"), Some("v2")] {
        let request = Request::get("/flightctl/api/v1/version");
        let request = wanted
            .into_iter()
            .fold(request, |request, wanted| request.header("Flightctl-API-Version", wanted));
        let Ok(response) = super::app(&settings).oneshot(request.body(Body::empty()).unwrap()).await;
        let header =
            |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let headers = ["flightctl-api-version", "vary", "flightctl-api-versions-supported"].map(header);
        writeln!(told, "{wanted:?} -> {} {headers:?}", response.status().as_u16()).unwrap();
    }
    expect![[r#"
        None -> 200 [Some("v1beta1"), Some("Flightctl-API-Version"), None]
        Some("v1beta1") -> 200 [Some("v1beta1"), Some("Flightctl-API-Version"), None]
        Some("v2") -> 406 [Some("v1beta1"), Some("Flightctl-API-Version"), Some("v1beta1")]
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn clients_are_told_that_authentication_is_off() {
    let settings = alone();
    for (path, code) in [("/auth/config", 418), ("/auth/validate", 200), ("/organizations", 200)] {
        let response = ask(&settings, "GET", path, None).await;
        assert_eq!(response.status(), code, "{path}");
    }
    let organizations = value(ask(&settings, "GET", "/organizations", None).await).await;
    assert_eq!(organizations["items"].as_array().unwrap().len(), 1);
}
