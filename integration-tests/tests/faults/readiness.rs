//! A part whose database is away, full or read-only is not ready, names the reason, and recovers by itself when the
//! trouble ends, also without any write. The tests write nothing once the trouble is seen.

use integration_tests::{eventually_shown, postgres::Postgres, processes::Processes};
use reqwest::{Method, StatusCode};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::stage::change_an_option;

const NODES: u32 = 4;

/// The part that loses its database, and its name in the gateway's answers.
const PART: &str = "component_registry";
const NAME: &str = "component registry";

/// Health of the registry as its clients see it.
#[derive(Debug, PartialEq)]
struct HealthReport {
    /// `grpc.health` of the whole, of a service, and of having started.
    health: [ServingStatus; 3],
    /// The status of its `/readyz`, and of the gateway's.
    statuses: [u16; 2],
    /// The gateway's status for having started.
    started: u16,
}

impl HealthReport {
    const READY: Self = Self { health: [ServingStatus::Serving; 3], statuses: [200; 2], started: 200 };

    const UNREADY: Self = Self {
        health: [ServingStatus::NotServing, ServingStatus::NotServing, ServingStatus::Serving],
        statuses: [503; 2],
        started: 200,
    };
}

/// Present health, and the reasons that the part and the gateway give.
async fn told(mesh: &Processes) -> Result<(HealthReport, [String; 2]), String> {
    let mut health = HealthClient::new(chassis::plain_channel(&mesh.url(PART)).unwrap());
    let mut statuses = [ServingStatus::Unknown; 3];
    let names = ["", "reveille.component.v1.ComponentService", chassis::STARTED];
    for (name, status) in names.into_iter().zip(&mut statuses) {
        let answer = health.check(HealthCheckRequest { service: name.to_owned() }).await;
        *status = answer.map_err(|error| error.to_string())?.get_ref().status();
    }
    let own =
        reqwest::get(format!("{}/readyz", mesh.url(PART))).await.map_err(|error| format!("{error:?}"))?;
    let (own, reason) = (own.status().as_u16(), own.text().await.map_err(|error| format!("{error:?}"))?);
    let ask =
        async |path| mesh.bos.try_send(Method::GET, path, None).await.map_err(|error| format!("{error:?}"));
    let (whole, started) = (ask("/readyz").await?, ask("/startz").await?);
    let told = HealthReport {
        health: statuses,
        statuses: [own, whole.status.as_u16()],
        started: started.status.as_u16(),
    };
    Ok((told, [reason, whole.body[NAME].as_str().unwrap_or_default().to_owned()]))
}

/// Waits until the registry reports the wanted health, for a reason that contains all `words`.
async fn eventually_told(mesh: &Processes, wanted: HealthReport, words: &[&str]) {
    eventually_shown(&format!("{wanted:?} because of {words:?}"), async || {
        let (told, reasons) = told(mesh).await?;
        let say_why = reasons.iter().all(|reason| words.iter().all(|word| reason.contains(word)));
        if told == wanted && say_why { Ok(()) } else { Err(format!("{told:?} {reasons:?}")) }
    })
    .await;
}

async fn on_postgres(server: &Postgres) -> Processes {
    let mut mesh = Processes::prepare();
    let url = server.create(PART).await;
    mesh.set(&format!("[{PART}]\ndatabase_url = \"{url}\"\n[simulator]\nnodes = {NODES}\n"));
    mesh.begin().await;
    mesh.bos.discovered(NODES as usize).await;
    eventually_told(&mesh, HealthReport::READY, &["ready"]).await;
    mesh
}

async fn reads(mesh: &Processes) {
    assert_eq!(mesh.bos.get("/v2/components").await.as_array().map(Vec::len), Some(NODES as usize));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk() {
    let mut mesh = Processes::prepare();
    mesh.survive_full_disks();
    mesh.set(&format!("[simulator]\nnodes = {NODES}\n"));
    mesh.begin().await;
    mesh.bos.discovered(NODES as usize).await;
    mesh.fill_disk(PART, true).await;
    eventually_shown("a refusal", async || match change_an_option(&mesh.bos).await {
        Ok(503) => Ok(()),
        other => Err(other),
    })
    .await;
    eventually_told(&mesh, HealthReport::UNREADY, &["the database takes no writes (since 2"]).await;
    reads(&mesh).await;
    mesh.fill_disk(PART, false).await;
    eventually_told(&mesh, HealthReport::READY, &["ready"]).await;
    assert_eq!(change_an_option(&mesh.bos).await, Ok(StatusCode::OK.as_u16()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away() {
    let Some(mut server) = Postgres::start().await else { return };
    let mesh = on_postgres(&server).await;
    server.stop().await;
    eventually_told(&mesh, HealthReport::UNREADY, &["the database does not answer (since 2"]).await;
    server.start_again().await;
    eventually_told(&mesh, HealthReport::READY, &["ready"]).await;
    reads(&mesh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_writes() {
    let Some(server) = Postgres::start().await else { return };
    let mesh = on_postgres(&server).await;
    server.sql("ALTER SYSTEM SET default_transaction_read_only = on").await;
    server.sql("SELECT pg_reload_conf()").await;
    // A part without writes notices at the next renewal of its leases.
    eventually_told(&mesh, HealthReport::UNREADY, &["(since 2", "read-only transaction"]).await;
    reads(&mesh).await;
    server.sql("ALTER SYSTEM RESET default_transaction_read_only").await;
    server.sql("SELECT pg_reload_conf()").await;
    eventually_told(&mesh, HealthReport::READY, &["ready"]).await;
}
