//! Whole lives of hosts behind a real Ironic: with hardware that it fakes, and with an emulated BMC.

use chassis::settings::{HostDriverName, IronicBackendSettings};

use super::{
    conformance::{
        emulator::{self, RedfishEmulator},
        ironic::IronicServer,
    },
    life::{HostMesh, host_name},
    *,
};

/// Settings of a mesh whose hosts are behind an Ironic. `hardware`: the type of every node.
fn behind<'a>(ironic: &'a IronicServer, hardware: &'a str) -> impl Fn(&mut Settings) + 'a {
    move |settings| {
        let operations = &mut settings.host_operations;
        operations.driver = HostDriverName::Ironic;
        operations.ironic.hardware = hardware.to_owned();
        operations.ironic.calls.plain_http = true;
        let backend = IronicBackendSettings { url: ironic.url.clone(), ..Default::default() };
        operations.ironic.backends.insert("one".to_owned(), backend);
    }
}

async fn until_failed(mesh: &HostMesh, name: &str, kind: &str) {
    let has_failed = || async { (mesh.get(name).await?.status?.error_type == kind).then_some(()) };
    until(&format!("{kind} of {name}"), has_failed).await;
}

async fn id(mesh: &HostMesh, name: &str) -> String {
    mesh.get(name).await.unwrap().status.unwrap().provisioning.unwrap().id
}

/// Fake hardware: inspection, deployment, and a reboot.
async fn life_of_fake(mesh: &HostMesh) {
    mesh.create("h", "password").await;
    mesh.reaches("h", "available", true).await;
    mesh.provision("h", "http://img/live.iso").await;
    mesh.reaches("h", "provisioned", true).await;
    let reboot = wire::RebootHostRequest { name: host_name("h"), hard: true, force: false };
    mesh.hosts().reboot_host(reboot).await.unwrap();
    let has_rebooted = || async {
        let annotations = mesh.get("h").await?.meta?.annotations;
        annotations.keys().all(|name| !name.starts_with("reboot")).then_some(())
    };
    until("a reboot", has_rebooted).await;
    mesh.reaches("h", "provisioned", true).await;
}

/// An emulated BMC: a wrong login, an unknown hardware type, a failed deployment, another image, and removal.
async fn life_behind_bmc(mesh: &HostMesh, emulator: &RedfishEmulator) {
    let address = format!("redfish-virtualmedia+http://{}{}", emulator.authority, emulator::SYSTEM);
    mesh.create_at("guess", "guess", &address).await;
    mesh.create_at("unknown", "password", "ipmi://127.0.0.1").await;
    until_failed(mesh, "guess", "registration error").await;
    until_failed(mesh, "unknown", "registration error").await;
    mesh.delete("guess").await;
    mesh.create_at("b", "password", &address).await;
    let adjust = |spec: &mut wire::HostSpec| {
        spec.inspection_mode = "fast".to_owned();
        spec.automated_cleaning_mode = "disabled".to_owned();
    };
    mesh.change("b", adjust).await;
    mesh.reaches("b", "available", true).await;
    mesh.provision("b", &format!("http://{}/none.iso", emulator.authority)).await;
    until_failed(mesh, "b", "provisioning error").await;
    mesh.provision("b", &emulator.image).await;
    mesh.reaches("b", "provisioned", true).await;
    mesh.delete("b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_behind_an_ironic_live_and_outlive_its_database() {
    let Some(emulator) = RedfishEmulator::start().await else { return };
    let images = emulator.image.trim_end_matches("/live.iso");
    let Some(mut ironic) = IronicServer::start(images).await else { return };
    let fakes = HostMesh::start(behind(&ironic, "fake-hardware")).await;
    let real = HostMesh::start(behind(&ironic, "")).await;
    tokio::join!(life_of_fake(&fakes), life_behind_bmc(&real, &emulator));
    real.stop().await;
    let before = id(&fakes, "h").await;
    ironic.restart_without_database().await;
    let is_known_again = || async {
        let status = fakes.get("h").await?.status?;
        let provisioning = status.provisioning?;
        let is_whole = provisioning.state == "provisioned" && status.error_type.is_empty();
        (provisioning.id != before && is_whole && status.powered_on).then_some(())
    };
    until("a node made anew", is_known_again).await;
    fakes.delete("h").await;
    fakes.stop().await;
}
