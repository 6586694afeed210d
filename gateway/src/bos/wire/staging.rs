//! Applying what sessions staged (BOS reference 2.7).

use chassis::limits::MOST_APPLIED;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::{primitive::ComponentId, strict::component_id};

/// The components that are to run what was staged for them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StagedNodes {
    /// Their ids. One that is named twice is done twice.
    #[schemars(with = "Vec<ComponentId>", extend("maxItems" = MOST_APPLIED))]
    pub xnames: Vec<StagedId>,
}

/// The id of a component.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StagedId(pub String);

impl<'de> Deserialize<'de> for StagedId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = component_id(deserializer)?;
        id.map(Self).ok_or_else(|| D::Error::custom("an id is needed"))
    }
}

/// What became of it, each in the order of the request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename = "Applied")]
pub(crate) struct AppliedStages {
    /// They cannot run it, and their error says why. Those that somebody else's session staged go on as before, and are
    /// staged no longer if the option `clear_stage` is on.
    pub failed: Vec<String>,
    /// Nothing is staged for them, or they do not exist.
    pub ignored: Vec<String>,
    /// They run what was staged from now on.
    pub succeeded: Vec<String>,
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{bos::wire::strict::JsonObject, http::extract::parse};

    #[test]
    fn nodes_of_another_shape_are_refused() {
        let longest = format!(r#"{{"xnames": ["{}"]}}"#, "x".repeat(128));
        let bodies = [
            "{}",
            r#"{"xnames": []}"#,
            r#"{"xnames": ["b", "a", "b"]}"#,
            r#"{"xnames": null}"#,
            r#"{"xnames": "a"}"#,
            r#"{"xnames": ["a", ""]}"#,
            r#"{"xnames": ["a", 1]}"#,
            r#"{"nodes": ["a"]}"#,
            "[]",
            longest.as_str(),
        ];
        let lines = bodies.map(|body| match parse::<JsonObject<StagedNodes>>(body.as_bytes()) {
            Ok(JsonObject(nodes)) => format!("{} nodes\n", nodes.xnames.len()),
            Err(problem) => format!("{}\n", problem.detail),
        });
        expect![[r#"
            0 nodes
            0 nodes
            3 nodes
            invalid type: null, expected a sequence - 'xnames'
            invalid type: string "a", expected a sequence - 'xnames'
            has 0 characters, not between 1 and 127 - 'xnames[1]'
            invalid type: integer `1`, expected a string - 'xnames[1]'
            unknown field `nodes`, expected `xnames` - 'nodes'
            invalid type: sequence, expected an object
            has 128 characters, not between 1 and 127 - 'xnames[0]'
        "#]]
        .assert_eq(&lines.concat());
    }
}
