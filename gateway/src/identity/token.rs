//! JSON web tokens: their parts, and the claims that every token has to have (RFC 7519).

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;

use super::{credentials::CredentialFault, signature::SignatureAlgorithm};

/// Token whose signature was not verified.
pub(super) struct UnverifiedToken<'a> {
    pub algorithm: SignatureAlgorithm,
    /// Id of the key.
    pub key_id: Option<String>,
    pub claims: Value,
    /// Part that is signed.
    pub message: &'a [u8],
    pub signature: Vec<u8>,
}

/// Claims that a token has to have, besides its end.
#[derive(Debug, Clone)]
pub(super) struct ExpectedClaims {
    pub issuer: String,
    /// Audiences, of which the token has to name one.
    pub audiences: Vec<String>,
    /// Seconds by which clocks may differ.
    pub leeway: i64,
}

impl<'a> UnverifiedToken<'a> {
    /// Reads a token.
    ///
    /// # Errors
    /// When the text is no token, or of an algorithm without a public key.
    pub(super) fn read(text: &'a str) -> Result<Self, CredentialFault> {
        let mut parts = text.split('.');
        let parts = [parts.next(), parts.next(), parts.next(), parts.next()];
        let [Some(header), Some(claims), Some(signature), None] = parts else {
            return Err(CredentialFault::Unknown);
        };
        let header = document(header)?;
        // An extension that has to be understood is none that this reader understands.
        if header.get("crit").is_some() {
            return Err(CredentialFault::Invalid("it has an extension that is not known"));
        }
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(SignatureAlgorithm::parse);
        let algorithm = algorithm.ok_or(CredentialFault::Invalid("its algorithm is not allowed"))?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature);
        Ok(Self {
            algorithm,
            key_id: header.get("kid").and_then(Value::as_str).map(str::to_owned),
            claims: document(claims)?,
            message: &text.as_bytes()[..text.rfind('.').unwrap_or_default()],
            signature: signature.map_err(|_| CredentialFault::Unknown)?,
        })
    }

    /// Returns the issuer that the token names.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }
}

fn document(part: &str) -> Result<Value, CredentialFault> {
    let text = BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| CredentialFault::Unknown)?;
    serde_json::from_slice(&text).map_err(|_| CredentialFault::Unknown)
}

impl ExpectedClaims {
    /// Checks the claims of a token at `now`, in seconds since 1970, and returns its end with the leeway.
    ///
    /// # Errors
    /// The claim that is wrong.
    pub(super) fn check(&self, claims: &Value, now: i64) -> Result<i64, CredentialFault> {
        let fault = |reason| Err(CredentialFault::Invalid(reason));
        if claims.get("iss").and_then(Value::as_str) != Some(&*self.issuer) {
            return fault("it is of another issuer");
        }
        let is_for_us = |audience: &str| self.audiences.iter().any(|one| one == audience);
        let is_meant = match claims.get("aud") {
            Some(Value::String(audience)) => is_for_us(audience),
            Some(Value::Array(audiences)) => audiences.iter().filter_map(Value::as_str).any(is_for_us),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
        };
        if !is_meant {
            return fault("it is for another audience");
        }
        let Some(ends) = seconds(claims.get("exp")) else { return fault("it has no end") };
        let begins = match claims.get("nbf") {
            None => i64::MIN,
            given => seconds(given).ok_or(CredentialFault::Invalid("its beginning cannot be read"))?,
        };
        let ends = ends.saturating_add(self.leeway);
        if now >= ends || now.saturating_add(self.leeway) < begins {
            return Err(CredentialFault::Expired);
        }
        Ok(ends)
    }
}

/// Reads a time in seconds; a fraction of one does not count.
fn seconds(claim: Option<&Value>) -> Option<i64> {
    let number = claim?.as_number()?;
    number.as_i64().or_else(|| number.to_string().split_once('.')?.0.parse().ok())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_name_issuer_audience_and_time() {
        let expected = ExpectedClaims {
            issuer: "https://issuer.example".to_owned(),
            audiences: vec!["reveille".to_owned(), "mesh".to_owned()],
            leeway: 30,
        };
        let base = json!({ "iss": "https://issuer.example", "aud": "reveille", "exp": 1000 });
        let rows = [
            json!({}),
            json!({ "exp": 970 }),
            json!({ "exp": 971 }),
            json!({ "exp": 1000.7 }),
            json!({ "exp": "1000" }),
            json!({ "exp": null }),
            json!({ "nbf": 1030 }),
            json!({ "nbf": 1031 }),
            json!({ "nbf": "now" }),
            json!({ "aud": ["other", "mesh"] }),
            json!({ "aud": ["other"] }),
            json!({ "aud": null }),
            json!({ "iss": "https://issuer.example/" }),
        ]
        .map(|change| {
            let mut claims = base.clone();
            let members = claims.as_object_mut().unwrap();
            members.extend(change.as_object().unwrap().clone());
            let checked = expected.check(&claims, 1000);
            format!("{change}: {}\n", checked.map_or_else(|fault| fault.to_string(), |ends| ends.to_string()))
        });
        expect![[r#"
            {}: 1030
            {"exp":970}: the token has expired, or is not valid yet
            {"exp":971}: 1001
            {"exp":1000.7}: 1030
            {"exp":"1000"}: the token is not valid: it has no end
            {"exp":null}: the token is not valid: it has no end
            {"nbf":1030}: 1030
            {"nbf":1031}: the token has expired, or is not valid yet
            {"nbf":"now"}: the token is not valid: its beginning cannot be read
            {"aud":["other","mesh"]}: 1030
            {"aud":["other"]}: the token is not valid: it is for another audience
            {"aud":null}: the token is not valid: it is for another audience
            {"iss":"https://issuer.example/"}: the token is not valid: it is of another issuer
        "#]]
        .assert_eq(&rows.concat());
    }

    #[test]
    fn texts_that_are_no_tokens_are_refused() {
        let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = part(json!({ "iss": "a" }));
        let rows = [
            "abc".to_owned(),
            "a.b.c".to_owned(),
            format!("{}.{claims}.", part(json!({ "alg": "none" }))),
            format!("{}.{claims}.AA", part(json!({ "alg": "HS256" }))),
            format!("{}.{claims}.AA", part(json!({ "alg": "RS256", "crit": ["b64"] }))),
            format!("{}.{claims}.AA.AA", part(json!({ "alg": "RS256" }))),
            format!("{}.{claims}.AA=", part(json!({ "alg": "RS256" }))),
            format!("{}.{claims}.AA", part(json!({ "alg": "RS256" }))),
        ]
        .map(|text| match UnverifiedToken::read(&text) {
            Ok(token) => format!("of {:?}\n", token.issuer()),
            Err(fault) => format!("{fault}\n"),
        });
        expect![[r#"
            the token is unknown
            the token is unknown
            the token is not valid: its algorithm is not allowed
            the token is not valid: its algorithm is not allowed
            the token is not valid: it has an extension that is not known
            the token is unknown
            the token is unknown
            of Some("a")
        "#]]
        .assert_eq(&rows.concat());
    }
}
