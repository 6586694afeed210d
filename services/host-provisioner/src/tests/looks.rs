//! Looks at hosts: one listing for all of them, and no write without news.

use domain::host::evidence::DriverView;
use proto::simulation::{OperateRackHostRequest, RackOperation, rack_service_server::RackService};

use test_registry::CallFault;

use super::*;

fn power(sight: &DriverSight) -> Option<bool> {
    sight.view()?.powered_on
}

/// Operates the rack behind the back of the service.
async fn operate(rack: &RackRpc, name: &str, operation: RackOperation) {
    let request = OperateRackHostRequest {
        name: name.to_owned(),
        operation: operation.into(),
        operation_id: format!("{operation:?}"),
        ..OperateRackHostRequest::default()
    };
    rack.operate_rack_host(tonic::Request::new(request)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_behind_our_back_are_seen_and_rest_writes_nothing() {
    let mesh = ProvisionerMesh::started(0.0).await;
    mesh.carry_out("h", 1, &register()).await;
    let seen = mesh.until_seen("h", |sight| power(sight) == Some(false)).await;
    let DriverView { boots_without_slot, is_busy, .. } = *seen.view().unwrap();
    assert_eq!((boots_without_slot, is_busy), (true, false));
    operate(&mesh.rack, "m/h", RackOperation::PowerOn).await;
    mesh.until_seen("h", |sight| power(sight) == Some(true)).await;
    let revision = mesh.sight("h").await.unwrap().revision;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(mesh.sight("h").await.unwrap().revision, revision);
    mesh.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_record_is_seen_as_absent() {
    let mesh = ProvisionerMesh::started(0.0).await;
    mesh.carry_out("h", 1, &register()).await;
    mesh.until_seen("h", |sight| sight.view().is_some()).await;
    let host = mesh.registry.host("h").await.unwrap();
    let status = wire::HostStatus {
        provisioning: Some(wire::ProvisioningStatus { id: "id".to_owned(), ..Default::default() }),
        ..wire::HostStatus::default()
    };
    mesh.registry.decide_host("h", Some(status), host.progress).await;
    mesh.rack.forget("m/h");
    mesh.until_seen("h", |sight| matches!(sight, DriverSight::Absent { .. })).await;
    assert_eq!(show(&mesh.carry_out("h", 2, &inspect()).await), "not registered");
    mesh.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_does_not_answer_is_not_ready() {
    let mut mesh = ProvisionerMesh::new(0.0).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let rack = std::mem::replace(&mut mesh.settings.simulator.url, nobody);
    mesh.start().await;
    mesh.ask("h", 1, &register()).await;
    assert_eq!(show(&mesh.answer("h", 1).await), "trouble: Unreachable");
    assert!(mesh.sight("h").await.unwrap().intent.is_none());
    mesh.until_seen("h", |sight| *sight == DriverSight::NotReady).await;
    mesh.stop().await;
    mesh.settings.simulator.url = rack;
    mesh.start().await;
    mesh.ask("h", 2, &register()).await;
    assert_eq!(show(&mesh.answer("h", 2).await), "done, id");
    mesh.until_seen("h", |sight| sight.view().is_some()).await;
    mesh.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn news_about_an_earlier_host_of_the_name_do_not_count() {
    let mesh = ProvisionerMesh::started(0.0).await;
    mesh.carry_out("h", 1, &register()).await;
    // The service sees nothing between the two hosts of the name.
    mesh.registry.proxy.fault("WatchHosts", CallFault::Held);
    mesh.registry.delete_host("h").await;
    mesh.ask("h", 1, &register()).await;
    mesh.registry.proxy.mend("WatchHosts");
    let uid = mesh.registry.host("h").await.unwrap().meta.unwrap().uid;
    let renewed =
        || async { mesh.sight("h").await.filter(|sight| sight.uid == uid && sight.report.is_some()) };
    until("a report about the new host", renewed).await;
    mesh.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preparation_without_changes_needs_no_call() {
    let mesh = ProvisionerMesh::started(0.0).await;
    mesh.carry_out("h", 1, &register()).await;
    let call = DriverCall::Prepare(Box::new(domain::host::record::call::PrepareCall {
        target_raid: None,
        actual_raid: None,
        hints: None,
        parts: PreparationParts::default(),
        unprepared: false,
        restart: false,
    }));
    assert_eq!(show(&mesh.carry_out("h", 2, &call).await), "done");
    assert_eq!(mesh.rack.begun("m/h"), [RackOperation::Register]);
    mesh.end().await;
}
