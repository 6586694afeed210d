use expect_test::expect;

use super::{check, read};
use crate::bos::wire::{
    session::{NewSession, SessionPatch},
    strict::JsonObject,
};

#[test]
fn wishes_for_sessions_of_another_shape_are_refused() {
    check::<JsonObject<NewSession>>(
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
    let JsonObject(patch) =
        read::<JsonObject<SessionPatch>>(r#"{"status": {"end_time": null, "error": "e"}}"#);
    let status = patch.status.unwrap();
    assert_eq!((status.end_time, status.error), (Some(None), Some(Some("e".to_owned()))));
    check::<JsonObject<SessionPatch>>(
        &["{}", r#"{"status": null}"#, r#"{"status": {"start_time": null}}"#, r#"{"name": "n"}"#],
        expect![[r#"
            {} -> fits
            {"status": null} -> invalid type: null, expected an object - 'status'
            {"status": {"start_time": null}} -> invalid type: null, expected a string - 'status.start_time'
            {"name": "n"} -> unknown field `name`, expected `components` or `status` - 'name'
        "#]],
    );
}
