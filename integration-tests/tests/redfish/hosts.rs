//! Bare-metal hosts as nodes, from the address of a BMC to a booted node.

use std::{sync::Arc, time::Duration};

use integration_tests::{
    PATIENCE,
    authority::CertificateAuthority,
    eventually,
    mesh::Mesh,
    redfish::{
        emulator::{PASSWORD, RedfishEmulator, USER, path, program},
        nodes::RedfishNodes,
        site::{RedfishSite, id, mac},
    },
};
use reqwest::Method;
use serde_json::{Value, json};

const HOSTS: u32 = 3;

const COLLECTION: &str = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts";

#[tokio::test(flavor = "multi_thread")]
async fn hosts_become_nodes_that_a_session_switches_alone() {
    let Some(program) = program() else { return };
    let authority = CertificateAuthority::new();
    let systems: Vec<_> = (0..HOSTS).map(id).collect();
    let systems: Vec<_> = systems.iter().map(String::as_str).collect();
    let emulator = Arc::new(RedfishEmulator::start(&program, &authority, &systems, &[], 0).await);
    let site = RedfishSite::new(&authority);
    let mesh = site.start_with_hosts().await;
    for number in 0..HOSTS {
        register(&mesh, &emulator, number).await;
    }
    mesh.bos.discovered(HOSTS as usize).await;
    let nodes = RedfishNodes::boot(Arc::clone(&emulator), &mesh.bos, HOSTS, Duration::ZERO);
    for image in ["image-1", "image-2"] {
        mesh.bos.template(image).await;
    }
    for (template, operation, power) in
        [("image-1", "boot", "On"), ("image-2", "reboot", "On"), ("image-2", "shutdown", "Off")]
    {
        let name = mesh.bos.session(template, operation).await;
        mesh.bos.complete(&name).await;
        for number in 0..HOSTS {
            let component = mesh.bos.component(&id(number)).await;
            assert_eq!(component["status"]["status"], "stable", "{operation}: {component}");
            let is_on = json!(power == "On");
            let shown = async || (host(&mesh, number).await["status"]["poweredOn"] == is_on).then_some(());
            eventually(&format!("{operation} to show on the host"), shown).await;
        }
    }
    // The life cycle of hosts looks at them again and leaves their power as the session left it.
    let released = async || {
        let waits = host(&mesh, 0).await["status"].to_string().contains("NodeInUse");
        (!waits).then_some(())
    };
    eventually("the host to be released", released).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(nodes);
    mesh.stop().await;
    for number in 0..HOSTS {
        let resets = emulator.resets().into_iter().filter(|(system, _)| *system == id(number));
        let kinds: Vec<_> = resets.map(|(_, kind)| kind).collect();
        assert_eq!(kinds, ["On", "GracefulShutdown", "On", "GracefulShutdown"], "{}", id(number));
    }
}

/// Registers the host with that number, which is to be off.
async fn register(mesh: &Mesh, emulator: &RedfishEmulator, number: u32) {
    let name = format!("host-{number}");
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"username": USER, "password": PASSWORD},
    });
    call(mesh, Method::POST, "/api/v1/namespaces/default/secrets", Some(&secret)).await;
    let address = format!("redfish+{}{}", emulator.url, path(number as usize));
    let wanted = json!({
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": name, "annotations": {"reveille.io/xname": id(number)}},
        "spec": {
            "online": false,
            "bootMACAddress": mac(number),
            "bmc": {"address": address, "credentialsName": name},
        },
    });
    call(mesh, Method::POST, COLLECTION, Some(&wanted)).await;
}

async fn host(mesh: &Mesh, number: u32) -> Value {
    call(mesh, Method::GET, &format!("{COLLECTION}/host-{number}"), None).await
}

async fn call(mesh: &Mesh, method: Method, path: &str, body: Option<&Value>) -> Value {
    let request = reqwest::Client::new().request(method, format!("{}/kubernetes{path}", mesh.bos.url()));
    let request = request.timeout(PATIENCE);
    let answer = match body {
        Some(body) => request.json(body).send().await,
        None => request.send().await,
    };
    let answer = answer.expect("an answer");
    let status = answer.status();
    let text = answer.text().await.expect("a whole answer");
    assert!(status.is_success(), "{path}: {status}: {text}");
    serde_json::from_str(&text).expect("JSON")
}
