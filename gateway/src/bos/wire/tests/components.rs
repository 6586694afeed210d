use expect_test::expect;

use super::{check, read};
use crate::bos::wire::{bulk_patch::BulkPatch, component::Component, strict::JsonObject};

#[test]
fn components_of_another_shape_are_refused() {
    check::<JsonObject<Component>>(
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
            {"retry_policy": 4294967296} -> 4294967296 is more than any number may be here - 'retry_policy'
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
    check::<JsonObject<Component>>(
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
fn the_last_of_a_repeated_member_counts() {
    let JsonObject(component) =
        read::<JsonObject<Component>>(r#"{"error": "1", "enabled": 5, "error": "2", "enabled": true}"#);
    assert_eq!((component.error.as_deref(), component.enabled), (Some("2"), Some(true)));
}
