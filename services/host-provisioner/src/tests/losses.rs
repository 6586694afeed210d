//! The registry loses commits that the host provisioner has not lost.

use chassis::settings::HostDriverName;
use domain::host::record::annotations::RebootMode;
use sea_orm::{ConnectionTrait, Database};

use super::*;
use crate::testing::bmc::FakeBmc;

/// Deletes every commit of the hosts, as a standby does that took over without them.
async fn lose_hosts(url: &str) {
    let sql = "BEGIN; DELETE FROM hosts; UPDATE revisions SET revision = 0 WHERE kind = 'host'; COMMIT";
    Database::connect(url).await.unwrap().execute_unprepared(sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_to_a_lost_call_is_not_taken_for_another() {
    let Some(url) = test_databases::on_postgres().await else { return };
    let mut mesh = ProvisionerMesh::with_registry(0.0, "password", &url).await;
    mesh.settings.host_operations.driver = HostDriverName::Redfish;
    mesh.settings.host_operations.redfish.answer_seconds = 30.0;
    mesh.start().await;
    let bmc = FakeBmc::start().await;
    let mut host = host("h", "1");
    host.spec.as_mut().unwrap().bmc.as_mut().unwrap().address = bmc.address();
    mesh.ask_about(host.clone(), 1, &register(), clock::now()).await;
    mesh.answer("h", 1).await;

    bmc.set(|bmc| (bmc.power, bmc.hangs_at) = ("On", "Reset"));
    let off = DriverCall::PowerOff { mode: RebootMode::Hard, force: false, cleaning_disabled: false };
    mesh.ask_about(host.clone(), 2, &off, clock::now()).await;
    let asked = || async { mesh.sight("h").await?.intent.filter(|intent| intent.kind == off.kind().word()) };
    until("the intent of the power-off", asked).await;
    lose_hosts(&url).await;
    bmc.set(|bmc| (bmc.power, bmc.hangs_at) = ("Off", ""));
    mesh.ask_about(host, 2, &DriverCall::PowerOn { force: false }, clock::now()).await;
    // The power-off, which gets no answer for half a minute, had the same number.
    let answer = mesh.answer("h", 2).await;
    assert!(!matches!(answer, DriverAnswer::Trouble { .. }), "{}", show(&answer));
    assert_eq!(bmc.take_changes(), ["session", "POST ComputerSystem.Reset"]);
    mesh.end().await;
}
