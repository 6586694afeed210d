//! Lists.

use axum::response::Response;
use http::StatusCode;

use super::{
    super::{
        answer::json_answer,
        face::{ApiRequest, KubernetesFace, ObjectSelection},
        failure::ApiFailure,
        kinds::ObjectSource,
        store::{CacheSnapshot, read_version},
    },
    pages::PageToken,
    render::{ListFacts, ShownForm},
};

/// Answers with the selected objects of a collection.
///
/// # Errors
/// When the request is wrong, its version is too old or too new, or the registry does not answer.
pub(crate) async fn list(face: &KubernetesFace, request: &ApiRequest) -> Result<Response, ApiFailure> {
    let kind = request.path.kind;
    let form = ShownForm::read(&request.headers, &request.parameters)?;
    let selection = ObjectSelection::read(request)?;
    let namespace = request.path.namespace.as_deref();
    let body = match kind.source {
        ObjectSource::Events => {
            let list = face.events.list(namespace, &selection.fields).await?;
            let facts = ListFacts { version: list.version, ..ListFacts::default() };
            form.list_of(kind, list.events, &facts)
        }
        ObjectSource::Nowhere | ObjectSource::Question => {
            form.list_of(kind, Vec::new(), &ListFacts { version: 1, ..ListFacts::default() })
        }
        ObjectSource::Hosts | ObjectSource::Documents(_) | ObjectSource::Secrets => {
            let (snapshot, after) = snapshot(face, request).await?;
            let version = snapshot.version;
            let selected = snapshot.records.into_iter();
            let selected = selected.filter(|record| *record.key > *after && selection.matches(record));
            let mut page: Vec<_> = selected.collect();
            let facts = cut(&mut page, request, &selection, version)?;
            form.list(kind, page, &facts)
        }
    };
    Ok(json_answer(StatusCode::OK, body))
}

/// Returns the objects that a list is made of, and the key after which its page begins.
async fn snapshot(
    face: &KubernetesFace,
    request: &ApiRequest,
) -> Result<(CacheSnapshot, String), ApiFailure> {
    let kind = request.path.kind;
    let namespace = request.path.namespace.as_deref();
    let cache = face.cache(kind);
    if let Some(token) = request.parameters.text("continue") {
        let token = PageToken::read(token)?;
        cache.reach(token.version).await?;
        return Ok((cache.snapshot(namespace, Some(token.version))?, token.after));
    }
    let version = request.parameters.text("resourceVersion").unwrap_or_default();
    let is_exact = request.parameters.text("resourceVersionMatch") == Some("Exact");
    let at = match read_version(version)? {
        // Anything will do.
        0 if !version.is_empty() => {
            cache.reach(1).await?;
            None
        }
        0 => {
            face.catch_up(kind).await?;
            None
        }
        version => {
            cache.reach(version).await?;
            is_exact.then_some(version)
        }
    };
    Ok((cache.snapshot(namespace, at)?, String::new()))
}

/// Cuts a list to the wanted length.
fn cut(
    page: &mut Vec<std::sync::Arc<super::super::store::CachedRecord>>,
    request: &ApiRequest,
    selection: &ObjectSelection,
    version: u64,
) -> Result<ListFacts, ApiFailure> {
    let limit = request.parameters.number("limit")?.filter(|limit| *limit > 0);
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let remaining = page.len().saturating_sub(limit);
    page.truncate(limit);
    let next = match (remaining, page.last()) {
        (0, _) | (_, None) => String::new(),
        (_, Some(last)) => PageToken { version, after: last.key.to_string() }.shown(),
    };
    // The number of further objects is only told where nothing is selected, as clients expect.
    let remaining = Some(remaining).filter(|remaining| *remaining > 0 && selection.is_everything());
    Ok(ListFacts { version, next, remaining })
}
