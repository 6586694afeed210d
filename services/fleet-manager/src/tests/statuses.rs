//! Statuses of devices that a fleet owns, beside the status evaluator.

use proto::device::{
    AgentReport, Device, ReportDeviceStatusRequest, StatusDocument,
    device_agent_service_client::DeviceAgentServiceClient,
};

use super::world::{World, stop};

const NORTH: &[(&str, &str)] = &[("site", "north")];

async fn report(world: &World, name: &str, version: &str) {
    let report = AgentReport { rendered_version: version.to_owned(), ..AgentReport::default() };
    let document = Some(StatusDocument { report: Some(report), lifecycle: None });
    let request = ReportDeviceStatusRequest { name: name.to_owned(), document, ..Default::default() };
    let mut agents = DeviceAgentServiceClient::new(world.registry.channel());
    agents.report_device_status(request).await.unwrap();
}

fn statuses(device: &Device) -> (String, String) {
    let status = device.status.clone().unwrap_or_default();
    (status.summary.unwrap_or_default().status, status.updated.unwrap_or_default().status)
}

fn rendered_template(device: &Device) -> String {
    device.meta.clone().unwrap_or_default().annotations.unwrap_or_default().rendered_template_version
}

fn words(summary: &str, updated: &str) -> (String, String) {
    (summary.to_owned(), updated.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_up_to_date_once_they_run_the_template_of_their_fleet() {
    let world = World::start(test_databases::every_kind().await.swap_remove(0)).await;
    let evaluator = world.start_evaluator().await;
    world.create_fleet("kiosk", NORTH, r#"{"a":1}"#).await;
    world.create_device("d1", NORTH, "").await;
    world.shows("d1", "v1".to_owned(), rendered_template).await;
    report(&world, "d1", "1").await;
    world.shows("d1", words("Online", "UpToDate"), statuses).await;
    world.replace_fleet("kiosk", NORTH, r#"{"a":2}"#).await;
    world.shows("d1", words("Online", "OutOfDate"), statuses).await;
    world.shows("d1", "v2".to_owned(), rendered_template).await;
    report(&world, "d1", "2").await;
    world.shows("d1", words("Online", "UpToDate"), statuses).await;
    world.replace_fleet("kiosk", NORTH, r#"{"config":[{"gitRef":{},"name":"c"}]}"#).await;
    world.shows("d1", words("Online", "OutOfDate"), statuses).await;
    stop(&evaluator).await;
    world.stop().await;
}
