//! One request and its answer on the wire, within limits.

use std::{
    error::Error,
    io,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::{self, InvalidMessage};

use crate::{
    Answer, FailureKind, SecretText,
    budget::MemoryBudget,
    error_text,
    failure::{FailureCause, PeerTrouble},
    late_check::{CallWithdrawn, was_withdrawn},
};

/// Largest part of a refusal's body that is read. Texts show only a few hundred characters of it anyway.
const LARGEST_REFUSAL: usize = 64 << 10;

/// Deadline for the body of a refusal. The status is known by then, and the text is not worth a longer wait.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(2);

/// Longest pause that a peer can request. A peer that asks for a year does not mean it.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Default of the `*_read_timeout` options (BOS reference 4). The deadlines in the settings of a site assume this
/// value.
const USUAL: Duration = Duration::from_secs(20);

/// Deadlines of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimits {
    /// Deadline for the connection.
    pub connect: Duration,
    /// Deadline for the beginning of the answer.
    pub answer: Duration,
    /// Deadline for the whole call.
    pub total: Duration,
}

impl CallLimits {
    /// Returns the limits of a call whose answer may take `answer_within` to begin.
    pub(crate) fn of(self, answer_within: Option<Duration>) -> Self {
        let answer = answer_within.unwrap_or(self.answer);
        Self { answer, total: self.total_of(answer_within), ..self }
    }

    /// Returns the deadline for the whole call. A longer wait for the beginning of the answer extends the deadline,
    /// which would otherwise cut the wait short.
    pub(crate) fn total_of(self, answer_within: Option<Duration>) -> Duration {
        self.total + answer_within.unwrap_or_default().saturating_sub(USUAL)
    }
}

/// Sends `request` and reads the answer within the memory `budget`, until `until` at the latest. A status other than 2xx
/// is a failure, except `also_answer`. Removes `secrets` from error texts.
pub(crate) async fn exchange(
    client: &reqwest::Client,
    request: reqwest::Request,
    limits: &CallLimits,
    also_answer: Option<StatusCode>,
    budget: &MemoryBudget,
    until: Instant,
    secrets: &[SecretText],
) -> Result<Answer, FailureCause> {
    let begins = until.min(Instant::now() + limits.answer);
    let response = match timeout_at(begins, client.execute(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) if was_withdrawn(&error) => {
            return Err(FailureCause::NotMade {
                kind: FailureKind::Unreachable,
                reason: CallWithdrawn.to_string(),
            });
        }
        Ok(Err(error)) => return Err(not_sent_or_lost(&error, limits).into()),
        Err(_) if begins == until => return Err(too_long(limits).into()),
        Err(_) => return Err(PeerTrouble::ambiguous(format!("no answer within {:?}", limits.answer)).into()),
    };
    let status = response.status();
    let headers = response.headers().clone();
    if !status.is_success() && also_answer != Some(status) {
        let patience = until.min(Instant::now() + REFUSAL_DEADLINE);
        let body = timeout_at(patience, beginning(response)).await.unwrap_or_default();
        return Err(refusal(status, &headers, error_text::of(&body, secrets), SystemTime::now()));
    }
    match timeout_at(until, whole(response, budget)).await {
        Ok(Ok(body)) => Ok(Answer { status, headers, body }),
        Ok(Err(error)) => Err(PeerTrouble { status: Some(status), ..PeerTrouble::ambiguous(error) }.into()),
        Err(_) => Err(too_long(limits).into()),
    }
}

fn too_long(limits: &CallLimits) -> PeerTrouble {
    PeerTrouble::ambiguous(format!("no whole answer within {:?}", limits.total))
}

/// Classifies an error of the HTTP client. Without a connection, which includes TLS, nothing was sent; in all other
/// cases the request may have been sent.
fn not_sent_or_lost(error: &reqwest::Error, limits: &CallLimits) -> PeerTrouble {
    if !error.is_connect() {
        return PeerTrouble::ambiguous(error_text::tidy(&innermost(error), &[]));
    }
    if error.is_timeout() {
        return PeerTrouble::unreachable(format!("no connection within {:?}", limits.connect));
    }
    PeerTrouble::unreachable(error_text::tidy(&innermost(error), &[]))
}

/// Returns the text of the innermost error. The outer errors only state that a request failed, and may hold its URL.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if is_without_tls(innermost) {
        return "the peer does not speak TLS at this port; its url may have to begin with http://".to_owned();
    }
    if innermost.is::<reqwest::Error>() { "the request failed".to_owned() } else { innermost.to_string() }
}

/// Returns whether a handshake met bytes that are no TLS. Errors of a connection lie within one another.
fn is_without_tls(error: &(dyn Error + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return *tls == rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType);
    }
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    inner.is_some_and(|inner| is_without_tls(inner))
}

/// Classifies an answer other than 2xx.
fn refusal(status: StatusCode, headers: &HeaderMap, words: String, now: SystemTime) -> FailureCause {
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| pause(value.to_str().ok()?, now));
    let error = if words.is_empty() { status.to_string() } else { format!("{status}: {words}") };
    let trouble =
        |kind| FailureCause::Trouble(PeerTrouble { kind, status: Some(status), error, retry_after });
    match status.as_u16() {
        // Services have no such pages. A proxy that answers so does not know where the service is.
        404 if is_page(headers) => {
            FailureCause::Trouble(PeerTrouble::unreachable(format!("{status}, as a web page: {words}")))
        }
        429 => trouble(FailureKind::Unreachable),
        503 if retry_after.is_some() => trouble(FailureKind::Unreachable),
        // The peer stopped waiting for the rest of the request, and may have used the first part.
        408 => trouble(FailureKind::Ambiguous),
        300..=399 => {
            FailureCause::No { kind: FailureKind::Denied, status, words: "redirects are not followed".into() }
        }
        401 | 403 | 405 | 501 => FailureCause::No { kind: FailureKind::Denied, status, words },
        400..=499 => FailureCause::No { kind: FailureKind::Refused, status, words },
        _ => trouble(FailureKind::Ambiguous),
    }
}

fn is_page(headers: &HeaderMap) -> bool {
    let content = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content.is_some_and(|content| content.trim_start().to_ascii_lowercase().starts_with("text/html"))
}

/// Returns the pause that a `Retry-After` header requests, in seconds or as a date (RFC 9110, 10.2.3).
fn pause(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let asked = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_or(LONGEST_RETRY_AFTER, Duration::from_secs)
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()
    };
    Some(asked.min(LONGEST_RETRY_AFTER))
}

/// Reads the body within the memory budget. The announced length is checked first, so that an answer that is too
/// large is not read in vain; the received length counts.
async fn whole(mut response: reqwest::Response, budget: &MemoryBudget) -> Result<Bytes, String> {
    if let Some(length) = response.content_length() {
        budget.share().grow(length)?;
    }
    let mut body = BytesMut::new();
    let mut share = budget.share();
    while let Some(chunk) = next(&mut response).await? {
        share.grow(u64::try_from(chunk.len()).unwrap_or(u64::MAX))?;
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

async fn next(response: &mut reqwest::Response) -> Result<Option<Bytes>, String> {
    response.chunk().await.map_err(|error| error_text::tidy(&innermost(&error), &[]))
}

/// Reads as much of a refusal as is worth showing. A broken connection ends the text early.
async fn beginning(mut response: reqwest::Response) -> BytesMut {
    let mut body = BytesMut::new();
    while body.len() < LARGEST_REFUSAL {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        let rest = LARGEST_REFUSAL - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(rest)]);
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
    fn a_status_decides_the_known_effect() {
        let mut table = String::new();
        let statuses =
            [301, 304, 400, 401, 403, 404, 405, 408, 409, 413, 422, 423, 429, 500, 501, 502, 503, 504, 599];
        for status in statuses {
            for after in [None, Some("7")] {
                let status = StatusCode::from_u16(status).unwrap();
                let headers = after.map(|text| (RETRY_AFTER, HeaderValue::from_static(text)));
                let headers = headers.into_iter().collect();
                let cause = refusal(status, &headers, "words".into(), SystemTime::UNIX_EPOCH);
                let shown = match cause {
                    FailureCause::No { kind, words, .. } => format!("{}: {words}", kind.word()),
                    FailureCause::Trouble(trouble) => {
                        format!("{}, {:?}: {}", trouble.kind.word(), trouble.retry_after, trouble.error)
                    }
                    FailureCause::NotMade { reason, .. } => reason,
                };
                writeln!(table, "{} {:<2} | {shown}", status.as_u16(), after.unwrap_or("")).unwrap();
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
    fn a_page_that_is_not_found_is_not_the_word_of_the_service() {
        for (content, status, expected) in [
            ("text/html", 404, FailureKind::Unreachable),
            ("Text/HTML; charset=utf-8", 404, FailureKind::Unreachable),
            ("application/problem+json", 404, FailureKind::Refused),
            ("text/plain", 404, FailureKind::Refused),
            ("text/html", 403, FailureKind::Denied),
        ] {
            let headers = [(CONTENT_TYPE, HeaderValue::from_static(content))].into_iter().collect();
            let status = StatusCode::from_u16(status).unwrap();
            let cause = refusal(status, &headers, "words".into(), SystemTime::UNIX_EPOCH);
            assert_eq!(cause.word(), expected.word(), "{content} {status}");
            assert_eq!(cause.status().is_none(), expected == FailureKind::Unreachable, "{content} {status}");
        }
    }

    #[test]
    fn a_pause_is_in_seconds_or_a_date() {
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
