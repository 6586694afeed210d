//! Problem documents for requests that the HTTP library refuses by itself, with a bare status: a head that is too long
//! or cannot be parsed.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use chassis::mesh::request_id;
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::problem::RequestProblem;

/// A connection on which a bare refusal by the library becomes a problem document.
pub(crate) struct RefusalStream<S> {
    stream: S,
    /// Bytes that replace the refusal, and the number of them that has been sent.
    instead: Option<(Vec<u8>, usize)>,
}

impl<S: AsyncWrite + Unpin> RefusalStream<S> {
    /// Watches the bytes written to `stream`.
    pub(crate) fn around(stream: S) -> Self {
        Self { stream, instead: None }
    }

    pub(crate) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Sends the rest of the replacement.
    fn poll_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some((bytes, sent)) = &mut self.instead {
            if *sent == bytes.len() {
                self.instead = None;
                break;
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &bytes[*sent..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *sent += written;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RefusalStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RefusalStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_instead(context))?;
        match replacement(bytes) {
            Some(answer) => {
                this.instead = Some((answer, 0));
                Poll::Ready(Ok(bytes.len()))
            }
            None => Pin::new(&mut this.stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_instead(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_instead(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        if self.instead.is_some() || first.is_some_and(|first| replacement(first).is_some()) {
            return self.poll_write(context, first.map_or(&[], |first| first));
        }
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Returns the replacement of `bytes`, if they are a bare refusal: every answer of a handler has a request id.
fn replacement(bytes: &[u8]) -> Option<Vec<u8>> {
    let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    if !status.starts_with(b"4") || bytes.len() > LONGEST_REFUSAL {
        return None;
    }
    let head = std::str::from_utf8(bytes).ok()?;
    let bare = head.ends_with("\r\n\r\n") && head.contains(NO_BODY) && !head.contains(request_id::HEADER);
    let status = StatusCode::from_bytes(status).ok().filter(|_| bare)?;
    let why = match status {
        StatusCode::URI_TOO_LONG => "the address is longer than 65534 bytes",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "the headers are larger or more than are accepted",
        _ => "the head of the request is not valid HTTP",
    };
    let body = RequestProblem::of_status(status, why).document();
    let with_body =
        format!("content-type: {}\r\ncontent-length: {}\r\n", RequestProblem::MEDIA_TYPE, body.len());
    Some([head.replacen(NO_BODY, &with_body, 1).as_bytes(), &body].concat())
}

const NO_BODY: &str = "content-length: 0\r\n";

/// Room for a status, a date and two further headers. No answer of a handler is as short.
const LONGEST_REFUSAL: usize = 300;

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn only_bare_refusals_get_a_problem() {
        let refusal = |status: &str, rest: &str| {
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\ndate: now\r\n{rest}\r\n");
            replacement(head.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap().replace('\r', ""))
        };
        assert_eq!(refusal("200 OK", ""), None);
        assert_eq!(refusal("404 Not Found", "x-request-id: 1\r\n"), None);
        assert_eq!(replacement(b"HTTP/1.1 4"), None);
        assert_eq!(replacement(b"[{}]"), None);
        let told = ["431 Request Header Fields Too Large", "414 URI Too Long", "400 Bad Request"]
            .map(|status| refusal(status, "connection: close\r\n").unwrap());
        expect![[r#"
            HTTP/1.1 431 Request Header Fields Too Large
            content-type: application/problem+json
            content-length: 137
            date: now
            connection: close

            {"detail":"the headers are larger or more than are accepted","status":431,"title":"Request Header Fields Too Large","type":"about:blank"}

            HTTP/1.1 414 URI Too Long
            content-type: application/problem+json
            content-length: 108
            date: now
            connection: close

            {"detail":"the address is longer than 65534 bytes","status":414,"title":"URI Too Long","type":"about:blank"}

            HTTP/1.1 400 Bad Request
            content-type: application/problem+json
            content-length: 110
            date: now
            connection: close

            {"detail":"the head of the request is not valid HTTP","status":400,"title":"Bad Request","type":"about:blank"}"#]].assert_eq(&told.join("\n\n"));
    }
}
