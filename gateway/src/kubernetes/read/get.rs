//! Read of a single object.

use axum::response::Response;
use http::StatusCode;

use super::{
    super::{
        face::{ApiRequest, KubernetesFace},
        failure::ApiFailure,
        kinds::ObjectSource,
        select::FieldSelector,
    },
    render::{ShownForm, one},
};

/// Answers with the newest state of an object.
///
/// # Errors
/// When there is none, or the registry does not answer.
pub(crate) async fn get(
    face: &KubernetesFace,
    request: &ApiRequest,
    name: &str,
) -> Result<Response, ApiFailure> {
    let kind = request.path.kind;
    let form = ShownForm::read(&request.headers, &request.parameters)?;
    let namespace = request.path.namespace.as_deref();
    let found = match kind.source {
        ObjectSource::Events => {
            let fields = FieldSelector::read(&format!("metadata.name={name}"), kind)?;
            face.events.list(namespace, &fields).await?.events.pop()
        }
        ObjectSource::Nowhere | ObjectSource::Question => None,
        ObjectSource::Hosts | ObjectSource::Documents(_) | ObjectSource::Secrets => {
            let base = face.base(kind).await?;
            face.records.get(kind, namespace.unwrap_or_default(), name, base).await?
        }
    };
    let object = found.ok_or_else(|| ApiFailure::not_found(kind, name))?;
    Ok(one(form, kind, object, StatusCode::OK))
}
