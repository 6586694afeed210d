//! Deletion.

use axum::response::Response;
use http::StatusCode;
use proto::host::Propagation;
use serde_json::{Value, json};

use super::{
    super::{
        answer::json_answer,
        face::{ApiRequest, KubernetesFace, ObjectSelection},
        failure::ApiFailure,
        kinds::ResourceKind,
        object::{self, ApiObject},
        read::{ShownForm, one},
        records::{DeletedObject, RecordDeletion, WriteFailure, WritePrecondition},
        request::body::ApiBody,
        store::read_version,
    },
    options::{WriteOptions, unsupported},
};

/// Options of a deletion.
#[derive(Debug, Default)]
struct DeleteOptions {
    uid: String,
    version: u64,
    dry_run: bool,
    propagation: Propagation,
}

impl DeleteOptions {
    fn read(request: &ApiRequest) -> Result<Self, ApiFailure> {
        let WriteOptions { kind, dry_run, .. } = WriteOptions::read(request)?;
        let parameter = request.parameters.text("propagationPolicy");
        if request.body.is_empty() {
            return Ok(Self { dry_run, propagation: propagation(kind, parameter)?, ..Self::default() });
        }
        let options = ApiBody::read(&request.headers, &request.body)?.value;
        // The older form of the policy has two values.
        let older = options["orphanDependents"].as_bool().map(|is_orphan| match is_orphan {
            true => "Orphan",
            false => "Background",
        });
        let policy = options["propagationPolicy"].as_str().or(older).or(parameter);
        let preconditions = &options["preconditions"];
        let text = |member: &str| preconditions[member].as_str().unwrap_or_default().to_owned();
        let is_dry = options["dryRun"].as_array().is_some_and(|dry| dry.iter().any(|word| word == "All"));
        let version = read_version(&text("resourceVersion"))?;
        let propagation = propagation(kind, policy)?;
        Ok(Self { uid: text("uid"), version, dry_run: dry_run || is_dry, propagation })
    }
}

/// Reads the policy about dependents. Without one an earlier deletion of the object decides, as in Kubernetes.
fn propagation(kind: &ResourceKind, policy: Option<&str>) -> Result<Propagation, ApiFailure> {
    match policy {
        None | Some("") => Ok(Propagation::Unspecified),
        Some("Background") => Ok(Propagation::Background),
        Some("Foreground") => Ok(Propagation::Foreground),
        Some("Orphan") => Ok(Propagation::Orphan),
        Some(other) => Err(unsupported(kind, "propagationPolicy", other)),
    }
}

/// Requests the deletion of an object.
///
/// # Errors
/// When there is none, or a precondition does not hold.
pub(crate) async fn delete(
    face: &KubernetesFace,
    request: &ApiRequest,
    name: &str,
) -> Result<Response, ApiFailure> {
    let kind = request.path.kind;
    let form = ShownForm::read(&request.headers, &request.parameters)?;
    let options = DeleteOptions::read(request)?;
    let namespace = request.path.namespace.as_deref().unwrap_or_default();
    let DeletedObject { object, is_gone } = deleted(face, kind, namespace, name, &options).await?;
    if is_gone {
        return Ok(json_answer(StatusCode::OK, success(kind, &object).to_string()));
    }
    Ok(one(form, kind, object, StatusCode::OK))
}

/// Requests the deletion of every selected object, and answers with them.
///
/// # Errors
/// As [`delete`]; the objects before the failure are deleted.
pub(crate) async fn delete_collection(
    face: &KubernetesFace,
    request: &ApiRequest,
) -> Result<Response, ApiFailure> {
    let kind = request.path.kind;
    let selection = ObjectSelection::read(request)?;
    let options = DeleteOptions::read(request)?;
    face.catch_up(kind).await?;
    let snapshot = face.cache(kind).snapshot(request.path.namespace.as_deref(), None)?;
    let mut items = Vec::new();
    for record in snapshot.records.iter().filter(|record| selection.matches(record)) {
        match deleted(face, kind, record.namespace(), record.name(), &options).await {
            Ok(deleted) => items.push(Value::Object(deleted.object)),
            Err(failure) if failure.reason == "NotFound" => {}
            Err(failure) => return Err(failure),
        }
    }
    let list = json!({
        "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
        "metadata": { "resourceVersion": snapshot.version.to_string() }, "items": items,
    });
    Ok(json_answer(StatusCode::OK, list.to_string()))
}

async fn deleted(
    face: &KubernetesFace,
    kind: &'static ResourceKind,
    namespace: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<DeletedObject, ApiFailure> {
    let base = face.base(kind).await?;
    let revision = match options.version {
        0 => 0,
        // A version of an earlier incarnation fits no object.
        version => base.revision(version).unwrap_or(u64::MAX),
    };
    let deletion = RecordDeletion {
        precondition: WritePrecondition { revision, uid: options.uid.clone() },
        propagation: options.propagation,
        validate_only: options.dry_run,
    };
    let deleted = face.records.delete(kind, namespace, name, deletion, base).await;
    deleted.map_err(|failure| match failure {
        WriteFailure::Outdated => {
            ApiFailure::conflict(kind, name, "Precondition failed: the object is another or has changed")
        }
        WriteFailure::Refused(failure) => failure,
    })
}

fn success(kind: &ResourceKind, object: &ApiObject) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {
            "name": object::name(object), "group": kind.group, "kind": kind.plural,
            "uid": object::metadata_text(object, "uid"),
        },
    })
}
