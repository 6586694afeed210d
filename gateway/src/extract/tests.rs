use expect_test::expect;

use super::*;
use crate::wire::{component::Component, strict::Object};

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
    .map(|body| parse::<Object<Component>>(body.as_bytes()).unwrap_err().detail().to_owned());
    expect![[r#"
        Request body cannot be read: number out of range at line 1 column 22
        Request body cannot be read: recursion limit exceeded at line 1 column 128
        Request body cannot be read: unexpected end of hex escape at line 1 column 18
        Request body cannot be read: lone leading surrogate in hex escape at line 1 column 23
        Request body is not valid JSON
    "#]]
    .assert_eq(&(told.join("\n") + "\n"));
}

#[tokio::test]
async fn the_header_names_the_tenant() {
    let longest = "t".repeat(127);
    for (sent, named) in [
        (None, Some("")),
        (Some(&b""[..]), Some("")),
        (Some(b"blue"), Some("blue")),
        (Some("bl\u{fc}".as_bytes()), Some("bl\u{fc}")),
        (Some(b"bl\xfc"), None),
        (Some(longest.as_bytes()), Some(&*longest)),
        (Some(format!("{longest}t").as_bytes()), None),
    ] {
        let request = http::Request::get("/");
        let request = sent.into_iter().fold(request, |request, name| request.header(tenant::HEADER, name));
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let tenant = Tenant::from_request_parts(&mut parts, &()).await;
        assert_eq!(tenant.ok().map(|tenant| tenant.0).as_deref(), named, "{sent:?}");
    }
}

#[tokio::test]
async fn one_request_is_about_one_tenant() {
    for names in [["", "blue"], ["blue", ""], ["blue", "red"], ["blue", "blue"]] {
        let request = http::Request::get("/");
        let request = names.iter().fold(request, |request, name| request.header(tenant::HEADER, *name));
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let refused = Tenant::from_request_parts(&mut parts, &()).await.unwrap_err();
        assert_eq!(refused.detail(), "header 'cray-tenant-name' is there more than once", "{names:?}");
    }
}
