//! The REST contract as transcripts of requests and answers.
//!
//! Times are shown as `TIME`, so that a transcript is stable.

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
        expect![[r#"
            > GET /
            200 application/json
            [{"links":[{"href":"URL/","rel":"self"}],"major":"2","minor":"50","patch":"0"}]
            > GET /apis/bos/v2
            200 application/json
            {"links":[{"href":"URL/","rel":"self"},{"href":"URL/v2","rel":"versions"}],"major":"2","minor":"50","patch":"0"}
            > GET /v2/healthz
            200 application/json
            {"apiStatus":"ok","dbStatus":"ok"}
            > GET /livez
            200 text/plain; charset=utf-8
            "ok\n"
            > GET /readyz
            200 application/json
            {"component registry":"ready","session manager":"ready"}
            > GET /v2/healthz/
            404 application/problem+json
            {"detail":"The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.","status":404,"title":"Not Found","type":"about:blank"}
            > DELETE /v2/components
            405 application/problem+json
            {"detail":"The method is not allowed for the requested URL.","status":405,"title":"Method Not Allowed","type":"about:blank"}
            > GET /nope
            404 application/problem+json
            {"detail":"The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.","status":404,"title":"Not Found","type":"about:blank"}
        "#]],
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
        expect![[r#"
            > GET /v2/options
            200 application/json
            {"bss_read_timeout":20,"cfs_read_timeout":20,"cleanup_completed_session_ttl":"7d","clear_stage":false,"component_actual_state_ttl":"4h","default_retry_policy":3,"discovery_frequency":300,"hsm_read_timeout":20,"ims_errors_fatal":false,"ims_images_must_exist":false,"ims_read_timeout":20,"logging_level":"INFO","max_boot_wait_time":1200,"max_component_batch_size":2800,"max_power_off_wait_time":300,"max_power_on_wait_time":120,"pcs_read_timeout":20,"polling_frequency":15,"reject_nids":false,"session_limit_required":false}
            > PATCH /v2/options {"max_boot_wait_time": 1234, "clear_stage": true}
            200 application/json
            {"bss_read_timeout":20,"cfs_read_timeout":20,"cleanup_completed_session_ttl":"7d","clear_stage":true,"component_actual_state_ttl":"4h","default_retry_policy":3,"discovery_frequency":300,"hsm_read_timeout":20,"ims_errors_fatal":false,"ims_images_must_exist":false,"ims_read_timeout":20,"logging_level":"INFO","max_boot_wait_time":1234,"max_component_batch_size":2800,"max_power_off_wait_time":300,"max_power_on_wait_time":120,"pcs_read_timeout":20,"polling_frequency":15,"reject_nids":false,"session_limit_required":false}
            > PATCH /v2/options {"clear_stage": false, "bss_read_timeout": 1}
            400 application/problem+json
            {"detail":"1 is not between 10 and 86400 - 'bss_read_timeout'","status":400,"title":"Bad Request","type":"about:blank"}
            > PATCH /v2/options {"default_retry_policy": "3"}
            400 application/problem+json
            {"detail":"invalid type: string \"3\", expected a whole number that is not negative - 'default_retry_policy'","status":400,"title":"Bad Request","type":"about:blank"}
            > PATCH /v2/options {}
            400 application/problem+json
            {"detail":"the object needs at least one member","status":400,"title":"Bad Request","type":"about:blank"}
            > PATCH /v2/options {"no_such_option": 5}
            200 application/json
            {"bss_read_timeout":20,"cfs_read_timeout":20,"cleanup_completed_session_ttl":"7d","clear_stage":true,"component_actual_state_ttl":"4h","default_retry_policy":3,"discovery_frequency":300,"hsm_read_timeout":20,"ims_errors_fatal":false,"ims_images_must_exist":false,"ims_read_timeout":20,"logging_level":"INFO","max_boot_wait_time":1234,"max_component_batch_size":2800,"max_power_off_wait_time":300,"max_power_on_wait_time":120,"no_such_option":5,"pcs_read_timeout":20,"polling_frequency":15,"reject_nids":false,"session_limit_required":false}
            > GET /apis/bos/v2/options
            200 application/json
            {"bss_read_timeout":20,"cfs_read_timeout":20,"cleanup_completed_session_ttl":"7d","clear_stage":true,"component_actual_state_ttl":"4h","default_retry_policy":3,"discovery_frequency":300,"hsm_read_timeout":20,"ims_errors_fatal":false,"ims_images_must_exist":false,"ims_read_timeout":20,"logging_level":"INFO","max_boot_wait_time":1234,"max_component_batch_size":2800,"max_power_off_wait_time":300,"max_power_on_wait_time":120,"pcs_read_timeout":20,"polling_frequency":15,"reject_nids":false,"session_limit_required":false}
        "#]],
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
        expect![[r#"
            > PUT /v2/components/c1 {"enabled": false, "error": "e", "retry_policy": 2}
            200 application/json
            {"enabled":false,"error":"e","id":"c1","retry_policy":2}
            > GET /v2/components/c1
            200 application/json
            {"enabled":false,"error":"e","id":"c1","retry_policy":2,"status":{"phase":"","status":"stable","status_override":""}}
            > PATCH /v2/components/c1 {"desired_state": {"configuration": "c"}, "session": "s1"}
            200 application/json
            {"desired_state":{"configuration":"c","last_updated":"TIME"},"enabled":false,"error":"e","event_stats":{"power_off_forceful_attempts":0,"power_off_graceful_attempts":0,"power_on_attempts":0},"id":"c1","retry_policy":2,"session":"s1"}
            > PATCH /v2/components/c1 {"desired_state": {"boot_artifacts": {"kernel": "k", "initrd": "i"}}}
            200 application/json
            {"desired_state":{"boot_artifacts":{"initrd":"i","kernel":"k"},"configuration":"c","last_updated":"TIME"},"enabled":false,"error":"e","event_stats":{"power_off_forceful_attempts":0,"power_off_graceful_attempts":0,"power_on_attempts":0},"id":"c1","retry_policy":2,"session":""}
            > PATCH /v2/components/c1 {"actual_state": {"bss_token": "unknown"}}
            200 application/json
            {"actual_state":{"bss_token":"unknown"},"desired_state":{"boot_artifacts":{"initrd":"i","kernel":"k"},"configuration":"c","last_updated":"TIME"},"enabled":false,"error":"e","event_stats":{"power_off_forceful_attempts":0,"power_off_graceful_attempts":0,"power_on_attempts":0},"id":"c1","retry_policy":2,"session":""}
            > PATCH /v2/components/c1 {"retry_policy": -1}
            400 application/problem+json
            {"detail":"invalid value: integer `-1`, expected a whole number that is not negative - 'retry_policy'","status":400,"title":"Bad Request","type":"about:blank"}
            > PATCH /v2/components/c1 {"status": {"status": "stable"}}
            400 application/problem+json
            {"detail":"unknown field `status`, expected `phase` or `status_override` - 'status.status'","status":400,"title":"Bad Request","type":"about:blank"}
            > PATCH /v2/components/c1 {"bogus": 1}
            400 application/problem+json
            {"detail":"unknown field `bogus`, expected one of `actual_state`, `desired_state`, `enabled`, `error`, `event_stats`, `id`, `last_action`, `retry_policy`, `session`, `staged_state`, `status` - 'bogus'","status":400,"title":"Bad Request","type":"about:blank"}
            > PATCH /v2/components/c1 {}
            400 application/problem+json
            {"detail":"the object needs at least one member","status":400,"title":"Bad Request","type":"about:blank"}
            > GET /v2/components/c1
            200 application/json
            {"actual_state":{"bss_token":"unknown"},"desired_state":{"boot_artifacts":{"initrd":"i","kernel":"k"},"configuration":"c","last_updated":"TIME"},"enabled":false,"error":"e","event_stats":{"power_off_forceful_attempts":0,"power_off_graceful_attempts":0,"power_on_attempts":0},"id":"c1","retry_policy":2,"session":"","status":{"phase":"","status":"stable","status_override":""}}
            > DELETE /v2/components/c1
            204 
            > GET /v2/components/c1
            404 application/problem+json
            {"detail":"Component 'c1' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
            > PATCH /v2/components/c1 {"error": "e"}
            404 application/problem+json
            {"detail":"Component 'c1' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
        "#]],
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
        expect![[r#"
            > PUT /v2/components [{"id": "c1", "session": "s1", "enabled": false}, {"id": "c2", "session": "s1", "enabled": false}, {"id": "c3", "enabled": false, "status": {"phase": "configuring"}}, {"id": "c1", "error": "last wins", "session": "s1"}]
            200 application/json
            [{"error":"last wins","id":"c1","session":"s1"},{"enabled":false,"id":"c2","session":"s1"},{"enabled":false,"id":"c3","status":{"phase":"configuring"}}]
            > PUT /v2/components []
            200 application/json
            []
            > PUT /v2/components [{"error": "no id"}]
            400 application/problem+json
            {"detail":"missing field `id` - '[0]'","status":400,"title":"Bad Request","type":"about:blank"}
            > PATCH /v2/components [{"id": "c1", "error": "one"}, {"id": "c2", "error": "two"}]
            200 application/json
            [{"error":"one","id":"c1","session":"s1"},{"enabled":false,"error":"two","id":"c2","session":"s1"}]
            > PATCH /v2/components [{"id": "c1", "error": "lost"}, {"id": "nope"}]
            404 application/problem+json
            {"detail":"Component 'nope' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
            > PATCH /v2/components?skip_bad_ids=true [{"id": "c3", "error": "three"}, {"id": "nope"}]
            200 application/json
            [{"enabled":false,"error":"three","id":"c3","status":{"phase":"configuring"}}]
            > PATCH /v2/components {"patch": {"error": "all"}, "filters": {"session": "s1"}}
            200 application/json
            [{"error":"all","id":"c1","session":"s1"},{"enabled":false,"error":"all","id":"c2","session":"s1"}]
            > PATCH /v2/components {"patch": {"error": "all"}, "filters": {"ids": "c3,nope"}}
            404 application/problem+json
            {"detail":"Component 'nope' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
            > PATCH /v2/components {"patch": {"error": "all"}, "filters": {"ids": "c3", "session": "s1"}}
            400 application/problem+json
            {"detail":"exactly one of ids and session is needed - 'filters'","status":400,"title":"Bad Request","type":"about:blank"}
            > GET /v2/components?session=s1
            200 application/json
            [{"error":"all","id":"c1","session":"s1","status":{"phase":"","status":"stable","status_override":""}},{"enabled":false,"error":"all","id":"c2","session":"s1","status":{"phase":"","status":"stable","status_override":""}}]
            > GET /v2/components?ids=c3,c1,nope&page_size=1
            200 application/json
            [{"error":"all","id":"c1","session":"s1","status":{"phase":"","status":"stable","status_override":""}}]
            > GET /v2/components?ids=c3,c1&start_after_id=c1
            200 application/json
            [{"enabled":false,"error":"three","id":"c3","status":{"phase":"configuring","status":"configuring"}}]
            > GET /v2/components?phase=configuring&status=configuring,stable
            200 application/json
            [{"enabled":false,"error":"three","id":"c3","status":{"phase":"configuring","status":"configuring"}}]
            > GET /v2/components?enabled=TRUE
            200 application/json
            []
            > GET /v2/components?enabled=maybe
            400 application/problem+json
            {"detail":"Wrong type, expected 'boolean' for query parameter 'enabled'","status":400,"title":"Bad Request","type":"about:blank"}
            > GET /v2/components?page_size=-1
            400 application/problem+json
            {"detail":"query parameter 'page_size': -1 is not between 0 and 1048576","status":400,"title":"Bad Request","type":"about:blank"}
        "#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_under_way_takes_no_report() {
    check(
        r#"PUT /v2/components/c1 {"enabled": true, "last_action": {"action": "session_setup"}}
         PATCH /v2/components/c1 {"actual_state": {"bss_token": "t"}}"#,
        expect![[r#"
            > PUT /v2/components/c1 {"enabled": true, "last_action": {"action": "session_setup"}}
            200 application/json
            {"enabled":true,"id":"c1","last_action":{"action":"session_setup","last_updated":"TIME"},"status":{"status_override":"on_hold"}}
            > PATCH /v2/components/c1 {"actual_state": {"bss_token": "t"}}
            409 application/problem+json
            {"detail":"BOS is currently changing the state of the node, and the actual state can not be accurately recorded","status":409,"title":"Actual state can not be updated.","type":"about:blank"}
        "#]],
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
        expect![[r#"
            > PUT /v2/sessiontemplates/t1 {"boot_sets": {"compute": {"path": "s3://boot-images/i/manifest.json", "type": "s3", "node_list": ["X1000C0S00B0N0"]}}}
            200 application/json
            {"boot_sets":{"compute":{"arch":"X86","node_list":["x1000c0s0b0n0"],"path":"s3://boot-images/i/manifest.json","type":"s3"}},"name":"t1","tenant":null}
            > PATCH /v2/sessiontemplates/t1 {"description": "first", "boot_sets": {"compute": {"path": "p", "type": "s3", "arch": "ARM"}}}
            200 application/json
            {"boot_sets":{"compute":{"arch":"ARM","node_list":["x1000c0s0b0n0"],"path":"p","type":"s3"}},"description":"first","name":"t1","tenant":null}
            > PUT /v2/sessiontemplates/t2 {"boot_sets": {}}
            400 application/problem+json
            {"detail":"the object needs at least one member - 'boot_sets'","status":400,"title":"Bad Request","type":"about:blank"}
            > PUT /v2/sessiontemplates/t2 {"boot_sets": {"compute": {"path": "p", "type": "s3"}}}
            400 application/problem+json
            {"detail":"The session template could not be created: Boot set compute: No hardware specifier fields (node_list, node_roles_groups, node_groups) with an entry","status":400,"title":"Bad Request","type":"about:blank"}
            > PUT /v2/sessiontemplates/-bad {"boot_sets": {"compute": {"path": "p", "type": "s3", "node_list": ["x1"]}}}
            400 application/problem+json
            {"detail":"the path has '-bad', which is no name","status":400,"title":"Bad Request","type":"about:blank"}
            > PUT /v2/sessiontemplates/t2 {"name": "t2", "boot_sets": {}}
            400 application/problem+json
            {"detail":"unknown field `name`, expected one of `boot_sets`, `cfs`, `description`, `enable_cfs` - 'name'","status":400,"title":"Bad Request","type":"about:blank"}
            > GET /v2/sessiontemplates
            200 application/json
            [{"boot_sets":{"compute":{"arch":"ARM","node_list":["x1000c0s0b0n0"],"path":"p","type":"s3"}},"description":"first","name":"t1","tenant":null}]
            > DELETE /v2/sessiontemplates/t1
            204 
            > GET /v2/sessiontemplates/t1
            404 application/problem+json
            {"detail":"Session template 't1' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
            > PATCH /v2/sessiontemplates/t1 {"description": "gone"}
            404 application/problem+json
            {"detail":"Session template 't1' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
        "#]],
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
        expect![[r#"
            > PUT /v2/sessiontemplates/t1 {"boot_sets": {"compute": {"path": "s3://boot-images/i/manifest.json", "type": "s3", "node_list": ["x9c9s9b9n9"]}}}
            200 application/json
            {"boot_sets":{"compute":{"arch":"X86","node_list":["x9c9s9b9n9"],"path":"s3://boot-images/i/manifest.json","type":"s3"}},"name":"t1","tenant":null}
            > POST /v2/sessions {"name": "s1", "template_name": "nope", "operation": "boot"}
            400 application/problem+json
            {"detail":"Session Template Name invalid: nope","status":400,"title":"Bad Request","type":"about:blank"}
            > POST /v2/sessions {"name": "s1", "template_name": "t1", "operation": "Boot"}
            400 application/problem+json
            {"detail":"'Boot' is not one of 'boot', 'reboot', 'shutdown' - 'operation'","status":400,"title":"Bad Request","type":"about:blank"}
            > POST /v2/sessions {"name": "s1", "template_name": "t1", "operation": "boot", "limit": "a,"}
            400 application/problem+json
            {"detail":"item 2 is empty - 'limit'","status":400,"title":"Bad Request","type":"about:blank"}
            > POST /v2/sessions {"name": "s1", "template_name": "t1", "operation": "boot", "limit": null}
            201 application/json
            {"components":"","include_disabled":false,"limit":"","name":"s1","operation":"boot","stage":false,"status":{"end_time":null,"error":null,"start_time":"TIME","status":"pending"},"template_name":"t1","tenant":null}
            > POST /v2/sessions {"name": "s1", "template_name": "t1", "operation": "boot"}
            409 application/problem+json
            {"detail":"Session 's1' already exists","status":409,"title":"The resource to be created already exists","type":"about:blank"}
            > WAIT s1
            > GET /v2/sessions/s1
            200 application/json
            {"components":"","include_disabled":false,"limit":"","name":"s1","operation":"boot","stage":false,"status":{"end_time":"TIME","error":"No nodes were found to act upon.","start_time":"TIME","status":"complete"},"template_name":"t1","tenant":null}
            > GET /v2/sessions/s1/status
            200 application/json
            {"error_summary":{},"managed_components_count":0,"percent_failed":0.0,"percent_staged":0.0,"percent_successful":0.0,"phases":{"percent_complete":0.0,"percent_configuring":0.0,"percent_powering_off":0.0,"percent_powering_on":0.0},"status":"complete","timing":{"duration":"TIME","end_time":"TIME","start_time":"TIME"}}
            > GET /v2/sessions?status=running
            200 application/json
            []
            > GET /v2/sessions?status=complete&min_age=0
            200 application/json
            [{"components":"","include_disabled":false,"limit":"","name":"s1","operation":"boot","stage":false,"status":{"end_time":"TIME","error":"No nodes were found to act upon.","start_time":"TIME","status":"complete"},"template_name":"t1","tenant":null}]
            > GET /v2/sessions?max_age=soon
            400 application/problem+json
            {"detail":"'soon' is not an age such as 15m, 4h, 7d or 2w - 'max_age'","status":400,"title":"Bad Request","type":"about:blank"}
            > DELETE /v2/sessions/s1
            204 
            > GET /v2/sessions/s1
            404 application/problem+json
            {"detail":"Session 's1' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
            > GET /v2/sessions/s1/status
            404 application/problem+json
            {"detail":"Session 's1' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
            > DELETE /v2/sessions?status=complete
            204 
            > GET /v2/sessions
            200 application/json
            []
        "#]],
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
