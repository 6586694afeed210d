use std::collections::BTreeMap;

use expect_test::expect;

use super::*;

type Flags = BTreeMap<String, bool>;

#[test]
fn a_text_about_a_long_value_is_short() {
    let body = format!(r#"{{"enabled": "{}"}}"#, "x".repeat(1 << 20));
    let problem = parse::<Flags>(body.as_bytes()).unwrap_err();
    assert!(problem.detail.len() < LONGEST_DETAIL + 100, "{} bytes", problem.detail.len());
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

#[test]
fn limits_that_json_does_not_have_are_named() {
    let deep = "[".repeat(200);
    let told = [
        r#"{"retry_policy": 1e400}"#,
        &deep,
        r#"{"error": "\ud800 "}"#,
        r#"{"error": "\ud800\u0041"}"#,
        "{bad",
    ]
    .map(|body| parse::<Flags>(body.as_bytes()).unwrap_err().detail);
    expect![[r#"
        Request body cannot be read: number out of range at line 1 column 22
        Request body cannot be read: recursion limit exceeded at line 1 column 128
        Request body cannot be read: unexpected end of hex escape at line 1 column 18
        Request body cannot be read: lone leading surrogate in hex escape at line 1 column 23
        Request body is not valid JSON
    "#]]
    .assert_eq(&(told.join("\n") + "\n"));
}
