//! The gateway in front of a registry with scripted answers.

use std::convert::Infallible;

use axum::{body::Body, extract::Request};
use chassis::{Context, Settings, process::capacity::ProcessCapacity};
use expect_test::{Expect, expect};
use http::{Method, StatusCode, header::CONTENT_TYPE};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};

mod access;
mod agents;
mod document;
mod flightctl;
mod identity;
mod issuer;
mod kubernetes;
mod registry;
mod tenants;

use registry::Registry;

use crate::{
    flightctl::FlightctlFace,
    http::admission::AdmissionPlaces,
    mesh::MeshHandle,
    port::{CallerChecks, FaceRouters},
};

/// Returns the common port, without the face of Kubernetes.
pub(crate) fn app(
    settings: &Settings,
) -> impl Service<Request, Response = http::Response<Body>, Error = Infallible, Future: Send> + Clone + use<>
{
    app_behind(settings, CallerChecks::default())
}

/// Returns the common port behind checks of callers, without the face of Kubernetes.
fn app_behind(
    settings: &Settings,
    checks: CallerChecks,
) -> impl Service<Request, Response = http::Response<Body>, Error = Infallible, Future: Send> + Clone + use<>
{
    let mesh = MeshHandle::new(settings, CancellationToken::new()).unwrap();
    let places = AdmissionPlaces::new(&settings.gateway, &ProcessCapacity::of_process(settings));
    let flightctl = crate::flightctl::router(FlightctlFace::new(mesh.clone()), &places);
    let faces = FaceRouters { flightctl, ..FaceRouters::default() };
    crate::port::app(settings, mesh, &places, faces, checks)
}

/// Gateway whose registry runs, and whose session manager does not, or knows tenants and nothing else.
struct Site {
    settings: Settings,
    registry: Registry,
    context: Context,
}

impl Site {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut settings = Settings::default();
        settings.component_registry.url = format!("http://{}", listener.local_addr().unwrap());
        settings.session_manager.url = "http://127.0.0.1:1".into();
        let context = Context::new(settings.clone());
        let registry = Registry::default();
        registry.clone().serve(&context, listener).await;
        Self { settings, registry, context }
    }

    /// Starts a gateway as [`Self::start`] does, with tenants.
    async fn with_tenants(strict: bool) -> Self {
        let mut site = Self::start().await;
        site.settings.session_manager.url = site.settings.component_registry.url.clone();
        site.settings.compat.strict_bos = strict;
        site
    }

    fn app(
        &self,
    ) -> impl Service<Request, Response = http::Response<Body>, Error = Infallible, Future: Send> + Clone + use<>
    {
        app(&self.settings)
    }

    async fn stop(self) {
        self.context.tasks.shutdown().cancel();
        self.context.tasks.finished(std::time::Duration::from_secs(5)).await.unwrap();
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&str>) -> http::Response<Body> {
        self.ask_as("", method, path, body).await
    }

    async fn ask_as(
        &self,
        tenant: &str,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> http::Response<Body> {
        let request = Request::builder().method(method).uri(path).header("Cray-Tenant-Name", tenant);
        let request = match body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body.to_owned().into()),
            None => request.body(Body::empty()),
        };
        let Ok(response) = self.app().oneshot(request.unwrap()).await;
        response
    }

    /// Returns one line: the request, the status, and the body or the reason why it broke off.
    async fn line(&self, method: &str, path: &str, body: Option<&str>) -> String {
        self.line_as("", method, path, body).await
    }

    async fn line_as(&self, tenant: &str, method: &str, path: &str, body: Option<&str>) -> String {
        let response = self.ask_as(tenant, method, path, body).await;
        let status = response.status().as_u16();
        let told = match axum::body::to_bytes(response.into_body(), usize::MAX).await {
            Ok(body) => String::from_utf8(body.to_vec()).unwrap(),
            Err(error) => format!("broke off: {error}"),
        };
        format!("{method} {path} {} -> {status} {told}\n", body.unwrap_or("-"))
    }

    async fn check(&self, rows: &[(&str, &str, Option<&str>)], expected: Expect) {
        let mut lines = String::new();
        for (method, path, body) in rows {
            lines.push_str(&self.line(method, path, *body).await);
        }
        expected.assert_eq(&lines);
    }
}

#[tokio::test]
async fn the_description_is_served_for_programs_and_people() {
    let site = Site::start().await;
    for (path, kind) in [
        ("/openapi.json", "application/json"),
        ("/apis/bos/openapi.json", "application/json"),
        ("/ui", "text/html; charset=utf-8"),
        ("/ui/", "text/html; charset=utf-8"),
        ("/apis/bos/ui/", "text/html; charset=utf-8"),
    ] {
        let response = site.ask("GET", path, None).await;
        assert_eq!(
            (response.status(), response.headers()[CONTENT_TYPE].to_str().unwrap()),
            (StatusCode::OK, kind)
        );
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let text = std::str::from_utf8(&body).unwrap();
        // The page works without any other server.
        assert!(kind == "application/json" || !(text.contains("://") || text.contains("src=")), "{path}");
        assert!(!text.contains("BOS reference"), "{path}");
    }
    site.stop().await;
}

#[tokio::test]
async fn lists_stream_whatever_their_length() {
    let site = Site::start().await;
    site.check(
        &[
            ("GET", "/v2/components?session=pages", None),
            ("GET", "/apis/bos/v2/components?session=none", None),
            ("GET", "/v2/components?session=refused", None),
            ("GET", "/v2/components?session=refused-late", None),
            ("GET", "/v2/components?session=broken", None),
            ("HEAD", "/v2/components?session=pages", None),
        ],
        expect![[r#"
            GET /v2/components?session=pages - -> 200 [{"id":"a","status":{"phase":"","status":"stable","status_override":""}},{"id":"b","status":{"phase":"","status":"stable","status_override":""}},{"id":"c","status":{"phase":"","status":"stable","status_override":""}}]
            GET /apis/bos/v2/components?session=none - -> 200 []
            GET /v2/components?session=refused - -> 503 {"detail":"database: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
            GET /v2/components?session=refused-late - -> 503 {"detail":"database: gone","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
            GET /v2/components?session=broken - -> 200 broke off: database: gone
            HEAD /v2/components?session=pages - -> 200 
        "#]],
    )
    .await;
    site.stop().await;
}

#[tokio::test]
async fn requests_reach_the_registry_as_messages() {
    let site = Site::start().await;
    let rows = [
        ("GET", "/v2/components?ids=b,a&enabled=False&phase=configuring&status=x,y&page_size=3", None),
        ("GET", "/v2/components?enabled=false&start_after_id=a&phase=&staged_session=s", None),
        ("PUT", "/v2/components", Some(r#"[{"id": "a", "enabled": true}]"#)),
        ("PUT", "/v2/components/a%20b", Some(r#"{"id": "other", "enabled": true}"#)),
        ("PATCH", "/v2/components/a", Some(r#"{"actual_state": {"bss_token": "t"}}"#)),
        ("PATCH", "/v2/components?skip_bad_ids=TRUE", Some(r#"[{"id": "a", "error": "e"}]"#)),
        (
            "PATCH",
            "/v2/components",
            Some(r#"{"patch": {"id": "i", "error": "e"}, "filters": {"ids": "a,b", "session": ""}}"#),
        ),
        (
            "PATCH",
            "/v2/components",
            Some(r#"{"patch": {"error": "e"}, "filters": {"session": "s", "ids": null}}"#),
        ),
        ("DELETE", "/v2/components/a", None),
    ];
    for (method, path, body) in rows {
        let status = site.ask(method, path, body).await.status();
        assert!(status.is_success(), "{method} {path}: {status}");
    }
    expect![[r#"
        ListComponentsRequest { filter: Some(ComponentFilter { ids: ["b", "a"], enabled: Some(false), session: None, staged_session: None, phase: Configuring, statuses: ["x", "y"], session_tenant: None }), start_after_id: "", page_size: 3, scope: None }
        ListComponentsRequest { filter: Some(ComponentFilter { ids: [], enabled: Some(false), session: None, staged_session: Some("s"), phase: Unspecified, statuses: [], session_tenant: None }), start_after_id: "a", page_size: 0, scope: None }
        PutComponentsRequest { components: [Component { id: "a", actual_state: None, desired_state: None, staged_state: None, last_action: None, event_stats: None, status: None, enabled: Some(true), error: None, session: None, retry_policy: None, revision: 0, generation: 0, preparation: None, assignment: "", power_error: "", locked: false, session_tenant: None, latest_assignment: "", presence: None, decided_by: None, turns: None, prepared_token: None, boot: None, late_report: None, error_kind: Unspecified, power_error_kind: Unspecified, last_event: 0, error_begin: None, undecided: false, acted_before: false, pause: None, running_report: None, trace_parent: "" }], scope: None, validate_only: false }
        PutComponentsRequest { components: [Component { id: "a b", actual_state: None, desired_state: None, staged_state: None, last_action: None, event_stats: None, status: None, enabled: Some(true), error: None, session: None, retry_policy: None, revision: 0, generation: 0, preparation: None, assignment: "", power_error: "", locked: false, session_tenant: None, latest_assignment: "", presence: None, decided_by: None, turns: None, prepared_token: None, boot: None, late_report: None, error_kind: Unspecified, power_error_kind: Unspecified, last_event: 0, error_begin: None, undecided: false, acted_before: false, pause: None, running_report: None, trace_parent: "" }], scope: None, validate_only: false }
        PatchComponentsRequest { skip_bad_ids: false, guard_actual_state: true, scope: None, selection: Some(Each(PatchEach { patches: [Component { id: "a", actual_state: Some(ActualState { boot_artifacts: None, bss_token: Some("t"), last_updated: None }), desired_state: None, staged_state: None, last_action: None, event_stats: None, status: None, enabled: None, error: None, session: None, retry_policy: None, revision: 0, generation: 0, preparation: None, assignment: "", power_error: "", locked: false, session_tenant: None, latest_assignment: "", presence: None, decided_by: None, turns: None, prepared_token: None, boot: None, late_report: None, error_kind: Unspecified, power_error_kind: Unspecified, last_event: 0, error_begin: None, undecided: false, acted_before: false, pause: None, running_report: None, trace_parent: "" }] })) }
        PatchComponentsRequest { skip_bad_ids: true, guard_actual_state: false, scope: None, selection: Some(Each(PatchEach { patches: [Component { id: "a", actual_state: None, desired_state: None, staged_state: None, last_action: None, event_stats: None, status: None, enabled: None, error: Some("e"), session: None, retry_policy: None, revision: 0, generation: 0, preparation: None, assignment: "", power_error: "", locked: false, session_tenant: None, latest_assignment: "", presence: None, decided_by: None, turns: None, prepared_token: None, boot: None, late_report: None, error_kind: Unspecified, power_error_kind: Unspecified, last_event: 0, error_begin: None, undecided: false, acted_before: false, pause: None, running_report: None, trace_parent: "" }] })) }
        PatchComponentsRequest { skip_bad_ids: false, guard_actual_state: false, scope: None, selection: Some(Many(PatchMany { patch: Some(Component { id: "", actual_state: None, desired_state: None, staged_state: None, last_action: None, event_stats: None, status: None, enabled: None, error: Some("e"), session: None, retry_policy: None, revision: 0, generation: 0, preparation: None, assignment: "", power_error: "", locked: false, session_tenant: None, latest_assignment: "", presence: None, decided_by: None, turns: None, prepared_token: None, boot: None, late_report: None, error_kind: Unspecified, power_error_kind: Unspecified, last_event: 0, error_begin: None, undecided: false, acted_before: false, pause: None, running_report: None, trace_parent: "" }), ids: ["a", "b"], session: "", session_tenant: None })) }
        PatchComponentsRequest { skip_bad_ids: false, guard_actual_state: false, scope: None, selection: Some(Many(PatchMany { patch: Some(Component { id: "", actual_state: None, desired_state: None, staged_state: None, last_action: None, event_stats: None, status: None, enabled: None, error: Some("e"), session: None, retry_policy: None, revision: 0, generation: 0, preparation: None, assignment: "", power_error: "", locked: false, session_tenant: None, latest_assignment: "", presence: None, decided_by: None, turns: None, prepared_token: None, boot: None, late_report: None, error_kind: Unspecified, power_error_kind: Unspecified, last_event: 0, error_begin: None, undecided: false, acted_before: false, pause: None, running_report: None, trace_parent: "" }), ids: [], session: "s", session_tenant: None })) }
        DeleteComponentRequest { id: "a", scope: None }
    "#]].assert_eq(&site.registry.said());
    site.stop().await;
}

#[tokio::test]
async fn what_cannot_be_said_to_a_service_is_refused() {
    let site = Site::start().await;
    let long = format!("/v2/components/{}", "x".repeat(128));
    let long_id = format!("/v2/components?ids=a,{}", "x".repeat(128));
    site.check(
        &[
            ("PUT", "/v2/components/a", Some("{}")),
            ("PUT", "/v2/components/a", None),
            ("PUT", "/v2/components", Some(r#"[{"id": "a"}, {"enabled": true}]"#)),
            ("PATCH", "/v2/components", Some(r#"{"patch": {}, "filters": {"ids": "a"}}"#)),
            ("PATCH", "/v2/components", Some(r#"{"patch": {"error": "e"}, "filters": {}}"#)),
            (
                "PATCH",
                "/v2/components",
                Some(r#"{"patch": {"error": "e"}, "filters": {"ids": "a", "session": "s"}}"#),
            ),
            ("PATCH", "/v2/components", Some(r#"{"patch": {"error": "e"}, "filters": {"session": "-bad"}}"#)),
            ("PATCH", "/v2/components?skip_bad_ids=zzz", Some("[]")),
            ("GET", &long, None),
            ("GET", &long_id, None),
            ("GET", "/v2/components?ids=", None),
            ("GET", "/v2/components?start_after_id=", None),
            ("GET", "/v2/components?page_size=1048577", None),
            ("PATCH", "/v2/options", Some("{}")),
            ("GET", "/v2/sessiontemplates/-a", None),
            ("PUT", "/v2/sessiontemplates/a", Some("{}")),
            ("PUT", "/v2/sessiontemplates/a", Some(r#"{"boot_sets": {}}"#)),
            ("PUT", "/v2/sessiontemplates/-a", Some("{bad")),
            ("POST", "/v2/sessions", Some(r#"{"operation": "boot", "template_name": "t", "name": ""}"#)),
            ("GET", "/v2/sessions?min_age=", None),
            ("GET", "/v2/sessions?status=done", None),
            ("GET", "/v2/sessions/a%20b/status", None),
        ],
        expect![[r#"
            PUT /v2/components/a {} -> 400 {"detail":"the object needs at least one member","status":400,"title":"Bad Request","type":"about:blank"}
            PUT /v2/components/a - -> 400 {"detail":"a request body is required","status":400,"title":"Bad Request","type":"about:blank"}
            PUT /v2/components [{"id": "a"}, {"enabled": true}] -> 400 {"detail":"missing field `id` - '[1]'","status":400,"title":"Bad Request","type":"about:blank"}
            PATCH /v2/components {"patch": {}, "filters": {"ids": "a"}} -> 400 {"detail":"the object needs at least one member - 'patch'","status":400,"title":"Bad Request","type":"about:blank"}
            PATCH /v2/components {"patch": {"error": "e"}, "filters": {}} -> 400 {"detail":"exactly one of ids and session is needed - 'filters'","status":400,"title":"Bad Request","type":"about:blank"}
            PATCH /v2/components {"patch": {"error": "e"}, "filters": {"ids": "a", "session": "s"}} -> 400 {"detail":"exactly one of ids and session is needed - 'filters'","status":400,"title":"Bad Request","type":"about:blank"}
            PATCH /v2/components {"patch": {"error": "e"}, "filters": {"session": "-bad"}} -> 400 {"detail":"is not the name of a session - 'filters.session'","status":400,"title":"Bad Request","type":"about:blank"}
            PATCH /v2/components?skip_bad_ids=zzz [] -> 400 {"detail":"Wrong type, expected 'boolean' for query parameter 'skip_bad_ids'","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/components/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx - -> 400 {"detail":"the path has an id of more than 127 characters","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/components?ids=a,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx - -> 400 {"detail":"query parameter 'ids': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' has more than 127 characters","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/components?ids= - -> 400 {"detail":"query parameter 'ids': has 0 characters, not between 1 and 65535","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/components?start_after_id= - -> 400 {"detail":"query parameter 'start_after_id': has 0 characters, not between 1 and 127","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/components?page_size=1048577 - -> 400 {"detail":"query parameter 'page_size': 1048577 is not between 0 and 1048576","status":400,"title":"Bad Request","type":"about:blank"}
            PATCH /v2/options {} -> 400 {"detail":"the object needs at least one member","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/sessiontemplates/-a - -> 400 {"detail":"the path has '-a', which is no name","status":400,"title":"Bad Request","type":"about:blank"}
            PUT /v2/sessiontemplates/a {} -> 400 {"detail":"missing field `boot_sets`","status":400,"title":"Bad Request","type":"about:blank"}
            PUT /v2/sessiontemplates/a {"boot_sets": {}} -> 400 {"detail":"the object needs at least one member - 'boot_sets'","status":400,"title":"Bad Request","type":"about:blank"}
            PUT /v2/sessiontemplates/-a {bad -> 400 {"detail":"Request body is not valid JSON","status":400,"title":"Bad Request","type":"about:blank"}
            POST /v2/sessions {"operation": "boot", "template_name": "t", "name": ""} -> 400 {"detail":"is not the name of a session - 'name'","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/sessions?min_age= - -> 400 {"detail":"query parameter 'min_age': has 0 characters, not between 1 and 8","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/sessions?status=done - -> 400 {"detail":"query parameter 'status': 'done' is not one of 'pending', 'running', 'complete'","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/sessions/a%20b/status - -> 400 {"detail":"the path has 'a b', which is no name","status":400,"title":"Bad Request","type":"about:blank"}
        "#]],
    )
    .await;
    assert_eq!(site.registry.said(), "");
    site.stop().await;
}

#[tokio::test]
async fn refusals_become_problems() {
    let site = Site::start().await;
    site.check(
        &[
            ("GET", "/v2/components/nope", None),
            ("PATCH", "/v2/components/busy", Some(r#"{"actual_state": {}}"#)),
            ("PATCH", "/v2/options", Some(r#"{"bss_read_timeout": 1}"#)),
            ("GET", "/v2/sessions/s", None),
            ("DELETE", "/v2/sessions", None),
            ("POST", "/v2/sessions", Some(r#"{"operation": "boot", "template_name": "t"}"#)),
        ],
        expect![[r#"
            GET /v2/components/nope - -> 404 {"detail":"Component 'nope' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
            PATCH /v2/components/busy {"actual_state": {}} -> 409 {"detail":"BOS is currently changing the state of the node, and the actual state can not be accurately recorded","status":409,"title":"Actual state can not be updated.","type":"about:blank"}
            PATCH /v2/options {"bss_read_timeout": 1} -> 400 {"detail":"bss_read_timeout: 1 is not between 10 and 86400","status":400,"title":"Bad Request","type":"about:blank"}
            GET /v2/sessions/s - -> 503 {"detail":"session manager: Connection refused","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
            DELETE /v2/sessions - -> 503 {"detail":"session manager: Connection refused","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
            POST /v2/sessions {"operation": "boot", "template_name": "t"} -> 503 {"detail":"session manager: Connection refused","status":503,"title":"Unable to connect to the Redis database","type":"about:blank"}
        "#]],
    )
    .await;
    site.stop().await;
}

#[tokio::test]
async fn options_show_twenty_and_repeat_unknown_ones_once() {
    let site = Site::start().await;
    site.check(
        &[
            ("GET", "/v2/options", None),
            ("PATCH", "/v2/options", Some(r#"{"clear_stage": true, "no_such_option": {"b": 1, "a": null}}"#)),
        ],
        expect![[r#"
            GET /v2/options - -> 200 {"bss_read_timeout":20,"cfs_read_timeout":20,"cleanup_completed_session_ttl":"7d","clear_stage":false,"component_actual_state_ttl":"4h","default_retry_policy":3,"discovery_frequency":300,"hsm_read_timeout":20,"ims_errors_fatal":false,"ims_images_must_exist":false,"ims_read_timeout":20,"logging_level":"INFO","max_boot_wait_time":1200,"max_component_batch_size":2800,"max_power_off_wait_time":300,"max_power_on_wait_time":120,"pcs_read_timeout":20,"polling_frequency":15,"reject_nids":false,"session_limit_required":false}
            PATCH /v2/options {"clear_stage": true, "no_such_option": {"b": 1, "a": null}} -> 200 {"bss_read_timeout":20,"cfs_read_timeout":20,"cleanup_completed_session_ttl":"7d","clear_stage":true,"component_actual_state_ttl":"4h","default_retry_policy":3,"discovery_frequency":300,"hsm_read_timeout":20,"ims_errors_fatal":false,"ims_images_must_exist":false,"ims_read_timeout":20,"logging_level":"INFO","max_boot_wait_time":1200,"max_component_batch_size":2800,"max_power_off_wait_time":300,"max_power_on_wait_time":120,"no_such_option":{"a":null,"b":1},"pcs_read_timeout":20,"polling_frequency":15,"reject_nids":false,"session_limit_required":false}
        "#]],
    )
    .await;
    site.stop().await;
}

#[tokio::test]
async fn health_tells_what_is_missing() {
    let site = Site::start().await;
    site.check(
        &[("GET", "/livez", None), ("GET", "/apis/bos/v2/healthz", None)],
        expect![[r#"
        GET /livez - -> 200 ok

        GET /apis/bos/v2/healthz - -> 200 {"apiStatus":"ok","dbStatus":"ok"}
    "#]],
    )
    .await;
    let response = site.ask("GET", "/readyz", None).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let parts: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(parts["component registry"], "ready");
    assert_ne!(parts["session manager"], "ready");
    assert_eq!(parts.as_object().unwrap().len(), 2, "{parts}");
    let response = site.ask("GET", "/readyz?verbose", None).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let parts: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let names: Vec<_> = parts.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "component registry",
            "config coordinator",
            "fleet manager",
            "host provisioner",
            "insight",
            "power controller",
            "session manager",
            "status evaluator"
        ]
    );
    let response = site.ask("GET", "/startz", None).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    site.stop().await;
}

#[tokio::test]
async fn versions_link_to_where_the_client_found_them() {
    let site = Site::start().await;
    site.check(
        &[
            ("GET", "/", None),
            ("GET", "/v2", None),
            ("GET", "/apis/bos", None),
            ("GET", "/apis/bos/", None),
            ("GET", "/apis/bos/v2/version", None),
        ],
        expect![[r#"
            GET / - -> 200 [{"links":[{"href":"http://localhost/","rel":"self"}],"major":"2","minor":"50","patch":"0"}]
            GET /v2 - -> 200 {"links":[{"href":"http://localhost/","rel":"self"},{"href":"http://localhost/v2","rel":"versions"}],"major":"2","minor":"50","patch":"0"}
            GET /apis/bos - -> 200 [{"links":[{"href":"http://localhost/","rel":"self"}],"major":"2","minor":"50","patch":"0"}]
            GET /apis/bos/ - -> 200 [{"links":[{"href":"http://localhost/","rel":"self"}],"major":"2","minor":"50","patch":"0"}]
            GET /apis/bos/v2/version - -> 200 {"links":[{"href":"http://localhost/","rel":"self"},{"href":"http://localhost/v2","rel":"versions"}],"major":"2","minor":"50","patch":"0"}
        "#]],
    )
    .await;
    site.stop().await;
}

#[tokio::test]
async fn paths_and_methods_are_those_of_the_contract() {
    let site = Site::start().await;
    let mut lines = String::new();
    for (method, path) in [
        ("GET", "/nope"),
        ("GET", "/v2/"),
        ("GET", "/v2/healthz/"),
        ("GET", "/v2/components/"),
        ("GET", "/v2/sessiontemplates/a/b"),
        ("GET", "/version"),
        ("POST", "/v2"),
        ("DELETE", "/v2/components"),
        ("PUT", "/v2/sessions/abc"),
        ("HEAD", "/v2/healthz"),
        ("OPTIONS", "/v2/components/a"),
        ("OPTIONS", "/apis/bos/v2/sessions"),
        ("OPTIONS", "/nope"),
    ] {
        let response = site.ask(method, path, None).await;
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap());
        let kind = header("content-type").unwrap_or("-");
        let allow = header("allow").unwrap_or("-");
        lines.push_str(&format!("{method} {path} -> {} {kind} allow: {allow}\n", response.status().as_u16()));
    }
    expect![[r#"
        GET /nope -> 404 application/problem+json allow: -
        GET /v2/ -> 404 application/problem+json allow: -
        GET /v2/healthz/ -> 404 application/problem+json allow: -
        GET /v2/components/ -> 404 application/problem+json allow: -
        GET /v2/sessiontemplates/a/b -> 404 application/problem+json allow: -
        GET /version -> 404 application/problem+json allow: -
        POST /v2 -> 405 application/problem+json allow: GET,HEAD,OPTIONS
        DELETE /v2/components -> 405 application/problem+json allow: GET,HEAD,PUT,PATCH,OPTIONS
        PUT /v2/sessions/abc -> 405 application/problem+json allow: GET,HEAD,PATCH,DELETE,OPTIONS
        HEAD /v2/healthz -> 200 application/json allow: -
        OPTIONS /v2/components/a -> 200 - allow: GET,HEAD,PUT,PATCH,DELETE,OPTIONS
        OPTIONS /apis/bos/v2/sessions -> 200 - allow: GET,HEAD,POST,DELETE,OPTIONS
        OPTIONS /nope -> 404 application/problem+json allow: -
    "#]]
    .assert_eq(&lines);
    site.stop().await;
}

#[tokio::test]
async fn bodies_must_be_json_by_type() {
    let site = Site::start().await;
    let mut lines = String::new();
    for (kind, body) in [
        (None, r#"{"enabled": false}"#),
        (Some("text/plain"), r#"{"enabled": false}"#),
        (Some("text/plain; charset=utf-8"), ""),
        (Some("application/json"), ""),
        (Some("application/json; charset=utf-8"), r#"{"enabled": false}"#),
    ] {
        let request = Request::put("/v2/components/a");
        let request = kind.into_iter().fold(request, |request, kind| request.header(CONTENT_TYPE, kind));
        let request = request.body(Body::from(body)).unwrap();
        let Ok(response) = site.app().oneshot(request).await;
        let status = response.status().as_u16();
        let told = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        lines.push_str(&format!("{kind:?} {body:?} -> {status} {}\n", String::from_utf8_lossy(&told)));
    }
    expect![[r#"
        None "{\"enabled\": false}" -> 415 {"detail":"Invalid Content-type (), expected JSON data","status":415,"title":"Unsupported Media Type","type":"about:blank"}
        Some("text/plain") "{\"enabled\": false}" -> 415 {"detail":"Invalid Content-type (text/plain), expected JSON data","status":415,"title":"Unsupported Media Type","type":"about:blank"}
        Some("text/plain; charset=utf-8") "" -> 415 {"detail":"Invalid Content-type (text/plain), expected JSON data","status":415,"title":"Unsupported Media Type","type":"about:blank"}
        Some("application/json") "" -> 400 {"detail":"Request body is not valid JSON","status":400,"title":"Bad Request","type":"about:blank"}
        Some("application/json; charset=utf-8") "{\"enabled\": false}" -> 200 {"enabled":false,"id":"a"}
    "#]].assert_eq(&lines);
    site.stop().await;
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_not_read() {
    let site = Site::start().await;
    let text = "x".repeat(9 << 20);
    let one = format!(r#"{{"error": "{text}"}}"#);
    assert_eq!(site.ask("PATCH", "/v2/options", Some(&one)).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let many = format!(r#"[{{"id": "a", "error": "{text}"}}]"#);
    assert_eq!(site.ask("PUT", "/v2/components", Some(&many)).await.status(), StatusCode::OK);
    site.stop().await;
}

#[tokio::test]
async fn request_ids_go_through_to_the_registry_and_back() {
    let site = Site::start().await;
    let mut app = site.app();
    let request =
        Request::get("/v2/components/a").header("x-request-id", "id-1").body(Body::empty()).unwrap();
    let Ok(response) = app.call(request).await;
    assert_eq!(response.headers()["x-request-id"], "id-1");
    assert_eq!(site.registry.last_request_id().as_deref(), Some("id-1"));
    let unknown = Request::builder().method(Method::GET).uri("/nope").body(Body::empty()).unwrap();
    let Ok(response) = app.call(unknown).await;
    assert!(!response.headers()["x-request-id"].is_empty());
    site.stop().await;
}
