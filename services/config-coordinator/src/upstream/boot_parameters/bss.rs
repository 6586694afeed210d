//! The boot script service (BOS reference 6.5).

use std::{sync::Arc, time::Duration};

use ::upstream::{FirstCall, Peer, Request};
use chassis::settings;
use domain::{boot::component::artifacts::BootArtifacts, core::id::ComponentId};
use http::HeaderName;
use serde::Serialize;

use super::{Failure, malformed, of_a_list, peer, text};
use crate::questions;

/// Header with the token of a call. Header names are the same in any letter case.
const TOKEN: HeaderName = HeaderName::from_static("bss-referral-token");

/// Boot script service at one address.
#[derive(Clone)]
pub(crate) struct BssDriver {
    peer: Peer,
}

/// Body of a call. It has no cloud-init data, and a call removes those of the host, as a call by BOS does.
#[derive(Serialize)]
struct BssBootParameters<'a> {
    hosts: Vec<&'a str>,
    params: &'a str,
    kernel: &'a str,
    initrd: &'a str,
}

impl BssDriver {
    pub(crate) fn new(settings: &settings::Peer) -> anyhow::Result<Self> {
        Ok(Self { peer: peer("BSS", "boot_parameters.bss", settings)? })
    }

    pub(crate) fn first_call(&self) -> FirstCall {
        FirstCall { peer: self.peer.clone(), request: questions::of_boot_parameters() }
    }

    pub(crate) fn most_hosts(&self) -> usize {
        self.peer.batch_size()
    }

    pub(crate) async fn put(
        &self,
        hosts: &[ComponentId],
        artifacts: &BootArtifacts,
        deadline: Duration,
    ) -> Result<Arc<str>, Failure> {
        let body = BssBootParameters {
            hosts: hosts.iter().map(ComponentId::as_str).collect(),
            params: text(&artifacts.kernel_parameters),
            kernel: text(&artifacts.kernel),
            initrd: text(&artifacts.initrd),
        };
        let request = Request::put("boot_parameters_put", "/bootparameters")
            .json(&body)
            .items(hosts.len())
            .answer_within(deadline);
        let answer = self.peer.call(request).await.map_err(of_a_list)?;
        let token = answer.headers.get(TOKEN).and_then(|token| token.to_str().ok()).map(str::trim);
        match token {
            Some(token) if !token.is_empty() => Ok(token.into()),
            // Without a token it is unknown later which data a node booted, so this is no acceptance.
            Some(_) | None => Err(malformed(&self.peer, "the answer has no header BSS-Referral-Token")),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::peers::{PlayedPeers, PlayedTrouble};

    const SOON: Duration = Duration::from_millis(300);

    fn hosts() -> [ComponentId; 2] {
        ["x1", "x2"].map(|id| ComponentId::parse(id).unwrap())
    }

    #[tokio::test]
    async fn nothing_is_accepted_without_a_token() {
        let mut told = String::new();
        for trouble in [
            None,
            Some(PlayedTrouble::Bare),
            Some(PlayedTrouble::Hang),
            Some(PlayedTrouble::Status(400)),
            Some(PlayedTrouble::Status(401)),
            Some(PlayedTrouble::Status(404)),
            Some(PlayedTrouble::Status(429)),
            Some(PlayedTrouble::Status(500)),
            Some(PlayedTrouble::Status(503)),
        ] {
            let peers = PlayedPeers::play().await;
            peers.state().trouble.extend(trouble.map(|trouble| ("bss", trouble)));
            let bss = BssDriver::new(&peers.settings().boot_parameters.bss).unwrap();
            let outcome = match bss.put(&hosts(), &BootArtifacts::default(), SOON).await {
                Ok(token) => format!("token {token}"),
                Err(failure) => format!("{}: {}", failure.kind.word(), peers.plain(&failure.text)),
            };
            told += &format!("{trouble:?}\n    {outcome}\n");
        }
        expect![[r#"
            None
                token token-1
            Some(Bare)
                ambiguous: BSS at http://HOST/bss/boot/v1: the answer has no header BSS-Referral-Token
            Some(Hang)
                ambiguous: BSS at HOST (failing since TIME: no answer within 300ms)
            Some(Status(400))
                refused: BSS at HOST (refused PUT /bootparameters: 400 Bad Request: out of order)
            Some(Status(401))
                denied: BSS at HOST (refused PUT /bootparameters since TIME: 401 Unauthorized: out of order)
            Some(Status(404))
                denied: BSS at HOST (refused PUT /bootparameters: 404 Not Found: out of order)
            Some(Status(429))
                unreachable: BSS at HOST (failing since TIME: 429 Too Many Requests: out of order)
            Some(Status(500))
                ambiguous: BSS at HOST (failing since TIME: 500 Internal Server Error: out of order)
            Some(Status(503))
                ambiguous: BSS at HOST (failing since TIME: 503 Service Unavailable: out of order)
        "#]]
        .assert_eq(&told);
    }

    #[tokio::test]
    async fn missing_texts_are_empty_ones() {
        let peers = PlayedPeers::play().await;
        let bss = BssDriver::new(&peers.settings().boot_parameters.bss).unwrap();
        let artifacts = BootArtifacts { kernel: Some("k".into()), ..BootArtifacts::default() };
        bss.put(&hosts(), &artifacts, SOON).await.unwrap();
        let (_, body) = peers.state().bss["x1"].clone();
        expect![[r#"{"hosts":["x1","x2"],"initrd":"","kernel":"k","params":""}"#]]
            .assert_eq(&body.to_string());
    }

    #[tokio::test]
    async fn settings_that_cannot_be_used_are_named() {
        let mut settings = PlayedPeers::play().await.settings().boot_parameters.bss;
        settings.plain_http = false;
        let error = BssDriver::new(&settings).err().unwrap();
        expect!["boot_parameters.bss: url: is not encrypted, which has to be allowed by plain_http = true"]
            .assert_eq(&format!("{error:#}"));
    }
}
