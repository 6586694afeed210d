//! Whole lives of hosts, whose calls the status evaluator decides.

use chassis::{
    Channel,
    settings::{HostDriverName, PowerDriver},
};
use proto::{host::host_service_client::HostServiceClient, simulation::RackOperation};

use super::{
    conformance::emulator::{self, RedfishEmulator},
    *,
};

/// Parts of a mesh that hosts need.
pub(super) struct HostMesh {
    contexts: Vec<Context>,
    registry: TestRegistry,
    rack: RackRpc,
    directory: TempDir,
}

impl HostMesh {
    pub(super) async fn start(adjust: impl Fn(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        settings.simulator.speed = 0.0;
        settings.host_operations.listing_seconds = 0.5;
        adjust(&mut settings);
        let registry = TestRegistry::start().await;
        let (evaluator, _) = listener().await;
        let (provisioner, provisioner_url) = listener().await;
        let (controller, controller_url) = listener().await;
        let (rack_listener, rack_url) = listener().await;
        settings.component_registry.url = registry.url();
        settings.host_provisioner.url = provisioner_url;
        settings.power_controller.url = controller_url;
        settings.power.driver = PowerDriver::Hosts;
        settings.simulator.url = rack_url;
        let contexts: Vec<_> = (0..4).map(|_| Context::new(settings.clone())).collect();
        let rack = simulator::rack(&settings.simulator).unwrap();
        let mut server = Server::default();
        server.add(RackServiceServer::new(rack.clone()));
        chassis::serve(&contexts[2], "rack", rack_listener, server).await.unwrap().now();
        crate::start(contexts[1].clone(), provisioner.into()).await.unwrap();
        power_controller::start(contexts[3].clone(), controller.into()).await.unwrap();
        status_evaluator::start(contexts[0].clone(), evaluator.into()).await.unwrap();
        Self { contexts, registry, rack, directory }
    }

    pub(super) async fn stop(self) {
        for context in &self.contexts {
            finish(context).await;
        }
        self.registry.stop().await;
        self.directory.close().unwrap();
    }

    pub(super) fn hosts(&self) -> HostServiceClient<Channel> {
        HostServiceClient::new(self.registry.channel())
    }

    pub(super) async fn create(&self, name: &str, password: &str) {
        self.create_at(name, password, "redfish-virtualmedia://bmc/redfish/v1/Systems/1").await;
    }

    pub(super) async fn create_at(&self, name: &str, password: &str, address: &str) {
        let secret = format!("{name}-login");
        self.registry.create_secret(&secret, &[("username", "admin"), ("password", password)]).await;
        let mut host = host(name);
        let spec = host.spec.as_mut().unwrap();
        spec.online = true;
        // No two hosts of a test have names of the same sum.
        let number = name.bytes().fold(0, u8::wrapping_add);
        spec.boot_mac_address = format!("00:5c:52:31:01:{number:02x}");
        let bmc = spec.bmc.as_mut().unwrap();
        bmc.credentials_name = secret;
        bmc.address = address.to_owned();
        self.registry.create_host(host).await;
    }

    pub(super) async fn get(&self, name: &str) -> Option<wire::Host> {
        self.registry.host(name).await
    }

    /// Waits until the host is in that state, and on or off.
    pub(super) async fn reaches(&self, name: &str, state: &str, is_on: bool) {
        let is_there = || async {
            let status = self.get(name).await?.status?;
            let is_there = status.provisioning?.state == state && status.powered_on == is_on;
            is_there.then_some(())
        };
        until(&format!("{name} is {state}"), is_there).await;
    }

    /// Wants an image to run on the host.
    pub(super) async fn provision(&self, name: &str, url: &str) {
        let image = wire::HostImage {
            url: url.to_owned(),
            format: "live-iso".to_owned(),
            ..wire::HostImage::default()
        };
        self.change(name, |spec| spec.image = Some(image.clone())).await;
    }

    /// Deletes the host, and waits until it is gone.
    pub(super) async fn delete(&self, name: &str) {
        self.registry.delete_host(name).await;
        until("the host is gone", || async { self.get(name).await.is_none().then_some(()) }).await;
    }

    pub(super) async fn change(&self, name: &str, edit: impl Fn(&mut wire::HostSpec)) {
        let mut host = self.get(name).await.unwrap();
        edit(host.spec.as_mut().unwrap());
        let request = wire::ReplaceHostRequest { host: Some(host), ..Default::default() };
        self.hosts().replace_host(request).await.unwrap();
    }
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

pub(super) fn host_name(name: &str) -> Option<wire::HostName> {
    Some(wire::HostName { namespace: "m".to_owned(), name: name.to_owned() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_inspected_provisioned_rebooted_and_deleted() {
    use RackOperation::{Delete, Deprovision, HardPowerOff, Inspect, PowerOn, Provision, Register};
    let mesh = HostMesh::start(|_| {}).await;
    mesh.create("h", "password").await;
    mesh.reaches("h", "available", true).await;
    mesh.provision("h", "http://img/live.iso").await;
    mesh.reaches("h", "provisioned", true).await;
    let reboot = wire::RebootHostRequest { name: host_name("h"), hard: true, force: false };
    mesh.hosts().reboot_host(reboot).await.unwrap();
    let rebooted = || async {
        let begun = mesh.rack.begun("m/h");
        begun.ends_with(&[HardPowerOff, PowerOn]).then_some(())
    };
    until("a reboot", rebooted).await;
    mesh.delete("h").await;
    let begun = mesh.rack.begun("m/h");
    let life =
        [Register, Inspect, PowerOn, Provision, HardPowerOff, PowerOn, Deprovision, HardPowerOff, Delete];
    assert_eq!(begun.iter().filter(|one| **one != RackOperation::Adopt).copied().collect::<Vec<_>>(), life);
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_with_faults_say_so_and_hold_up_no_other() {
    let mesh = HostMesh::start(|_| {}).await;
    for (name, password) in
        [("dead-bmc", "password"), ("guess", "guess"), ("fails-inspection", "password"), ("good", "password")]
    {
        mesh.create(name, password).await;
    }
    mesh.reaches("good", "available", true).await;
    for (name, kind) in [
        ("dead-bmc", "registration error"),
        ("guess", "registration error"),
        ("fails-inspection", "inspection error"),
    ] {
        let error = || async { (mesh.get(name).await?.status?.error_type == kind).then_some(()) };
        until(&format!("an error of {name}"), error).await;
    }
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_behind_an_emulated_bmc_lives_too() {
    let Some(emulator) = RedfishEmulator::start().await else { return };
    let mesh = HostMesh::start(|settings| settings.host_operations.driver = HostDriverName::Redfish).await;
    let address = format!("redfish-virtualmedia+http://{}{}", emulator.authority, emulator::SYSTEM);
    mesh.create_at("h", "password", &address).await;
    mesh.reaches("h", "available", true).await;
    mesh.provision("h", &emulator.image).await;
    mesh.reaches("h", "provisioned", true).await;
    mesh.delete("h").await;
    assert_eq!(emulator.resets(), ["On", "ForceOff", "On", "ForceOff"]);
    mesh.stop().await;
}
