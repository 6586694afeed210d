//! Whole lives of nodes behind BMCs.

use std::{sync::Arc, time::Duration};

use integration_tests::{
    authority::CertificateAuthority,
    redfish::{
        emulator::{RedfishEmulator, program},
        nodes::RedfishNodes,
        site::{RedfishPlace, RedfishSite, id},
    },
};
use reqwest::Method;
use serde_json::{Value, json};

const NODES: u32 = 12;

/// Nodes do not go off when asked to.
const DEAF: [u32; 2] = [3, 7];

#[tokio::test(flavor = "multi_thread")]
async fn a_dozen_nodes_boot_reboot_and_shut_down() {
    let Some(program) = program() else { return };
    let authority = CertificateAuthority::new();
    let (systems, deaf) = ((0..NODES).map(id).collect::<Vec<_>>(), DEAF.map(id));
    let [systems, deaf] =
        [&systems[..], &deaf].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
    let emulator = Arc::new(RedfishEmulator::start(&program, &authority, &systems, &deaf, 0).await);
    let mut site = RedfishSite::new(&authority);
    let bmcs = ["b0", "b1", "b2", "b3"];
    bmcs.iter().for_each(|bmc| site.add_bmc(bmc, &emulator.url));
    for system in 0..NODES as usize {
        site.add_node(&RedfishPlace { bmc: bmcs[system % bmcs.len()], system });
    }
    let mesh = site.start().await;
    let nodes = RedfishNodes::boot(Arc::clone(&emulator), &mesh.bos, NODES, Duration::ZERO);
    mesh.bos.expect(Method::PATCH, "/v2/options", Some(&json!({ "max_power_off_wait_time": 2 }))).await;
    mesh.bos.template("image-1").await;
    mesh.bos.template("image-2").await;
    for (template, operation, power, kernel) in [
        ("image-1", "boot", "On", "s3://boot-images/image-1/kernel"),
        ("image-2", "reboot", "On", "s3://boot-images/image-2/kernel"),
        ("image-2", "shutdown", "Off", ""),
    ] {
        let name = mesh.bos.session(template, operation).await;
        mesh.bos.complete(&name).await;
        for component in mesh.bos.get("/v2/components").await.as_array().unwrap() {
            assert_eq!(component["status"]["status"], "stable", "{operation}: {component}");
            assert_eq!(component["error"], "", "{operation}: {component}");
            let booted = &component["actual_state"]["boot_artifacts"]["kernel"];
            assert_eq!(*booted, Value::from(kernel), "{operation}: {component}");
        }
        for system in 0..NODES as usize {
            assert_eq!(emulator.power(system).await, power, "{operation}");
        }
    }
    drop(nodes);
    mesh.stop().await;

    let resets = emulator.resets();
    for node in 0..NODES {
        let of_node = resets.iter().filter(|(system, _)| *system == id(node));
        let kinds: Vec<_> = of_node.map(|(_, kind)| kind.as_str()).collect();
        let off: &[_] =
            if DEAF.contains(&node) { &["GracefulShutdown", "ForceOff"] } else { &["GracefulShutdown"] };
        assert_eq!(kinds, [&["On"], off, &["On"], off].concat(), "each once, {}", id(node));
    }
}
