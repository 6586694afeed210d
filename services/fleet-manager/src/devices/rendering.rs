//! Rendering of specs: the identity, for a spec that needs nothing from elsewhere.

use chassis::kinds::device::spec::digest;
use domain::device::{record::spec::DeviceSpec, render::RenderResult};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Members of a configuration whose content stands elsewhere: in repositories, and in Secrets of a cluster. There are
/// none of either here, so no agent could be given the content.
const REFERENCES: [&str; 3] = ["gitRef", "httpRef", "secretRef"];

/// Renders specs. The devices of a fleet mostly have the same spec, which is rendered once.
#[derive(Default)]
pub(super) struct SpecRenderer {
    last: Option<(DeviceSpec, RenderResult)>,
}

impl SpecRenderer {
    /// Returns the digest of the rendered spec, or the reason why there is none.
    pub(super) fn render(&mut self, spec: &DeviceSpec) -> RenderResult {
        if let Some((_, result)) = self.last.as_ref().filter(|(known, _)| known == spec) {
            return result.clone();
        }
        let result = match flaw(&spec.document) {
            Some(flaw) => Err(flaw.into()),
            None => Ok(digest(spec)),
        };
        self.last = Some((spec.clone(), result.clone()));
        result
    }
}

/// Part of a spec that can keep it from being rendered.
#[derive(Deserialize)]
struct ConfigPart {
    #[serde(default)]
    config: Vec<Map<String, Value>>,
}

/// Returns the flaw of a document; `None`: it has none. A document of another form is left to the agent.
fn flaw(document: &str) -> Option<String> {
    let part: ConfigPart = serde_json::from_str(document).ok()?;
    part.config.iter().find_map(|item| {
        let reference = REFERENCES.into_iter().find(|reference| item.contains_key(*reference))?;
        let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
        Some(format!("configuration '{name}': the content of a {reference} cannot be read"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_rendered_unless_content_stands_elsewhere() {
        let mut renderer = SpecRenderer::default();
        for (document, expected) in [
            ("", None),
            (r#"{"applications":[]}"#, None),
            (r#"{"config":[{"inline":[],"name":"a"}]}"#, None),
            (r#"{"config":"other"}"#, None),
            (
                r#"{"config":[{"inline":[],"name":"a"},{"gitRef":{},"name":"b"}]}"#,
                Some("configuration 'b': the content of a gitRef cannot be read"),
            ),
            (
                r#"{"config":[{"secretRef":{}}]}"#,
                Some("configuration '': the content of a secretRef cannot be read"),
            ),
        ] {
            let spec = DeviceSpec { document: document.into(), ..DeviceSpec::default() };
            let first = renderer.render(&spec);
            assert_eq!(first.clone().err().as_deref(), expected, "{document}");
            assert_eq!(renderer.render(&spec), first);
        }
    }

    #[test]
    fn equal_specs_have_equal_digests() {
        let spec = |document: &str| DeviceSpec { document: document.into(), ..DeviceSpec::default() };
        let mut renderer = SpecRenderer::default();
        let [one, other, again] = ["{}", "[]", "{}"].map(|document| renderer.render(&spec(document)));
        assert_eq!(one, again);
        assert_ne!(one, other);
    }
}
