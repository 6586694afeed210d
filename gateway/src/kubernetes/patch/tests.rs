//! Patches in rows.

use expect_test::expect;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::*;
use crate::kubernetes::kinds;

fn patched(kind: &ResourceKind, form: &str, patch: &str) -> String {
    let object = json!({
        "metadata": { "labels": { "a": "1" }, "finalizers": ["x"], "ownerReferences": [{ "uid": "1", "name": "o" }] },
        "spec": { "image": { "url": "u", "checksum": "c" }, "taints": [1, 2] },
    });
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_str(form).unwrap());
    let outcome = ObjectPatch::read(kind, &headers, patch.as_bytes())
        .and_then(|(patch, _)| patch.applied(kind, "n", object.clone()));
    match outcome {
        Ok(after) => changed(&object, &after, "").join(" "),
        Err(failure) => format!("{} {}", failure.code.as_u16(), failure.message),
    }
}

/// Returns the differences of two values.
fn changed(before: &Value, after: &Value, path: &str) -> Vec<String> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return if before == after { vec![] } else { vec![format!("{path}={after}")] };
    };
    let names: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let lines = names.into_iter().flat_map(|name| {
        let path = format!("{path}/{name}");
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => changed(old, new, &path),
            (None, Some(new)) => vec![format!("{path}:={new}")],
            (Some(_), None) | (None, None) => vec![format!("{path} removed")],
        }
    });
    lines.collect()
}

#[test]
fn patches_do_as_their_type_says() {
    let host = kinds::find("metal3.io", "v1alpha1", "baremetalhosts").unwrap();
    let secret = kinds::find("", "v1", "secrets").unwrap();
    const MERGE: &str = "application/merge-patch+json";
    const JSON: &str = "application/json-patch+json";
    const STRATEGIC: &str = "application/strategic-merge-patch+json";
    let rows = [
        (host, MERGE, r#"{"spec":{"image":{"checksum":null},"taints":[3]}}"#),
        (host, MERGE, r#"{"spec":{"bmc":{"address":null,"x":1}}}"#),
        (host, MERGE, r#"{"spec":{"image":{"url":{"deep":null}}}}"#),
        (host, MERGE, r#"[{"op":"remove"}]"#),
        (host, JSON, r#"[{"op":"add","path":"/metadata/labels/b","value":"2"}]"#),
        (
            host,
            JSON,
            r#"[{"op":"remove","path":"/spec/image"},{"op":"test","path":"/metadata/labels/a","value":"2"}]"#,
        ),
        (host, JSON, r#"[{"op":"add","path":"/metadata/annotations/b","value":"2"}]"#),
        (host, JSON, r#"{"spec":{}}"#),
        (host, STRATEGIC, r#"{"spec":{}}"#),
        (host, "text/plain", r#"{"spec":{}}"#),
        (
            secret,
            STRATEGIC,
            r#"{"metadata":{"finalizers":["y","x"],"$setElementOrder/finalizers":["x","y"]}}"#,
        ),
        (secret, STRATEGIC, r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["x"]}}"#),
        (secret, STRATEGIC, r#"{"metadata":{"ownerReferences":[{"uid":"1","name":"p"},{"uid":"2"}]}}"#),
        (
            secret,
            STRATEGIC,
            r#"{"metadata":{"ownerReferences":[{"uid":"1","$patch":"delete"}],"labels":{"a":null}}}"#,
        ),
        (secret, STRATEGIC, r#"{"metadata":{"labels":{"$patch":"replace","b":"2"}}}"#),
    ];
    let lines: String = rows
        .iter()
        .map(|(kind, form, patch)| format!("{patch}\n  {}\n", patched(kind, form, patch)))
        .collect();
    expect![[r#"
        {"spec":{"image":{"checksum":null},"taints":[3]}}
          /spec/image/checksum removed /spec/taints=[3]
        {"spec":{"bmc":{"address":null,"x":1}}}
          /spec/bmc:={"x":1}
        {"spec":{"image":{"url":{"deep":null}}}}
          /spec/image/url={}
        [{"op":"remove"}]
          400 error decoding patch: a patch of this type is an object
        [{"op":"add","path":"/metadata/labels/b","value":"2"}]
          /metadata/labels/b:="2"
        [{"op":"remove","path":"/spec/image"},{"op":"test","path":"/metadata/labels/a","value":"2"}]
          422 BareMetalHost.metal3.io "n" is invalid: patch: operation '/1' failed at path '/metadata/labels/a': value did not match
        [{"op":"add","path":"/metadata/annotations/b","value":"2"}]
          422 BareMetalHost.metal3.io "n" is invalid: patch: operation '/0' failed at path '/metadata/annotations/b': path is invalid
        {"spec":{}}
          400 error decoding patch: invalid type: map, expected a sequence at line 1 column 0
        {"spec":{}}
          415 the body of the request was in an unknown format (application/strategic-merge-patch+json) - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
        {"spec":{}}
          415 the body of the request was in an unknown format (text/plain) - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
        {"metadata":{"finalizers":["y","x"],"$setElementOrder/finalizers":["x","y"]}}
          /metadata/finalizers=["x","y"]
        {"metadata":{"$deleteFromPrimitiveList/finalizers":["x"]}}
          /metadata/finalizers=[]
        {"metadata":{"ownerReferences":[{"uid":"1","name":"p"},{"uid":"2"}]}}
          /metadata/ownerReferences=[{"name":"p","uid":"1"},{"uid":"2"}]
        {"metadata":{"ownerReferences":[{"uid":"1","$patch":"delete"}],"labels":{"a":null}}}
          /metadata/labels/a removed /metadata/ownerReferences=[]
        {"metadata":{"labels":{"$patch":"replace","b":"2"}}}
          /metadata/labels/a removed /metadata/labels/b:="2"
    "#]].assert_eq(&lines);
}
