//! Plays the operating systems: a node that is switched on fetches its boot script and reports the boot.

use reqwest::Method;
use serde_json::json;
use tokio::{
    task::{JoinHandle, JoinSet},
    time::Duration,
};

use super::{
    emulator::RedfishEmulator,
    site::{id, mac},
};
use crate::{PATIENCE, bos::Bos};

/// Prefix of the kernel parameter that carries the token for the node's report.
const TOKEN: &str = "bss_referral_token=";

/// Nodes that boot until this is dropped.
pub struct RedfishNodes {
    booting: JoinHandle<()>,
}

impl RedfishNodes {
    /// Boots the first `count` nodes of a site, which are the systems of `emulator` in the same order, whenever they
    /// are switched on. Each reports after the delay `boot`.
    pub fn boot(emulator: std::sync::Arc<RedfishEmulator>, bos: &Bos, count: u32, boot: Duration) -> Self {
        let bos = bos.clone();
        let booting = tokio::spawn(async move {
            let mut seen = 0;
            let mut reports = JoinSet::new();
            loop {
                let resets = emulator.resets();
                for (system, kind) in &resets[seen..] {
                    if kind == "On" {
                        let node = (0..count).find(|&node| id(node) == *system).expect("a node of the site");
                        let bos = bos.clone();
                        reports.spawn(async move {
                            tokio::time::sleep(boot).await;
                            report(&bos, node).await;
                        });
                    }
                }
                seen = resets.len();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { booting }
    }
}

impl Drop for RedfishNodes {
    fn drop(&mut self) {
        self.booting.abort();
    }
}

/// Reports a boot. The script exists already, since no node is switched on without one.
async fn report(bos: &Bos, node: u32) {
    let request = reqwest::Client::new().get(format!("{}/boot/v1/bootscript", bos.url()));
    let answer = request.query(&[("mac", mac(node))]).timeout(PATIENCE).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{answer:?}");
    let script = answer.text().await.expect("a script");
    let token =
        script.split_whitespace().find_map(|word| word.strip_prefix(TOKEN)).expect("a token in the script");
    let (id, state) = (id(node), json!({ "bss_token": token }));
    let report = json!({ "id": id, "actual_state": state });
    bos.expect(Method::PATCH, &format!("/v2/components/{id}"), Some(&report)).await;
}
