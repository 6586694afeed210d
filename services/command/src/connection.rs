//! Choice of the gateway: flags, then the environment, then a kept context, then the local default.

use std::path::PathBuf;

use clap::Args;

use crate::{
    client::{GatewayClient, GatewayTarget},
    contexts::{ContextFile, GatewayContext},
    error::CommandError,
};

/// Gateway of a mesh on this machine with default settings.
const LOCAL: &str = "http://127.0.0.1:7700";

/// Variable with the token, which as a flag every user of the machine could read.
const TOKEN: &str = "REVEILLE_TOKEN";

/// Flags that choose the gateway.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Gateway")]
pub struct ConnectionFlags {
    /// Kept context to use [default: the current one of `reveille context`]
    #[arg(long, value_name = "NAME", env = "REVEILLE_CONTEXT")]
    pub context: Option<String>,
    /// Address of the gateway [default: that of the context, or http://127.0.0.1:7700]
    #[arg(long, value_name = "URL", env = "REVEILLE_URL")]
    pub url: Option<String>,
    /// PEM file with the certificates of the authority that is trusted [default: the system's]
    #[arg(long, value_name = "FILE", env = "REVEILLE_CA_FILE")]
    pub ca_file: Option<PathBuf>,
    /// File with the token; REVEILLE_TOKEN may hold the token itself
    #[arg(long, value_name = "FILE", env = "REVEILLE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Tenant on whose behalf to ask
    #[arg(long, value_name = "NAME", env = "REVEILLE_TENANT")]
    pub tenant: Option<String>,
}

impl ConnectionFlags {
    /// Returns a client of the chosen gateway.
    ///
    /// # Errors
    /// A context that is not kept, or a file that cannot be read.
    pub(crate) fn client(&self) -> Result<GatewayClient, CommandError> {
        let kept = ContextFile::read()?;
        let chosen = self.chosen(&kept)?;
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let token = match (&self.token_file, token) {
            (Some(file), _) => Some(token_in(file)?),
            (None, Some(token)) => Some(token),
            (None, None) => match (&chosen.token, &chosen.token_file) {
                (Some(token), _) => Some(token.clone()),
                (None, file) => file.as_ref().map(token_in).transpose()?,
            },
        };
        GatewayClient::new(self.target(&chosen, token)?)
    }

    /// Returns the context that the flags name, the current one, or an empty one.
    fn chosen(&self, kept: &ContextFile) -> Result<GatewayContext, CommandError> {
        // An address of its own needs no context, and must not get the token of one.
        let name = match (&self.context, &self.url) {
            (Some(name), _) => Some(name),
            (None, Some(_)) => None,
            (None, None) => kept.current.as_ref(),
        };
        let Some(name) = name else { return Ok(GatewayContext::default()) };
        let context = kept.contexts.get(name).cloned();
        context.ok_or_else(|| CommandError::Missing { kind: "context", name: name.clone() })
    }

    /// Returns the gateway by these flags and that context.
    fn target(&self, context: &GatewayContext, token: Option<String>) -> Result<GatewayTarget, CommandError> {
        let url = self.url.as_deref().or(context.url.as_deref()).unwrap_or(LOCAL);
        let url = base(url);
        if token.is_some() && !carries_secrets(&url) {
            return Err(CommandError::Usage {
                what: format!("the token would travel in clear text to {url}"),
                next: "give the address with https://",
            });
        }
        Ok(GatewayTarget {
            url,
            ca_file: self.ca_file.clone().or_else(|| context.ca_file.clone()),
            token,
            tenant: self
                .tenant
                .clone()
                .or_else(|| context.tenant.clone())
                .filter(|tenant| !tenant.is_empty()),
        })
    }
}

/// Returns the address of the gateway itself for an address of the contract.
fn base(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let url = url.strip_suffix("/v2").unwrap_or(url);
    url.strip_suffix("/apis/bos").unwrap_or(url).to_owned()
}

/// Returns whether secrets are safe on the way: they are encrypted, or do not leave the machine.
fn carries_secrets(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let is_local = url.host_str().is_some_and(|host| ["127.0.0.1", "localhost", "[::1]"].contains(&host));
    url.scheme() == "https" || is_local
}

fn token_in(file: &PathBuf) -> Result<String, CommandError> {
    let unusable = |reason: String| CommandError::File { path: file.clone(), reason };
    let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    match text.trim() {
        "" => Err(unusable("holds no token".to_owned())),
        token => Ok(token.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    fn kept() -> ContextFile {
        let context = |url: &str, tenant: Option<&str>| GatewayContext {
            url: Some(url.to_owned()),
            tenant: tenant.map(str::to_owned),
            token: Some("secret".to_owned()),
            ..GatewayContext::default()
        };
        let contexts = [
            ("east".to_owned(), context("https://east/apis/bos/v2/", Some("blue"))),
            ("bare".to_owned(), context("http://bare", None)),
        ];
        ContextFile { current: Some("east".to_owned()), contexts: contexts.into() }
    }

    #[test]
    fn flags_come_before_the_context() {
        let mut rows = String::new();
        for (context, url, tenant) in [
            (None, None, None),
            (None, None, Some("green")),
            (None, None, Some("")),
            (None, Some("http://west:7700/"), None),
            (Some("east"), Some("https://west"), None),
            (Some("east"), Some("http://west"), None),
            (Some("east"), Some("http://127.0.0.1:1"), None),
            (Some("bare"), None, None),
            (Some("north"), None, None),
        ] {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let flags = ConnectionFlags {
                context: owned(context),
                url: owned(url),
                tenant: owned(tenant),
                ..ConnectionFlags::default()
            };
            let chosen = flags.chosen(&kept());
            let target = chosen.and_then(|context| flags.target(&context, context.token.clone()));
            let shown = target.map(|target| format!("{} {:?} {:?}", target.url, target.token, target.tenant));
            let shown = shown.unwrap_or_else(|error| error.to_string());
            writeln!(rows, "{context:?} {url:?} {tenant:?}: {shown}").unwrap();
        }
        expect![[r#"
            None None None: https://east Some("secret") Some("blue")
            None None Some("green"): https://east Some("secret") Some("green")
            None None Some(""): https://east Some("secret") None
            None Some("http://west:7700/") None: http://west:7700 None None
            Some("east") Some("https://west") None: https://west Some("secret") Some("blue")
            Some("east") Some("http://west") None: the token would travel in clear text to http://west
            Some("east") Some("http://127.0.0.1:1") None: http://127.0.0.1:1 Some("secret") Some("blue")
            Some("bare") None None: the token would travel in clear text to http://bare
            Some("north") None None: there is no context north
        "#]]
        .assert_eq(&rows);
    }
}
