use expect_test::expect;

use super::check;
use crate::bos::wire::{options::Options, strict::JsonObject};

#[test]
fn options_of_another_shape_are_refused() {
    check::<JsonObject<Options>>(
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
