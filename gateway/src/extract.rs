//! What handlers take from a request: a JSON body, a name from the path, and the tenant.

use std::fmt::Display;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE, request::Parts};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    problem::Problem,
    query::{LONGEST_ID, is_name},
    tenant::{self, Tenant},
};

/// Longest text about a body that does not fit. Such texts quote the value, which may be megabytes.
const LONGEST_DETAIL: usize = 1000;

/// A body that is JSON of the shape `T`.
pub(crate) struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let media_type = media_type(request.headers());
        let body =
            Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(),
                _ => Problem::bad_request("the request body could not be read"),
            })?;
        if media_type.is_empty() && body.is_empty() {
            return Err(Problem::bad_request("a request body is required"));
        }
        if !is_json(&media_type) {
            return Err(Problem::unsupported_media_type(&media_type));
        }
        parse(&body).map(Self)
    }
}

/// The type of the body without parameters such as the charset; empty when there is none.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_owned()
}

/// Any JSON type will do (BOS reference 2.1, "accepted request types").
fn is_json(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

/// Reads a body.
///
/// # Errors
/// When the text is no JSON, or JSON of another shape; then the place of the mismatch is named.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // Straight into the shape is fast and right for every good body except one that repeats a member, where
    // the last one has to win (BOS reference 2.1). The second reading settles that, and knows better what is
    // wrong: a body that breaks off is no JSON, however wrong its shape was before.
    serde_json::from_slice(body).or_else(|_| {
        let value: Value = serde_json::from_slice(body)
            .map_err(|_| Problem::bad_request("Request body is not valid JSON"))?;
        serde_path_to_error::deserialize(value).map_err(|error| misfit(error.path(), error.inner()))
    })
}

fn misfit(path: &serde_path_to_error::Path, error: &serde_json::Error) -> Problem {
    let text: String = error.to_string().chars().take(LONGEST_DETAIL).collect();
    Problem::bad_request(match path.iter().len() {
        0 => text,
        _ => at(path, text),
    })
}

/// Says where in the document something is wrong, as BOS does.
pub(crate) fn at(path: impl Display, text: impl Display) -> String {
    format!("{text} - '{path}'")
}

/// What the path calls the resource that a request is about. Handlers judge it after the body, because BOS
/// does (BOS reference 2.1, "check order").
pub(crate) struct Name(String);

impl Name {
    /// The name of a session or session template.
    ///
    /// # Errors
    /// When no session or template can have that name.
    pub(crate) fn of_session(self) -> Result<String, Problem> {
        if is_name(&self.0) {
            return Ok(self.0);
        }
        Err(Problem::bad_request(format!("the path has '{}', which is no name", self.0)))
    }

    /// The id of a component.
    ///
    /// # Errors
    /// When it is too long (BOS reference 2.3, ComponentId).
    pub(crate) fn of_component(self) -> Result<String, Problem> {
        if self.0.chars().count() <= LONGEST_ID {
            return Ok(self.0);
        }
        Err(Problem::bad_request(format!("the path has an id of more than {LONGEST_ID} characters")))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name)).map_err(|_| Problem::bad_request("the path is not valid UTF-8"))
    }
}

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let named = parts.headers.get(tenant::HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
        Self::named(&named.unwrap_or_default()).map_err(Problem::bad_request)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::wire::{
        bulk_patch::BulkPatch,
        component::Component,
        options::Options,
        session::{NewSession, SessionPatch},
        strict::Object,
        template::SessionTemplate,
    };

    fn check<T: DeserializeOwned>(bodies: &[&str], expected: Expect) {
        let lines = bodies.iter().map(|body| {
            let outcome = parse::<T>(body.as_bytes());
            format!("{body} -> {}\n", outcome.as_ref().err().map_or("fits", Problem::detail))
        });
        expected.assert_eq(&lines.collect::<String>());
    }

    fn read<T: DeserializeOwned + Debug>(body: &str) -> T {
        parse(body.as_bytes()).unwrap_or_else(|problem| panic!("{body}: {}", problem.detail()))
    }

    #[test]
    fn components_of_another_shape_are_refused() {
        check::<Object<Component>>(
            &[
                r#"{"bogus": 1}"#,
                r#"{"enabled": "x"}"#,
                r#"{"enabled": null}"#,
                r#"{"enabled": 1}"#,
                r#"{"error": 5}"#,
                r#"{"id": ""}"#,
                r#"{"id": null}"#,
                &format!(r#"{{"id": "{}"}}"#, "x".repeat(128)),
                r#"{"session": null}"#,
                r#"{"retry_policy": -1}"#,
                r#"{"retry_policy": 1.5}"#,
                r#"{"retry_policy": 15.0}"#,
                r#"{"retry_policy": true}"#,
                r#"{"retry_policy": "3"}"#,
                r#"{"retry_policy": 4294967296}"#,
                r#"{"status": {"phase": "hmm"}}"#,
                r#"{"status": {"phase": {"configuring": null}}}"#,
                r#"{"status": {"status": "stable"}}"#,
                r#"{"status": {"bogus": 1}}"#,
                r#"{"status": "x"}"#,
                r#"{"status": []}"#,
                r#"{"last_action": {"action": "hmm"}}"#,
                r#"{"last_action": {"action": ""}}"#,
                r#"{"last_action": {"failed": "no"}}"#,
                r#"{"last_action": {"last_updated": "2020-01-01T00:00:00Z"}}"#,
                r#"{"actual_state": {"last_updated": "2020-01-01T00:00:00Z"}}"#,
                r#"{"actual_state": {"configuration": "c"}}"#,
                r#"{"actual_state": {"bss_token": null}}"#,
                r#"{"actual_state": {"boot_artifacts": {"rootfs": "r"}}}"#,
                r#"{"actual_state": {"boot_artifacts": {"timestamp": "t"}}}"#,
                r#"{"desired_state": {"session": "s"}}"#,
                r#"{"staged_state": {"session": null}}"#,
                r#"{"staged_state": {"bss_token": "t"}}"#,
                r#"{"event_stats": {"power_on_attempts": -1}}"#,
                r#"{"event_stats": {"bogus": 1}}"#,
                "[]",
                "[1]",
                r#""x""#,
                "5",
                "null",
                "{bad",
                "",
                r#"{"enabled": "x", bad"#,
            ],
            expect![[r#"
                {"bogus": 1} -> unknown field `bogus`, expected one of `actual_state`, `desired_state`, `enabled`, `error`, `event_stats`, `id`, `last_action`, `retry_policy`, `session`, `staged_state`, `status` - 'bogus'
                {"enabled": "x"} -> invalid type: string "x", expected a boolean - 'enabled'
                {"enabled": null} -> invalid type: null, expected a boolean - 'enabled'
                {"enabled": 1} -> invalid type: integer `1`, expected a boolean - 'enabled'
                {"error": 5} -> invalid type: integer `5`, expected a string - 'error'
                {"id": ""} -> has 0 characters, not between 1 and 127 - 'id'
                {"id": null} -> invalid type: null, expected a string - 'id'
                {"id": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"} -> has 128 characters, not between 1 and 127 - 'id'
                {"session": null} -> invalid type: null, expected a string - 'session'
                {"retry_policy": -1} -> invalid value: integer `-1`, expected a whole number that is not negative - 'retry_policy'
                {"retry_policy": 1.5} -> invalid type: floating point `1.5`, expected a whole number that is not negative - 'retry_policy'
                {"retry_policy": 15.0} -> invalid type: floating point `15.0`, expected a whole number that is not negative - 'retry_policy'
                {"retry_policy": true} -> invalid type: boolean `true`, expected a whole number that is not negative - 'retry_policy'
                {"retry_policy": "3"} -> invalid type: string "3", expected a whole number that is not negative - 'retry_policy'
                {"retry_policy": 4294967296} -> fits
                {"status": {"phase": "hmm"}} -> 'hmm' is not one of '', 'configuring', 'powering_off', 'powering_on' - 'status.phase'
                {"status": {"phase": {"configuring": null}}} -> invalid type: map, expected a string - 'status.phase'
                {"status": {"status": "stable"}} -> unknown field `status`, expected `phase` or `status_override` - 'status.status'
                {"status": {"bogus": 1}} -> unknown field `bogus`, expected `phase` or `status_override` - 'status.bogus'
                {"status": "x"} -> invalid type: string "x", expected an object - 'status'
                {"status": []} -> invalid type: sequence, expected an object - 'status'
                {"last_action": {"action": "hmm"}} -> 'hmm' is not one of 'actual_state_cleanup', 'apply_staged', 'newly_discovered', 'powering_off_forcefully', 'powering_off_gracefully', 'powering_on', 'session_setup' - 'last_action.action'
                {"last_action": {"action": ""}} -> '' is not one of 'actual_state_cleanup', 'apply_staged', 'newly_discovered', 'powering_off_forcefully', 'powering_off_gracefully', 'powering_on', 'session_setup' - 'last_action.action'
                {"last_action": {"failed": "no"}} -> invalid type: string "no", expected a boolean - 'last_action.failed'
                {"last_action": {"last_updated": "2020-01-01T00:00:00Z"}} -> unknown field `last_updated`, expected `action` or `failed` - 'last_action.last_updated'
                {"actual_state": {"last_updated": "2020-01-01T00:00:00Z"}} -> unknown field `last_updated`, expected `boot_artifacts` or `bss_token` - 'actual_state.last_updated'
                {"actual_state": {"configuration": "c"}} -> unknown field `configuration`, expected `boot_artifacts` or `bss_token` - 'actual_state.configuration'
                {"actual_state": {"bss_token": null}} -> invalid type: null, expected a string - 'actual_state.bss_token'
                {"actual_state": {"boot_artifacts": {"rootfs": "r"}}} -> unknown field `rootfs`, expected one of `initrd`, `kernel`, `kernel_parameters` - 'actual_state.boot_artifacts.rootfs'
                {"actual_state": {"boot_artifacts": {"timestamp": "t"}}} -> unknown field `timestamp`, expected one of `initrd`, `kernel`, `kernel_parameters` - 'actual_state.boot_artifacts.timestamp'
                {"desired_state": {"session": "s"}} -> unknown field `session`, expected one of `boot_artifacts`, `bss_token`, `configuration` - 'desired_state.session'
                {"staged_state": {"session": null}} -> invalid type: null, expected a string - 'staged_state.session'
                {"staged_state": {"bss_token": "t"}} -> unknown field `bss_token`, expected one of `boot_artifacts`, `configuration`, `session` - 'staged_state.bss_token'
                {"event_stats": {"power_on_attempts": -1}} -> invalid value: integer `-1`, expected a whole number that is not negative - 'event_stats.power_on_attempts'
                {"event_stats": {"bogus": 1}} -> unknown field `bogus`, expected one of `power_off_forceful_attempts`, `power_off_graceful_attempts`, `power_on_attempts` - 'event_stats.bogus'
                [] -> invalid type: sequence, expected an object
                [1] -> invalid type: sequence, expected an object
                "x" -> invalid type: string "x", expected an object
                5 -> invalid type: integer `5`, expected an object
                null -> invalid type: null, expected an object
                {bad -> Request body is not valid JSON
                 -> Request body is not valid JSON
                {"enabled": "x", bad -> Request body is not valid JSON
            "#]],
        );
    }

    #[test]
    fn components_at_the_edge_fit() {
        check::<Object<Component>>(
            &[
                "{}",
                r#"{"session": ""}"#,
                r#"{"retry_policy": 0}"#,
                r#"{"retry_policy": 1048576}"#,
                r#"{"staged_state": {"session": ""}}"#,
                r#"{"status": {"phase": ""}}"#,
                r#"{"actual_state": {}}"#,
                r#"{"last_action": {}}"#,
            ],
            expect![[r#"
                {} -> fits
                {"session": ""} -> fits
                {"retry_policy": 0} -> fits
                {"retry_policy": 1048576} -> fits
                {"staged_state": {"session": ""}} -> fits
                {"status": {"phase": ""}} -> fits
                {"actual_state": {}} -> fits
                {"last_action": {}} -> fits
            "#]],
        );
    }

    #[test]
    fn bulk_patches_have_two_shapes() {
        check::<BulkPatch>(
            &[
                "[]",
                r#"[{"id": "a", "error": "e"}, {"id": "b"}]"#,
                r#"[{"id": "a"}, {"id": "b", "bogus": 1}]"#,
                r#"[{"id": "a"}, {"id": ""}]"#,
                r#"[{"id": "a"}, []]"#,
                r#"[{"id": "a"}, null]"#,
                r#"{"patch": {"error": "a"}, "filters": {"ids": "a"}}"#,
                r#"{"patch": {"error": "a"}, "filters": {"ids": "a", "session": null}}"#,
                "{}",
                r#"{"patch": {"error": "a"}}"#,
                r#"{"filters": {"ids": "a"}}"#,
                r#"{"patch": {"error": "a"}, "filters": {"enabled": true}}"#,
                r#"{"patch": {"bogus": 1}, "filters": {"ids": "a"}}"#,
                r#"{"patch": {"error": "a"}, "filters": {"ids": "a"}, "more": 1}"#,
                r#"{"patch": null, "filters": {"ids": "a"}}"#,
                r#""x""#,
                "1",
            ],
            expect![[r#"
                [] -> fits
                [{"id": "a", "error": "e"}, {"id": "b"}] -> fits
                [{"id": "a"}, {"id": "b", "bogus": 1}] -> unknown field `bogus`, expected one of `actual_state`, `desired_state`, `enabled`, `error`, `event_stats`, `id`, `last_action`, `retry_policy`, `session`, `staged_state`, `status` - '[1].bogus'
                [{"id": "a"}, {"id": ""}] -> has 0 characters, not between 1 and 127 - '[1].id'
                [{"id": "a"}, []] -> invalid type: sequence, expected an object - '[1]'
                [{"id": "a"}, null] -> invalid type: null, expected an object - '[1]'
                {"patch": {"error": "a"}, "filters": {"ids": "a"}} -> fits
                {"patch": {"error": "a"}, "filters": {"ids": "a", "session": null}} -> fits
                {} -> missing field `filters`
                {"patch": {"error": "a"}} -> missing field `filters`
                {"filters": {"ids": "a"}} -> missing field `patch`
                {"patch": {"error": "a"}, "filters": {"enabled": true}} -> unknown field `enabled`, expected `ids` or `session` - 'filters.enabled'
                {"patch": {"bogus": 1}, "filters": {"ids": "a"}} -> unknown field `bogus`, expected one of `actual_state`, `desired_state`, `enabled`, `error`, `event_stats`, `id`, `last_action`, `retry_policy`, `session`, `staged_state`, `status` - 'patch.bogus'
                {"patch": {"error": "a"}, "filters": {"ids": "a"}, "more": 1} -> unknown field `more`, expected `filters` or `patch` - 'more'
                {"patch": null, "filters": {"ids": "a"}} -> invalid type: null, expected an object - 'patch'
                "x" -> invalid type: string "x", expected an array or an object
                1 -> invalid type: integer `1`, expected an array or an object
            "#]],
        );
    }

    #[test]
    fn options_of_another_shape_are_refused() {
        check::<Object<Options>>(
            &[
                r#"{"bss_read_timeout": "20"}"#,
                r#"{"bss_read_timeout": 20.5}"#,
                r#"{"bss_read_timeout": true}"#,
                r#"{"bss_read_timeout": null}"#,
                r#"{"bss_read_timeout": [20]}"#,
                r#"{"bss_read_timeout": -1}"#,
                r#"{"clear_stage": "true"}"#,
                r#"{"clear_stage": 1}"#,
                r#"{"clear_stage": null}"#,
                r#"{"cleanup_completed_session_ttl": 7}"#,
                r#"{"logging_level": null}"#,
                r#"{"no_such_option": {"of": ["any", "kind"]}}"#,
                "[]",
                r#"[{"clear_stage": true}]"#,
                r#""x""#,
                "1",
            ],
            expect![[r#"
                {"bss_read_timeout": "20"} -> invalid type: string "20", expected a whole number that is not negative - 'bss_read_timeout'
                {"bss_read_timeout": 20.5} -> invalid type: floating point `20.5`, expected a whole number that is not negative - 'bss_read_timeout'
                {"bss_read_timeout": true} -> invalid type: boolean `true`, expected a whole number that is not negative - 'bss_read_timeout'
                {"bss_read_timeout": null} -> invalid type: null, expected a whole number that is not negative - 'bss_read_timeout'
                {"bss_read_timeout": [20]} -> invalid type: sequence, expected a whole number that is not negative - 'bss_read_timeout'
                {"bss_read_timeout": -1} -> invalid value: integer `-1`, expected a whole number that is not negative - 'bss_read_timeout'
                {"clear_stage": "true"} -> invalid type: string "true", expected a boolean - 'clear_stage'
                {"clear_stage": 1} -> invalid type: integer `1`, expected a boolean - 'clear_stage'
                {"clear_stage": null} -> invalid type: null, expected a boolean - 'clear_stage'
                {"cleanup_completed_session_ttl": 7} -> invalid type: integer `7`, expected a string - 'cleanup_completed_session_ttl'
                {"logging_level": null} -> invalid type: null, expected a string - 'logging_level'
                {"no_such_option": {"of": ["any", "kind"]}} -> fits
                [] -> invalid type: sequence, expected an object
                [{"clear_stage": true}] -> invalid type: sequence, expected an object
                "x" -> invalid type: string "x", expected an object
                1 -> invalid type: integer `1`, expected an object
            "#]],
        );
    }

    #[test]
    fn templates_of_another_shape_are_refused() {
        check::<Object<SessionTemplate>>(
            &[
                r#"{"boot_sets": null}"#,
                r#"{"boot_sets": []}"#,
                r#"{"boot_sets": {"c": null}}"#,
                r#"{"boot_sets": {"c": []}}"#,
                r#"{"boot_sets": {"c": {}}}"#,
                r#"{"boot_sets": {"c": {"path": "p", "node_list": ["x1"]}}}"#,
                r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "node_list": "x1"}}}"#,
                r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "node_list": [null]}}}"#,
                r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "bogus": 1}}}"#,
                r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "cfs": {"config": "x"}}}}"#,
                r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "name": "c", "cfs": {}}}}"#,
                r#"{"bogus": 1}"#,
                r#"{"name": "n"}"#,
                r#"{"tenant": "t"}"#,
                r#"{"links": []}"#,
                r#"{"description": null}"#,
                r#"{"enable_cfs": "yes"}"#,
                r#"{"enable_cfs": null}"#,
                r#"{"cfs": null}"#,
                "[]",
                r#""x""#,
                "{}",
            ],
            expect![[r#"
                {"boot_sets": null} -> invalid type: null, expected a map - 'boot_sets'
                {"boot_sets": []} -> invalid type: sequence, expected a map - 'boot_sets'
                {"boot_sets": {"c": null}} -> invalid type: null, expected an object - 'boot_sets.c'
                {"boot_sets": {"c": []}} -> invalid type: sequence, expected an object - 'boot_sets.c'
                {"boot_sets": {"c": {}}} -> missing field `path` - 'boot_sets.c'
                {"boot_sets": {"c": {"path": "p", "node_list": ["x1"]}}} -> missing field `type` - 'boot_sets.c'
                {"boot_sets": {"c": {"path": "p", "type": "s3", "node_list": "x1"}}} -> invalid type: string "x1", expected a sequence - 'boot_sets.c.node_list'
                {"boot_sets": {"c": {"path": "p", "type": "s3", "node_list": [null]}}} -> invalid type: null, expected a string - 'boot_sets.c.node_list[0]'
                {"boot_sets": {"c": {"path": "p", "type": "s3", "bogus": 1}}} -> unknown field `bogus`, expected one of `arch`, `cfs`, `etag`, `kernel_parameters`, `name`, `node_groups`, `node_list`, `node_roles_groups`, `path`, `rootfs_provider`, `rootfs_provider_passthrough`, `type` - 'boot_sets.c.bogus'
                {"boot_sets": {"c": {"path": "p", "type": "s3", "cfs": {"config": "x"}}}} -> unknown field `config`, expected `configuration` - 'boot_sets.c.cfs.config'
                {"boot_sets": {"c": {"path": "p", "type": "s3", "name": "c", "cfs": {}}}} -> fits
                {"bogus": 1} -> unknown field `bogus`, expected one of `boot_sets`, `cfs`, `description`, `enable_cfs` - 'bogus'
                {"name": "n"} -> unknown field `name`, expected one of `boot_sets`, `cfs`, `description`, `enable_cfs` - 'name'
                {"tenant": "t"} -> unknown field `tenant`, expected one of `boot_sets`, `cfs`, `description`, `enable_cfs` - 'tenant'
                {"links": []} -> unknown field `links`, expected one of `boot_sets`, `cfs`, `description`, `enable_cfs` - 'links'
                {"description": null} -> invalid type: null, expected a string - 'description'
                {"enable_cfs": "yes"} -> invalid type: string "yes", expected a boolean - 'enable_cfs'
                {"enable_cfs": null} -> invalid type: null, expected a boolean - 'enable_cfs'
                {"cfs": null} -> invalid type: null, expected an object - 'cfs'
                [] -> invalid type: sequence, expected an object
                "x" -> invalid type: string "x", expected an object
                {} -> fits
            "#]],
        );
    }

    #[test]
    fn wishes_for_sessions_of_another_shape_are_refused() {
        check::<Object<NewSession>>(
            &[
                r#"{"operation": "boot", "template_name": "t"}"#,
                r#"{"operation": "boot", "template_name": "t", "limit": null}"#,
                r#"{"operation": "boot"}"#,
                r#"{"template_name": "t"}"#,
                r#"{"operation": "Boot", "template_name": "t"}"#,
                r#"{"operation": "boot", "template_name": "t", "name": null}"#,
                r#"{"operation": "boot", "template_name": "t", "stage": null}"#,
                r#"{"operation": "boot", "template_name": "t", "staged": true}"#,
                r#"{"operation": "boot", "template_name": "t", "include_disabled": "no"}"#,
                "[]",
            ],
            expect![[r#"
                {"operation": "boot", "template_name": "t"} -> fits
                {"operation": "boot", "template_name": "t", "limit": null} -> fits
                {"operation": "boot"} -> missing field `template_name`
                {"template_name": "t"} -> missing field `operation`
                {"operation": "Boot", "template_name": "t"} -> 'Boot' is not one of 'boot', 'reboot', 'shutdown' - 'operation'
                {"operation": "boot", "template_name": "t", "name": null} -> invalid type: null, expected a string - 'name'
                {"operation": "boot", "template_name": "t", "stage": null} -> invalid type: null, expected a boolean - 'stage'
                {"operation": "boot", "template_name": "t", "staged": true} -> unknown field `staged`, expected one of `include_disabled`, `limit`, `name`, `operation`, `stage`, `template_name` - 'staged'
                {"operation": "boot", "template_name": "t", "include_disabled": "no"} -> invalid type: string "no", expected a boolean - 'include_disabled'
                [] -> invalid type: sequence, expected an object
            "#]],
        );
    }

    #[test]
    fn null_clears_what_may_be_null() {
        let Object(patch) = read::<Object<SessionPatch>>(r#"{"status": {"end_time": null, "error": "e"}}"#);
        let status = patch.status.unwrap();
        assert_eq!((status.end_time, status.error), (Some(None), Some(Some("e".to_owned()))));
        check::<Object<SessionPatch>>(
            &["{}", r#"{"status": null}"#, r#"{"status": {"start_time": null}}"#, r#"{"name": "n"}"#],
            expect![[r#"
                {} -> fits
                {"status": null} -> invalid type: null, expected an object - 'status'
                {"status": {"start_time": null}} -> invalid type: null, expected a string - 'status.start_time'
                {"name": "n"} -> unknown field `name`, expected `components` or `status` - 'name'
            "#]],
        );
    }

    #[test]
    fn the_last_of_a_repeated_member_counts() {
        let Object(component) =
            read::<Object<Component>>(r#"{"error": "1", "enabled": 5, "error": "2", "enabled": true}"#);
        assert_eq!((component.error.as_deref(), component.enabled), (Some("2"), Some(true)));
    }

    #[test]
    fn a_text_about_a_long_value_is_short() {
        let body = format!(r#"{{"enabled": "{}"}}"#, "x".repeat(1 << 20));
        let problem = parse::<Object<Component>>(body.as_bytes()).unwrap_err();
        assert!(problem.detail().len() < LONGEST_DETAIL + 100, "{} bytes", problem.detail().len());
    }

    #[test]
    fn any_json_type_will_do() {
        let given = ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"];
        let other = ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "json"];
        for (types, fits) in [(&given[..], true), (&other[..], false)] {
            for text in types {
                let headers = HeaderMap::from_iter([(CONTENT_TYPE, text.parse().unwrap())]);
                assert_eq!(is_json(&media_type(&headers)), fits, "{text}");
            }
        }
    }

    #[tokio::test]
    async fn the_header_names_the_tenant() {
        let longest = "t".repeat(127);
        for (sent, named) in [
            (None, Some("")),
            (Some(""), Some("")),
            (Some("blue"), Some("blue")),
            (Some(&longest), Some(&*longest)),
            (Some(&*format!("{longest}t")), None),
        ] {
            let request = http::Request::get("/");
            let request =
                sent.into_iter().fold(request, |request, name| request.header(tenant::HEADER, name));
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let tenant = Tenant::from_request_parts(&mut parts, &()).await;
            assert_eq!(tenant.ok().map(|tenant| tenant.0).as_deref(), named, "{sent:?}");
        }
    }
}
