//! Who we are to a peer.

use serde::Deserialize;

use crate::Secret;

/// What a peer is shown. Which of these it is shows in the members of the document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Credentials {
    /// Nothing.
    #[serde(skip)]
    None,
    /// A bearer token.
    Token {
        /// The token.
        token: Secret,
    },
    /// HTTP basic authentication.
    Password {
        /// Name of the user.
        username: String,
        /// Password of the user.
        password: Secret,
    },
    /// A bearer token that is fetched first.
    Client(Grant),
    /// Requests are signed by the driver (S3).
    Keys {
        /// Names the key.
        access_key: String,
        /// Signs.
        secret_key: Secret,
    },
}

/// What a bearer token is fetched with: the client credentials grant of OAuth2 (RFC 6749, 4.4).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Where the token is fetched.
    pub token_url: String,
    /// Name of the client.
    pub client_id: String,
    /// Password of the client.
    pub client_secret: Secret,
    /// What the token is asked for; empty: what the client gets by default.
    #[serde(default)]
    pub scope: String,
}

/// What is wrong with a document. The parser's own words would repeat the line that is wrong, or its value.
const SHAPE: &str = "not a TOML document with texts for one of: token; username and password; token_url, \
    client_id, client_secret and, if needed, scope; access_key and secret_key";

impl Credentials {
    /// Reads a document. The error does not repeat what it holds.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let credentials = toml::from_str::<Self>(text).map_err(|_| SHAPE.to_owned())?;
        if let Self::Token { token } = &credentials
            && !token.reveal().bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err("token: has a character that a header cannot have".to_owned());
        }
        Ok(credentials)
    }

    /// Everything that must not show.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        match self {
            Self::None => Vec::new(),
            Self::Token { token: secret }
            | Self::Password { password: secret, .. }
            | Self::Client(Grant { client_secret: secret, .. })
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
            let told = match Credentials::parse(text) {
                Ok(credentials) => format!("{credentials:?}"),
                Err(reason) => reason,
            };
            assert!(!told.contains("s3"), "{told}");
            writeln!(table, "{text:?}\n    {told}").unwrap();
        }
        expect![[r#"
            "token = 's3cret'"
                Token { token: [hidden] }
            "username = 'root'\npassword = 's3cret'"
                Password { username: "root", password: [hidden] }
            "token_url = 'https://a/token'\nclient_id = 'b'\nclient_secret = 's3cret'"
                Client(Grant { token_url: "https://a/token", client_id: "b", client_secret: [hidden], scope: "" })
            "token_url = 'https://a/token'\nclient_id = 'b'\nclient_secret = 's3cret'\nscope = 'pcs'"
                Client(Grant { token_url: "https://a/token", client_id: "b", client_secret: [hidden], scope: "pcs" })
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
