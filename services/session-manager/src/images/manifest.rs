//! Manifests of images: a JSON object with a list of artifacts.

use domain::boot::template::image::{Entry, Flaw, Manifest, Unreadable};
use serde_json::Value;

/// Defect of a manifest.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestDefect {
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it is not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("it is JSON but no object")]
    NotAnObject(&'static str),
    #[error("it has no list of artifacts")]
    NoArtifacts,
    #[error(transparent)]
    Flawed(#[from] Flaw),
}

/// Reads a manifest and ignores unknown members.
pub(super) fn read(content: &[u8]) -> Result<Manifest, ManifestDefect> {
    let text = std::str::from_utf8(content).map_err(|_| ManifestDefect::NotUtf8)?;
    let document: Value = serde_json::from_str(text).map_err(ManifestDefect::NotJson)?;
    let document = document.as_object().ok_or_else(|| ManifestDefect::NotAnObject(kind(&document)))?;
    let artifacts = document.get("artifacts").and_then(Value::as_array).ok_or(ManifestDefect::NoArtifacts)?;
    let entries: Vec<_> = artifacts.iter().map(entry).collect();
    Ok(Manifest::of(&entries)?)
}

impl ManifestDefect {
    /// Converts the defect of the manifest at `path` to a template finding.
    pub(super) fn of(self, path: &str) -> Unreadable {
        match self {
            Self::NotAnObject(kind) => Unreadable::NotAnObject(kind),
            Self::NotUtf8 | Self::NotJson(_) | Self::NoArtifacts | Self::Flawed(_) => {
                Unreadable::Defective { path: path.to_owned(), why: self.to_string() }
            }
        }
    }
}

/// Returns the Python type name of a JSON value, as BOS prints it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
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
    fn a_manifest_of_another_type_is_reported_like_bos() {
        for (content, kind) in [
            ("null", "NoneType"),
            ("true", "bool"),
            ("1", "int"),
            ("1.5", "float"),
            ("\"\"", "str"),
            ("[]", "list"),
        ] {
            let unreadable = read(content.as_bytes()).unwrap_err().of("s3://b/k");
            assert_eq!(unreadable, Unreadable::NotAnObject(kind));
        }
        let unreadable = read(b"{}").unwrap_err().of("s3://b/k");
        assert_eq!(unreadable.to_string(), "s3://b/k: it has no list of artifacts");
    }

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
