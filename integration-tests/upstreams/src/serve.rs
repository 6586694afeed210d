//! A request from arrival to answer: its system, its trouble, its count.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::{ConnectInfo, Query, Request, State},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};

use crate::{
    call::{OmittedShare, SystemAnswer, SystemCall},
    control,
    counters::SeenCall,
    mangle, s3,
    service::Service,
    trouble::{CallCourse, TroubleEffect},
    wire::{ConnectionCut, CuttableListener},
    world::LiveMachine,
};

/// Largest request that is read: more than any real peer takes.
const LARGEST_REQUEST: usize = 256 << 20;

/// Time for which answers under way, which may trickle for ever, delay the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Most of a path and query that is remembered of a request: lists of ids can be long.
const LONGEST_TARGET: usize = 200;

/// Operation of requests that a system does not know.
const UNKNOWN: &str = "unknown";

/// Serves until shutdown.
pub(crate) async fn run(world: Arc<LiveMachine>, wires: CuttableListener) {
    let shutdown = world.shutdown.clone();
    let out_of_patience = async {
        shutdown.cancelled().await;
        tokio::time::sleep(PATIENCE).await;
    };
    let routes = Router::new().fallback(handle).with_state(world);
    let service = routes.into_make_service_with_connect_info::<ConnectionCut>();
    let serving = axum::serve(wires, service).with_graceful_shutdown(shutdown.clone().cancelled_owned());
    tokio::select! {
        served = serving.into_future() => {
            if let Err(error) = served {
                tracing::error!(%error, "no longer serving");
            }
        }
        () = out_of_patience => tracing::debug!("answers under way were left alone"),
    }
}

async fn handle(
    State(world): State<Arc<LiveMachine>>,
    ConnectInfo(cut): ConnectInfo<ConnectionCut>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_REQUEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let path = decoded(parts.uri.path());
    match path.strip_prefix("/control") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            response(control::answer(&world, &parts.method, rest, &query(&parts), &body))
        }
        // In a task of its own, because a system completes a request even if the client has given up.
        Some(_) | None => tokio::spawn(async move { serve(&world, &cut, &parts, &path, &body).await })
            .await
            .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response()),
    }
}

/// A request to one of the systems.
async fn serve(
    world: &LiveMachine,
    cut: &ConnectionCut,
    parts: &Parts,
    path: &str,
    body: &Bytes,
) -> Response {
    let (service, path) = Service::at(path);
    let (operation, names) = service.operation(&parts.method, &path).unwrap_or((UNKNOWN, Vec::new()));
    world.counters.lock().arrived(service, operation);
    let now = world.elapsed();
    let course = world.troubles.lock().course(service, parts.method.as_str(), operation, now);
    let ended = |status: u16, items: usize| {
        let target = parts.uri.to_string().chars().take(LONGEST_TARGET).collect();
        let trace = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
        let trace = trace.unwrap_or_default().to_owned();
        let seen = SeenCall { at: 0.0, service, operation, target, status, items, trace };
        world.counters.lock().ended(world.elapsed(), seen);
    };
    wait(world, course.delay).await;
    if let Some(answer) = refusal(&course, parts) {
        ended(answer.status.as_u16(), 0);
        return response(answer);
    }
    if let Some(effect) = &course.instead {
        let answer = instead(effect);
        ended(answer.as_ref().map_or(0, |answer| answer.status.as_u16()), 0);
        return match answer {
            Some(answer) => response(answer),
            None => nothing(world, cut, matches!(effect, TroubleEffect::Hang)).await,
        };
    }
    let omit = OmittedShare { fraction: course.omit, seed: world.seed };
    let worker_dies = course.worker_dies;
    let call = SystemCall { operation, names, query: query(parts), body, omit, worker_dies };
    if course.twice && operation != UNKNOWN {
        world.answer(service, &call);
    }
    let answer = match operation {
        UNKNOWN => unknown(service, &path),
        _ => world.answer(service, &call),
    };
    let answer = match course.after {
        Some(TroubleEffect::Swap) => world.crossing.swap((service, operation), answer).await,
        Some(TroubleEffect::Repeat) => world.crossing.repeat((service, operation), answer),
        Some(_) | None => answer,
    };
    match course.after {
        Some(TroubleEffect::HangAfter | TroubleEffect::DropAfter) => {
            ended(0, answer.items);
            nothing(world, cut, course.after == Some(TroubleEffect::HangAfter)).await
        }
        after => {
            ended(answer.status.as_u16(), answer.items);
            mangle::response(answer, after.as_ref())
        }
    }
}

/// Waits so long, or until shutdown.
async fn wait(world: &LiveMachine, delay: Duration) {
    if !delay.is_zero() {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = world.shutdown.cancelled() => {}
        }
    }
}

/// Never answers: cuts the connection, at once or only at shutdown.
async fn nothing(world: &LiveMachine, cut: &ConnectionCut, hang: bool) -> Response {
    if hang {
        world.shutdown.cancelled().await;
    }
    cut.now();
    StatusCode::NO_CONTENT.into_response()
}

/// The refusal of a request without the required credentials.
fn refusal(course: &CallCourse, parts: &Parts) -> Option<SystemAnswer> {
    let given = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let signed = given.is_some() || parts.uri.query().is_some_and(|query| query.contains("X-Amz-Signature="));
    let unauthorised =
        || SystemAnswer::problem(StatusCode::UNAUTHORIZED, "Unauthorized", "credentials are required");
    course.requirements.iter().find_map(|requirement| match requirement {
        TroubleEffect::RequireBearer { token } => (given != Some(&format!("Bearer {token}")))
            .then(|| unauthorised().with_header(header::WWW_AUTHENTICATE, "Bearer")),
        TroubleEffect::RequireAuthorization { value } => (given != Some(value))
            .then(|| unauthorised().with_header(header::WWW_AUTHENTICATE, "Basic realm=\"upstreams\"")),
        TroubleEffect::RequireSignature => {
            (!signed).then(|| s3::error(StatusCode::FORBIDDEN, "AccessDenied", "the request is not signed"))
        }
        _ => None,
    })
}

/// Returns the answer that a request gets instead of being handled; `None`: it gets no answer.
fn instead(effect: &TroubleEffect) -> Option<SystemAnswer> {
    let TroubleEffect::Status { code, body, retry_after } = effect else { return None };
    let status = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let answer = SystemAnswer::of(status, "text/plain", body.clone());
    Some(match retry_after {
        Some(seconds) => answer.with_header(header::RETRY_AFTER, &seconds.to_string()),
        None => answer,
    })
}

fn unknown(service: Service, path: &str) -> SystemAnswer {
    match service {
        Service::S3 => s3::error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", path),
        _ => SystemAnswer::not_found(&format!("{path} is not a path of this service")),
    }
}

fn query(parts: &Parts) -> Vec<(String, String)> {
    Query::try_from_uri(&parts.uri).map(|Query(pairs)| pairs).unwrap_or_default()
}

fn response(answer: SystemAnswer) -> Response {
    mangle::response(answer, None)
}

/// The path with `%41` as `A`. A path that is no text then matches nothing.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = (*first == b'%')
            .then(|| behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_once() {
        let paths = ["/a/b", "/a%2Fb", "/x%2", "/%zz", "/%25%41", "/%ff"];
        assert_eq!(paths.map(decoded), ["/a/b", "/a/b", "/x%2", "/%zz", "/%A", "/\u{fffd}"]);
    }
}
