//! Records about the firmware of a host behind a real emulator of BMCs, from a wish to its fulfilment.

use chassis::{kinds::host::call::registration_to_wire, settings::HostDriverName};
use domain::host::record::call::{PrepareCall, Registration};
use proto::host::DocumentKind;
use serde_json::{Value, json};

use super::{conformance::emulator, *};

/// Host behind an emulated BMC, with its records.
struct FirmwareScene {
    mesh: ProvisionerMesh,
    bmc: emulator::RedfishEmulator,
}

impl FirmwareScene {
    /// Returns a host that is known to the driver, whose records have these wishes; `None` where the emulator is missing.
    async fn with(settings: Value, updates: Value) -> Option<Self> {
        let bmc = emulator::RedfishEmulator::start().await?;
        let mut mesh = ProvisionerMesh::new(1.0).await;
        mesh.settings.host_operations.driver = HostDriverName::Redfish;
        let scene = Self { mesh, bmc };
        scene.put(DocumentKind::FirmwareSettings, json!({ "settings": settings })).await;
        scene.put(DocumentKind::FirmwareComponents, json!({ "updates": updates })).await;
        scene.mesh.registry.create_host(scene.host()).await;
        scene.decide(wire::HostProgress::default()).await;
        Some(scene)
    }

    fn host(&self) -> wire::Host {
        let mut host = host("h");
        let bmc = host.spec.as_mut().unwrap().bmc.as_mut().unwrap();
        bmc.address = format!("redfish-virtualmedia+http://{}{}", self.bmc.authority, emulator::SYSTEM);
        host
    }

    /// Records the host as registered, with this progress besides.
    async fn decide(&self, mut progress: wire::HostProgress) {
        let id = self.mesh.registry.host("h").await.unwrap().meta.unwrap().uid;
        let provisioning = wire::ProvisioningStatus { id, ..wire::ProvisioningStatus::default() };
        let status = wire::HostStatus { provisioning: Some(provisioning), ..wire::HostStatus::default() };
        progress.registered = Some(registration_to_wire(&Registration::default()));
        self.mesh.registry.decide_host("h", Some(status), Some(progress)).await;
    }

    async fn put(&self, kind: DocumentKind, spec: Value) {
        self.mesh.registry.put_document(kind, "h", &spec.to_string()).await;
    }

    /// Waits until the record has judged its wishes in their present generation so, and returns its status.
    async fn judged(&self, kind: DocumentKind, is_changed: &str, is_valid: &str) -> Value {
        let look = || async {
            let document = self.mesh.registry.document(kind, "h").await?;
            let status: Value = serde_json::from_str(&document.status_json).ok()?;
            let generation = document.meta.as_ref()?.generation;
            let conditions = status["conditions"].as_array()?;
            let is_present = conditions.iter().all(|one| one["observedGeneration"] == generation);
            let words: Vec<_> = conditions.iter().map(|one| one["status"].as_str().unwrap()).collect();
            (is_present && words == [is_changed, is_valid]).then_some(status)
        };
        until("a judgement", look).await
    }

    /// Prepares the host as the status evaluator does, and records the end of that.
    async fn prepare(&self, number: u64, parts: PreparationParts) -> DriverAnswer {
        let call = DriverCall::Prepare(Box::new(PrepareCall {
            target_raid: None,
            actual_raid: None,
            hints: None,
            parts,
            unprepared: true,
            restart: false,
        }));
        let since = clock::now();
        for number in number.. {
            self.mesh.ask_about(self.host(), number, &call, since).await;
            let answer = self.mesh.answer("h", number).await;
            if !matches!(answer, DriverAnswer::InProgress { .. }) {
                let firmware_changed_at = Some(time::to_wire(clock::now()));
                self.decide(wire::HostProgress { firmware_changed_at, ..Default::default() }).await;
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        unreachable!("numbers do not end")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_firmware_wish_is_judged_fulfilled_and_read_again() {
    let image = "http://127.0.0.1:9/bios.bin";
    let update = json!([{"component": "bios", "url": image}]);
    let Some(mut scene) = FirmwareScene::with(json!({"ProcTurboMode": "Off"}), update).await else {
        eprintln!("not tested: the emulator of BMCs is missing, which integration-tests/run installs");
        return;
    };
    scene.mesh.start().await;
    let refused = scene.judged(DocumentKind::FirmwareSettings, "True", "False").await;
    assert_eq!(refused["conditions"][1]["message"], "ProcTurboMode: is none of the allowed values");
    assert_eq!(refused["settings"]["ProcTurboMode"], "Enabled");
    let schema = refused["schema"]["name"].as_str().unwrap();
    assert!(scene.mesh.registry.document(DocumentKind::FirmwareSchema, schema).await.is_some(), "{schema}");

    scene.put(DocumentKind::FirmwareSettings, json!({"settings": {"ProcTurboMode": "Disabled"}})).await;
    scene.judged(DocumentKind::FirmwareSettings, "True", "True").await;
    let settings = PreparationParts { settings: true, ..PreparationParts::default() };
    assert_eq!(show(&scene.prepare(1, settings).await), "done");
    let fulfilled = scene.judged(DocumentKind::FirmwareSettings, "False", "True").await;
    assert_eq!(fulfilled["settings"]["ProcTurboMode"], "Disabled");

    scene.judged(DocumentKind::FirmwareComponents, "True", "True").await;
    let components = PreparationParts { components: true, ..PreparationParts::default() };
    assert_eq!(show(&scene.prepare(1000, components).await), "done");
    let updated = || async {
        let document = scene.mesh.registry.document(DocumentKind::FirmwareComponents, "h").await?;
        document.status_json.contains(r#""lastVersionFlashed":"1.1.0""#).then_some(())
    };
    until("the new version", updated).await;
    assert_eq!(scene.bmc.resets(), ["On", "ForceOff"]);
    scene.mesh.end().await;
}
