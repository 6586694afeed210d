//! The choice of the handler of a request.

use axum::{
    body::to_bytes,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{Method, StatusCode, Uri};

use super::{
    answer::{json_answer, typed_answer},
    discovery,
    face::{ApiRequest, KubernetesFace},
    failure::ApiFailure,
    kinds::ObjectSource,
    openapi, read,
    request::{
        negotiation::{OpenApiForm, discovery_form, open_api_form},
        parameters::ApiParameters,
        path::{ApiPath, ObjectPath},
    },
    write,
};

/// Returns whether a request asks for a watch.
pub(super) fn is_watch(method: &Method, uri: &Uri) -> bool {
    *method == Method::GET && ApiParameters::read(uri.query()).is_set("watch")
}

/// Answers a request.
pub(super) async fn handle(State(face): State<KubernetesFace>, request: Request) -> Response {
    handled(&face, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn handled(face: &KubernetesFace, request: Request) -> Result<Response, ApiFailure> {
    let (head, body) = request.into_parts();
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let path = ApiPath::read(head.uri.path());
    let path = match path {
        ApiPath::Objects(path) => path,
        _ if !is_read => return Err(ApiFailure::no_such_path()),
        other => return described(other, &head.headers),
    };
    let body = to_bytes(body, usize::MAX).await;
    let body = body.map_err(|_| ApiFailure::bad_request("the request body could not be read"))?;
    let parameters = ApiParameters::read(head.uri.query());
    let caller = head.extensions.get().cloned();
    let request = ApiRequest { path, parameters, headers: head.headers, body, caller };
    objects(face, &head.method, &request).await
}

/// Answers a request that is about no objects.
fn described(path: ApiPath, headers: &http::HeaderMap) -> Result<Response, ApiFailure> {
    let found = match path {
        ApiPath::Version => Some(discovery::version()),
        ApiPath::Health => return Ok(super::healthy()),
        ApiPath::CoreVersions => {
            let form = discovery_form(headers)?;
            let body = discovery::core(form).to_string();
            return Ok(typed_answer(StatusCode::OK, discovery::media_type(form), body));
        }
        ApiPath::Groups => {
            let form = discovery_form(headers)?;
            let body = discovery::groups(form).to_string();
            return Ok(typed_answer(StatusCode::OK, discovery::media_type(form), body));
        }
        ApiPath::Group(group) => discovery::group(&group),
        ApiPath::Resources { group, version } => discovery::resources(&group, &version),
        ApiPath::OpenApiV2 => return open_api_2(headers),
        ApiPath::OpenApiV3 => Some(openapi::list()),
        ApiPath::OpenApiV3Of(path) => {
            let document = openapi::document(&path).ok_or_else(ApiFailure::no_such_path)?;
            return Ok(json_answer(StatusCode::OK, document));
        }
        ApiPath::Objects(_) | ApiPath::Unknown => None,
    };
    let found = found.ok_or_else(ApiFailure::no_such_path)?;
    Ok(json_answer(StatusCode::OK, found.to_string()))
}

fn open_api_2(headers: &http::HeaderMap) -> Result<Response, ApiFailure> {
    let (json, binary) = &*openapi::VERSION_2;
    let form = open_api_form(headers)?;
    Ok(match form {
        OpenApiForm::Json => json_answer(StatusCode::OK, json.as_str()),
        OpenApiForm::Protobuf => {
            let media_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
            typed_answer(StatusCode::OK, media_type, &binary[..])
        }
    })
}

/// Answers a request about objects.
async fn objects(
    face: &KubernetesFace,
    method: &Method,
    request: &ApiRequest,
) -> Result<Response, ApiFailure> {
    let ObjectPath { kind, name, subresource, .. } = &request.path;
    let verb = verb(method, name.is_some(), request.parameters.is_set("watch"));
    let is_known = match subresource.as_deref() {
        None => kind.allows(verb),
        Some("status") if kind.has_status => matches!(verb, "get" | "update" | "patch"),
        Some(_) => return Err(ApiFailure::no_such_path()),
    };
    // A collection of all namespaces is only read, so no request deletes the objects of every namespace.
    let is_across = kind.is_namespaced && request.path.namespace.is_none() && name.is_none();
    let is_question = kind.source == ObjectSource::Question;
    if !is_known || is_across && !is_question && !matches!(verb, "list" | "watch") {
        return Err(ApiFailure::method_not_allowed(kind));
    }
    match (verb, name.as_deref()) {
        ("get", Some(name)) => read::get(face, request, name).await,
        ("list", None) => read::list(face, request).await,
        ("watch", None) => read::watch(face, request).await,
        ("create", None) => write::create(face, request).await,
        ("update", Some(name)) => write::update(face, request, name).await,
        ("patch", Some(name)) => write::patch(face, request, name).await,
        ("delete", Some(name)) => write::delete(face, request, name).await,
        ("deletecollection", None) => write::delete_collection(face, request).await,
        _ => Err(ApiFailure::method_not_allowed(kind)),
    }
}

/// Returns the verb of a request; empty if there is none.
fn verb(method: &Method, is_single: bool, is_watch: bool) -> &'static str {
    match (method, is_single) {
        (&Method::GET, false) if is_watch => "watch",
        (&Method::GET | &Method::HEAD, true) => "get",
        (&Method::GET | &Method::HEAD, false) => "list",
        (&Method::POST, false) => "create",
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => "",
    }
}
