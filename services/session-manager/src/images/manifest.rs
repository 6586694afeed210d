//! A manifest as it is stored: a JSON object with a list of artifacts.

use domain::image::{Entry, Flaw, Manifest};
use serde_json::Value;

/// Why the content of an object is no manifest.
#[derive(Debug, thiserror::Error)]
pub(super) enum Defect {
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it is not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("it is JSON but no object")]
    NotAnObject,
    #[error("it has no list of artifacts")]
    NoArtifacts,
    #[error(transparent)]
    Flawed(#[from] Flaw),
}

/// Reads a manifest. Members that nobody needs may be anything.
pub(super) fn read(content: &[u8]) -> Result<Manifest, Defect> {
    let text = std::str::from_utf8(content).map_err(|_| Defect::NotUtf8)?;
    let document: Value = serde_json::from_str(text).map_err(Defect::NotJson)?;
    let document = document.as_object().ok_or(Defect::NotAnObject)?;
    let artifacts = document.get("artifacts").and_then(Value::as_array).ok_or(Defect::NoArtifacts)?;
    let entries: Vec<_> = artifacts.iter().map(entry).collect();
    Ok(Manifest::of(&entries)?)
}

fn entry(artifact: &Value) -> Entry {
    let text = |pointer| artifact.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Entry { kind: text("/type"), path: text("/link/path"), etag: text("/link/etag") }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn only_json_objects_with_artifacts_are_manifests() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let kernel =
            r#"{"artifacts": [{"type": "application/vnd.cray.image.kernel", "link": {"path": "s3://b/k"}}]}"#;
        let twice = kernel.replace("[{", r#"[{"type": "application/vnd.cray.image.kernel"}, {"#);
        let odd = r#"{"artifacts": [1, null, {}, {"type": 3}, {"type": "x", "link": "y"}], "artifacts2": 1}"#;
        let contents: [&[u8]; 12] = [
            kernel.as_bytes(),
            twice.as_bytes(),
            odd.as_bytes(),
            b"{\"artifacts\": []}",
            b"\xff\xfe{}",
            b"{\"artifacts\": [{\"type\": \"\xc3\"}]}",
            b"",
            b"<Error/>",
            b"[{\"artifacts\": []}]",
            b"{}",
            b"{\"artifacts\": {}}",
            deep.as_bytes(),
        ];
        let rows: String = contents
            .into_iter()
            .map(|content| match read(content) {
                Ok(manifest) => format!("kernel {:?}\n", manifest.kernel.map(|kernel| kernel.path)),
                Err(defect) => format!("{defect}\n"),
            })
            .collect();
        expect![[r#"
            kernel Some("s3://b/k")
            it lists more than one artifact of type 'application/vnd.cray.image.kernel'
            kernel None
            kernel None
            it is not UTF-8
            it is not UTF-8
            it is not JSON: EOF while parsing a value at line 1 column 0
            it is not JSON: expected value at line 1 column 1
            it is JSON but no object
            it has no list of artifacts
            it has no list of artifacts
            it is not JSON: recursion limit exceeded at line 1 column 128
        "#]]
        .assert_eq(&rows);
    }
}
