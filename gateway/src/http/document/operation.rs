//! Operations: requests, answers and refusals of one method of one path.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::{
    DescribedPath, RefusalForm,
    schemas::{Describe, DocumentSchemas, of},
};

const JSON: &str = "application/json";

/// Refusals of heads that are too long.
const UNREAD: [StatusCode; 2] = [StatusCode::URI_TOO_LONG, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE];

/// A method of a path, with its request, its answer, and its refusals.
///
/// The arguments of the handler describe most of it; the rest is added where the handler is routed.
pub(crate) struct ApiOperation {
    summary: &'static str,
    body: Option<Describe>,
    /// Media type of the body.
    body_type: &'static str,
    /// Schema beside that of the type of the body.
    body_needs: Option<Value>,
    /// The name in the path, if it has one.
    path_name: Option<Describe>,
    parameters: Vec<ApiParameter>,
    success: (StatusCode, AnswerBody),
    /// Media type of text that a client may prefer.
    preferred_text: Option<&'static str>,
    /// Further successes: statuses with the meaning, and whether they have the body of the first.
    further: Vec<(StatusCode, &'static str, bool)>,
    refusals: BTreeMap<StatusCode, &'static str>,
}

/// The body of an answer.
enum AnswerBody {
    Nothing,
    Text(&'static str),
    Json(Describe),
}

/// A parameter in the query or a header.
#[derive(Clone, Copy)]
pub(crate) struct ApiParameter {
    name: &'static str,
    place: &'static str,
    about: &'static str,
    schema: Describe,
}

/// Returns a query parameter with the form of a `T`.
pub(crate) fn query<T: JsonSchema>(name: &'static str, about: &'static str) -> ApiParameter {
    ApiParameter { name, place: "query", about, schema: of::<T>() }
}

/// Returns a header with the form of a `T`.
pub(crate) fn header<T: JsonSchema>(name: &'static str, about: &'static str) -> ApiParameter {
    ApiParameter { name, place: "header", about, schema: of::<T>() }
}

impl ApiOperation {
    /// Creates an operation that answers 200 without a body.
    pub(crate) fn new(summary: &'static str) -> Self {
        Self {
            summary,
            body: None,
            body_type: JSON,
            body_needs: None,
            path_name: None,
            parameters: Vec::new(),
            success: (StatusCode::OK, AnswerBody::Nothing),
            preferred_text: None,
            further: Vec::new(),
            refusals: BTreeMap::new(),
        }
    }

    /// Answers 200 and a `T`.
    pub(crate) fn answers<T: JsonSchema>(self) -> Self {
        self.answers_with::<T>(StatusCode::OK)
    }

    /// Answers `status` and a `T`.
    pub(crate) fn answers_with<T: JsonSchema>(self, status: StatusCode) -> Self {
        Self { success: (status, AnswerBody::Json(of::<T>())), ..self }
    }

    /// Answers 200 and plain text.
    pub(crate) fn answers_text(self) -> Self {
        self.answers_text_of("text/plain")
    }

    /// Answers 200 and a page for browsers.
    pub(crate) fn answers_page(self) -> Self {
        self.answers_text_of("text/html")
    }

    /// Answers 200 and text of a media type.
    pub(crate) fn answers_text_of(self, media_type: &'static str) -> Self {
        Self { success: (StatusCode::OK, AnswerBody::Text(media_type)), ..self }
    }

    /// Answers text of a media type to clients that accept it.
    pub(crate) fn or_answers_text(self, media_type: &'static str) -> Self {
        Self { preferred_text: Some(media_type), ..self }
    }

    /// Answers 204.
    pub(crate) fn answers_nothing(self) -> Self {
        Self { success: (StatusCode::NO_CONTENT, AnswerBody::Nothing), ..self }
    }

    /// May answer 201 with the body of 200.
    pub(crate) fn may_create(mut self) -> Self {
        self.further.push((StatusCode::CREATED, "Created", true));
        self
    }

    /// May answer 204.
    pub(crate) fn may_have_nothing(mut self, why: &'static str) -> Self {
        self.further.push((StatusCode::NO_CONTENT, why, false));
        self
    }

    /// Takes a JSON patch, by the media type of such.
    pub(crate) fn takes_json_patch(self) -> Self {
        Self { body_type: "application/json-patch+json", ..self }
    }

    /// Takes query parameters.
    pub(crate) fn asks(self, parameters: impl IntoIterator<Item = ApiParameter>) -> Self {
        Self { parameters: parameters.into_iter().collect(), ..self }
    }

    /// Demands `schema` of the body, beside the type that the handler takes.
    pub(crate) fn needs(self, schema: Value) -> Self {
        Self { body_needs: Some(schema), ..self }
    }

    /// Adds a refusal with a problem of this status.
    pub(crate) fn refuses(mut self, status: StatusCode, why: &'static str) -> Self {
        self.may_answer(status, why);
        self
    }

    /// Adds a refusal as [`Self::refuses`] does, unless this status has a reason already.
    pub(crate) fn may_answer(&mut self, status: StatusCode, why: &'static str) {
        self.refusals.entry(status).or_insert(why);
    }

    /// Takes a body that is JSON of the shape of `T`.
    pub(super) fn takes<T: JsonSchema>(&mut self) {
        self.body = Some(of::<T>());
    }

    /// Names a `T` in the path.
    pub(super) fn names<T: JsonSchema>(&mut self) {
        self.path_name = Some(of::<T>());
    }

    /// Reads one more parameter.
    pub(crate) fn adds(&mut self, parameter: ApiParameter) {
        self.parameters.push(parameter);
    }

    pub(super) fn document(
        &self,
        path: &DescribedPath<'_>,
        method: &Method,
        schemas: &mut DocumentSchemas,
        refusals: RefusalForm,
    ) -> Value {
        let mut operation = json!({
            "operationId": id(path, method),
            "summary": self.summary,
            "tags": [path.tag],
            "responses": self.responses(schemas, refusals),
        });
        let parameters = self.parameters(path.path, schemas);
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(body) = self.body {
            let mut schema = schemas.sent(body);
            if let Some(needs) = &self.body_needs {
                schema = json!({ "allOf": [schema, needs] });
            }
            operation["requestBody"] =
                json!({ "required": true, "content": { self.body_type: { "schema": schema } } });
        }
        operation
    }

    fn parameters(&self, path: &str, schemas: &mut DocumentSchemas) -> Vec<Value> {
        let in_path = names(path).map(|name| {
            let schema = schemas.sent(self.path_name.unwrap_or(of::<String>()));
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        });
        let mut parameters: Vec<_> = in_path.collect();
        parameters.extend(self.parameters.iter().map(|ApiParameter { name, place, about, schema }| {
            json!({ "name": name, "in": place, "description": about, "schema": schemas.sent(*schema) })
        }));
        parameters
    }

    fn responses(&self, schemas: &mut DocumentSchemas, refusals: RefusalForm) -> Map<String, Value> {
        let (status, answer) = &self.success;
        let mut success = json!({ "description": "Done" });
        match answer {
            AnswerBody::Nothing => {}
            AnswerBody::Text(kind) => {
                success["content"] = json!({ *kind: { "schema": { "type": "string" } } })
            }
            AnswerBody::Json(schema) => {
                success["content"] = json!({ JSON: { "schema": schemas.answered(*schema) } });
            }
        }
        if let Some(media_type) = self.preferred_text {
            success["content"][media_type] = json!({ "schema": { "type": "string" } });
        }
        let refusal = schemas.answered(refusals.schema);
        let problem = schemas.answered(RefusalForm::PROBLEMS.schema);
        let refused = self.refusals.iter().map(|(status, why)| {
            // A head that cannot be read does not tell which face it is for.
            let content = match UNREAD.contains(status) {
                true => json!({ RefusalForm::PROBLEMS.media_type: { "schema": problem } }),
                false => json!({ refusals.media_type: { "schema": refusal } }),
            };
            (status.as_str().to_owned(), json!({ "description": why, "content": content }))
        });
        let further = self.further.iter().map(|(status, why, has_body)| {
            let mut answer = json!({ "description": why });
            if *has_body {
                answer["content"] = success["content"].clone();
            }
            (status.as_str().to_owned(), answer)
        });
        let further: Vec<_> = further.collect();
        refused.chain(further).chain([(status.as_str().to_owned(), success)]).collect()
    }
}

/// Returns the names of the parameters in a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// Returns a name for generated clients, such as `get_v2_components_id`.
fn id(path: &DescribedPath<'_>, method: &Method) -> String {
    let mount = path.mount.map_or("", |(prefix, _)| prefix);
    let words = mount
        .split('/')
        .chain(path.path.split(|c: char| !c.is_ascii_alphanumeric()))
        .filter(|word| !word.is_empty());
    words.fold(method.as_str().to_ascii_lowercase(), |id, word| format!("{id}_{word}"))
}
