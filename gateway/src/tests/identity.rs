//! Callers with static tokens, policies, and the forms of refusals.

use std::path::Path;

use axum::body::{Body, to_bytes};
use chassis::{
    Tasks,
    process::audit::AuditLog,
    settings::{AuditSettings, IdentitySettings},
};
use expect_test::expect;
use http::{Request, header::CONTENT_TYPE};
use tower::ServiceExt as _;

use super::{
    Site,
    access::{NODE, token, token_file},
    app_behind,
};
use crate::{identity::IdentityGate, port::CallerChecks};

const TOKENS: [(&str, &str); 4] = [
    ("admin", "roles = [\"admin\"]"),
    ("tenant admin", "roles = [\"tenant-admin\"]\ntenants = [\"blue\"]"),
    ("node", "node = \"x1000c0s0b0n0\""),
    ("chef", "roles = [\"chef\"]"),
];

fn checks(directory: &Path, policy: Option<&str>) -> CallerChecks {
    let token_path = directory.join("tokens.toml");
    std::fs::write(&token_path, token_file(&TOKENS)).unwrap();
    let policy_file = policy.map(|text| {
        let path = directory.join("policy.toml");
        std::fs::write(&path, text).unwrap();
        path
    });
    let settings = IdentitySettings {
        token_file: token_path,
        policy_file: policy_file.unwrap_or_default(),
        ..IdentitySettings::default()
    };
    CallerChecks { gate: IdentityGate::start(&settings, &Tasks::default()).unwrap(), audit: None }
}

/// Returns one line for the answer to a request of the caller; an empty name: without credentials.
async fn line(
    site: &Site,
    checks: &CallerChecks,
    caller: &str,
    tenant: &str,
    asked: (&str, &str, &str),
) -> String {
    let (method, path, body) = asked;
    let request = Request::builder().method(method).uri(path).header("cray-tenant-name", tenant);
    let request = match caller {
        "" => request,
        name => request.header("authorization", format!("Bearer {}", token(name))),
    };
    let request = match body {
        "" => request.body(Body::empty()),
        body => request.header(CONTENT_TYPE, "application/json").body(body.to_owned().into()),
    };
    let app = app_behind(&site.settings, checks.clone());
    let Ok(response) = app.oneshot(request.unwrap()).await;
    let challenge =
        response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let body = if status < 400 { "ok".into() } else { String::from_utf8_lossy(&body) };
    let challenge = challenge.map(|text| format!(" [{text}]")).unwrap_or_default();
    format!("{caller} {tenant} {method} {path} -> {status}{challenge} {body}\n")
}

#[tokio::test]
async fn refusals_have_the_form_of_each_face() {
    let directory = tempfile::tempdir().unwrap();
    let checks = checks(directory.path(), None);
    let site = Site::start().await;
    let mut lines = String::new();
    for caller in ["", "stranger", "chef"] {
        for path in [
            "/apis/bos/v2/components",
            "/reveille/v1/events",
            "/kubernetes/api/v1/namespaces",
            "/flightctl/api/v1/devices",
        ] {
            lines += &line(&site, &checks, caller, "", ("GET", path, "")).await;
        }
    }
    lines += &line(&site, &checks, "stranger", "", ("GET", "/livez", "")).await;
    expect![[r#"
          GET /apis/bos/v2/components -> 401 [Bearer realm="reveille"] {"detail":"the request needs credentials","status":401,"title":"Unauthorized","type":"about:blank"}
          GET /reveille/v1/events -> 401 [Bearer realm="reveille"] {"detail":"the request needs credentials","status":401,"title":"Unauthorized","type":"about:blank"}
          GET /kubernetes/api/v1/namespaces -> 401 [Bearer realm="reveille"] {"apiVersion":"v1","code":401,"details":{},"kind":"Status","message":"the request needs credentials","metadata":{},"reason":"Unauthorized","status":"Failure"}
          GET /flightctl/api/v1/devices -> 401 [Bearer realm="reveille"] {"apiVersion":"flightctl.io/v1beta1","kind":"Status","status":"Failure","code":401,"reason":"Unauthorized","message":"the request needs credentials"}
        stranger  GET /apis/bos/v2/components -> 401 [Bearer realm="reveille", error="invalid_token"] {"detail":"the token is unknown","status":401,"title":"Unauthorized","type":"about:blank"}
        stranger  GET /reveille/v1/events -> 401 [Bearer realm="reveille", error="invalid_token"] {"detail":"the token is unknown","status":401,"title":"Unauthorized","type":"about:blank"}
        stranger  GET /kubernetes/api/v1/namespaces -> 401 [Bearer realm="reveille", error="invalid_token"] {"apiVersion":"v1","code":401,"details":{},"kind":"Status","message":"the token is unknown","metadata":{},"reason":"Unauthorized","status":"Failure"}
        stranger  GET /flightctl/api/v1/devices -> 401 [Bearer realm="reveille", error="invalid_token"] {"apiVersion":"flightctl.io/v1beta1","kind":"Status","status":"Failure","code":401,"reason":"Unauthorized","message":"the token is unknown"}
        chef  GET /apis/bos/v2/components -> 403 {"detail":"no rule of the policy allows this to the caller","status":403,"title":"Forbidden","type":"about:blank"}
        chef  GET /reveille/v1/events -> 403 {"detail":"no rule of the policy allows this to the caller","status":403,"title":"Forbidden","type":"about:blank"}
        chef  GET /kubernetes/api/v1/namespaces -> 403 {"apiVersion":"v1","code":403,"details":{},"kind":"Status","message":"no rule of the policy allows this to the caller","metadata":{},"reason":"Forbidden","status":"Failure"}
        chef  GET /flightctl/api/v1/devices -> 403 {"apiVersion":"flightctl.io/v1beta1","kind":"Status","status":"Failure","code":403,"reason":"Forbidden","message":"no rule of the policy allows this to the caller"}
        stranger  GET /livez -> 200 ok
    "#]].assert_eq(&lines);
    site.stop().await;
}

#[tokio::test]
async fn nodes_report_their_actual_state_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let checks = checks(directory.path(), None);
    let site = Site::start().await;
    let own = format!("/v2/components/{NODE}");
    let mut lines = String::new();
    for (path, body) in [
        (own.as_str(), r#"{"actual_state": {"bss_token": "t"}}"#),
        (&format!("/apis/bos{own}"), r#"{"id": "x9", "actual_state": {"bss_token": "t"}}"#),
        (&own, r#"{"actual_state": {"bss_token": "t"}, "enabled": true}"#),
        (&own, r#"{"enabled": false, "enabled": true}"#),
        (&own, "{bad"),
        ("/v2/components/x1000c0s0b0n1", r#"{"actual_state": {"bss_token": "t"}}"#),
        ("/v2/components", r#"[{"id": "x1000c0s0b0n0", "actual_state": {"bss_token": "t"}}]"#),
    ] {
        lines += &line(&site, &checks, "node", "", ("PATCH", path, body)).await;
    }
    expect![[r#"
        node  PATCH /v2/components/x1000c0s0b0n0 -> 200 ok
        node  PATCH /apis/bos/v2/components/x1000c0s0b0n0 -> 200 ok
        node  PATCH /v2/components/x1000c0s0b0n0 -> 403 {"detail":"the caller may report an actual state and change nothing else: the body has 'enabled'","status":403,"title":"Forbidden","type":"about:blank"}
        node  PATCH /v2/components/x1000c0s0b0n0 -> 403 {"detail":"the caller may report an actual state and change nothing else: the body has 'enabled'","status":403,"title":"Forbidden","type":"about:blank"}
        node  PATCH /v2/components/x1000c0s0b0n0 -> 400 {"detail":"the request body is not a JSON object that can be read","status":400,"title":"Bad Request","type":"about:blank"}
        node  PATCH /v2/components/x1000c0s0b0n1 -> 403 {"detail":"the caller may do this for its own node only (rule 'nodes report')","status":403,"title":"Forbidden","type":"about:blank"}
        node  PATCH /v2/components -> 403 {"detail":"no rule of the policy allows this to the caller","status":403,"title":"Forbidden","type":"about:blank"}
    "#]].assert_eq(&lines);
    let said = site.registry.said();
    assert_eq!(said.matches("PatchComponentsRequest").count(), 2, "{said}");
    assert!(!said.contains("x9"), "{said}");
    site.stop().await;
}

#[tokio::test]
async fn callers_with_a_tenant_are_confined_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let checks = checks(directory.path(), None);
    let site = Site::with_tenants(false).await;
    let mut lines = String::new();
    for (caller, tenant) in [
        ("tenant admin", ""),
        ("tenant admin", "blue"),
        ("tenant admin", "red"),
        ("admin", ""),
        ("admin", "blue"),
    ] {
        lines += &line(&site, &checks, caller, tenant, ("GET", "/v2/components/a", "")).await;
    }
    expect![[r#"
        tenant admin  GET /v2/components/a -> 200 ok
        tenant admin blue GET /v2/components/a -> 200 ok
        tenant admin red GET /v2/components/a -> 403 {"detail":"the caller does not act for the tenant of the request (rule 'tenant administrators read')","status":403,"title":"Forbidden","type":"about:blank"}
        admin  GET /v2/components/a -> 200 ok
        admin blue GET /v2/components/a -> 200 ok
    "#]].assert_eq(&lines);
    let said = site.registry.said();
    // Two requests of the tenant administrator, and one of the administrator for the tenant.
    assert_eq!(said.matches("GetTenantRequest { name: \"blue\"").count(), 3, "{said}");
    assert_eq!(said.matches("GetComponentRequest { id: \"a\", scope: None }").count(), 1, "{said}");
    site.stop().await;
}

#[tokio::test]
async fn calls_carry_the_name_of_the_caller() {
    let directory = tempfile::tempdir().unwrap();
    let checks = checks(directory.path(), None);
    let site = Site::start().await;
    line(&site, &checks, "admin", "", ("GET", "/v2/components/a", "")).await;
    assert_eq!(site.registry.last_client().as_deref(), Some("admin@tokens"));
    site.stop().await;
}

#[tokio::test]
async fn changed_files_count_at_once_and_broken_ones_not() {
    let directory = tempfile::tempdir().unwrap();
    let rule = |role: &str| format!("[[rule]]\nname = \"all\"\nroles = [\"{role}\"]\npaths = [\"/**\"]\n");
    let checks = checks(directory.path(), Some(&rule("chef")));
    let site = Site::start().await;
    let asked = ("GET", "/v2/components/a", "");
    let mut lines = line(&site, &checks, "chef", "", asked).await;
    let policy = directory.path().join("policy.toml");
    std::fs::write(&policy, "[[rule]]\nname = ").unwrap();
    lines += &line(&site, &checks, "chef", "", asked).await;
    std::fs::write(&policy, rule("admin")).unwrap();
    lines += &line(&site, &checks, "chef", "", asked).await;
    lines += &line(&site, &checks, "admin", "", asked).await;
    std::fs::write(directory.path().join("tokens.toml"), token_file(&TOKENS[1..])).unwrap();
    lines += &line(&site, &checks, "admin", "", asked).await;
    expect![[r#"
        chef  GET /v2/components/a -> 200 ok
        chef  GET /v2/components/a -> 200 ok
        chef  GET /v2/components/a -> 403 {"detail":"no rule of the policy allows this to the caller","status":403,"title":"Forbidden","type":"about:blank"}
        admin  GET /v2/components/a -> 200 ok
        admin  GET /v2/components/a -> 401 [Bearer realm="reveille", error="invalid_token"] {"detail":"the token is unknown","status":401,"title":"Unauthorized","type":"about:blank"}
    "#]].assert_eq(&lines);
    site.stop().await;
}

#[tokio::test]
async fn settings_that_are_wrong_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.toml");
    let broken = directory.path().join("broken.toml");
    std::fs::write(&broken, "[[rule]]\nname = \"r\"\npaths = [\"/a\"]\n").unwrap();
    let tokens = directory.path().join("tokens.toml");
    std::fs::write(&tokens, token_file(&TOKENS)).unwrap();
    let issuer = |change: fn(&mut chassis::settings::IssuerSettings)| {
        let mut issuer = chassis::settings::IssuerSettings {
            issuer: "https://issuer.example".into(),
            audience: "reveille".into(),
            ..Default::default()
        };
        change(&mut issuer);
        IdentitySettings { issuers: [("site".to_owned(), issuer)].into(), ..Default::default() }
    };
    let all = [
        IdentitySettings { policy_file: broken.clone(), ..Default::default() },
        IdentitySettings { token_file: missing, ..Default::default() },
        IdentitySettings { token_file: tokens, policy_file: broken, ..Default::default() },
        issuer(|issuer| issuer.issuer.clear()),
        issuer(|issuer| issuer.audience.clear()),
        issuer(|issuer| issuer.issuer = "http://issuer.example".into()),
        issuer(|issuer| issuer.jwks = "ftp://issuer.example".into()),
        issuer(|issuer| issuer.algorithms = "RS256,HS256".into()),
        issuer(|issuer| issuer.algorithms = "none".into()),
        issuer(|issuer| issuer.node_subjects = "spiffe://site/node".into()),
        issuer(|issuer| issuer.longest_seconds = 0),
    ];
    let lines = all.map(|settings| match IdentityGate::start(&settings, &Tasks::default()) {
        Ok(gate) => format!("{}\n", gate.is_some()),
        Err(error) => format!("{error:#}\n").replace(&directory.path().display().to_string(), "DIRECTORY"),
    });
    expect![[r#"
        gateway.identity.policy_file: needs a source of credentials: set gateway.identity.token_file or an issuer below gateway.identity.issuers
        gateway.identity.token_file: cannot read DIRECTORY/missing.toml: No such file or directory (os error 2)
        gateway.identity.policy_file: DIRECTORY/broken.toml: rule 'r': names no callers: set callers, roles, subjects or issuers
        gateway.identity.issuers.site: issuer: is empty
        gateway.identity.issuers.site: audience: is empty, so that tokens for other programs would count
        gateway.identity.issuers.site: issuer: is http, over which anybody could send keys; plain_http allows it
        gateway.identity.issuers.site: jwks: 'ftp' is neither https nor http
        gateway.identity.issuers.site: algorithms: 'HS256' is no algorithm with a public key
        gateway.identity.issuers.site: algorithms: 'none' is no algorithm with a public key
        gateway.identity.issuers.site: node_subjects: 'spiffe://site/node' does not have one segment {xname}
        gateway.identity.issuers.site: longest_seconds: has to be above zero
    "#]].assert_eq(&lines.concat());
}

#[tokio::test]
async fn writes_and_refusals_get_lines_in_the_audit_log() {
    let directory = tempfile::tempdir().unwrap();
    let settings = AuditSettings { to: directory.path().display().to_string() };
    let audit = AuditLog::open(&settings, "gateway").unwrap();
    let checks = CallerChecks { audit, ..checks(directory.path(), None) };
    let site = Site::start().await;
    for (caller, tenant, asked) in [
        ("admin", "", ("GET", "/v2/components", "")),
        ("admin", "", ("PATCH", "/v2/options", r#"{"max_boot_wait_time": 1000}"#)),
        ("admin", "", ("PATCH", "/v2/options", r#"{"max_boot_wait_time": "x"}"#)),
        ("chef", "", ("GET", "/flightctl/api/v1/devices", "")),
        ("node", "", ("PATCH", "/v2/components/x1000c0s0b0n0", r#"{"enabled": true}"#)),
        ("tenant admin", "red", ("GET", "/v2/components", "")),
        ("", "", ("DELETE", "/v2/components/x1000c0s0b0n0", "")),
    ] {
        line(&site, &checks, caller, tenant, asked).await;
    }
    let log = std::fs::read_to_string(directory.path().join("gateway.audit.jsonl")).unwrap();
    let mut shown = String::new();
    for line in log.lines() {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        for varying in ["at", "seal", "request_id"] {
            let value = line.as_object_mut().unwrap().remove(varying);
            assert!(value.is_some_and(|value| value.is_string()), "{varying}: {line}");
        }
        shown += &format!("{line}\n");
    }
    expect![[r#"
        {"caller":"admin@tokens","decision":"allowed","method":"PATCH","number":1,"part":"gateway","path":"/v2/options","rule":"administrators","status":200}
        {"caller":"admin@tokens","decision":"allowed","method":"PATCH","number":2,"part":"gateway","path":"/v2/options","rule":"administrators","status":400}
        {"caller":"chef@tokens","decision":"refused","method":"GET","number":3,"part":"gateway","path":"/flightctl/api/v1/devices","reason":"no_rule","status":403}
        {"caller":"node@tokens","decision":"refused","method":"PATCH","number":4,"part":"gateway","path":"/v2/components/x1000c0s0b0n0","reason":"content","rule":"nodes report","status":403}
        {"caller":"tenant admin@tokens","decision":"refused","method":"GET","number":5,"part":"gateway","path":"/v2/components","reason":"foreign_tenant","rule":"tenant administrators read","status":403,"tenant":"red"}
        {"decision":"refused","method":"DELETE","number":6,"part":"gateway","path":"/v2/components/x1000c0s0b0n0","reason":"unauthenticated","status":401}
    "#]].assert_eq(&shown);
    site.stop().await;
}
