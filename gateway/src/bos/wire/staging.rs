//! Applying staged states of sessions (BOS reference 2.7).

use chassis::limits::MOST_APPLIED;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::{primitive::ComponentId, strict::component_id};

/// The components that are to take over their staged states.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StagedNodes {
    /// Ids of the components. A component that is named twice is taken twice.
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

/// The outcome for each component, in the order of the request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename = "Applied")]
pub(crate) struct AppliedStages {
    /// Components that cannot take over the staged state; their error says why. A component that somebody else's
    /// session staged goes on as before, and is staged no longer if the option `clear_stage` is on.
    pub failed: Vec<String>,
    /// Components that have no staged state, or do not exist.
    pub ignored: Vec<String>,
    /// Components that have taken over the staged state.
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
