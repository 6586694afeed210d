//! The binary form of bodies: four bytes, an envelope with the kind, and the message of the object. Empty texts arrive
//! explicitly and mean that a member is absent. Custom resources have no such form.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost::Message;
use serde_json::{Map, Value, json};

use super::super::failure::ApiFailure;

const MAGIC: &[u8] = b"k8s\0";

#[derive(Clone, PartialEq, Message)]
struct UnknownObject {
    #[prost(message, optional, tag = "1")]
    kind: Option<TypeMeta>,
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct MetadataMessage {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    generate_name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
    #[prost(string, repeated, tag = "14")]
    finalizers: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct SecretObject {
    #[prost(message, optional, tag = "1")]
    metadata: Option<MetadataMessage>,
    #[prost(btree_map = "string, bytes", tag = "2")]
    data: BTreeMap<String, Vec<u8>>,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(btree_map = "string, string", tag = "4")]
    string_data: BTreeMap<String, String>,
    #[prost(bool, optional, tag = "5")]
    immutable: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct PlainObject {
    #[prost(message, optional, tag = "1")]
    metadata: Option<MetadataMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct AccessReview {
    #[prost(message, optional, tag = "1")]
    metadata: Option<MetadataMessage>,
    #[prost(message, optional, tag = "2")]
    spec: Option<AccessSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct AccessSpec {
    #[prost(message, optional, tag = "1")]
    resource: Option<ResourceAttributes>,
    #[prost(message, optional, tag = "2")]
    path: Option<PathAttributes>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceAttributes {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(string, tag = "2")]
    verb: String,
    #[prost(string, tag = "3")]
    group: String,
    #[prost(string, tag = "4")]
    version: String,
    #[prost(string, tag = "5")]
    resource: String,
    #[prost(string, tag = "6")]
    subresource: String,
    #[prost(string, tag = "7")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct PathAttributes {
    #[prost(string, tag = "1")]
    path: String,
    #[prost(string, tag = "2")]
    verb: String,
}

#[derive(Clone, PartialEq, Message)]
struct RulesReview {
    #[prost(message, optional, tag = "1")]
    metadata: Option<MetadataMessage>,
    #[prost(message, optional, tag = "2")]
    spec: Option<RulesSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct RulesSpec {
    #[prost(string, tag = "1")]
    namespace: String,
}

/// Options of a deletion, which typed clients send in this form.
#[derive(Clone, PartialEq, Message)]
struct DeletionMessage {
    #[prost(int64, optional, tag = "1")]
    grace_period_seconds: Option<i64>,
    #[prost(message, optional, tag = "2")]
    preconditions: Option<DeletePreconditions>,
    #[prost(string, optional, tag = "4")]
    propagation_policy: Option<String>,
    #[prost(string, repeated, tag = "5")]
    dry_run: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct DeletePreconditions {
    #[prost(string, optional, tag = "1")]
    uid: Option<String>,
    #[prost(string, optional, tag = "2")]
    resource_version: Option<String>,
}

/// Reads a body in the binary form as the JSON of the same object.
///
/// # Errors
/// When the body is cut or of a kind without that form.
pub(crate) fn read(body: &[u8]) -> Result<Value, ApiFailure> {
    let envelope = body.strip_prefix(MAGIC).ok_or_else(|| unreadable("the first bytes are wrong"))?;
    let UnknownObject { kind, raw } = message(envelope)?;
    let TypeMeta { api_version, kind } = kind.unwrap_or_default();
    let mut object = match &*kind {
        "Secret" => secret(message(&raw)?),
        "Namespace" | "SelfSubjectReview" => with_metadata(message::<PlainObject>(&raw)?.metadata),
        "SelfSubjectAccessReview" => access_review(message(&raw)?),
        "SelfSubjectRulesReview" => rules_review(message(&raw)?),
        "DeleteOptions" => delete_options(message(&raw)?),
        other => {
            let given = format!("application/vnd.kubernetes.protobuf of {other}");
            return Err(ApiFailure::unsupported_media_type(&given, "application/json"));
        }
    };
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, ApiFailure> {
    M::decode(bytes).map_err(|error| unreadable(&error.to_string()))
}

fn unreadable(why: &str) -> ApiFailure {
    ApiFailure::bad_request(format!("the object provided is unrecognized: {why}"))
}

fn with_metadata(metadata: Option<MetadataMessage>) -> Map<String, Value> {
    let metadata = metadata.unwrap_or_default();
    let texts = [
        ("name", metadata.name),
        ("generateName", metadata.generate_name),
        ("namespace", metadata.namespace),
        ("uid", metadata.uid),
        ("resourceVersion", metadata.resource_version),
    ];
    let mut members = texts_of(texts);
    if !metadata.labels.is_empty() {
        members.insert("labels".to_owned(), json!(metadata.labels));
    }
    if !metadata.annotations.is_empty() {
        members.insert("annotations".to_owned(), json!(metadata.annotations));
    }
    if !metadata.finalizers.is_empty() {
        members.insert("finalizers".to_owned(), json!(metadata.finalizers));
    }
    Map::from_iter([("metadata".to_owned(), Value::Object(members))])
}

fn texts_of<const N: usize>(texts: [(&str, String); N]) -> Map<String, Value> {
    let given = texts.into_iter().filter(|(_, text)| !text.is_empty());
    given.map(|(name, text)| (name.to_owned(), Value::String(text))).collect()
}

fn secret(secret: SecretObject) -> Map<String, Value> {
    let mut object = with_metadata(secret.metadata);
    if !secret.data.is_empty() {
        let data = secret.data.into_iter().map(|(name, value)| (name, STANDARD.encode(value).into()));
        object.insert("data".to_owned(), Value::Object(data.collect()));
    }
    if !secret.string_data.is_empty() {
        object.insert("stringData".to_owned(), json!(secret.string_data));
    }
    if !secret.kind.is_empty() {
        object.insert("type".to_owned(), secret.kind.into());
    }
    if let Some(immutable) = secret.immutable {
        object.insert("immutable".to_owned(), immutable.into());
    }
    object
}

fn access_review(review: AccessReview) -> Map<String, Value> {
    let mut object = with_metadata(review.metadata);
    let AccessSpec { resource, path } = review.spec.unwrap_or_default();
    let mut spec = Map::new();
    if let Some(resource) = resource {
        let attributes = texts_of([
            ("namespace", resource.namespace),
            ("verb", resource.verb),
            ("group", resource.group),
            ("version", resource.version),
            ("resource", resource.resource),
            ("subresource", resource.subresource),
            ("name", resource.name),
        ]);
        spec.insert("resourceAttributes".to_owned(), Value::Object(attributes));
    }
    if let Some(path) = path {
        let attributes = texts_of([("path", path.path), ("verb", path.verb)]);
        spec.insert("nonResourceAttributes".to_owned(), Value::Object(attributes));
    }
    object.insert("spec".to_owned(), Value::Object(spec));
    object
}

fn rules_review(review: RulesReview) -> Map<String, Value> {
    let mut object = with_metadata(review.metadata);
    let spec = texts_of([("namespace", review.spec.unwrap_or_default().namespace)]);
    object.insert("spec".to_owned(), Value::Object(spec));
    object
}

fn delete_options(options: DeletionMessage) -> Map<String, Value> {
    let mut object = Map::new();
    if let Some(seconds) = options.grace_period_seconds {
        object.insert("gracePeriodSeconds".to_owned(), seconds.into());
    }
    if let Some(DeletePreconditions { uid, resource_version }) = options.preconditions {
        let preconditions = json!({ "uid": uid, "resourceVersion": resource_version });
        object.insert("preconditions".to_owned(), preconditions);
    }
    if let Some(policy) = options.propagation_policy {
        object.insert("propagationPolicy".to_owned(), policy.into());
    }
    object.insert("dryRun".to_owned(), json!(options.dry_run));
    object
}
