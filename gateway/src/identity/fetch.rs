//! Key sets of issuers: from a file, from an address, or from the address that the issuer's discovery document names.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, bail, ensure};
use chassis::settings::IssuerSettings;
use reqwest::{Certificate, Client, Url, redirect};
use serde::Deserialize;
use serde_json::Value;

/// Deadline of a document.
const DEADLINE: Duration = Duration::from_secs(10);

/// Most bytes of a document.
const LARGEST: usize = 1 << 20;

/// Path of the discovery document below the name of an issuer.
const DISCOVERY: &str = ".well-known/openid-configuration";

/// Place of the keys of an issuer.
#[derive(Debug, Clone)]
pub(super) enum KeySource {
    /// The discovery document says where the keys are.
    Discovery(KeyServer),
    /// The keys are at this address.
    Address(KeyServer),
    /// The keys are in this file.
    File(PathBuf),
}

/// Server with keys.
#[derive(Debug, Clone)]
pub(super) struct KeyServer {
    url: Url,
    /// Name of the issuer in tokens, which the discovery document has to repeat.
    issuer: String,
    ca_file: PathBuf,
    plain_http: bool,
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    jwks_uri: String,
}

impl KeySource {
    /// Reads the settings of an issuer.
    ///
    /// # Errors
    /// Names the setting that is wrong.
    pub(super) fn new(settings: &IssuerSettings) -> anyhow::Result<Self> {
        let server = |url: &str, key: &'static str| {
            let url: Url = url.parse().with_context(|| format!("{key}: '{url}' is no address"))?;
            check_scheme(&url, settings.plain_http).context(key)?;
            let (issuer, ca_file) = (settings.issuer.clone(), settings.ca_file.clone());
            anyhow::Ok(KeyServer { url, issuer, ca_file, plain_http: settings.plain_http })
        };
        let jwks = settings.jwks.as_str();
        if jwks.is_empty() {
            let url = format!("{}/{DISCOVERY}", settings.issuer.trim_end_matches('/'));
            return server(&url, "issuer").map(Self::Discovery);
        }
        if jwks.contains("://") {
            return server(jwks, "jwks").map(Self::Address);
        }
        Ok(Self::File(jwks.into()))
    }

    /// Returns whether the keys are on this machine, where reading them burdens nobody.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Returns the key set, as it is now.
    ///
    /// # Errors
    /// When it cannot be fetched, or is no JSON.
    pub(super) async fn fetch(&self) -> anyhow::Result<Value> {
        match self {
            Self::File(path) => {
                let read = || format!("cannot read {}", path.display());
                let text = tokio::fs::read(path).await.with_context(read)?;
                serde_json::from_slice(&text).with_context(read)
            }
            Self::Address(server) => server.document(server.url.clone()).await,
            Self::Discovery(server) => {
                let document = server.document(server.url.clone()).await?;
                let document: DiscoveryDocument =
                    serde_json::from_value(document).context("the discovery document")?;
                ensure!(
                    document.issuer == server.issuer,
                    "the discovery document is that of '{}'",
                    document.issuer
                );
                let url: Url = document.jwks_uri.parse().context("jwks_uri of the discovery document")?;
                check_scheme(&url, server.plain_http).context("jwks_uri of the discovery document")?;
                server.document(url).await
            }
        }
    }
}

fn check_scheme(url: &Url, plain_http: bool) -> anyhow::Result<()> {
    match url.scheme() {
        "https" => Ok(()),
        "http" if plain_http => Ok(()),
        "http" => bail!("is http, over which anybody could send keys; plain_http allows it"),
        other => bail!("'{other}' is neither https nor http"),
    }
}

impl KeyServer {
    async fn document(&self, url: Url) -> anyhow::Result<Value> {
        let shown = url.to_string();
        let fetched = tokio::time::timeout(DEADLINE, self.bytes(url)).await;
        let bytes = fetched.context("no answer in time").flatten().with_context(|| shown.clone())?;
        serde_json::from_slice(&bytes).with_context(|| format!("{shown}: is no JSON"))
    }

    /// Builds a client with every fetch, which is rare, so that the file of authorities is read again.
    async fn bytes(&self, url: Url) -> anyhow::Result<Vec<u8>> {
        let builder = Client::builder().no_proxy().redirect(redirect::Policy::none());
        let builder = match self.ca_file.as_os_str().is_empty() {
            true => builder,
            false => {
                let read = || format!("ca_file: cannot read {}", self.ca_file.display());
                let pem = tokio::fs::read(&self.ca_file).await.with_context(read)?;
                builder.tls_certs_only(Certificate::from_pem_bundle(&pem).with_context(read)?)
            }
        };
        let mut response = builder.build()?.get(url).send().await?.error_for_status()?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            ensure!(bytes.len() + chunk.len() <= LARGEST, "has more than {LARGEST} bytes");
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}
