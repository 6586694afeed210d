//! Records about the firmware of a host behind a real emulator of BMCs, from a wish to its fulfilment.

use chassis::settings::HostDriverName;
use domain::host::record::call::PrepareCall;
use proto::host::{
    DocumentKind, HostDocument, host_document_service_server::HostDocumentServiceServer,
    host_secret_service_server::HostSecretServiceServer, host_service_server::HostServiceServer,
};
use serde_json::{Value, json};

use super::{conformance::emulator, *};
use crate::testing::documents::FakeDocuments;

/// Host behind an emulated BMC, with its records.
struct FirmwareScene {
    mesh: ProvisionerMesh,
    documents: FakeDocuments,
    bmc: emulator::RedfishEmulator,
}

impl FirmwareScene {
    /// Returns a host that is known to the driver, whose records have these wishes; `None` where the emulator is missing.
    async fn with(settings: Value, updates: Value) -> Option<Self> {
        let bmc = emulator::RedfishEmulator::start().await?;
        let mut mesh = ProvisionerMesh::new(1.0).await;
        let documents = FakeDocuments::open(&mesh.around).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        mesh.settings.component_registry.url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = Server::default();
        server.add(HostServiceServer::new(mesh.registry.clone()));
        server.add(HostSecretServiceServer::new(mesh.registry.clone()));
        server.add(HostDocumentServiceServer::new(documents.clone()));
        chassis::serve(&mesh.around, "registry", listener, server).await.unwrap().now();
        mesh.settings.host_operations.driver = HostDriverName::Redfish;
        let scene = Self { mesh, documents, bmc };
        scene.put(DocumentKind::FirmwareSettings, json!({ "settings": settings })).await;
        scene.put(DocumentKind::FirmwareComponents, json!({ "updates": updates })).await;
        scene.mesh.registry.put(scene.host()).await;
        Some(scene)
    }

    fn host(&self) -> wire::Host {
        let mut host = host("h", "uid-1");
        let bmc = host.spec.as_mut().unwrap().bmc.as_mut().unwrap();
        bmc.address = format!("redfish-virtualmedia+http://{}{}", self.bmc.authority, emulator::SYSTEM);
        let provisioning = wire::ProvisioningStatus { id: "uid-1".to_owned(), ..Default::default() };
        host.status = Some(wire::HostStatus { provisioning: Some(provisioning), ..Default::default() });
        host.progress = Some(wire::HostProgress {
            registered: Some(wire::Registration::default()),
            ..Default::default()
        });
        host
    }

    async fn put(&self, kind: DocumentKind, spec: Value) {
        let mut document = self.documents.get(kind, "h").unwrap_or_else(|| {
            let meta = wire::ObjectMeta {
                namespace: "m".to_owned(),
                name: "h".to_owned(),
                ..wire::ObjectMeta::default()
            };
            HostDocument { kind: kind.into(), meta: Some(meta), ..HostDocument::default() }
        });
        document.spec_json = spec.to_string();
        document.meta.as_mut().unwrap().generation += 1;
        self.documents.put(document).await;
    }

    /// Waits until the record has judged its wishes in their present generation so, and returns its status.
    async fn judged(&self, kind: DocumentKind, is_changed: &str, is_valid: &str) -> Value {
        let look = || async {
            let document = self.documents.get(kind, "h")?;
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
                let mut host = self.host();
                let progress = host.progress.as_mut().unwrap();
                progress.firmware_changed_at = Some(time::to_wire(clock::now()));
                self.mesh.registry.put(host).await;
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
    assert!(scene.documents.get(DocumentKind::FirmwareSchema, schema).is_some(), "{schema}");

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
        let document = scene.documents.get(DocumentKind::FirmwareComponents, "h")?;
        document.status_json.contains(r#""lastVersionFlashed":"1.1.0""#).then_some(())
    };
    until("the new version", updated).await;
    assert_eq!(scene.bmc.resets(), ["On", "ForceOff"]);
    scene.mesh.end().await;
}
