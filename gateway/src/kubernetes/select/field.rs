//! Field selectors: `metadata.name=x`, joined by commas.

use serde_json::Value;

use super::super::{
    failure::ApiFailure,
    kinds::ResourceKind,
    object::{self, ApiObject},
};

/// Conditions on members, all of which have to hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldSelector(Vec<FieldCondition>);

#[derive(Debug, Clone, PartialEq)]
struct FieldCondition {
    path: String,
    value: String,
    is_equal: bool,
}

impl FieldSelector {
    /// Reads a selector of objects of `kind`.
    ///
    /// # Errors
    /// When the text is no selector, or names a member by which the kind is not selected.
    pub(crate) fn read(text: &str, kind: &ResourceKind) -> Result<Self, ApiFailure> {
        let terms = text.split(',').map(str::trim).filter(|term| !term.is_empty());
        terms.map(|term| condition(term, kind)).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value that the member at `path` has to have; none if any will do.
    pub(crate) fn wanted(&self, path: &str) -> Option<&str> {
        let condition = self.0.iter().find(|condition| condition.is_equal && condition.path == path)?;
        Some(&condition.value)
    }

    pub(crate) fn matches(&self, object: &ApiObject) -> bool {
        self.0.iter().all(|FieldCondition { path, value, is_equal }| {
            let path: Vec<_> = match &**path {
                "source" => vec!["source", "component"],
                path => path.split('.').collect(),
            };
            let found = object::at(object, &path).and_then(Value::as_str).unwrap_or_default();
            (found == value) == *is_equal
        })
    }
}

fn condition(term: &str, kind: &ResourceKind) -> Result<FieldCondition, ApiFailure> {
    let split = [("!=", false), ("==", true), ("=", true)].into_iter();
    let found = split.filter_map(|(sign, is_equal)| Some((term.split_once(sign)?, is_equal))).next();
    let Some(((path, value), is_equal)) = found else {
        return Err(ApiFailure::bad_request(format!(
            "invalid selector: '{term}'; can't understand '{term}'"
        )));
    };
    let is_known = matches!(path, "metadata.name" | "metadata.namespace") || kind.selectable.contains(&path);
    if !is_known {
        return Err(ApiFailure::bad_request(format!("field label not supported: {path}")));
    }
    Ok(FieldCondition { path: path.to_owned(), value: value.to_owned(), is_equal })
}
