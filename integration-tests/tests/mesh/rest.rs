//! The REST contract, as transcripts: what was asked and what was answered.
//!
//! Times are shown as `TIME`, so that a transcript is the same every time.

use expect_test::{Expect, expect};
use integration_tests::{bos::Bos, mesh::Mesh};
use reqwest::Method;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn versions_and_health() {
    check(
        "GET /
         GET /apis/bos/v2
         GET /v2/healthz
         GET /livez
         GET /readyz
         GET /v2/healthz/
         DELETE /v2/components
         GET /nope",
        expect![[r#""#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options() {
    check(
        r#"GET /v2/options
         PATCH /v2/options {"max_boot_wait_time": 1234, "clear_stage": true}
         PATCH /v2/options {"clear_stage": false, "bss_read_timeout": 1}
         PATCH /v2/options {"default_retry_policy": "3"}
         PATCH /v2/options {}
         PATCH /v2/options {"no_such_option": 5}
         GET /apis/bos/v2/options"#,
        expect![[r#""#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_component() {
    check(
        r#"PUT /v2/components/c1 {"enabled": false, "error": "e", "retry_policy": 2}
         GET /v2/components/c1
         PATCH /v2/components/c1 {"desired_state": {"configuration": "c"}, "session": "s1"}
         PATCH /v2/components/c1 {"desired_state": {"boot_artifacts": {"kernel": "k", "initrd": "i"}}}
         PATCH /v2/components/c1 {"actual_state": {"bss_token": "unknown"}}
         PATCH /v2/components/c1 {"retry_policy": -1}
         PATCH /v2/components/c1 {"status": {"status": "stable"}}
         PATCH /v2/components/c1 {"bogus": 1}
         PATCH /v2/components/c1 {}
         GET /v2/components/c1
         DELETE /v2/components/c1
         GET /v2/components/c1
         PATCH /v2/components/c1 {"error": "e"}"#,
        expect![[r#""#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_components() {
    check(
        r#"PUT /v2/components [{"id": "c1", "session": "s1", "enabled": false}, {"id": "c2", "session": "s1", "enabled": false}, {"id": "c3", "enabled": false, "status": {"phase": "configuring"}}, {"id": "c1", "error": "last wins", "session": "s1"}]
         PUT /v2/components []
         PUT /v2/components [{"error": "no id"}]
         PATCH /v2/components [{"id": "c1", "error": "one"}, {"id": "c2", "error": "two"}]
         PATCH /v2/components [{"id": "c1", "error": "lost"}, {"id": "nope"}]
         PATCH /v2/components?skip_bad_ids=true [{"id": "c3", "error": "three"}, {"id": "nope"}]
         PATCH /v2/components {"patch": {"error": "all"}, "filters": {"session": "s1"}}
         PATCH /v2/components {"patch": {"error": "all"}, "filters": {"ids": "c3,nope"}}
         PATCH /v2/components {"patch": {"error": "all"}, "filters": {"ids": "c3", "session": "s1"}}
         GET /v2/components?session=s1
         GET /v2/components?ids=c3,c1,nope&page_size=1
         GET /v2/components?ids=c3,c1&start_after_id=c1
         GET /v2/components?phase=configuring&status=configuring,stable
         GET /v2/components?enabled=TRUE
         GET /v2/components?enabled=maybe
         GET /v2/components?page_size=-1"#,
        expect![[r#""#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_under_way_takes_no_report() {
    check(
        r#"PUT /v2/components/c1 {"enabled": true, "last_action": {"action": "session_setup"}}
         PATCH /v2/components/c1 {"actual_state": {"bss_token": "t"}}"#,
        expect![[r#""#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_templates() {
    check(
        r#"PUT /v2/sessiontemplates/t1 {"boot_sets": {"compute": {"path": "s3://boot-images/i/manifest.json", "type": "s3", "node_list": ["X1000C0S00B0N0"]}}}
         PATCH /v2/sessiontemplates/t1 {"description": "first", "boot_sets": {"compute": {"path": "p", "type": "s3", "arch": "ARM"}}}
         PUT /v2/sessiontemplates/t2 {"boot_sets": {}}
         PUT /v2/sessiontemplates/t2 {"boot_sets": {"compute": {"path": "p", "type": "s3"}}}
         PUT /v2/sessiontemplates/-bad {"boot_sets": {"compute": {"path": "p", "type": "s3", "node_list": ["x1"]}}}
         PUT /v2/sessiontemplates/t2 {"name": "t2", "boot_sets": {}}
         GET /v2/sessiontemplates
         DELETE /v2/sessiontemplates/t1
         GET /v2/sessiontemplates/t1
         PATCH /v2/sessiontemplates/t1 {"description": "gone"}"#,
        expect![[r#""#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions() {
    check(
        r#"PUT /v2/sessiontemplates/t1 {"boot_sets": {"compute": {"path": "s3://boot-images/i/manifest.json", "type": "s3", "node_list": ["x9c9s9b9n9"]}}}
         POST /v2/sessions {"name": "s1", "template_name": "nope", "operation": "boot"}
         POST /v2/sessions {"name": "s1", "template_name": "t1", "operation": "Boot"}
         POST /v2/sessions {"name": "s1", "template_name": "t1", "operation": "boot", "limit": "a,"}
         POST /v2/sessions {"name": "s1", "template_name": "t1", "operation": "boot", "limit": null}
         POST /v2/sessions {"name": "s1", "template_name": "t1", "operation": "boot"}
         WAIT s1
         GET /v2/sessions/s1
         GET /v2/sessions/s1/status
         GET /v2/sessions?status=running
         GET /v2/sessions?status=complete&min_age=0
         GET /v2/sessions?max_age=soon
         DELETE /v2/sessions/s1
         GET /v2/sessions/s1
         GET /v2/sessions/s1/status
         DELETE /v2/sessions?status=complete
         GET /v2/sessions"#,
        expect![[r#""#]],
    )
    .await;
}

/// Runs the requests, one a line, on a mesh without a fleet and compares the transcript.
async fn check(requests: &str, expected: Expect) {
    let mesh = Mesh::start(async |settings| settings.simulator.nodes = 0).await;
    let mut transcript = String::new();
    for line in requests.lines().map(str::trim) {
        transcript += &format!("> {line}\n{}", answer(&mesh.bos, line).await);
    }
    mesh.stop().await;
    expected.assert_eq(&transcript);
}

async fn answer(bos: &Bos, line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let (method, path, body) = (words.next().unwrap(), words.next().unwrap(), words.next());
    if method == "WAIT" {
        bos.complete(path).await;
        return String::new();
    }
    let body = body.map(|body| serde_json::from_str::<Value>(body).unwrap());
    let answer = bos.send(method.parse::<Method>().unwrap(), path, body.as_ref()).await;
    let mut shown = answer.body.clone();
    hide_times(&mut shown);
    let shown = if shown.is_null() { String::new() } else { format!("{shown}\n") };
    format!("{} {}\n{shown}", answer.status.as_u16(), answer.content_type)
}

fn hide_times(value: &mut Value) {
    match value {
        Value::String(text) if looks_like_a_time(text) => *text = "TIME".into(),
        Value::String(text) if text.starts_with("http://") => {
            let path = text.splitn(4, '/').nth(3).unwrap_or_default();
            *text = format!("URL/{path}");
        }
        Value::Array(items) => items.iter_mut().for_each(hide_times),
        Value::Object(members) => members.values_mut().for_each(hide_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A time stamp or a duration.
fn looks_like_a_time(text: &str) -> bool {
    let digits_and =
        |separators: &str| text.bytes().all(|b| b.is_ascii_digit() || separators.contains(char::from(b)));
    (text.len() == 19 && digits_and("-T:")) || (text.contains(':') && digits_and(":."))
}
