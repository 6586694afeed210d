//! Devices that fleets own, give templates and release, and that are rendered.

use proto::{
    device::{
        Device, DeviceFilter, PollRenderedDeviceRequest, RestoreMark, ResumeDevicesRequest,
        device_agent_service_client::DeviceAgentServiceClient,
    },
    fleet::DeleteFleetRequest,
};
use tonic::Code;

use super::world::World;

const NORTH: &[(&str, &str)] = &[("site", "north")];
const FIRST: &str = r#"{"greeting":"v1 of {{ .metadata.labels.site }}"}"#;
const SECOND: &str = r#"{"greeting":"v2"}"#;

fn owner(device: &Device) -> String {
    device.meta.clone().unwrap_or_default().owner_fleet
}

fn document(device: &Device) -> String {
    device.spec.clone().unwrap_or_default().document_json
}

fn rendered(device: &Device) -> u64 {
    device.meta.clone().unwrap_or_default().annotations.unwrap_or_default().rendered_version
}

/// Version of the template that was rendered, with the number of the rendered spec.
fn versions(device: &Device) -> (String, u64) {
    let annotations = device.meta.clone().unwrap_or_default().annotations.unwrap_or_default();
    (annotations.rendered_template_version, annotations.rendered_version)
}

fn rollout_error(device: &Device) -> String {
    device.meta.clone().unwrap_or_default().annotations.unwrap_or_default().last_rollout_error
}

fn mark(device: &Device) -> RestoreMark {
    device.meta.clone().unwrap_or_default().annotations.unwrap_or_default().restore_mark()
}

/// Status and message of a condition.
fn condition(device: &Device, kind: &str) -> Option<(String, String)> {
    let found = device.conditions.iter().find(|condition| condition.r#type == kind);
    found.map(|condition| (condition.status.clone(), condition.message.clone()))
}

fn contested(device: &Device) -> Option<(String, String)> {
    condition(device, "MultipleOwners")
}

fn validity(device: &Device) -> Option<String> {
    condition(device, "SpecValid").map(|(status, _)| status)
}

fn text(text: &str) -> String {
    text.to_owned()
}

async fn delete_fleet(world: &World, name: &str) {
    world.fleets().delete_fleet(DeleteFleetRequest { name: name.to_owned() }).await.unwrap();
}

/// Polls as an agent that has that version; returns the version that it is given.
async fn poll(world: &World, name: &str, known: Option<&str>) -> Result<Option<u64>, tonic::Status> {
    let known_version = known.map(str::to_owned);
    let longest_wait = Some(Default::default());
    let request =
        PollRenderedDeviceRequest { name: name.to_owned(), known_version, longest_wait, is_onlooker: false };
    let mut agents = DeviceAgentServiceClient::new(world.registry.channel());
    let answer = agents.poll_rendered_device(request).await?.into_inner();
    Ok(answer.device.as_ref().map(rendered))
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_devices_get_templates_until_their_fleet_is_gone() {
    for database in test_databases::every_kind().await {
        let world = World::start(database).await;
        world.create_device("d1", NORTH, "").await;
        world.create_device("d2", &[("site", "south")], r#"{"mine":1}"#).await;
        world.create_fleet("kiosk", NORTH, FIRST).await;
        world.shows("d1", text("v1"), |device| versions(device).0).await;
        assert_eq!(document(&world.device("d1").await), r#"{"greeting":"v1 of north"}"#);
        let refused = world.replace_device("d1", NORTH, r#"{"mine":1}"#).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        world.replace_fleet("kiosk", NORTH, SECOND).await;
        world.shows("d1", text("v2"), |device| versions(device).0).await;
        assert_eq!(document(&world.device("d1").await), SECOND);
        world.shows("d2", 1, rendered).await;
        assert_eq!(document(&world.device("d2").await), r#"{"mine":1}"#);
        delete_fleet(&world, "kiosk").await;
        world.shows("d1", text(""), owner).await;
        assert_eq!(document(&world.device("d1").await), SECOND, "released devices keep their specs");
        world.replace_device("d1", NORTH, r#"{"mine":1}"#).await.unwrap();
        let story = world.device_story("d1").await;
        assert!(story.contains(&text("DeviceSpecValid")), "{story:?}");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_fleet_wins_over_another() {
    for database in test_databases::every_kind().await {
        let world = World::start(database).await;
        world.create_fleet("a", &[("x", "1")], SECOND).await;
        world.create_fleet("b", &[("y", "1")], FIRST).await;
        world.create_fleet("nothing", &[], FIRST).await;
        world.create_device("d1", &[("x", "1"), ("y", "1")], "").await;
        world.shows("d1", Some((text("True"), text("a,b"))), contested).await;
        assert_eq!(owner(&world.device("d1").await), "");
        delete_fleet(&world, "b").await;
        world.shows("d1", text("a"), owner).await;
        world.shows("d1", Some((text("False"), text(""))), contested).await;
        world.shows("d1", text("v1"), |device| versions(device).0).await;
        world.replace_device("d1", &[("z", "1")], SECOND).await.unwrap();
        world.shows("d1", text(""), owner).await;
        let story = world.device_story("d1").await;
        for kind in ["DeviceMultipleOwnersDetected", "DeviceMultipleOwnersResolved"] {
            assert_eq!(story.iter().filter(|one| *one == kind).count(), 1, "{story:?}");
        }
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn template_waits_for_the_labels_that_it_names() {
    let world = World::start(test_databases::every_kind().await.swap_remove(0)).await;
    world.create_fleet("kiosk", &[("x", "1")], FIRST).await;
    world.create_device("d1", &[("x", "1")], "").await;
    world.shows("d1", true, |device| rollout_error(device).contains("no label 'site'")).await;
    world.replace_device("d1", &[("x", "1"), ("site", "north")], "").await.unwrap();
    world.shows("d1", text("v1"), |device| versions(device).0).await;
    assert_eq!(rollout_error(&world.device("d1").await), "");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_specs_are_one_version() {
    let world = World::start(test_databases::every_kind().await.swap_remove(0)).await;
    world.create_device("d1", &[], r#"{"a":1}"#).await;
    world.shows("d1", 1, rendered).await;
    assert_eq!(poll(&world, "d1", None).await.unwrap(), Some(1));
    assert_eq!(poll(&world, "d1", Some("1")).await.unwrap(), None);
    world.replace_device("d1", NORTH, r#"{ "a": 1 }"#).await.unwrap();
    world.replace_device("d1", NORTH, r#"{"a":2}"#).await.unwrap();
    world.shows("d1", 2, rendered).await;
    assert_eq!(poll(&world, "d1", Some("1")).await.unwrap(), Some(2));
    world.replace_device("d1", NORTH, r#"{"config":[{"gitRef":{},"name":"c"}]}"#).await.unwrap();
    world.shows("d1", Some(text("False")), validity).await;
    assert_eq!(rendered(&world.device("d1").await), 2);
    world.replace_device("d1", NORTH, r#"{"a":2}"#).await.unwrap();
    world.shows("d1", Some(text("True")), validity).await;
    assert_eq!(rendered(&world.device("d1").await), 2);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_devices_get_a_version_above_the_one_that_they_run() {
    let world = World::start(test_databases::every_kind().await.swap_remove(0)).await;
    world.create_device("d1", &[], r#"{"a":1}"#).await;
    world.shows("d1", 1, rendered).await;
    world
        .devices()
        .mark_devices_restored(proto::device::MarkDevicesRestoredRequest::default())
        .await
        .unwrap();
    assert_eq!(mark(&world.device("d1").await), RestoreMark::AwaitingReconnect);
    assert_eq!(poll(&world, "d1", Some("7")).await.unwrap(), Some(1));
    assert_eq!(mark(&world.device("d1").await), RestoreMark::ConflictPaused);
    world.replace_device("d1", NORTH, r#"{"a":2}"#).await.unwrap();
    // A later device shows that the engine has been past the paused one.
    world.create_device("d2", &[], "").await;
    world.shows("d2", 1, rendered).await;
    assert_eq!(rendered(&world.device("d1").await), 1, "nothing is rendered while a device is paused");
    let filter = DeviceFilter { field_selector: "metadata.name=d1".to_owned(), ..DeviceFilter::default() };
    let resume = ResumeDevicesRequest { filter: Some(filter) };
    assert_eq!(world.devices().resume_devices(resume).await.unwrap().into_inner().resumed_devices, 1);
    world.shows("d1", 8, rendered).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_during_an_absence_are_decided_about_at_the_start() {
    for database in test_databases::every_kind().await {
        let mut world = World::start(database).await;
        world.create_fleet("kiosk", NORTH, SECOND).await;
        world.create_device("d1", NORTH, "").await;
        world.create_device("d2", &[], "").await;
        world.shows("d1", text("kiosk"), owner).await;
        world.shows("d2", 1, rendered).await;
        world
            .restart(async |world| {
                world.replace_device("d1", &[], SECOND).await.unwrap();
                world.replace_device("d2", NORTH, "").await.unwrap();
            })
            .await;
        world.shows("d1", text(""), owner).await;
        world.shows("d2", text("v1"), |device| versions(device).0).await;
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn template_reaches_a_large_fleet_in_one_pass() {
    let world = World::start(test_databases::every_kind().await.swap_remove(0)).await;
    world.create_fleet("kiosk", NORTH, FIRST).await;
    for number in 0..300 {
        world.create_device(&format!("d{number}"), NORTH, "").await;
    }
    world.replace_fleet("kiosk", NORTH, SECOND).await;
    for number in 0..300 {
        world.shows(&format!("d{number}"), text("v2"), |device| versions(device).0).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_commits_of_the_registry_are_made_up_for() {
    let world = World::start(test_databases::every_kind().await.swap_remove(0)).await;
    world.create_fleet("kiosk", NORTH, SECOND).await;
    world.create_device("d1", NORTH, "").await;
    world.shows("d1", text("v1"), |device| versions(device).0).await;
    let copy = world.registry.copy().await;
    world.replace_fleet("kiosk", NORTH, FIRST).await;
    world.shows("d1", (text("v2"), 2), versions).await;
    world.registry.restore(&copy).await;
    // A restored file cannot be told from its original, so a person marks the devices.
    world.shows("d1", (text("v2"), 2), versions).await;
    assert_eq!(document(&world.device("d1").await), r#"{"greeting":"v1 of north"}"#);
    world.stop().await;
}
