use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::port::description_at;

/// Returns every path of the document, with its methods.
fn paths(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let items = document["paths"].as_object().unwrap().iter();
    let methods = |item: &Value| {
        let names = item.as_object().unwrap().keys().filter(|name| *name != "servers");
        names.map(|name| name.to_ascii_uppercase()).collect()
    };
    items.map(|(path, item)| (path.clone(), methods(item))).collect()
}

#[tokio::test]
async fn the_document_has_every_path_and_method_that_is_served() {
    let app = super::app(&chassis::Settings::default());
    for (path, described) in paths(&description_at("")) {
        let request = Request::options(path.replace(['{', '}'], "")).body(axum::body::Body::empty()).unwrap();
        let Ok(answer) = app.clone().oneshot(request).await;
        let allowed = answer.headers()["allow"].to_str().unwrap();
        let served: BTreeSet<_> =
            allowed.split(',').filter(|name| !["HEAD", "OPTIONS"].contains(name)).collect();
        assert_eq!(described.iter().map(String::as_str).collect::<BTreeSet<_>>(), served, "{path}");
    }
}

/// The document has the endpoint index of the contract (BOS reference 2.4), and the paths beside it.
#[test]
fn the_document_lists_the_contract() {
    let lines = paths(&description_at(""))
        .into_iter()
        .map(|(path, methods)| format!("{path} {}\n", methods.into_iter().collect::<Vec<_>>().join(" ")));
    expect![[r#"
        / GET
        /boot/v1/bootscript GET
        /flightctl/api/v1/auth/config GET
        /flightctl/api/v1/auth/validate GET
        /flightctl/api/v1/deviceactions/resume POST
        /flightctl/api/v1/devices GET POST
        /flightctl/api/v1/devices/{name} DELETE GET PATCH PUT
        /flightctl/api/v1/devices/{name}/decommission PUT
        /flightctl/api/v1/devices/{name}/lastseen GET
        /flightctl/api/v1/devices/{name}/rendered GET
        /flightctl/api/v1/devices/{name}/status GET PATCH PUT
        /flightctl/api/v1/enrollmentrequests GET POST
        /flightctl/api/v1/enrollmentrequests/{name} DELETE GET PATCH PUT
        /flightctl/api/v1/enrollmentrequests/{name}/approval PUT
        /flightctl/api/v1/events GET
        /flightctl/api/v1/fleets GET POST
        /flightctl/api/v1/fleets/{fleet}/templateversions GET
        /flightctl/api/v1/fleets/{fleet}/templateversions/{name} GET
        /flightctl/api/v1/fleets/{name} DELETE GET PATCH PUT
        /flightctl/api/v1/labels GET
        /flightctl/api/v1/organizations GET
        /flightctl/api/v1/version GET
        /livez GET
        /metrics GET
        /openapi.json GET
        /readyz GET
        /reveille/v1/events GET
        /reveille/v1/explain/components/{id} GET
        /reveille/v1/explain/devices/{name} GET
        /reveille/v1/explain/hosts/{namespace}/{name} GET
        /reveille/v1/explain/sessions/{name} GET
        /reveille/v1/live GET
        /reveille/v1/peers GET
        /reveille/v1/plans POST
        /reveille/v1/sessions GET POST
        /reveille/v1/sessions/{name} GET
        /reveille/v1/sessions/{name}/cancel POST
        /reveille/v1/sessions/{name}/pause POST
        /reveille/v1/sessions/{name}/resume POST
        /reveille/v1/sessions/{name}/retry POST
        /reveille/v1/timeline GET
        /reveille/v1/transitions GET
        /reveille/v1/transitions/abandon POST
        /scn POST
        /startz GET
        /ui GET
        /ui/ GET
        /v2 GET
        /v2/applystaged POST
        /v2/components GET PATCH PUT
        /v2/components/{id} DELETE GET PATCH PUT
        /v2/dryrun/components PUT
        /v2/dryrun/options PATCH
        /v2/dryrun/sessiontemplates/{name} PUT
        /v2/healthz GET
        /v2/options GET PATCH
        /v2/sessions DELETE GET POST
        /v2/sessions/{name} DELETE GET PATCH
        /v2/sessions/{name}/left_out GET
        /v2/sessions/{name}/status GET POST
        /v2/sessiontemplates GET
        /v2/sessiontemplates/{name} DELETE GET PATCH PUT
        /v2/sessiontemplatesvalid/{name} GET
        /v2/sessiontemplatetemplate GET
        /v2/version GET
    "#]]
    .assert_eq(&lines.collect::<String>());
}

/// Each operation has its inputs and its possible answers.
#[test]
fn operations_say_what_they_take_and_may_answer() {
    let document = description_at("");
    let mut lines = String::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let statuses: Vec<_> = operation["responses"].as_object().unwrap().keys().cloned().collect();
            let named = operation["parameters"].as_array().into_iter().flatten();
            let parameters: Vec<_> = named.map(|one| one["name"].as_str().unwrap()).collect();
            let body = operation["requestBody"]["content"]["application/json"]["schema"].to_string();
            let body = if body == "null" { String::new() } else { format!(" {body}") };
            lines += &format!("{method} {path} ({}) -> {}{body}\n", parameters.join(" "), statuses.join(" "));
        }
    }
    expect![[r##"
        get / () -> 200
        get /boot/v1/bootscript (mac name nid) -> 200 400 404 414 431 500 503
        get /flightctl/api/v1/auth/config () -> 200 418
        get /flightctl/api/v1/auth/validate () -> 200
        post /flightctl/api/v1/deviceactions/resume () -> 200 400 408 413 415 500 503 {"$ref":"#/components/schemas/ResumeRequest"}
        get /flightctl/api/v1/devices (labelSelector fieldSelector limit continue summaryOnly) -> 200 400 414 431 500 503
        post /flightctl/api/v1/devices () -> 201 400 408 409 413 415 500 503 {"$ref":"#/components/schemas/DeviceInput"}
        delete /flightctl/api/v1/devices/{name} (name) -> 200 400 404 500 503
        get /flightctl/api/v1/devices/{name} (name) -> 200 400 404 500 503
        patch /flightctl/api/v1/devices/{name} (name) -> 200 400 404 408 409 413 415 500 503
        put /flightctl/api/v1/devices/{name} (name) -> 200 201 400 404 408 409 413 415 500 503 {"$ref":"#/components/schemas/DeviceInput"}
        put /flightctl/api/v1/devices/{name}/decommission (name) -> 200 400 404 408 409 413 415 500 503 {"$ref":"#/components/schemas/Decommission"}
        get /flightctl/api/v1/devices/{name}/lastseen (name) -> 200 204 400 404 500 503
        get /flightctl/api/v1/devices/{name}/rendered (name knownRenderedVersion) -> 200 204 400 404 409 414 431 500 503
        get /flightctl/api/v1/devices/{name}/status (name) -> 200 400 404 500 503
        patch /flightctl/api/v1/devices/{name}/status (name) -> 200 400 404 408 409 413 415 500 503
        put /flightctl/api/v1/devices/{name}/status (name) -> 200 400 404 408 409 413 415 500 503 {"$ref":"#/components/schemas/DeviceInput"}
        get /flightctl/api/v1/enrollmentrequests (fieldSelector limit continue) -> 200 400 414 431 500 503
        post /flightctl/api/v1/enrollmentrequests () -> 201 400 408 409 413 415 500 503 {"$ref":"#/components/schemas/EnrollmentRequestInput"}
        delete /flightctl/api/v1/enrollmentrequests/{name} (name) -> 200 400 404 409 500 503
        get /flightctl/api/v1/enrollmentrequests/{name} (name) -> 200 400 404 500 503
        patch /flightctl/api/v1/enrollmentrequests/{name} (name) -> 200 400 404 408 409 413 415 500 503
        put /flightctl/api/v1/enrollmentrequests/{name} (name) -> 200 201 400 404 408 409 413 415 500 503 {"$ref":"#/components/schemas/EnrollmentRequestInput"}
        put /flightctl/api/v1/enrollmentrequests/{name}/approval (name) -> 200 400 404 408 409 413 415 500 503 {"$ref":"#/components/schemas/EnrollmentRequestApproval"}
        get /flightctl/api/v1/events (limit continue fieldSelector) -> 200 400 414 431 500 503
        get /flightctl/api/v1/fleets (labelSelector fieldSelector limit continue addDevicesSummary) -> 200 400 414 431 500 503
        post /flightctl/api/v1/fleets () -> 201 400 408 409 413 415 500 503 {"$ref":"#/components/schemas/Fleet"}
        get /flightctl/api/v1/fleets/{fleet}/templateversions (fleet limit continue) -> 200 400 404 414 431 500 503
        get /flightctl/api/v1/fleets/{fleet}/templateversions/{name} (fleet name) -> 200 400 404 500 503
        delete /flightctl/api/v1/fleets/{name} (name) -> 200 400 500 503
        get /flightctl/api/v1/fleets/{name} (name addDevicesSummary) -> 200 400 404 414 431 500 503
        patch /flightctl/api/v1/fleets/{name} (name) -> 200 400 404 408 409 413 415 500 503
        put /flightctl/api/v1/fleets/{name} (name) -> 200 201 400 404 408 409 413 415 500 503 {"$ref":"#/components/schemas/Fleet"}
        get /flightctl/api/v1/labels (labelSelector fieldSelector limit continue kind) -> 200 400 414 431 500 503
        get /flightctl/api/v1/organizations () -> 200
        get /flightctl/api/v1/version () -> 200
        get /livez () -> 200
        get /metrics () -> 200
        get /openapi.json () -> 200
        get /readyz (verbose) -> 200 400 414 431 500 503
        get /reveille/v1/events (component session tenant host transition resource kind reason since limit order before) -> 200 400 403 414 431 500 503
        get /reveille/v1/explain/components/{id} (id) -> 200 400 403 404 500 503
        get /reveille/v1/explain/devices/{name} (name) -> 200 400 403 404 500 503
        get /reveille/v1/explain/hosts/{namespace}/{name} (namespace name) -> 200 400 403 404 500 503
        get /reveille/v1/explain/sessions/{name} (name tenant) -> 200 400 403 404 414 431 500 503
        get /reveille/v1/live (kind component session tenant Last-Event-ID) -> 200 400 403 414 431 500 503
        get /reveille/v1/peers () -> 200 403 500 503
        post /reveille/v1/plans (tenant) -> 200 400 403 408 413 414 415 431 500 503 {"$ref":"#/components/schemas/NewPlan"}
        get /reveille/v1/sessions (tenant) -> 200 400 403 414 431 500 503
        post /reveille/v1/sessions (tenant) -> 201 400 403 408 409 413 414 415 431 500 503 {"$ref":"#/components/schemas/PlannedSession"}
        get /reveille/v1/sessions/{name} (name tenant) -> 200 400 403 404 414 431 500 503
        post /reveille/v1/sessions/{name}/cancel (name tenant reason) -> 200 400 403 404 409 414 431 500 503
        post /reveille/v1/sessions/{name}/pause (name tenant reason) -> 200 400 403 404 409 414 431 500 503
        post /reveille/v1/sessions/{name}/resume (name tenant) -> 200 400 403 404 409 414 431 500 503
        post /reveille/v1/sessions/{name}/retry (name tenant) -> 200 400 403 404 409 414 431 500 503
        get /reveille/v1/timeline (resource name tenant session kind reason actor since until limit before after) -> 200 400 403 414 431 500 503
        get /reveille/v1/transitions (component) -> 200 400 403 414 431 500 503
        post /reveille/v1/transitions/abandon (id component) -> 200 400 403 404 409 414 431 500 503
        post /scn () -> 200 400 408 413 415 500 503 {"$ref":"#/components/schemas/Notification"}
        get /startz () -> 200 500 503
        get /ui () -> 200
        get /ui/ () -> 200
        get /v2 () -> 200
        post /v2/applystaged (Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"$ref":"#/components/schemas/StagedNodes"}
        get /v2/components (ids enabled session staged_session phase status start_after_id page_size Cray-Tenant-Name) -> 200 400 414 431 500 503
        patch /v2/components (skip_bad_ids Cray-Tenant-Name) -> 200 400 404 408 413 414 415 431 500 503 {"$ref":"#/components/schemas/BulkPatch"}
        put /v2/components (Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"allOf":[{"items":{"$ref":"#/components/schemas/ComponentInput"},"type":"array"},{"items":{"required":["id"]}}]}
        delete /v2/components/{id} (id Cray-Tenant-Name) -> 204 400 404 500 503
        get /v2/components/{id} (id Cray-Tenant-Name) -> 200 400 404 500 503
        patch /v2/components/{id} (id Cray-Tenant-Name) -> 200 400 404 408 409 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/ComponentInput"},{"minProperties":1}]}
        put /v2/components/{id} (id Cray-Tenant-Name) -> 200 400 404 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/ComponentInput"},{"minProperties":1}]}
        put /v2/dryrun/components (Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"allOf":[{"items":{"$ref":"#/components/schemas/ComponentInput"},"type":"array"},{"items":{"required":["id"]}}]}
        patch /v2/dryrun/options () -> 200 400 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/Options"},{"maxProperties":1024,"minProperties":1}]}
        put /v2/dryrun/sessiontemplates/{name} (name Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/SessionTemplateInput"},{"required":["boot_sets"]}]}
        get /v2/healthz () -> 200 500 503
        get /v2/options () -> 200 500 503
        patch /v2/options () -> 200 400 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/Options"},{"maxProperties":1024,"minProperties":1}]}
        delete /v2/sessions (min_age max_age status Cray-Tenant-Name) -> 204 400 414 431 500 503
        get /v2/sessions (min_age max_age status Cray-Tenant-Name) -> 200 400 414 431 500 503
        post /v2/sessions (Cray-Tenant-Name) -> 201 400 408 409 413 415 500 503 {"$ref":"#/components/schemas/NewSession"}
        delete /v2/sessions/{name} (name Cray-Tenant-Name) -> 204 400 404 500 503
        get /v2/sessions/{name} (name Cray-Tenant-Name) -> 200 400 404 500 503
        patch /v2/sessions/{name} (name Cray-Tenant-Name) -> 200 400 404 408 413 415 500 503 {"$ref":"#/components/schemas/SessionPatch"}
        get /v2/sessions/{name}/left_out (name Cray-Tenant-Name) -> 200 400 404 500 503
        get /v2/sessions/{name}/status (name Cray-Tenant-Name) -> 200 400 404 500 503
        post /v2/sessions/{name}/status (name Cray-Tenant-Name) -> 200 400 404 500 503
        get /v2/sessiontemplates (Cray-Tenant-Name) -> 200 400 500 503
        delete /v2/sessiontemplates/{name} (name Cray-Tenant-Name) -> 204 400 404 500 503
        get /v2/sessiontemplates/{name} (name Cray-Tenant-Name) -> 200 400 404 500 503
        patch /v2/sessiontemplates/{name} (name Cray-Tenant-Name) -> 200 400 404 408 413 415 500 503 {"$ref":"#/components/schemas/SessionTemplateInput"}
        put /v2/sessiontemplates/{name} (name Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/SessionTemplateInput"},{"required":["boot_sets"]}]}
        get /v2/sessiontemplatesvalid/{name} (name Cray-Tenant-Name) -> 200 400 404 500 503
        get /v2/sessiontemplatetemplate () -> 200
        get /v2/version () -> 200
    "##]].assert_eq(&lines);
}

/// Schemas have the limits of the contract (BOS reference 2.3, 4), and their nullable and read-only members.
#[test]
fn schemas_have_the_limits_of_the_contract() {
    let document = description_at("");
    let mut lines = String::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let mut rest = schema.clone();
        rest["properties"].take();
        lines += &format!("{name} {}\n", plain(&rest));
        for (member, schema) in schema["properties"].as_object().into_iter().flatten() {
            lines += &format!("    {member} {}\n", plain(schema));
        }
    }
    expect_test::expect_file!["schemas.txt"].assert_eq(&lines);
}

/// Returns a schema without the members for readers.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| {
                !["description", "title", "format"].contains(&name.as_str()) && !value.is_null()
            });
            kept.map(|(name, value)| (name.clone(), plain(value))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = description_at("");
    let mut wanted = BTreeSet::new();
    references(&document, &mut wanted);
    for reference in wanted {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn the_document_says_where_it_was_found() {
    let root = description_at("");
    let prefixed = description_at("/apis/bos");
    assert_eq!(root["servers"], json!([{ "url": "/" }]));
    assert_eq!(prefixed["servers"], json!([{ "url": "/apis/bos" }]));
    assert_eq!(prefixed["paths"]["/livez"]["servers"], json!([{ "url": "/" }]));
    assert_eq!(prefixed["paths"]["/v2"]["servers"], Value::Null);
}
