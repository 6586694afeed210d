//! Unusable BMCs are distinguished, and affect no other node.

use std::{sync::Arc, time::Duration};

use integration_tests::{
    authority::CertificateAuthority,
    eventually,
    redfish::{
        emulator::{PASSWORD, RedfishEmulator, program},
        nodes::RedfishNodes,
        site::{RedfishPlace, RedfishSite, id},
    },
};
use serde_json::Value;

const WRONG: &str = "wr0ng-for-the-bmc";

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_trouble_shows_on_its_node_only() {
    let Some(program) = program() else { return };
    let (ours, foreign) = (CertificateAuthority::new(), CertificateAuthority::new());
    let (fine, stranger) = (id(0), id(1));
    let emulator = Arc::new(RedfishEmulator::start(&program, &ours, &[&fine, &stranger], &[], 0).await);
    let impostor = RedfishEmulator::start(&program, &foreign, &[&id(2)], &[], 0).await;
    let mut site = RedfishSite::new(&ours);
    for (bmc, url) in [
        ("good", &*emulator.url),
        ("strange", &emulator.url),
        ("foreign", &impostor.url),
        ("down", "https://127.0.0.1:1"),
    ] {
        site.add_bmc(bmc, url);
    }
    site.write_credentials("strange", WRONG);
    for (bmc, system) in [("good", 0), ("strange", 1), ("foreign", 0), ("down", 0)] {
        site.add_node(&RedfishPlace { bmc, system });
    }
    let mesh = site.start().await;
    let _nodes = RedfishNodes::boot(Arc::clone(&emulator), &mesh.bos, 2, Duration::ZERO);
    mesh.bos.template("image-1").await;
    mesh.bos.session("image-1", "boot").await;

    let component = async |node: u32| mesh.bos.get(&format!("/v2/components/{}", id(node))).await;
    let stable = async |node: u32| (component(node).await["status"]["status"] == "stable").then_some(());
    eventually("the node without trouble to boot", async || stable(0).await).await;
    for (node, bmc, words) in [
        (1, "BMC strange", "wrong user name or password"),
        (2, "BMC foreign", "invalid peer certificate"),
        (3, "BMC down", "refused"),
    ] {
        let told = async || {
            let error = component(node).await["error"].as_str()?.to_owned();
            (error.contains(bmc) && error.contains(words)).then_some(())
        };
        eventually(&format!("{bmc} to be said to have trouble: {words}"), told).await;
    }
    let all = mesh.bos.get("/v2/components").await.to_string();
    assert!(![PASSWORD, WRONG].iter().any(|secret| all.contains(secret)), "{all}");

    site.write_credentials("strange", PASSWORD);
    eventually("the node to boot with the right password", async || stable(1).await).await;
    assert_eq!(component(1).await["error"], Value::from(""));
    assert_eq!(impostor.resets(), []);
    mesh.stop().await;
}
