//! What the gateway says about itself: an OpenAPI document, made from the table of routes and the types of the wire.
//!
//! - `operation`: what one method of one path takes and answers
//! - `input`: what the arguments of a handler say about that, so that nobody has to repeat it
//! - `schemas`: the types, and which of them look different in requests and in answers

use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::problem;

mod input;
mod operation;
mod schemas;

pub(crate) use input::{Input, Inputs};
pub(crate) use operation::{Operation, Parameter, query};

use schemas::Schemas;

/// Generates the schema of a type.
type Describe = fn(&mut SchemaGenerator) -> Schema;

/// The schema of `T`, to be generated later.
fn of<T: JsonSchema>() -> Describe {
    SchemaGenerator::subschema_for::<T>
}

/// A path with what its methods take and answer.
pub(crate) struct Described<'a> {
    /// Path as it is routed, with names of parameters in braces.
    pub path: &'a str,
    /// Method and what it does.
    pub operations: &'a [(Method, Operation)],
    /// Whether it belongs to the contract, which is also found under `prefix`.
    pub contract: bool,
}

/// The document about `paths` for somebody who found it under `prefix`; empty: at the root.
pub(crate) fn document<'a>(paths: impl IntoIterator<Item = Described<'a>>, prefix: &str) -> Value {
    let mut schemas = Schemas::default();
    let problem = schemas.answered(of::<problem::Document<'static>>());
    let mut described = Map::new();
    for path in paths {
        let mut item = Map::new();
        for (method, operation) in path.operations {
            let operation = operation.document(path.path, method, &mut schemas, &problem);
            item.insert(method.as_str().to_ascii_lowercase(), operation);
        }
        if !path.contract && !prefix.is_empty() {
            item.insert("servers".to_owned(), json!([{ "url": "/" }]));
        }
        described.insert(path.path.to_owned(), item.into());
    }
    let server = if prefix.is_empty() { "/" } else { prefix };
    let mut document = json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Reveille",
            "description": ABOUT,
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0" },
        },
        "servers": [{ "url": server }],
        "paths": described,
    });
    schemas.finish(&mut document);
    document
}

const ABOUT: &str = "Boots, reboots, shuts down and configures the nodes of a machine. The paths under `/v2` are those \
                     of version 2 of the Boot Orchestration Service. They are served at the root and under `/apis/bos`.\n\n\
                     Every refusal is a problem document. Unknown query parameters are ignored, and of a repeated one \
                     the last counts; unknown members of a body are refused, and so are members that are only read. \
                     HEAD works wherever GET does, and OPTIONS tells the methods of a path. Lengths are in characters, \
                     and no text may have a NUL.";

#[cfg(test)]
mod tests;
