//! Credentials that a peer asks for.

use serde::Deserialize;

use crate::SecretText;

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
        token: SecretText,
    },
    /// HTTP basic authentication (RFC 7617).
    Password {
        /// Name of the user.
        username: String,
        /// Password of the user.
        password: SecretText,
    },
    /// Client credentials, with which a bearer token is fetched first.
    Client(ClientGrant),
    /// A key pair with which the driver signs requests (S3).
    Keys {
        /// Id of the key.
        access_key: String,
        /// Key that signs requests.
        secret_key: SecretText,
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
    pub client_secret: SecretText,
    /// Requested scope; empty: the default scope of the client.
    #[serde(default)]
    pub scope: String,
}

/// Way in which a peer gets its credentials, which decides the kinds that it can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialUse {
    /// In a header of each call, or to log in.
    Header,
    /// In signatures of calls (S3).
    Signature,
}

impl CredentialUse {
    /// Returns the kinds that can be used, as members of the document.
    fn kinds(self) -> &'static str {
        match self {
            Self::Header => {
                "token; username and password; or token_url, client_id, client_secret and, if needed, scope"
            }
            Self::Signature => "access_key and secret_key",
        }
    }
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

    /// Returns why a peer that is shown them in this way cannot use them; `None`: it can, or needs none.
    pub(crate) fn flaw(&self, shown: CredentialUse) -> Option<String> {
        let (takes, members) = match self {
            Self::None => return None,
            Self::Token { token } => (CredentialUse::Header, vec![("token", token.reveal())]),
            Self::Password { username, password } => (
                CredentialUse::Header,
                vec![("username", username.as_str()), ("password", password.reveal())],
            ),
            Self::Client(ClientGrant { token_url, client_id, client_secret, scope: _ }) => {
                let id = [("token_url", token_url.as_str()), ("client_id", client_id)];
                (CredentialUse::Header, [&id[..], &[("client_secret", client_secret.reveal())]].concat())
            }
            Self::Keys { access_key, secret_key } => {
                let members = vec![("access_key", access_key.as_str()), ("secret_key", secret_key.reveal())];
                (CredentialUse::Signature, members)
            }
        };
        let empty = members.iter().find(|(_, value)| value.is_empty());
        let flaw = match empty {
            _ if takes != shown => format!("{} cannot be used here", members[0].0),
            Some((name, _)) => format!("{name} is empty"),
            None => return None,
        };
        Some(format!("{flaw}; this peer can use {}", shown.kinds()))
    }

    /// Values that no text or log may show.
    pub(crate) fn secrets(&self) -> Vec<SecretText> {
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

    #[test]
    fn credentials_have_to_be_of_a_kind_that_the_peer_can_use_and_not_empty() {
        let mut table = String::new();
        for text in [
            "token = 't'",
            "token = ''",
            "username = 'root'\npassword = 's3cret'",
            "username = ''\npassword = 's3cret'",
            "username = 'root'\npassword = ''",
            "token_url = 'https://a/token'\nclient_id = 'b'\nclient_secret = ''",
            "access_key = 'b'\nsecret_key = 's3cret'",
            "access_key = 'b'\nsecret_key = ''",
        ] {
            let credentials = Credentials::parse(text).unwrap();
            writeln!(table, "{text:?}").unwrap();
            for shown in [CredentialUse::Header, CredentialUse::Signature] {
                let flaw = credentials.flaw(shown);
                let flaw = flaw.as_deref().unwrap_or("fine");
                assert!(!flaw.contains("s3cret"), "{flaw}");
                writeln!(table, "    {shown:?}: {flaw}").unwrap();
            }
        }
        for shown in [CredentialUse::Header, CredentialUse::Signature] {
            assert_eq!(Credentials::None.flaw(shown), None);
        }
        expect![[r#"
            "token = 't'"
                Header: fine
                Signature: token cannot be used here; this peer can use access_key and secret_key
            "token = ''"
                Header: token is empty; this peer can use token; username and password; or token_url, client_id, client_secret and, if needed, scope
                Signature: token cannot be used here; this peer can use access_key and secret_key
            "username = 'root'\npassword = 's3cret'"
                Header: fine
                Signature: username cannot be used here; this peer can use access_key and secret_key
            "username = ''\npassword = 's3cret'"
                Header: username is empty; this peer can use token; username and password; or token_url, client_id, client_secret and, if needed, scope
                Signature: username cannot be used here; this peer can use access_key and secret_key
            "username = 'root'\npassword = ''"
                Header: password is empty; this peer can use token; username and password; or token_url, client_id, client_secret and, if needed, scope
                Signature: username cannot be used here; this peer can use access_key and secret_key
            "token_url = 'https://a/token'\nclient_id = 'b'\nclient_secret = ''"
                Header: client_secret is empty; this peer can use token; username and password; or token_url, client_id, client_secret and, if needed, scope
                Signature: token_url cannot be used here; this peer can use access_key and secret_key
            "access_key = 'b'\nsecret_key = 's3cret'"
                Header: access_key cannot be used here; this peer can use token; username and password; or token_url, client_id, client_secret and, if needed, scope
                Signature: fine
            "access_key = 'b'\nsecret_key = ''"
                Header: access_key cannot be used here; this peer can use token; username and password; or token_url, client_id, client_secret and, if needed, scope
                Signature: secret_key is empty; this peer can use access_key and secret_key
        "#]].assert_eq(&table);
    }
}
