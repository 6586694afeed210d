//! Trouble of one host stays with it.

use std::net::SocketAddr;

use chassis::settings::HostDriverName;
use test_registry::CallFault;

use super::*;

fn behind(name: &str, bmc: SocketAddr) -> wire::Host {
    let mut host = host(name);
    let spec = host.spec.as_mut().unwrap();
    spec.bmc.as_mut().unwrap().address = format!("redfish+http://{bmc}/redfish/v1/Systems/1");
    host
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bmc_that_hangs_delays_no_other_host() {
    let mut mesh = ProvisionerMesh::new(0.0).await;
    mesh.settings.host_operations.driver = HostDriverName::Redfish;
    mesh.start().await;
    // Takes connections, and never answers.
    let hanging = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (hangs, refuses) = (hanging.local_addr().unwrap(), closed.local_addr().unwrap());
    drop(closed);
    for number in 0..10 {
        let host = behind(&format!("hangs-{number}"), hangs);
        mesh.ask_about(host, 1, &register(), clock::now()).await;
    }
    mesh.ask_about(behind("refuses", refuses), 1, &register(), clock::now()).await;
    let answer = tokio::time::timeout(Duration::from_secs(5), mesh.answer("refuses", 1)).await.unwrap();
    assert!(show(&answer).starts_with("failed: "), "{answer:?}");
    assert!(mesh.sight("hangs-0").await.is_none_or(|sight| sight.report.is_none()));
    let ipmi = "ipmi://127.0.0.1";
    let mut other = host("other");
    other.spec.as_mut().unwrap().bmc.as_mut().unwrap().address = ipmi.to_owned();
    mesh.ask_about(other, 1, &register(), clock::now()).await;
    let words = "failed: hosts are driven by Redfish, and the BMC address is of another protocol";
    assert_eq!(show(&mesh.answer("other", 1).await), words);
    mesh.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_login_cannot_be_read_says_so() {
    let mesh = ProvisionerMesh::started(0.0).await;
    mesh.registry.proxy.fault("ReadSecretValues", CallFault::Refused);
    mesh.ask("h", 1, &register()).await;
    assert_eq!(show(&mesh.answer("h", 1).await), "trouble: Unreachable");
    assert!(mesh.sight("h").await.unwrap().intent.is_none());
    mesh.registry.proxy.mend("ReadSecretValues");
    mesh.ask("h", 2, &register()).await;
    assert_eq!(show(&mesh.answer("h", 2).await), "done, id");
    mesh.end().await;
}
