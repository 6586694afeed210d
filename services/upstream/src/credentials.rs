//! Credentials that a peer asks for.

use serde::Deserialize;

use crate::Secret;

/// Credentials of a peer. The members of the document decide the variant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Credentials {
    /// No credentials.
    #[serde(skip)]
    None,
    /// A bearer token.
    Token {
        /// The token.
        token: Secret,
    },
    /// HTTP basic authentication (RFC 7617).
    Password {
        /// Name of the user.
        username: String,
        /// Password of the user.
        password: Secret,
    },
    /// Client credentials, with which a bearer token is fetched first.
    Client(ClientGrant),
    /// A key pair with which the driver signs requests (S3).
    Keys {
        /// Id of the key.
        access_key: String,
        /// Key that signs requests.
        secret_key: Secret,
    },
}

/// Client credentials of OAuth2 (RFC 6749, 4.4), with which a bearer token is fetched.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientGrant {
    /// URL of the token endpoint.
    pub token_url: String,
    /// Name of the client.
    pub client_id: String,
    /// Password of the client.
    pub client_secret: Secret,
    /// Requested scope; empty: the default scope of the client.
    #[serde(default)]
    pub scope: String,
}

/// Error text for an invalid document. The parser's own text would repeat the wrong line or its value.
const SHAPE: &str = "not a TOML document with texts for one of: token; username and password; token_url, \
    client_id, client_secret and, if needed, scope; access_key and secret_key";

impl Credentials {
    /// Reads a document. The error text does not repeat its content.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let credentials = toml::from_str::<Self>(text).map_err(|_| SHAPE.to_owned())?;
        if let Self::Token { token } = &credentials
            && !token.reveal().bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err("token: has a character that a header cannot have".to_owned());
        }
        Ok(credentials)
    }

    /// Values that no text or log may show.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        match self {
            Self::None => Vec::new(),
            Self::Token { token: secret }
            | Self::Password { password: secret, .. }
            | Self::Client(ClientGrant { client_secret: secret, .. })
            | Self::Keys { secret_key: secret, .. } => vec![secret.clone()],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn a_document_holds_one_kind_of_credentials_and_shows_none() {
        let mut table = String::new();
        for text in [
            "token = 's3cret'",
            "username = 'root'\npassword = 's3cret'",
            "token_url = 'https://a/token'\nclient_id = 'b'\nclient_secret = 's3cret'",
            "token_url = 'https://a/token'\nclient_id = 'b'\nclient_secret = 's3cret'\nscope = 'pcs'",
            "access_key = 'b'\nsecret_key = 's3cret'",
            "",
            "s3cret",
            "token = 's3cret",
            "token = 17",
            "token = 's3 cret'",
            "tokn = 's3cret'",
            "username = 'root'",
            "token = 's3cret'\nusername = 'root'\npassword = 's3cret'",
            "access_key = 's3cret'",
        ] {
            let shown = match Credentials::parse(text) {
                Ok(credentials) => format!("{credentials:?}"),
                Err(reason) => reason,
            };
            assert!(!shown.contains("s3"), "{shown}");
            writeln!(table, "{text:?}\n    {shown}").unwrap();
        }
        expect![[r#"
            "token = 's3cret'"
                Token { token: [hidden] }
            "username = 'root'\npassword = 's3cret'"
                Password { username: "root", password: [hidden] }
            "token_url = 'https://a/token'\nclient_id = 'b'\nclient_secret = 's3cret'"
                Client(ClientGrant { token_url: "https://a/token", client_id: "b", client_secret: [hidden], scope: "" })
            "token_url = 'https://a/token'\nclient_id = 'b'\nclient_secret = 's3cret'\nscope = 'pcs'"
                Client(ClientGrant { token_url: "https://a/token", client_id: "b", client_secret: [hidden], scope: "pcs" })
            "access_key = 'b'\nsecret_key = 's3cret'"
                Keys { access_key: "b", secret_key: [hidden] }
            ""
                not a TOML document with texts for one of: token; username and password; token_url, client_id, client_secret and, if needed, scope; access_key and secret_key
            "s3cret"
                not a TOML document with texts for one of: token; username and password; token_url, client_id, client_secret and, if needed, scope; access_key and secret_key
            "token = 's3cret"
                not a TOML document with texts for one of: token; username and password; token_url, client_id, client_secret and, if needed, scope; access_key and secret_key
            "token = 17"
                not a TOML document with texts for one of: token; username and password; token_url, client_id, client_secret and, if needed, scope; access_key and secret_key
            "token = 's3 cret'"
                token: has a character that a header cannot have
            "tokn = 's3cret'"
                not a TOML document with texts for one of: token; username and password; token_url, client_id, client_secret and, if needed, scope; access_key and secret_key
            "username = 'root'"
                not a TOML document with texts for one of: token; username and password; token_url, client_id, client_secret and, if needed, scope; access_key and secret_key
            "token = 's3cret'\nusername = 'root'\npassword = 's3cret'"
                not a TOML document with texts for one of: token; username and password; token_url, client_id, client_secret and, if needed, scope; access_key and secret_key
            "access_key = 's3cret'"
                not a TOML document with texts for one of: token; username and password; token_url, client_id, client_secret and, if needed, scope; access_key and secret_key
        "#]].assert_eq(&table);
    }
}
