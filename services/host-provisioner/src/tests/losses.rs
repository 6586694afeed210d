//! The registry loses commits that the host provisioner has not lost.

use chassis::settings::HostDriverName;
use domain::host::record::annotations::RebootMode;

use super::{bmc::FakeBmc, *};

#[tokio::test(flavor = "multi_thread")]
async fn answer_to_a_lost_call_is_not_taken_for_another() {
    let mut mesh = ProvisionerMesh::new(0.0).await;
    mesh.settings.host_operations.driver = HostDriverName::Redfish;
    mesh.settings.host_operations.redfish.answer_seconds = 30.0;
    mesh.start().await;
    let bmc = FakeBmc::start().await;
    let mut host = host("h");
    host.spec.as_mut().unwrap().bmc.as_mut().unwrap().address = bmc.address();
    mesh.ask_about(host, 1, &register(), clock::now()).await;
    mesh.answer("h", 1).await;
    let copy = mesh.registry.copy().await;

    bmc.set(|bmc| (bmc.power, bmc.hangs_at) = ("On", "Reset"));
    let off = DriverCall::PowerOff { mode: RebootMode::Hard, force: false, cleaning_disabled: false };
    mesh.ask("h", 2, &off).await;
    let asked = || async { mesh.sight("h").await?.intent.filter(|intent| intent.kind == off.kind().word()) };
    until("the intent of the power-off", asked).await;
    mesh.registry.restore(&copy).await;
    bmc.set(|bmc| (bmc.power, bmc.hangs_at) = ("Off", ""));
    mesh.ask("h", 2, &DriverCall::PowerOn { force: false }).await;
    // The power-off, which gets no answer for half a minute, had the same number.
    let answer = mesh.answer("h", 2).await;
    assert!(!matches!(answer, DriverAnswer::Trouble { .. }), "{}", show(&answer));
    assert_eq!(bmc.take_changes(), ["session", "POST ComputerSystem.Reset"]);
    mesh.end().await;
}
