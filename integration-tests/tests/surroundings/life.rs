//! Whole lives of nodes through all systems.

use integration_tests::{mesh::Mesh, places};
use serde_json::Value;
use upstreams::{EventKind, MachinePlan, Service};

use crate::scene::{MeshScene, every_role};

const NODES: u32 = 96;

/// A tenant and a node of its own.
const TENANT: &str = "blue";

fn plan() -> MachinePlan {
    let plan = MachinePlan::quick(NODES);
    let tenants = [(TENANT.to_owned(), vec![plan.hardware[0].id.clone()])].into();
    MachinePlan { tenants, ..plan }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_boots_reboots_and_shuts_down() {
    let scene = MeshScene::of(plan(), |_| {}).await;
    whole_life(&scene).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_on_postgresql() {
    let mut on_postgres = false;
    let (mesh, upstreams) =
        Mesh::among(plan(), async |settings| on_postgres = places::on_postgres(settings).await).await;
    let scene = MeshScene { mesh, upstreams };
    if on_postgres {
        whole_life(&scene).await;
    } else {
        eprintln!("not tested on PostgreSQL: {} is not set", test_databases::POSTGRES);
    }
    scene.end().await;
}

async fn whole_life(scene: &MeshScene) {
    let bos = &scene.mesh.bos;
    for template in ["image-1", "image-2"] {
        bos.template_with(template, every_role).await;
    }
    for (template, operation, kernel) in [
        ("image-1", "boot", "s3://boot-images/image-1/kernel"),
        ("image-2", "boot", "s3://boot-images/image-2/kernel"),
        ("image-2", "reboot", "s3://boot-images/image-2/kernel"),
        ("image-2", "shutdown", ""),
    ] {
        let name = bos.session(template, operation).await;
        scene.succeeds(&name).await;
        for component in bos.get("/v2/components").await.as_array().unwrap() {
            assert_eq!(component["status"]["status"], "stable", "{operation}: {component}");
            let booted = &component["actual_state"]["boot_artifacts"]["kernel"];
            assert_eq!(*booted, Value::from(kernel), "{operation}: {component}");
        }
    }
    let ids = scene.upstreams.ids();
    scene.were_asked(&ids, &["On", "Soft-Off", "On", "Soft-Off", "On", "Soft-Off"]);
    ids.iter().for_each(|id| was_prepared_before_every_boot(scene, id));
    tenants_use_their_own(scene).await;
    scene.was_orderly();
    for service in Service::ALL {
        let asked = scene.upstreams.counts().iter().any(|count| count.service == service);
        assert!(asked, "{} was not asked for anything", service.word());
    }
}

/// Before each power-on of a node its boot data and configuration were accepted, and it boots just these data.
fn was_prepared_before_every_boot(scene: &MeshScene, id: &str) {
    let (mut token, mut configured, mut boots) = (None, false, 0);
    for event in scene.upstreams.history(id).unwrap() {
        match event.what {
            EventKind::BootData { token: given } => token = Some(given),
            EventKind::Configuration { enabled: false, cleared: true, .. } => configured = true,
            EventKind::Asked { operation: "On", .. } => {
                assert!(token.is_some() && configured, "{id} was turned on unprepared");
                configured = false;
            }
            EventKind::Booted { token: found } => {
                assert_eq!(Some(found), token.take(), "{id} booted something else");
                boots += 1;
            }
            _ => {}
        }
    }
    assert_eq!(boots, 3, "{id}");
}

async fn tenants_use_their_own(scene: &MeshScene) {
    let bos = scene.mesh.bos.of_tenant(TENANT);
    bos.template("image-1").await;
    let name = bos.session("image-1", "boot").await;
    let session = bos.complete(&name).await;
    assert_eq!(session["status"]["error"], Value::Null, "{session}");
    assert_eq!(session["components"], scene.first(1)[0], "{session}");
}
