//! Changes of firmware at BMCs that insist on versions, and changes that are interrupted.

use domain::host::{
    firmware::reading::{FirmwareComponent, FirmwareUpdate},
    record::call::PrepareCall,
};
use expect_test::expect;

use super::{
    redfish::{BmcScene, check},
    *,
};

/// Returns a preparation that changes these parts.
fn prepare(parts: PreparationParts) -> DriverCall {
    DriverCall::Prepare(Box::new(PrepareCall {
        target_raid: None,
        actual_raid: None,
        hints: None,
        parts,
        unprepared: true,
        restart: false,
    }))
}

/// Returns a scene in which the host is to get another value of a setting.
async fn settings_scene() -> BmcScene {
    let parts = PreparationParts { settings: true, ..PreparationParts::default() };
    let mut scene = BmcScene::of(prepare(parts)).await;
    scene.order.firmware.wishes.settings = [("Turbo".into(), "Off".into())].into();
    scene
}

/// Returns a scene in which the host is to get another BIOS.
async fn update_scene() -> BmcScene {
    let parts = PreparationParts { components: true, ..PreparationParts::default() };
    let mut scene = BmcScene::of(prepare(parts)).await;
    let update = FirmwareUpdate { component: "bios".into(), url: "http://img/bios.bin".into() };
    scene.order.firmware.wishes.updates = vec![update];
    scene.order.firmware.known = vec![FirmwareComponent { name: "bios".into(), version: "1.0".into() }];
    scene
}

#[tokio::test]
async fn settings_are_changed_on_the_condition_of_their_version() {
    for (version, is_in_document) in [("", false), ("\"1\"", false), ("W/\"2\"", true)] {
        let mut scene = settings_scene().await;
        scene.bmc.set(|bmc| {
            bmc.settings_version = version;
            bmc.tells_version_in_document = is_in_document;
        });
        scene.ask("wished").await;
        scene.ask("in force").await;
        scene.ask("off again").await;
        check(
            &scene,
            expect![[r#"
                wished: in progress [PATCH Settings, POST ComputerSystem.Reset]
                in force: in progress [POST ComputerSystem.Reset]
                off again: done []
            "#]],
        );
    }
}

#[tokio::test]
async fn an_update_is_followed_after_a_restart() {
    let mut scene = update_scene().await;
    scene.ask("wished").await;
    scene.restart();
    scene.ask("restarted").await;
    scene.bmc.set(|bmc| (bmc.task, bmc.bios_version) = (None, "2.0"));
    scene.ask("updated").await;
    check(
        &scene,
        expect![[r#"
            wished: in progress [POST UpdateService.SimpleUpdate]
            restarted: in progress []
            updated: done []
        "#]],
    );
}

#[tokio::test]
async fn an_interrupted_update_without_a_trace_fails() {
    let mut scene = update_scene().await;
    scene.ask("wished").await;
    scene.restart();
    scene.bmc.set(|bmc| bmc.task = None);
    scene.ask("forgotten").await;
    check(
        &scene,
        expect![[r#"
            wished: in progress [POST UpdateService.SimpleUpdate]
            forgotten: failed: an update of firmware was interrupted, and the BMC does not show what came of it []
        "#]],
    );
}

#[tokio::test]
async fn an_update_whose_request_got_no_answer_is_not_begun_again() {
    let mut scene = update_scene().await;
    scene.bmc.set(|bmc| bmc.hangs_at = "SimpleUpdate");
    scene.ask("silent").await;
    scene.bmc.set(|bmc| (bmc.hangs_at, bmc.task) = ("", Some("Running")));
    scene.ask("it runs").await;
    scene.bmc.set(|bmc| (bmc.task, bmc.bios_version) = (Some("Completed"), "2.0"));
    scene.ask("updated").await;
    check(
        &scene,
        expect![[r#"
            silent: in progress []
            it runs: in progress []
            updated: done []
        "#]],
    );
}
