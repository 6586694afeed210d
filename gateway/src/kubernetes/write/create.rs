//! Creation.

use axum::response::Response;
use http::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use super::{
    super::{
        apply::ManagedRows,
        face::{ApiRequest, KubernetesFace},
        failure::{ApiFailure, FailureCause},
        kinds::ObjectSource,
        object::{self, ApiObject},
        read::{ShownForm, one},
        request::body::ApiBody,
        reviews,
    },
    draft::{clean, complete, judge, keep_server_metadata, now, object_of, place},
    options::WriteOptions,
};
use crate::http::warnings::with_warnings;

/// Letters that complete a name.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Creates an object.
///
/// # Errors
/// When the object is wrong or there is one of that name.
pub(crate) async fn create(face: &KubernetesFace, request: &ApiRequest) -> Result<Response, ApiFailure> {
    let form = ShownForm::read(&request.headers, &request.parameters)?;
    let kind = request.path.kind;
    let options = WriteOptions::read(request)?;
    let ApiBody { value, repeated } = ApiBody::read(&request.headers, &request.body)?;
    let mut object = object_of(kind, value)?;
    if kind.source == ObjectSource::Question {
        return Ok(one(
            form,
            kind,
            reviews::answered(kind, object, request.caller.as_ref()),
            StatusCode::CREATED,
        ));
    }
    place(&mut object, request.path.namespace.as_deref())?;
    if !object::metadata_text(&object, "resourceVersion").is_empty() {
        return Err(ApiFailure::bad_request("resourceVersion should not be set on objects to be created"));
    }
    name(&mut object, &options)?;
    let (object, remarks) = drafted(object, &repeated, &options)?;
    let base = face.base(kind).await?;
    let created = face.records.create(kind, &object, options.dry_run, base).await;
    let created = created.map_err(|failure| failure.refused(kind, object::name(&object)))?;
    Ok(with_warnings(one(form, kind, created, StatusCode::CREATED), &remarks))
}

/// Returns a new object as it is to be stored, and the remarks for the client.
fn drafted(
    mut object: ApiObject,
    repeated: &[String],
    options: &WriteOptions,
) -> Result<(ApiObject, Vec<String>), ApiFailure> {
    let mut rows = ManagedRows::read(&object).unwrap_or_default();
    keep_server_metadata(&mut object, None);
    if options.kind.has_status {
        object.remove("status");
    }
    let remarks = clean(&mut object, repeated, options)?;
    complete(options.kind, &mut object);
    judge(options.kind, &object)?;
    rows.note_write(&options.writer(), &ApiObject::new(), &object, options.kind.schema(), &now());
    rows.write(&mut object);
    Ok((object, remarks))
}

/// Completes the name of an object that has only its beginning.
fn name(object: &mut ApiObject, options: &WriteOptions) -> Result<(), ApiFailure> {
    if !object::name(object).is_empty() {
        return Ok(());
    }
    let beginning = object::metadata_text(object, "generateName").to_owned();
    if beginning.is_empty() {
        let message = "Required value: name or generateName is required";
        let cause = FailureCause::new("FieldValueRequired", "metadata.name", message);
        return Err(ApiFailure::invalid(options.kind, "", vec![cause]));
    }
    let random = Uuid::new_v4();
    let letters =
        random.as_bytes()[..5].iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    let name = beginning.chars().chain(letters).collect::<String>();
    object::metadata_mut(object).insert("name".to_owned(), Value::String(name));
    Ok(())
}
