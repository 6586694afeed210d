//! Operations are begun once, whatever happens to the service.

use domain::host::record::annotations::RebootMode;
use proto::simulation::RackOperation;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_host_lives_from_registration_to_deletion() {
    let mesh = ProvisionerMesh::started(0.0).await;
    let off = |mode| DriverCall::PowerOff { mode, force: false, cleaning_disabled: false };
    let calls = [
        DriverCall::PowerOn { force: false },
        register(),
        inspect(),
        provision(),
        off(RebootMode::Soft),
        DriverCall::Deprovision { restart: false, cleaning_disabled: false },
        DriverCall::Delete,
        DriverCall::Delete,
    ];
    let mut answers = Vec::new();
    for (number, call) in (1..).zip(&calls) {
        mesh.ask("h", number, call).await;
        answers.push(show(&mesh.answer("h", number).await));
    }
    let expected = ["not registered", "done, id", "done, inventory", "done", "done", "done", "done", "done"];
    assert_eq!(answers, expected);
    mesh.registry.delete_host("h").await;
    until("the row is gone", || async { mesh.sight("h").await.is_none().then_some(()) }).await;
    mesh.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_hosts_are_failures_and_not_troubles() {
    let mesh = ProvisionerMesh::started(0.0).await;
    let mut answers = Vec::new();
    for name in ["dead-bmc", "wrong-password", "fails-inspection"] {
        answers.push(show(&mesh.carry_out(name, 1, &register()).await));
    }
    answers.push(show(&mesh.carry_out("fails-inspection", 2, &inspect()).await));
    assert_eq!(
        answers,
        [
            "failed: the BMC does not answer",
            "failed: wrong user name or password",
            "done, id",
            "failed: the ramdisk reported no inventory"
        ]
    );
    mesh.end().await;

    let mut mesh = ProvisionerMesh::with_login(0.0, "guess").await;
    mesh.start().await;
    assert_eq!(show(&mesh.carry_out("h", 1, &register()).await), "failed: wrong user name or password");
    mesh.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_begins_nothing_again() {
    // An inspection takes two to four seconds.
    let mut mesh = ProvisionerMesh::started(0.01).await;
    mesh.carry_out("h", 1, &register()).await;
    let since = clock::now();
    mesh.ask_since("h", 100, &inspect(), since).await;
    assert_eq!(show(&mesh.answer("h", 100).await), "in progress");
    for number in [100, 101] {
        mesh.stop().await;
        mesh.ask_since("h", number, &inspect(), since).await;
        mesh.start().await;
        mesh.answer("h", number).await;
    }
    let mut number = 102;
    while !matches!(mesh.answer("h", number - 1).await, DriverAnswer::Done(_)) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        mesh.ask_since("h", number, &inspect(), since).await;
        number += 1;
    }
    assert_eq!(mesh.rack.begun("m/h"), [RackOperation::Register, RackOperation::Inspect]);
    mesh.end().await;
}
