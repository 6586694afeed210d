//! Writes.

use super::*;

/// Returns an answer in a line: its status, the interesting parts of the object or the refusal.
fn shown(answer: &ReadAnswer) -> String {
    let body = &answer.body;
    let text = match body["kind"].as_str() {
        Some("Status") => format!("{} {} {}", body["reason"], body["message"], body["details"]),
        _ => format!("{} {}", body["metadata"]["generation"], body["spec"]),
    };
    format!("{} {text} {}", answer.status.as_u16(), answer.warnings.join(" "))
}

#[tokio::test]
async fn writes_are_judged_before_they_are_stored() {
    let site = HostSite::start().await;
    site.create("a").await;
    let with = |member: &str, value: Value| {
        let mut host = host("b");
        host["spec"][member] = value;
        host
    };
    let strict = format!("{HOSTS}?fieldValidation=Strict");
    let dry = format!("{HOSTS}?dryRun=All");
    let mut nameless = host("");
    nameless["metadata"] = json!({ "generateName": "n-" });
    let mut kindless = host("b");
    kindless["kind"] = Value::Null;
    let mut elsewhere = host("b");
    elsewhere["metadata"]["namespace"] = "other".into();
    let mut lines = Vec::new();
    for (path, body) in [
        (HOSTS, host("a")),
        (HOSTS, with("online", "yes".into())),
        (HOSTS, with("bootMode", "BIOS".into())),
        (HOSTS, with("bmc", json!({ "address": "x" }))),
        (HOSTS, with("image", json!({ "url": "http://refused" }))),
        (HOSTS, with("unknown", 1.into())),
        (&strict, with("unknown", 1.into())),
        (HOSTS, host("Wrong_Name")),
        (HOSTS, kindless),
        (HOSTS, elsewhere),
        (&dry, host("dry")),
        (HOSTS, json!([])),
    ] {
        lines.push(shown(&site.write("POST", path, "application/json", body).await));
    }
    let named = site.write("POST", HOSTS, "application/json", nameless).await.body;
    assert_eq!(named["metadata"]["name"].as_str().unwrap().len(), 7);
    let listed = site.get(HOSTS).await.body["items"].as_array().unwrap().len();
    lines.push(format!("{listed} hosts"));
    check(
        &lines,
        expect![[r#"
            409 "AlreadyExists" "baremetalhosts.metal3.io \"a\" already exists" {"group":"metal3.io","kind":"baremetalhosts","name":"a"}
            422 "Invalid" "BareMetalHost.metal3.io \"b\" is invalid: spec.online: Invalid value: \"yes\": must be of type boolean" {"causes":[{"field":"spec.online","message":"Invalid value: \"yes\": must be of type boolean","reason":"FieldValueTypeInvalid"}],"group":"metal3.io","kind":"BareMetalHost","name":"b"}
            422 "Invalid" "BareMetalHost.metal3.io \"b\" is invalid: spec.bootMode: Unsupported value: \"BIOS\": supported values: \"UEFI\", \"UEFISecureBoot\", \"legacy\"" {"causes":[{"field":"spec.bootMode","message":"Unsupported value: \"BIOS\": supported values: \"UEFI\", \"UEFISecureBoot\", \"legacy\"","reason":"FieldValueNotSupported"}],"group":"metal3.io","kind":"BareMetalHost","name":"b"}
            422 "Invalid" "BareMetalHost.metal3.io \"b\" is invalid: spec.bmc.credentialsName: Required value" {"causes":[{"field":"spec.bmc.credentialsName","message":"Required value","reason":"FieldValueRequired"}],"group":"metal3.io","kind":"BareMetalHost","name":"b"}
            422 "Invalid" "BareMetalHost.metal3.io \"b\" is invalid: [spec.image.url: is refused, spec.image.checksum: is missing]" {"causes":[{"field":"spec.image.url","message":"is refused","reason":"FieldValueInvalid"},{"field":"spec.image.checksum","message":"is missing","reason":"FieldValueInvalid"}],"group":"metal3.io","kind":"BareMetalHost","name":"b"}
            201 1 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":true} 299 - "unknown field \"spec.unknown\""
            400 "BadRequest" "BareMetalHost in version \"v1alpha1\" cannot be handled as a BareMetalHost: strict decoding error: unknown field \"spec.unknown\"" {}
            422 "Invalid" "BareMetalHost.metal3.io \"Wrong_Name\" is invalid: metadata.name: Invalid value: \"Wrong_Name\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character" {"causes":[{"field":"metadata.name","message":"Invalid value: \"Wrong_Name\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character","reason":"FieldValueInvalid"}],"group":"metal3.io","kind":"BareMetalHost","name":"Wrong_Name"}
            400 "BadRequest" "Object 'Kind' is missing in the data" {}
            400 "BadRequest" "the namespace of the provided object does not match the namespace sent on the request" {}
            201 1 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":true}
            400 "BadRequest" "the body of the request is no object" {}
            3 hosts
        "#]],
    );
    site.stop().await;
}

#[tokio::test]
async fn updates_count_versions_and_generations() {
    let site = HostSite::start().await;
    let created = site.create("a").await.body;
    let path = format!("{HOSTS}/a");
    let mut lines = Vec::new();
    let mut put = created.clone();
    put["spec"]["online"] = false.into();
    let mut unversioned = put.clone();
    unversioned["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let mut other_life = put.clone();
    other_life["metadata"]["uid"] = "another".into();
    for body in [unversioned, other_life, put.clone(), put] {
        lines.push(shown(&site.write("PUT", &path, "application/json", body).await));
    }
    for patch in [
        json!({ "metadata": { "annotations": { "a": "1" } } }),
        json!({ "metadata": { "annotations": { "a": "1" } } }),
        json!({ "metadata": { "resourceVersion": "3" } }),
        json!({ "spec": { "online": true, "description": null } }),
        json!({ "status": { "poweredOn": true } }),
        json!({ "spec": { "online": null } }),
    ] {
        let answer = site.write("PATCH", &path, MERGE, patch).await;
        lines.push(format!("{} version {}", shown(&answer), answer.body["metadata"]["resourceVersion"]));
    }
    check(
        &lines,
        expect![[r#"
            422 "Invalid" "BareMetalHost.metal3.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update" {"causes":[{"field":"metadata.resourceVersion","message":"Invalid value: 0: must be specified for an update","reason":"FieldValueInvalid"}],"group":"metal3.io","kind":"BareMetalHost","name":"a"}
            409 "Conflict" "Operation cannot be fulfilled on baremetalhosts.metal3.io \"a\": Precondition failed: UID in precondition: another, UID in object meta: 00000000-0000-4000-8000-000000000002" {"group":"metal3.io","kind":"baremetalhosts","name":"a"}
            200 2 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":false}
            409 "Conflict" "Operation cannot be fulfilled on baremetalhosts.metal3.io \"a\": the object has been modified; please apply your changes to the latest version and try again" {"group":"metal3.io","kind":"baremetalhosts","name":"a"}
            200 2 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":false}  version "4"
            200 2 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":false}  version "4"
            409 "Conflict" "Operation cannot be fulfilled on baremetalhosts.metal3.io \"a\": the object has been modified; please apply your changes to the latest version and try again" {"group":"metal3.io","kind":"baremetalhosts","name":"a"}  version null
            200 3 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":true}  version "5"
            200 3 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":true}  version "5"
            422 "Invalid" "BareMetalHost.metal3.io \"a\" is invalid: spec.online: Required value" {"causes":[{"field":"spec.online","message":"Required value","reason":"FieldValueRequired"}],"group":"metal3.io","kind":"BareMetalHost","name":"a"}  version null
        "#]],
    );
    site.stop().await;
}

#[tokio::test]
async fn status_is_written_by_its_own_path() {
    let site = HostSite::start().await;
    site.create("a").await;
    let path = format!("{HOSTS}/a/status");
    let whole = json!({
        "operationalStatus": "OK", "errorMessage": "", "poweredOn": true,
        "provisioning": { "state": "available", "ID": "1" },
    });
    let mut lines = Vec::new();
    for patch in [
        json!({ "status": { "poweredOn": true } }),
        json!({ "spec": { "online": false }, "metadata": { "labels": { "x": "y" } }, "status": whole }),
        json!({ "status": { "errorType": "no such word" } }),
    ] {
        let answer = site.write("PATCH", &path, MERGE, patch).await;
        lines.push(format!("{} {}", shown(&answer), answer.body["status"]));
    }
    check(
        &lines,
        expect![[r#"
        422 "Invalid" "BareMetalHost.metal3.io \"a\" is invalid: [status.operationalStatus: Required value, status.errorMessage: Required value, status.provisioning: Required value]" {"causes":[{"field":"status.operationalStatus","message":"Required value","reason":"FieldValueRequired"},{"field":"status.errorMessage","message":"Required value","reason":"FieldValueRequired"},{"field":"status.provisioning","message":"Required value","reason":"FieldValueRequired"}],"group":"metal3.io","kind":"BareMetalHost","name":"a"}  "Failure"
        200 1 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":true}  {"errorCount":0,"errorMessage":"","goodCredentials":{},"operationHistory":{"deprovision":{"end":null,"start":null},"inspect":{"end":null,"start":null},"provision":{"end":null,"start":null},"register":{"end":null,"start":null}},"operationalStatus":"OK","poweredOn":true,"provisioning":{"ID":"1","image":{"url":""},"state":"available"},"provisioningFailCount":0,"triedCredentials":{}}
        422 "Invalid" "BareMetalHost.metal3.io \"a\" is invalid: status.errorType: Unsupported value: \"no such word\": supported values: \"provisioned registration error\", \"registration error\", \"inspection error\", \"preparation error\", \"provisioning error\", \"power management error\", \"servicing error\", \"detach error\"" {"causes":[{"field":"status.errorType","message":"Unsupported value: \"no such word\": supported values: \"provisioned registration error\", \"registration error\", \"inspection error\", \"preparation error\", \"provisioning error\", \"power management error\", \"servicing error\", \"detach error\"","reason":"FieldValueNotSupported"}],"group":"metal3.io","kind":"BareMetalHost","name":"a"}  "Failure"
    "#]],
    );
    site.stop().await;
}

#[tokio::test]
async fn deletion_waits_for_finalizers() {
    let site = HostSite::start().await;
    let mut kept = host("a");
    kept["metadata"]["finalizers"] = json!(["x"]);
    site.write("POST", HOSTS, "application/json", kept).await;
    let path = format!("{HOSTS}/a");
    let mut lines = Vec::new();
    for (method, body) in [
        ("DELETE", json!({ "preconditions": { "uid": "another" } })),
        ("DELETE", json!({ "dryRun": ["All"] })),
        ("DELETE", json!({ "propagationPolicy": "Foreground" })),
        ("DELETE", json!({})),
        ("PATCH", json!({ "metadata": { "finalizers": ["x", "y"] } })),
        ("PATCH", json!({ "metadata": { "finalizers": [] } })),
        ("DELETE", json!({})),
    ] {
        let form = if method == "PATCH" { MERGE } else { "application/json" };
        let answer = site.write(method, &path, form, body).await;
        let deleted = &answer.body["metadata"]["deletionTimestamp"];
        lines.push(format!("{method} {} deleted {deleted}", shown(&answer)));
    }
    site.create("b").await;
    lines.push(shown(&site.ask("DELETE", &format!("{HOSTS}/b"), &[], Body::empty()).await));
    check(
        &lines,
        expect![[r#"
            DELETE 409 "Conflict" "Operation cannot be fulfilled on baremetalhosts.metal3.io \"a\": Precondition failed: the object is another or has changed" {"group":"metal3.io","kind":"baremetalhosts","name":"a"}  deleted null
            DELETE 200 2 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":true}  deleted "2027-01-15T08:00:00Z"
            DELETE 200 2 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":true}  deleted "2027-01-15T08:00:00Z"
            DELETE 200 2 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":true}  deleted "2027-01-15T08:00:00Z"
            PATCH 422 "Invalid" "BareMetalHost.metal3.io \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found [\"y\"]" {"causes":[{"field":"metadata.finalizers","message":"Forbidden: no new finalizers can be added if the object is being deleted, found [\"y\"]","reason":"FieldValueForbidden"}],"group":"metal3.io","kind":"BareMetalHost","name":"a"}  deleted null
            PATCH 200 2 {"automatedCleaningMode":"metadata","bmc":{"address":"redfish://10.0.0.1/1","credentialsName":"s"},"online":true}  deleted "2027-01-15T08:00:00Z"
            DELETE 404 "NotFound" "baremetalhosts.metal3.io \"a\" not found" {"group":"metal3.io","kind":"baremetalhosts","name":"a"}  deleted null
            200 null null {"group":"metal3.io","kind":"baremetalhosts","name":"b","uid":"00000000-0000-4000-8000-000000000005"}
        "#]],
    );
    site.stop().await;
}

#[tokio::test]
async fn collections_of_all_namespaces_are_only_read() {
    let site = HostSite::start().await;
    site.write("POST", HOSTS, "application/json", host("a")).await;
    let everywhere = "/apis/metal3.io/v1alpha1/baremetalhosts";
    for (method, status) in [("DELETE", 405), ("POST", 405), ("GET", 200)] {
        let answer = site.write(method, everywhere, "application/json", host("b")).await;
        assert_eq!(answer.status, status, "{method}");
    }
    let kept = site.ask("GET", &format!("{HOSTS}/a"), &[], Body::empty()).await;
    assert_eq!(kept.status, 200);
}

#[tokio::test]
async fn applies_conflict_unless_they_insist() {
    let site = HostSite::start().await;
    let apply = "application/apply-patch+yaml";
    let path = |query: &str| format!("{HOSTS}/a?{query}");
    let wish =
        |spec: Value| json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "spec": spec });
    let image = json!({ "url": "http://i", "checksum": "c" });
    let mut lines = Vec::new();
    for (query, body) in [
        ("", wish(json!({ "online": true }))),
        ("fieldManager=one", wish(json!({ "online": true, "image": image, "architecture": "x86_64" }))),
        ("fieldManager=two", wish(json!({ "online": true, "description": "d" }))),
        ("fieldManager=two", wish(json!({ "online": false }))),
        ("fieldManager=two&force=true", wish(json!({ "online": false }))),
        ("fieldManager=one", wish(json!({ "architecture": "x86_64" }))),
        ("fieldManager=one", wish(json!({ "architecture": "x86_64" }))),
    ] {
        let answer = site.write("PATCH", &path(query), apply, body).await;
        let rows = answer.body["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let rows: Vec<_> = rows.iter().map(|row| format!("{} {}", row["manager"], row["fieldsV1"])).collect();
        lines.push(format!("{query}: {}\n    {}", shown(&answer), rows.join("\n    ")));
    }
    check(
        &lines,
        expect![[r#"
            : 422 "Invalid" "BareMetalHost.metal3.io \"\" is invalid: fieldManager: Required value: is required for apply patch" {"causes":[{"field":"fieldManager","message":"Required value: is required for apply patch","reason":"FieldValueRequired"}],"group":"metal3.io","kind":"BareMetalHost"}
            fieldManager=one: 201 1 {"architecture":"x86_64","automatedCleaningMode":"metadata","image":{"checksum":"c","url":"http://i"},"online":true}
                "one" {"f:spec":{"f:architecture":{},"f:image":{"f:checksum":{},"f:url":{}},"f:online":{}}}
            fieldManager=two: 200 2 {"architecture":"x86_64","automatedCleaningMode":"metadata","description":"d","image":{"checksum":"c","url":"http://i"},"online":true}
                "one" {"f:spec":{"f:architecture":{},"f:image":{"f:checksum":{},"f:url":{}},"f:online":{}}}
                "two" {"f:spec":{"f:description":{},"f:online":{}}}
            fieldManager=two: 409 "Conflict" "Apply failed with 1 conflict:\n- conflict with \"one\": .spec.online" {"causes":[{"field":".spec.online","message":"conflict with \"one\"","reason":"FieldManagerConflict"}]}
            fieldManager=two&force=true: 200 3 {"architecture":"x86_64","automatedCleaningMode":"metadata","image":{"checksum":"c","url":"http://i"},"online":false}
                "one" {"f:spec":{"f:architecture":{},"f:image":{"f:checksum":{},"f:url":{}}}}
                "two" {"f:spec":{"f:online":{}}}
            fieldManager=one: 200 4 {"architecture":"x86_64","automatedCleaningMode":"metadata","online":false}
                "one" {"f:spec":{"f:architecture":{}}}
                "two" {"f:spec":{"f:online":{}}}
            fieldManager=one: 200 4 {"architecture":"x86_64","automatedCleaningMode":"metadata","online":false}
                "one" {"f:spec":{"f:architecture":{}}}
                "two" {"f:spec":{"f:online":{}}}
        "#]],
    );
    site.stop().await;
}

#[tokio::test]
async fn values_of_secrets_never_come_back() {
    let site = HostSite::start().await;
    let path = "/api/v1/namespaces/m/secrets";
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "username": "u", "password": "p" } });
    let mut lines = vec![site.ask("POST", path, &[], secret.to_string()).await.body["data"].to_string()];
    let shown = site.get(&format!("{path}/s")).await.body;
    let patch = json!({ "data": { "password": "cQ==", "more": "" } });
    let strategic = "application/strategic-merge-patch+json";
    lines.push(site.write("PATCH", &format!("{path}/s"), strategic, patch).await.body["data"].to_string());
    let mut put = shown;
    put["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    put["metadata"]["annotations"] = json!({
        "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"password\":\"cQ==\"},\"kind\":\"Secret\"}",
    });
    let put = site.write("PUT", &format!("{path}/s"), "application/json", put).await.body;
    lines.push(format!("{} {}", put["data"], put["metadata"]["annotations"]));
    lines.push(format!("{:?}", site.registry.values.lock().unwrap()));
    lines.push(site.write("PATCH", &format!("{path}/s"), MERGE, json!({ "data": { "x": "!" } })).await.body["message"].to_string());
    check(
        &lines,
        expect![[r#"
        {"password":"","username":""}
        {"more":"","password":"","username":""}
        {"password":"","username":""} {"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":\"\"},\"kind\":\"Secret\"}\n"}
        {"m/s": {"password": [113], "username": [117]}}
        "Secret \"s\" is invalid: data[x]: illegal base64 data"
    "#]],
    );
    site.stop().await;
}

#[tokio::test]
async fn deletions_say_what_happens_to_dependents() {
    let site = HostSite::start().await;
    site.create("a").await;
    let path = format!("{HOSTS}/a?dryRun=All");
    let mut codes = Vec::new();
    for (parameter, body) in [
        ("", json!({})),
        ("", json!({ "propagationPolicy": "Background" })),
        ("", json!({ "propagationPolicy": "Foreground" })),
        ("&propagationPolicy=Orphan", json!({})),
        ("&propagationPolicy=Orphan", json!({ "propagationPolicy": "Foreground" })),
        ("", json!({ "orphanDependents": true })),
        ("", json!({ "orphanDependents": false })),
        ("", json!({ "propagationPolicy": "Upwards" })),
    ] {
        let answer = site.write("DELETE", &format!("{path}{parameter}"), "application/json", body).await;
        codes.push(answer.status.as_u16());
    }
    site.ask("DELETE", &format!("{path}&propagationPolicy=Orphan"), &[], Body::empty()).await;
    assert_eq!(codes, [200, 200, 200, 200, 200, 200, 200, 422]);
    let asked: Vec<_> =
        site.registry.propagations.lock().unwrap().iter().map(|one| one.as_str_name().to_owned()).collect();
    check(
        &asked,
        expect![[r#"
            PROPAGATION_UNSPECIFIED
            PROPAGATION_BACKGROUND
            PROPAGATION_FOREGROUND
            PROPAGATION_ORPHAN
            PROPAGATION_FOREGROUND
            PROPAGATION_ORPHAN
            PROPAGATION_BACKGROUND
            PROPAGATION_ORPHAN
        "#]],
    );
    site.stop().await;
}
