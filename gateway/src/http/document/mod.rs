//! The OpenAPI document, made from the paths of the faces and the types of their wires.
//!
//! - `operation`: request, answer and refusals of one method of one path
//! - `input`: the part of that which follows from the arguments of a handler, so that no list repeats it
//! - `forms`: texts and numbers within limits
//! - `schemas`: the types, and which of them look different in requests and in answers

use http::Method;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::problem::{ProblemDocument, RequestProblem};

mod forms;
mod input;
mod operation;
mod schemas;

pub(crate) use forms::{BoundedText, SeparatedTexts, WholeNumber, ZonedTime};
pub(crate) use input::{HandlerInput, HandlerInputs, WRONG_REQUEST};
pub(crate) use operation::{ApiOperation, ApiParameter, header, query};

use schemas::{Describe, DocumentSchemas, of};

/// Introduction of a document.
pub(crate) struct ApiAbout {
    pub title: &'static str,
    pub description: &'static str,
    /// Name of the paper that comments of the wire types refer to. The document leaves such references out.
    pub source: &'static str,
}

/// A path with the operations of its methods.
pub(crate) struct DescribedPath<'a> {
    /// Path as it is routed, with names of parameters in braces.
    pub path: &'a str,
    pub tag: &'static str,
    /// Prefix under which the path is served too.
    pub prefix: Option<&'static str>,
    pub operations: &'a [(Method, ApiOperation)],
    /// Prefix of the face, and the form of its refusals; none: the path is at the root, and refusals are problems.
    pub mount: Option<(&'static str, RefusalForm)>,
}

/// Form of the refusals of a face.
#[derive(Clone, Copy)]
pub(crate) struct RefusalForm {
    media_type: &'static str,
    schema: Describe,
}

impl RefusalForm {
    /// Problem documents.
    const PROBLEMS: Self =
        Self { media_type: RequestProblem::MEDIA_TYPE, schema: of::<ProblemDocument<'static>>() };

    /// Creates the form of refusals that are JSON of the shape of `T`.
    pub(crate) const fn json<T: JsonSchema>() -> Self {
        Self { media_type: "application/json", schema: of::<T>() }
    }
}

impl DescribedPath<'_> {
    /// Puts the path under the prefix of a face.
    pub(crate) fn mounted(self, prefix: &'static str, refusals: RefusalForm) -> Self {
        Self { mount: Some((prefix, refusals)), ..self }
    }
}

/// Returns the document about `paths` for the place under `prefix`; empty: at the root.
pub(crate) fn document(about: &ApiAbout, paths: &[DescribedPath<'_>], prefix: &str) -> Value {
    let mut schemas = DocumentSchemas::default();
    let mut described = Map::new();
    for path in paths {
        let mut item = Map::new();
        let (mount, refusals) = path.mount.unwrap_or(("", RefusalForm::PROBLEMS));
        for (method, operation) in path.operations {
            let operation = operation.document(path, method, &mut schemas, refusals);
            item.insert(method.as_str().to_ascii_lowercase(), operation);
        }
        if path.prefix.is_none() && !prefix.is_empty() {
            item.insert("servers".to_owned(), json!([{ "url": "/" }]));
        }
        described.insert(format!("{mount}{}", path.path), item.into());
    }
    let server = if prefix.is_empty() { "/" } else { prefix };
    let mut document = json!({
        "openapi": "3.0.3",
        "info": {
            "title": about.title,
            "description": about.description,
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0" },
        },
        "servers": [{ "url": server }],
        "paths": described,
    });
    schemas.finish(&mut document, about.source);
    document
}
