//! Requests of tenants, with a session manager that knows some of them.

use expect_test::expect;

use super::Site;

const PATCH: &str = r#"{"error": "e"}"#;
const EACH: &str = r#"[{"id": "a", "error": "e"}, {"id": "x", "error": "e"}]"#;
const BY_SESSION: &str = r#"{"patch": {"error": "e"}, "filters": {"session": "s"}}"#;

/// The fake registry gives the same answers to every caller: the test checks the requests that it got.
#[tokio::test]
async fn what_a_tenant_asks_for_is_limited_to_its_nodes() {
    let site = Site::with_tenants(false).await;
    for (tenant, method, path, body) in [
        ("blue", "GET", "/v2/components", None),
        ("blue", "GET", "/v2/components?ids=x,b", None),
        ("blue", "GET", "/v2/components/a", None),
        ("blue", "PATCH", "/v2/components/a", Some(PATCH)),
        ("blue", "PATCH", "/v2/components", Some("[]")),
        ("blue", "PATCH", "/v2/components", Some(EACH)),
        ("blue", "PATCH", "/v2/components", Some(BY_SESSION)),
        ("blue", "PUT", "/v2/components", Some(EACH)),
        ("blue", "DELETE", "/v2/components/x", None),
        ("everything", "DELETE", "/v2/components/x", None),
        ("", "DELETE", "/v2/components/x", None),
        ("blue", "GET", "/v2/options", None),
    ] {
        let status = site.ask_as(tenant, method, path, body).await.status();
        assert!(status.is_success(), "{method} {path}: {status}");
    }
    // The records themselves are the subject of other tests.
    let said = site.registry.said();
    let lines = said.lines().map(|line| match line.split_once("selection: Some(") {
        Some((before, _)) => format!("{before}..\n"),
        None if line.starts_with("PutComponents") => {
            format!("PutComponentsRequest .. {}\n", &line[line.rfind("scope").unwrap()..])
        }
        None => format!("{line}\n"),
    });
    expect![[r#"
        GetTenantRequest { name: "blue", among: [] }
        ListComponentsRequest { filter: Some(ComponentFilter { ids: [], enabled: None, session: None, staged_session: None, phase: Unspecified, statuses: [], session_tenant: Some("blue") }), start_after_id: "", page_size: 0, scope: Some(Scope { ids: ["a", "b"] }) }
        GetTenantRequest { name: "blue", among: ["x", "b"] }
        ListComponentsRequest { filter: Some(ComponentFilter { ids: ["x", "b"], enabled: None, session: None, staged_session: None, phase: Unspecified, statuses: [], session_tenant: Some("blue") }), start_after_id: "", page_size: 0, scope: Some(Scope { ids: ["b"] }) }
        GetTenantRequest { name: "blue", among: ["a"] }
        GetComponentRequest { id: "a", scope: Some(Scope { ids: ["a"] }) }
        GetTenantRequest { name: "blue", among: ["a"] }
        PatchComponentsRequest { skip_bad_ids: false, guard_actual_state: true, scope: Some(Scope { ids: ["a"] }), ..
        GetTenantRequest { name: "blue", among: [] }
        PatchComponentsRequest { skip_bad_ids: false, guard_actual_state: false, scope: Some(Scope { ids: ["a", "b"] }), ..
        GetTenantRequest { name: "blue", among: ["a", "x"] }
        PatchComponentsRequest { skip_bad_ids: false, guard_actual_state: false, scope: Some(Scope { ids: ["a"] }), ..
        GetTenantRequest { name: "blue", among: [] }
        PatchComponentsRequest { skip_bad_ids: false, guard_actual_state: false, scope: Some(Scope { ids: ["a", "b"] }), ..
        GetTenantRequest { name: "blue", among: ["a", "x"] }
        PutComponentsRequest .. scope: Some(Scope { ids: ["a"] }), validate_only: false }
        GetTenantRequest { name: "blue", among: ["x"] }
        DeleteComponentRequest { id: "x", scope: Some(Scope { ids: [] }) }
        GetTenantRequest { name: "everything", among: ["x"] }
        DeleteComponentRequest { id: "x", scope: None }
        DeleteComponentRequest { id: "x", scope: None }
    "#]].assert_eq(&lines.collect::<String>());
    site.stop().await;
}

#[tokio::test]
async fn nodes_in_doubt_are_shown_and_not_changed() {
    let mut rows = String::new();
    for strict in [false, true] {
        let site = Site::with_tenants(strict).await;
        for (method, path, body) in [
            ("GET", "/v2/components", None),
            ("GET", "/v2/components/b", None),
            ("PATCH", "/v2/components/b", Some(PATCH)),
            ("PATCH", "/v2/components", Some(BY_SESSION)),
            ("DELETE", "/v2/components/b", None),
        ] {
            let response = site.ask_as("shrinking", method, path, body).await;
            let since = response.headers().get("reveille-tenant-in-doubt-since");
            rows += &format!("{strict:5} {method} {path} -> {} {since:?}\n", response.status().as_u16());
        }
        site.stop().await;
    }
    expect![[r#"
        false GET /v2/components -> 200 Some("2024-11-20T16:10:12Z")
        false GET /v2/components/b -> 200 Some("2024-11-20T16:10:12Z")
        false PATCH /v2/components/b -> 503 None
        false PATCH /v2/components -> 503 None
        false DELETE /v2/components/b -> 503 None
        true  GET /v2/components -> 200 None
        true  GET /v2/components/b -> 200 None
        true  PATCH /v2/components/b -> 503 None
        true  PATCH /v2/components -> 503 None
        true  DELETE /v2/components/b -> 503 None
    "#]]
    .assert_eq(&rows);
}

#[tokio::test]
async fn strict_puts_go_past_tenants() {
    let site = Site::with_tenants(true).await;
    for (path, body) in [("/v2/components", EACH), ("/v2/components/a", PATCH)] {
        for tenant in ["blue", "stranger", "mute"] {
            let status = site.ask_as(tenant, "PUT", path, Some(body)).await.status();
            assert!(status.is_success(), "{tenant} {path}: {status}");
        }
    }
    assert!(!site.registry.said().contains("GetTenant"), "{}", site.registry.said());
    assert!(!site.registry.said().contains("ids"), "{}", site.registry.said());
    site.stop().await;
}

#[tokio::test]
async fn each_endpoint_has_its_words_for_unknown_tenants() {
    let site = Site::with_tenants(false).await;
    let mut lines = String::new();
    for tenant in ["stranger", "mute"] {
        for (method, path, body) in [
            ("GET", "/v2/components", None),
            ("GET", "/v2/components?page_size=x", None),
            ("GET", "/v2/components/a", None),
            ("PUT", "/v2/components/a", Some(PATCH)),
            ("PUT", "/v2/components", Some("[]")),
            ("PATCH", "/v2/components/a", Some(PATCH)),
            ("PATCH", "/v2/components", Some("[]")),
            ("PATCH", "/v2/components", Some(BY_SESSION)),
            ("PATCH", "/v2/components", Some("{bad")),
            ("DELETE", "/v2/components/a", None),
            ("GET", "/v2/healthz", None),
        ] {
            let line = site.line_as(tenant, method, path, body).await;
            lines.push_str(&format!("{tenant}: {line}"));
        }
    }
    let long = "x".repeat(128);
    lines.push_str(&site.line_as(&long, "GET", "/v2/components", None).await);
    expect![[r#"
        stranger: GET /v2/components - -> 400 {"detail":"Data not found for tenant stranger","status":400,"title":"Invalid tenant","type":"about:blank"}
        stranger: GET /v2/components?page_size=x - -> 400 {"detail":"Wrong type, expected 'integer' for query parameter 'page_size'","status":400,"title":"Bad Request","type":"about:blank"}
        stranger: GET /v2/components/a - -> 400 {"detail":"Data not found for tenant stranger","status":400,"title":"Invalid tenant","type":"about:blank"}
        stranger: PUT /v2/components/a {"error": "e"} -> 400 {"detail":"Data not found for tenant stranger","status":400,"title":"Invalid tenant","type":"about:blank"}
        stranger: PUT /v2/components [] -> 400 {"detail":"Data not found for tenant stranger","status":400,"title":"Invalid tenant","type":"about:blank"}
        stranger: PATCH /v2/components/a {"error": "e"} -> 400 {"detail":"Data not found for tenant stranger","status":400,"title":"Invalid tenant","type":"about:blank"}
        stranger: PATCH /v2/components [] -> 400 {"detail":"Error parsing the data provided: Data not found for tenant stranger","status":400,"title":"Bad Request","type":"about:blank"}
        stranger: PATCH /v2/components {"patch": {"error": "e"}, "filters": {"session": "s"}} -> 400 {"detail":"Error parsing the data provided: Data not found for tenant stranger","status":400,"title":"Bad Request","type":"about:blank"}
        stranger: PATCH /v2/components {bad -> 400 {"detail":"Request body is not valid JSON","status":400,"title":"Bad Request","type":"about:blank"}
        stranger: DELETE /v2/components/a - -> 400 {"detail":"Data not found for tenant stranger","status":400,"title":"Invalid tenant","type":"about:blank"}
        stranger: GET /v2/healthz - -> 200 {"apiStatus":"ok","dbStatus":"ok"}
        mute: GET /v2/components - -> 503 {"detail":"tenant service: TAPMS at tapms.example: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
        mute: GET /v2/components?page_size=x - -> 400 {"detail":"Wrong type, expected 'integer' for query parameter 'page_size'","status":400,"title":"Bad Request","type":"about:blank"}
        mute: GET /v2/components/a - -> 503 {"detail":"tenant service: TAPMS at tapms.example: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
        mute: PUT /v2/components/a {"error": "e"} -> 503 {"detail":"tenant service: TAPMS at tapms.example: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
        mute: PUT /v2/components [] -> 503 {"detail":"tenant service: TAPMS at tapms.example: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
        mute: PATCH /v2/components/a {"error": "e"} -> 503 {"detail":"tenant service: TAPMS at tapms.example: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
        mute: PATCH /v2/components [] -> 503 {"detail":"tenant service: TAPMS at tapms.example: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
        mute: PATCH /v2/components {"patch": {"error": "e"}, "filters": {"session": "s"}} -> 503 {"detail":"tenant service: TAPMS at tapms.example: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
        mute: PATCH /v2/components {bad -> 400 {"detail":"Request body is not valid JSON","status":400,"title":"Bad Request","type":"about:blank"}
        mute: DELETE /v2/components/a - -> 503 {"detail":"tenant service: TAPMS at tapms.example: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
        mute: GET /v2/healthz - -> 200 {"apiStatus":"ok","dbStatus":"ok"}
        GET /v2/components - -> 400 {"detail":"header 'cray-tenant-name' has more than 127 characters","status":400,"title":"Bad Request","type":"about:blank"}
    "#]].assert_eq(&lines);
    site.stop().await;
}
