//! What one method of one path takes and answers.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::{Describe, of, schemas::Schemas};
use crate::wire::primitive::{ComponentId, Name, TenantName};

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

/// Header that names the tenant, spelled as people know it.
const TENANT: &str = "Cray-Tenant-Name";

/// What one method of one path takes and answers.
///
/// The arguments of the handler tell most of it; what they cannot tell is added where the handler is routed.
pub(crate) struct Operation {
    summary: &'static str,
    body: Option<Describe>,
    /// What a schema has to say that the type of the body does not.
    body_needs: Option<Value>,
    for_tenants: bool,
    parameters: Vec<Parameter>,
    success: (StatusCode, Answer),
    refusals: BTreeMap<StatusCode, &'static str>,
}

/// What an answer holds.
enum Answer {
    Nothing,
    Text(&'static str),
    Json(Describe),
}

/// A query parameter.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    name: &'static str,
    about: &'static str,
    schema: Describe,
}

/// A query parameter that is written like a `T`.
pub(crate) fn query<T: JsonSchema>(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, schema: of::<T>() }
}

impl Operation {
    /// An operation that answers nothing but that it was done.
    pub(crate) fn new(summary: &'static str) -> Self {
        Self {
            summary,
            body: None,
            body_needs: None,
            for_tenants: false,
            parameters: Vec::new(),
            success: (StatusCode::OK, Answer::Nothing),
            refusals: BTreeMap::new(),
        }
    }

    /// It answers 200 and a `T`.
    pub(crate) fn answers<T: JsonSchema>(self) -> Self {
        self.answers_with::<T>(StatusCode::OK)
    }

    /// It answers `status` and a `T`.
    pub(crate) fn answers_with<T: JsonSchema>(self, status: StatusCode) -> Self {
        Self { success: (status, Answer::Json(of::<T>())), ..self }
    }

    /// It answers 200 and plain text.
    pub(crate) fn answers_text(self) -> Self {
        Self { success: (StatusCode::OK, Answer::Text("text/plain")), ..self }
    }

    /// It answers 200 and something for browsers.
    pub(crate) fn answers_page(self) -> Self {
        Self { success: (StatusCode::OK, Answer::Text("text/html")), ..self }
    }

    /// It answers 204.
    pub(crate) fn answers_nothing(self) -> Self {
        Self { success: (StatusCode::NO_CONTENT, Answer::Nothing), ..self }
    }

    /// It takes these query parameters.
    pub(crate) fn asks(self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        Self { parameters: parameters.into_iter().collect(), ..self }
    }

    /// Of the body, which has the type that the handler takes, it wants `schema` too.
    pub(crate) fn needs(self, schema: Value) -> Self {
        Self { body_needs: Some(schema), ..self }
    }

    /// It may also answer a problem of this status.
    pub(crate) fn refuses(mut self, status: StatusCode, why: &'static str) -> Self {
        self.may_answer(status, why);
        self
    }

    /// What [`Self::refuses`] says, unless something was said about this status already.
    pub(super) fn may_answer(&mut self, status: StatusCode, why: &'static str) {
        self.refusals.entry(status).or_insert(why);
    }

    /// It takes a body that is JSON of the shape of `T`.
    pub(super) fn takes<T: JsonSchema>(&mut self) {
        self.body = Some(of::<T>());
    }

    /// It looks at the header that names the tenant.
    pub(super) fn is_for_tenants(&mut self) {
        self.for_tenants = true;
    }

    /// As it stands in the document.
    pub(super) fn document(
        &self,
        path: &str,
        method: &Method,
        schemas: &mut Schemas,
        problem: &Value,
    ) -> Value {
        let mut operation = json!({
            "operationId": id(path, method),
            "summary": self.summary,
            "tags": [tag(path)],
            "responses": self.responses(schemas, problem),
        });
        let parameters = self.parameters(path, schemas);
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(body) = self.body {
            let mut schema = schemas.sent(body);
            if let Some(needs) = &self.body_needs {
                schema = json!({ "allOf": [schema, needs] });
            }
            operation["requestBody"] = json!({ "required": true, "content": { JSON: { "schema": schema } } });
        }
        operation
    }

    fn parameters(&self, path: &str, schemas: &mut Schemas) -> Vec<Value> {
        let in_path = names(path).map(|name| {
            let schema = schemas.sent(if name == "id" { of::<ComponentId>() } else { of::<Name>() });
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        });
        let mut parameters: Vec<_> = in_path.collect();
        parameters.extend(self.parameters.iter().map(|Parameter { name, about, schema }| {
            json!({ "name": name, "in": "query", "description": about, "schema": schemas.sent(*schema) })
        }));
        if self.for_tenants {
            let schema = schemas.sent(of::<TenantName>());
            let about = "Tenant that asks; absent or empty: the administrator";
            parameters
                .push(json!({ "name": TENANT, "in": "header", "description": about, "schema": schema }));
        }
        parameters
    }

    fn responses(&self, schemas: &mut Schemas, problem: &Value) -> Map<String, Value> {
        let (status, answer) = &self.success;
        let mut success = json!({ "description": "Done" });
        match answer {
            Answer::Nothing => {}
            Answer::Text(kind) => success["content"] = json!({ *kind: { "schema": { "type": "string" } } }),
            Answer::Json(schema) => {
                success["content"] = json!({ JSON: { "schema": schemas.answered(*schema) } });
            }
        }
        let refusals = self.refusals.iter().map(|(status, why)| {
            let content = json!({ PROBLEM: { "schema": problem } });
            (status.as_str().to_owned(), json!({ "description": why, "content": content }))
        });
        refusals.chain([(status.as_str().to_owned(), success)]).collect()
    }
}

/// Names of the parameters in a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// A name for generated clients, such as `get_v2_components_id`.
fn id(path: &str, method: &Method) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(method.as_str().to_ascii_lowercase(), |id, word| format!("{id}_{word}"))
}

/// What the operations of a path are about.
fn tag(path: &str) -> &str {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match (parts.next(), parts.next()) {
        (Some("v2"), Some("version" | "healthz") | None) | (None, _) => "service",
        (Some("v2"), Some(noun)) if noun.starts_with("sessiontemplate") => "session templates",
        (Some("v2"), Some("applystaged")) => "components",
        (Some("v2"), Some(noun)) => noun,
        _ => "around the contract",
    }
}
