//! The binary form of an OpenAPI document of version 2: the messages of package `openapi.v2` of gnostic, as far as our
//! documents use them.

use prost::Message;
use serde_json::{Map, Value};

#[derive(Clone, PartialEq, Message)]
struct SwaggerDocument {
    #[prost(string, tag = "1")]
    swagger: String,
    #[prost(message, optional, tag = "2")]
    info: Option<DocumentInfo>,
    #[prost(message, optional, tag = "8")]
    paths: Option<PathList>,
    #[prost(message, optional, tag = "9")]
    definitions: Option<NamedSchemas>,
}

#[derive(Clone, PartialEq, Message)]
struct DocumentInfo {
    #[prost(string, tag = "1")]
    title: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct PathList {
    #[prost(message, repeated, tag = "2")]
    path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedPathItem {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
struct PathItem {
    #[prost(message, optional, tag = "2")]
    get: Option<PathOperation>,
    #[prost(message, optional, tag = "3")]
    put: Option<PathOperation>,
    #[prost(message, optional, tag = "4")]
    post: Option<PathOperation>,
    #[prost(message, optional, tag = "5")]
    delete: Option<PathOperation>,
    #[prost(message, optional, tag = "8")]
    patch: Option<PathOperation>,
    #[prost(message, repeated, tag = "9")]
    parameters: Vec<ParametersItem>,
}

#[derive(Clone, PartialEq, Message)]
struct PathOperation {
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, tag = "5")]
    operation_id: String,
    #[prost(string, repeated, tag = "7")]
    consumes: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    parameters: Vec<ParametersItem>,
    #[prost(message, optional, tag = "9")]
    responses: Option<ResponseList>,
    #[prost(message, repeated, tag = "13")]
    extensions: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    parameter: Option<AnyParameter>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyParameter {
    #[prost(message, optional, tag = "1")]
    body: Option<BodyParameter>,
    #[prost(message, optional, tag = "2")]
    other: Option<OtherParameter>,
}

#[derive(Clone, PartialEq, Message)]
struct BodyParameter {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    place: String,
    #[prost(bool, tag = "4")]
    required: bool,
    #[prost(message, optional, tag = "5")]
    schema: Option<SchemaMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct OtherParameter {
    #[prost(message, optional, tag = "3")]
    query: Option<QueryParameter>,
    #[prost(message, optional, tag = "4")]
    path: Option<PathParameter>,
}

#[derive(Clone, PartialEq, Message)]
struct QueryParameter {
    #[prost(string, tag = "2")]
    place: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "6")]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct PathParameter {
    #[prost(bool, tag = "1")]
    required: bool,
    #[prost(string, tag = "2")]
    place: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "5")]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct ResponseList {
    #[prost(message, repeated, tag = "1")]
    codes: Vec<NamedResponse>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedResponse {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<ResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ResponseValue {
    #[prost(message, optional, tag = "1")]
    response: Option<OneResponse>,
}

#[derive(Clone, PartialEq, Message)]
struct OneResponse {
    #[prost(string, tag = "1")]
    description: String,
    #[prost(message, optional, tag = "2")]
    schema: Option<SchemaItem>,
}

#[derive(Clone, PartialEq, Message)]
struct SchemaItem {
    #[prost(message, optional, tag = "1")]
    schema: Option<SchemaMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedSchemas {
    #[prost(message, repeated, tag = "1")]
    schemas: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedSchema {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<SchemaMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SchemaMessage {
    #[prost(string, tag = "1")]
    reference: String,
    #[prost(string, tag = "2")]
    format: String,
    #[prost(string, tag = "4")]
    description: String,
    #[prost(message, optional, tag = "5")]
    default: Option<AnyValue>,
    #[prost(double, tag = "7")]
    maximum: f64,
    #[prost(double, tag = "9")]
    minimum: f64,
    #[prost(int64, tag = "11")]
    max_length: i64,
    #[prost(int64, tag = "12")]
    min_length: i64,
    #[prost(string, tag = "13")]
    pattern: String,
    #[prost(int64, tag = "14")]
    max_items: i64,
    #[prost(int64, tag = "15")]
    min_items: i64,
    #[prost(string, repeated, tag = "19")]
    required: Vec<String>,
    #[prost(message, repeated, tag = "20")]
    allowed: Vec<AnyValue>,
    #[prost(message, optional, boxed, tag = "21")]
    additional_properties: Option<Box<AdditionalProperties>>,
    #[prost(message, optional, tag = "22")]
    kind: Option<TypeItem>,
    #[prost(message, optional, tag = "23")]
    items: Option<ItemsItem>,
    #[prost(message, optional, tag = "25")]
    properties: Option<NamedSchemas>,
    #[prost(message, repeated, tag = "31")]
    extensions: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct AdditionalProperties {
    #[prost(message, optional, boxed, tag = "1")]
    schema: Option<Box<SchemaMessage>>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ItemsItem {
    #[prost(message, repeated, tag = "1")]
    schema: Vec<SchemaMessage>,
}

/// Value as YAML, of which JSON is a part.
#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, tag = "2")]
    yaml: String,
}

#[derive(Clone, PartialEq, Message)]
struct NamedAny {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

/// Encodes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let info =
        DocumentInfo { title: text(&document["info"], "title"), version: text(&document["info"], "version") };
    let paths =
        members(&document["paths"]).map(|(name, item)| NamedPathItem { name, value: Some(path_item(item)) });
    let encoded = SwaggerDocument {
        swagger: text(document, "swagger"),
        info: Some(info),
        paths: Some(PathList { path: paths.collect() }),
        definitions: Some(named_schemas(&document["definitions"])),
    };
    encoded.encode_to_vec()
}

fn members(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter).map(|(name, value)| (name.clone(), value))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    items(value).filter_map(Value::as_str).map(str::to_owned).collect()
}

fn path_item(item: &Value) -> PathItem {
    let operation = |method: &str| item.get(method).map(operation);
    PathItem {
        get: operation("get"),
        put: operation("put"),
        post: operation("post"),
        delete: operation("delete"),
        patch: operation("patch"),
        parameters: items(&item["parameters"]).map(parameter).collect(),
    }
}

fn operation(operation: &Value) -> PathOperation {
    PathOperation {
        description: text(operation, "description"),
        operation_id: text(operation, "operationId"),
        consumes: texts(&operation["consumes"]),
        parameters: items(&operation["parameters"]).map(parameter).collect(),
        responses: Some(ResponseList { codes: members(&operation["responses"]).map(response).collect() }),
        extensions: extensions(operation),
    }
}

fn parameter(parameter: &Value) -> ParametersItem {
    let [name, place, kind, description] =
        ["name", "in", "type", "description"].map(|member| text(parameter, member));
    let required = parameter["required"].as_bool().unwrap_or_default();
    let other = |query, path| AnyParameter { body: None, other: Some(OtherParameter { query, path }) };
    let parameter = match &*place {
        "body" => {
            let schema = Some(schema(&parameter["schema"]));
            AnyParameter { body: Some(BodyParameter { name, place, required, schema }), other: None }
        }
        "path" => other(None, Some(PathParameter { required, place, description, name, kind })),
        _ => other(Some(QueryParameter { place, description, name, kind }), None),
    };
    ParametersItem { parameter: Some(parameter) }
}

fn response((name, response): (String, &Value)) -> NamedResponse {
    let schema = SchemaItem { schema: Some(schema(&response["schema"])) };
    let response = OneResponse { description: text(response, "description"), schema: Some(schema) };
    NamedResponse { name, value: Some(ResponseValue { response: Some(response) }) }
}

fn named_schemas(schemas: &Value) -> NamedSchemas {
    let schemas = members(schemas).map(|(name, value)| NamedSchema { name, value: Some(schema(value)) });
    NamedSchemas { schemas: schemas.collect() }
}

fn schema(value: &Value) -> SchemaMessage {
    let number = |member: &str| value[member].as_f64().unwrap_or_default();
    let count = |member: &str| value[member].as_i64().unwrap_or_default();
    let kind = value
        .get("type")
        .map(|kind| TypeItem { value: kind.as_str().map(str::to_owned).into_iter().collect() });
    let below = value.get("additionalProperties").filter(|below| below.is_object());
    SchemaMessage {
        reference: text(value, "$ref"),
        format: text(value, "format"),
        description: text(value, "description"),
        default: value.get("default").map(any),
        maximum: number("maximum"),
        minimum: number("minimum"),
        max_length: count("maxLength"),
        min_length: count("minLength"),
        pattern: text(value, "pattern"),
        max_items: count("maxItems"),
        min_items: count("minItems"),
        required: texts(&value["required"]),
        allowed: items(&value["enum"]).map(any).collect(),
        additional_properties: below
            .map(|below| Box::new(AdditionalProperties { schema: Some(Box::new(schema(below))) })),
        kind,
        items: value.get("items").map(|item| ItemsItem { schema: vec![schema(item)] }),
        properties: value.get("properties").map(named_schemas),
        extensions: extensions(value),
    }
}

fn extensions(value: &Value) -> Vec<NamedAny> {
    let extensions = members(value).filter(|(name, _)| name.starts_with("x-"));
    extensions.map(|(name, value)| NamedAny { name, value: Some(any(value)) }).collect()
}

fn any(value: &Value) -> AnyValue {
    AnyValue { yaml: format!("{value}\n") }
}
