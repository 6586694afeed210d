//! The address of a peer, checked once.

use reqwest::Url;

use crate::{PeerError, Request};

/// A base URL without anything that is a secret or that would change with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseUrl {
    text: String,
    url: Url,
    host_port: String,
}

impl BaseUrl {
    /// Takes `text` as the base URL of a peer. The reason of a refusal does not repeat the URL, since what is
    /// wrong with it may be that it holds a secret.
    pub(crate) fn parse(text: &str, plain_http: bool) -> Result<Self, PeerError> {
        let wrong = |reason: &str| PeerError { field: "url", reason: reason.to_owned() };
        if text.is_empty() {
            return Err(wrong("is not set"));
        }
        let url = Url::parse(text).map_err(|error| wrong(&format!("is not a URL: {error}")))?;
        match url.scheme() {
            "https" => {}
            "http" if plain_http => {}
            "http" => return Err(wrong("is not encrypted, which has to be allowed by plain_http = true")),
            _ => return Err(wrong("has to begin with https://")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("holds a user, who belongs into the credentials"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has a query or a fragment"));
        }
        let host = url.host_str().ok_or_else(|| wrong("has no host"))?;
        let host_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        Ok(Self { text: text.trim_end_matches('/').to_owned(), url, host_port })
    }

    /// The URL, without a slash at the end.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Host and port, for texts.
    pub(crate) fn host_port(&self) -> &str {
        &self.host_port
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Joins the path and the query of a request to the base URL. A path may be part of a peer's answer, and must not
    /// lead to another host, which would receive the credentials.
    pub(crate) fn join(&self, request: &Request) -> Result<Url, String> {
        let slash = if request.path.is_empty() || request.path.starts_with('/') { "" } else { "/" };
        let mut url = Url::parse(&format!("{}{slash}{}", self.text, request.path))
            .map_err(|error| format!("path {}: {error}", request.shown_path()))?;
        if url.origin() != self.url.origin() || !url.username().is_empty() || url.password().is_some() {
            return Err(format!("path {} leads to another host", request.shown_path()));
        }
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn a_base_url_has_nothing_but_an_address() {
        let mut table = String::new();
        for (text, plain_http) in [
            ("https://hsm.example/hsm/v2/", false),
            ("https://[::1]:8443", false),
            ("http://127.0.0.1:80", true),
            ("http://127.0.0.1:8080", false),
            ("", false),
            ("hsm.example", false),
            ("ftp://hsm.example", true),
            ("https://", false),
            ("https://root:s3cret@hsm.example", false),
            ("https://hsm.example/?key=s3cret", false),
            ("https://hsm.example/#s3cret", false),
        ] {
            let shown = match BaseUrl::parse(text, plain_http) {
                Ok(base) => format!("{} at {}", base.as_str(), base.host_port()),
                Err(error) => error.to_string(),
            };
            assert!(!shown.contains("s3cret"));
            writeln!(table, "{text:<32} | {shown}").unwrap();
        }
        expect![[r#"
            https://hsm.example/hsm/v2/      | https://hsm.example/hsm/v2 at hsm.example:443
            https://[::1]:8443               | https://[::1]:8443 at [::1]:8443
            http://127.0.0.1:80              | http://127.0.0.1:80 at 127.0.0.1:80
            http://127.0.0.1:8080            | url: is not encrypted, which has to be allowed by plain_http = true
                                             | url: is not set
            hsm.example                      | url: is not a URL: relative URL without a base
            ftp://hsm.example                | url: has to begin with https://
            https://                         | url: is not a URL: empty host
            https://root:s3cret@hsm.example  | url: holds a user, who belongs into the credentials
            https://hsm.example/?key=s3cret  | url: has a query or a fragment
            https://hsm.example/#s3cret      | url: has a query or a fragment
        "#]].assert_eq(&table);
    }

    #[test]
    fn no_path_leads_to_another_host() {
        let mut table = String::new();
        let base = BaseUrl::parse("https://hsm.example/v2", false).unwrap();
        let bare = BaseUrl::parse("https://hsm.example", false).unwrap();
        for path in [
            "",
            "/groups",
            "groups",
            "/a%2Fb/../c",
            "@evil/x",
            ":1/x",
            ".evil/x",
            "//evil/x",
            "/g?token=s3cret",
        ] {
            for base in [&base, &bare] {
                let shown = match base.join(&Request::get("test", path).query("q", "a b&c")) {
                    Ok(url) => url.to_string(),
                    Err(error) => error,
                };
                writeln!(table, "{path:<16} | {shown}").unwrap();
            }
        }
        expect![[r#"
                             | https://hsm.example/v2?q=a+b%26c
                             | https://hsm.example/?q=a+b%26c
            /groups          | https://hsm.example/v2/groups?q=a+b%26c
            /groups          | https://hsm.example/groups?q=a+b%26c
            groups           | https://hsm.example/v2/groups?q=a+b%26c
            groups           | https://hsm.example/groups?q=a+b%26c
            /a%2Fb/../c      | https://hsm.example/v2/c?q=a+b%26c
            /a%2Fb/../c      | https://hsm.example/c?q=a+b%26c
            @evil/x          | https://hsm.example/v2/@evil/x?q=a+b%26c
            @evil/x          | https://hsm.example/@evil/x?q=a+b%26c
            :1/x             | https://hsm.example/v2/:1/x?q=a+b%26c
            :1/x             | https://hsm.example/:1/x?q=a+b%26c
            .evil/x          | https://hsm.example/v2/.evil/x?q=a+b%26c
            .evil/x          | https://hsm.example/.evil/x?q=a+b%26c
            //evil/x         | https://hsm.example/v2//evil/x?q=a+b%26c
            //evil/x         | https://hsm.example//evil/x?q=a+b%26c
            /g?token=s3cret  | https://hsm.example/v2/g?token=s3cret&q=a+b%26c
            /g?token=s3cret  | https://hsm.example/g?token=s3cret&q=a+b%26c
        "#]]
        .assert_eq(&table);
    }
}
