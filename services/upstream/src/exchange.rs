//! One request and its answer on the wire, within limits.

use std::{
    error::Error,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use tokio::time::{Instant, timeout_at};

use crate::{
    Answer, FailureKind, Secret,
    failure::{Cause, Trouble},
    last_look::{HandedOver, was_handed_over},
    room::Room,
    words,
};

/// What an answer to a refused call may say. More than a few hundred characters are not shown anyway.
const LARGEST_REFUSAL: usize = 64 << 10;

/// How long the words of a refusal may take. Its status is known by then, and they are not worth a wait.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(2);

/// Longest time for which a peer can ask not to be called. One that names a year does not mean it.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// What the options give a peer until its answer begins as long as nobody changes them (BOS reference 4). The settings
/// of the site were made with that in mind.
const USUAL: Duration = Duration::from_secs(20);

/// What a call may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Time for a connection.
    pub connect: Duration,
    /// Time until the answer begins.
    pub answer: Duration,
    /// Time in all.
    pub total: Duration,
}

impl Limits {
    /// The limits of a call whose answer may take `answer_within` to begin, where that is said.
    pub(crate) fn of(self, answer_within: Option<Duration>) -> Self {
        let answer = answer_within.unwrap_or(self.answer);
        Self { answer, total: self.total_of(answer_within), ..self }
    }

    /// Time in all for such a call. Who waits longer than usual for an answer to begin waits longer for the whole, or
    /// the wait would be cut short.
    pub(crate) fn total_of(self, answer_within: Option<Duration>) -> Duration {
        self.total + answer_within.unwrap_or_default().saturating_sub(USUAL)
    }
}

/// Sends `request` and reads the answer as far as there is `room`, until `until` at the latest. Does not show
/// `secrets`.
pub(crate) async fn exchange(
    client: &reqwest::Client,
    request: reqwest::Request,
    limits: &Limits,
    room: &Room,
    until: Instant,
    secrets: &[Secret],
) -> Result<Answer, Cause> {
    let begins = until.min(Instant::now() + limits.answer);
    let response = match timeout_at(begins, client.execute(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) if was_handed_over(&error) => {
            return Err(Cause::NotMade { kind: FailureKind::Unreachable, reason: HandedOver.to_string() });
        }
        Ok(Err(error)) => return Err(not_sent_or_lost(&error, limits).into()),
        Err(_) if begins == until => return Err(too_long(limits).into()),
        Err(_) => return Err(Trouble::ambiguous(format!("no answer within {:?}", limits.answer)).into()),
    };
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        let patience = until.min(Instant::now() + REFUSAL_DEADLINE);
        let body = timeout_at(patience, beginning(response)).await.unwrap_or_default();
        return Err(refusal(status, &headers, words::of(&body, secrets), SystemTime::now()));
    }
    match timeout_at(until, whole(response, room)).await {
        Ok(Ok(body)) => Ok(Answer { status, headers, body }),
        Ok(Err(error)) => Err(Trouble { status: Some(status), ..Trouble::ambiguous(error) }.into()),
        Err(_) => Err(too_long(limits).into()),
    }
}

fn too_long(limits: &Limits) -> Trouble {
    Trouble::ambiguous(format!("no whole answer within {:?}", limits.total))
}

/// Without a connection, which includes TLS, nothing was sent. In all other cases it may have been.
fn not_sent_or_lost(error: &reqwest::Error, limits: &Limits) -> Trouble {
    if !error.is_connect() {
        return Trouble::ambiguous(words::tidy(&innermost(error), &[]));
    }
    if error.is_timeout() {
        return Trouble::unreachable(format!("no connection within {:?}", limits.connect));
    }
    Trouble::unreachable(words::tidy(&innermost(error), &[]))
}

/// The cause that is not caused by another. The outer ones say that a request failed, and may hold its URL.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if innermost.is::<reqwest::Error>() { "the request failed".to_owned() } else { innermost.to_string() }
}

/// What an answer other than 2xx says about the call and the peer.
fn refusal(status: StatusCode, headers: &HeaderMap, words: String, now: SystemTime) -> Cause {
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| pause(value.to_str().ok()?, now));
    let error = if words.is_empty() { status.to_string() } else { format!("{status}: {words}") };
    let trouble = |kind| Cause::Trouble(Trouble { kind, status: Some(status), error, retry_after });
    match status.as_u16() {
        429 => trouble(FailureKind::Unreachable),
        503 if retry_after.is_some() => trouble(FailureKind::Unreachable),
        // The peer gave up waiting for the rest of the request, and may have used what it had.
        408 => trouble(FailureKind::Ambiguous),
        300..=399 => {
            Cause::No { kind: FailureKind::Denied, status, words: "redirects are not followed".into() }
        }
        401 | 403 | 405 | 501 => Cause::No { kind: FailureKind::Denied, status, words },
        400..=499 => Cause::No { kind: FailureKind::Refused, status, words },
        _ => trouble(FailureKind::Ambiguous),
    }
}

/// The time that a `Retry-After` asks for, as seconds or as a date (RFC 9110, 10.2.3).
fn pause(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let asked = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_or(LONGEST_RETRY_AFTER, Duration::from_secs)
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()
    };
    Some(asked.min(LONGEST_RETRY_AFTER))
}

/// The body, if there is room for it. What it claims to be is looked at first, so that nothing is read in vain; what
/// it is counts.
async fn whole(mut response: reqwest::Response, room: &Room) -> Result<Bytes, String> {
    if let Some(length) = response.content_length() {
        room.share().grow(length)?;
    }
    let (mut body, mut share) = (BytesMut::new(), room.share());
    while let Some(chunk) = next(&mut response).await? {
        share.grow(u64::try_from(chunk.len()).unwrap_or(u64::MAX))?;
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

async fn next(response: &mut reqwest::Response) -> Result<Option<Bytes>, String> {
    response.chunk().await.map_err(|error| words::tidy(&innermost(&error), &[]))
}

/// As much of a refusal as is worth showing. One that breaks off says what it said until then.
async fn beginning(mut response: reqwest::Response) -> BytesMut {
    let mut body = BytesMut::new();
    while body.len() < LARGEST_REFUSAL {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        let room = LARGEST_REFUSAL - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    body
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;
    use http::HeaderValue;

    use super::*;

    #[test]
    fn an_answer_tells_what_is_known_about_the_effect() {
        let mut table = String::new();
        let statuses =
            [301, 304, 400, 401, 403, 404, 405, 408, 409, 413, 422, 423, 429, 500, 501, 502, 503, 504, 599];
        for status in statuses {
            for after in [None, Some("7")] {
                let status = StatusCode::from_u16(status).unwrap();
                let headers = after.map(|text| (RETRY_AFTER, HeaderValue::from_static(text)));
                let headers = headers.into_iter().collect();
                let cause = refusal(status, &headers, "words".into(), SystemTime::UNIX_EPOCH);
                let told = match cause {
                    Cause::No { kind, words, .. } => format!("{}: {words}", kind.word()),
                    Cause::Trouble(trouble) => {
                        format!("{}, {:?}: {}", trouble.kind.word(), trouble.retry_after, trouble.error)
                    }
                    Cause::NotMade { reason, .. } => reason,
                };
                writeln!(table, "{} {:<2} | {told}", status.as_u16(), after.unwrap_or("")).unwrap();
            }
        }
        expect![[r#"
            301    | denied: redirects are not followed
            301 7  | denied: redirects are not followed
            304    | denied: redirects are not followed
            304 7  | denied: redirects are not followed
            400    | refused: words
            400 7  | refused: words
            401    | denied: words
            401 7  | denied: words
            403    | denied: words
            403 7  | denied: words
            404    | refused: words
            404 7  | refused: words
            405    | denied: words
            405 7  | denied: words
            408    | ambiguous, None: 408 Request Timeout: words
            408 7  | ambiguous, Some(7s): 408 Request Timeout: words
            409    | refused: words
            409 7  | refused: words
            413    | refused: words
            413 7  | refused: words
            422    | refused: words
            422 7  | refused: words
            423    | refused: words
            423 7  | refused: words
            429    | unreachable, None: 429 Too Many Requests: words
            429 7  | unreachable, Some(7s): 429 Too Many Requests: words
            500    | ambiguous, None: 500 Internal Server Error: words
            500 7  | ambiguous, Some(7s): 500 Internal Server Error: words
            501    | denied: words
            501 7  | denied: words
            502    | ambiguous, None: 502 Bad Gateway: words
            502 7  | ambiguous, Some(7s): 502 Bad Gateway: words
            503    | ambiguous, None: 503 Service Unavailable: words
            503 7  | unreachable, Some(7s): 503 Service Unavailable: words
            504    | ambiguous, None: 504 Gateway Timeout: words
            504 7  | ambiguous, Some(7s): 504 Gateway Timeout: words
            599    | ambiguous, None: 599 <unknown status code>: words
            599 7  | ambiguous, Some(7s): 599 <unknown status code>: words
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_pause_is_asked_for_in_seconds_or_by_date() {
        let now = httpdate::parse_http_date("Fri, 20 Nov 2026 12:00:00 GMT").unwrap();
        for (text, seconds) in [
            ("0", Some(0)),
            (" 17 ", Some(17)),
            ("86400", Some(300)),
            ("99999999999999999999999", Some(300)),
            ("Fri, 20 Nov 2026 12:00:09 GMT", Some(9)),
            ("Fri, 20 Nov 2026 11:00:00 GMT", Some(0)),
            ("Fri, 20 Nov 2099 11:00:00 GMT", Some(300)),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(pause(text, now), seconds.map(Duration::from_secs), "{text:?}");
        }
    }
}
