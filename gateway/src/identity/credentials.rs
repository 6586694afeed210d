//! The bearer token of a request.

use http::{HeaderMap, header::AUTHORIZATION};

/// Most bytes of a token. Those of issuers with many roles have some kilobytes.
const LONGEST: usize = 16 << 10;

/// Reason why credentials do not count. The text goes to the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CredentialFault {
    /// The header is there more than once, is no text, or has another scheme.
    #[error("the Authorization header has to be there once, as Bearer and a token")]
    Unreadable,
    /// The token is longer than any that counts.
    #[error("the token is too long")]
    TooLong,
    /// The token is no static one, and no issuer of the settings made it.
    #[error("the token is unknown")]
    Unknown,
    /// The token is over, or has not begun.
    #[error("the token has expired, or is not valid yet")]
    Expired,
    /// The token does not fit the settings of its issuer.
    #[error("the token is not valid: {0}")]
    Invalid(&'static str),
}

/// Returns the token of a request; `None`: the request has no credentials.
///
/// # Errors
/// When the credentials cannot be read.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, CredentialFault> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(CredentialFault::Unreadable);
    }
    let text = value.to_str().map_err(|_| CredentialFault::Unreadable)?;
    let (scheme, token) = text.split_once(' ').ok_or(CredentialFault::Unreadable)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(CredentialFault::Unreadable);
    }
    if token.len() > LONGEST {
        return Err(CredentialFault::TooLong);
    }
    Ok(Some(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_header_has_one_token() {
        let long = format!("Bearer {}", "x".repeat(LONGEST + 1));
        for (values, expected) in [
            (&[][..], Ok(None)),
            (&["Bearer abc"], Ok(Some("abc"))),
            (&["bearer  abc "], Ok(Some("abc"))),
            (&["Bearer "], Err(CredentialFault::Unreadable)),
            (&["abc"], Err(CredentialFault::Unreadable)),
            (&["Basic abc"], Err(CredentialFault::Unreadable)),
            (&["Bearer abc", "Bearer abc"], Err(CredentialFault::Unreadable)),
            (&[long.as_str()], Err(CredentialFault::TooLong)),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            assert_eq!(bearer(&headers), expected, "{values:?}");
        }
    }
}
