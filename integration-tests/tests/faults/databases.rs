//! A PostgreSQL server that vanishes, returns, or takes no writes while nodes are under way.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use integration_tests::{eventually_shown, postgres::Postgres, processes::Processes};
use reqwest::Method;
use serde_json::json;
use tokio::time::sleep;
use upstreams::{MachinePlan, NodePace, PowerService, Upstreams};

use crate::{
    history::{HistoryMark, is_safe},
    stage::{SteadyWriter, attempted_once, change_an_option, create, furnish, see_through, until_written},
};

const NODES: u32 = 30;

/// Duration of each step of a node.
const STEP: Duration = Duration::from_secs(1);

/// Downtime of the server.
const AWAY: Duration = Duration::from_secs(1);

/// More revisions than a few boots need.
const FAR: u64 = 100_000;

/// The parts that keep something.
const OWNERS: [&str; 4] = ["component_registry", "session_manager", "power_controller", "config_coordinator"];

/// A mesh of processes on the server, and the systems around it.
async fn prepared(server: &Postgres) -> (Processes, Upstreams) {
    prepared_at(server, STEP).await
}

/// A mesh as [`prepared`] makes it, on nodes that take `step` for each step.
async fn prepared_at(server: &Postgres, step: Duration) -> (Processes, Upstreams) {
    let mut mesh = Processes::prepare();
    let pace =
        NodePace { soft_off: step, power_on: step, boot: step, configuration: step, ..NodePace::default() };
    // The power service gives a node a minute for each action.
    let power = PowerService { minute: 2 * step, ..PowerService::quick() };
    let plan = MachinePlan { up: true, pace: Some(pace), power, ..MachinePlan::quick(NODES) };
    let upstreams = mesh.among(plan).await;
    for part in OWNERS {
        let url = server.create(part).await;
        mesh.set(&format!("[{part}]\ndatabase_url = \"{url}\"\n"));
    }
    mesh.begin().await;
    furnish(&mesh.bos, NODES as usize).await;
    (mesh, upstreams)
}

/// The server goes away three times while all nodes reboot, by `end`.
async fn is_survived(end: impl AsyncFn(&mut Postgres)) {
    let Some(mut server) = Postgres::start().await else { return };
    let (mesh, upstreams) = prepared(&server).await;
    let (mark, writer) = (HistoryMark::now(&upstreams), SteadyWriter::start(&mesh.bos));
    create(&mesh.bos, "reboot", "through-outages").await;
    for _ in 0..3 {
        sleep(STEP).await;
        end(&mut server).await;
        sleep(AWAY).await;
        server.start_again().await;
        eprintln!(
            "written to {:.1?} after the server took connections again",
            until_written(&mesh.bos).await
        );
    }
    see_through(&mesh.bos, "reboot", "through-outages").await;
    writer.stop().await.is_kept(&mesh.bos).await;
    is_safe(&upstreams, &mark, &["Soft-Off", "On"]);
    attempted_once(&mesh).await;
    let connections = server.sql("SELECT count(*) FROM pg_stat_activity WHERE datname <> 'postgres'").await;
    eprintln!("{connections} connections in the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn database_restart_during_boots_costs_nothing() {
    is_survived(Postgres::stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_kill_during_boots_costs_nothing() {
    is_survived(Postgres::kill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_database_refuses_writes_until_it_is_writable() {
    let Some(server) = Postgres::start().await else { return };
    let (mesh, upstreams) = prepared(&server).await;
    let writer = SteadyWriter::start(&mesh.bos);
    let mark = HistoryMark::now(&upstreams);
    create(&mesh.bos, "reboot", "without-writes").await;
    sleep(STEP).await;
    server.sql("ALTER SYSTEM SET default_transaction_read_only = on").await;
    server.sql("SELECT pg_reload_conf()").await;
    eventually_shown("a refusal", async || match change_an_option(&mesh.bos).await {
        Ok(503) => Ok(()),
        other => Err(other),
    })
    .await;
    mesh.bos.get("/v2/components").await;
    server.sql("ALTER SYSTEM RESET default_transaction_read_only").await;
    server.sql("SELECT pg_reload_conf()").await;
    eprintln!("written to {:.1?} after the server took writes again", until_written(&mesh.bos).await);
    see_through(&mesh.bos, "reboot", "without-writes").await;
    writer.stop().await.is_kept(&mesh.bos).await;
    is_safe(&upstreams, &mark, &["Soft-Off", "On"]);
    attempted_once(&mesh).await;
}

/// Detects the forbidden case: a complete session with enabled nodes.
async fn ended_too_early(mesh: &Processes, name: &str) -> Result<bool, String> {
    let read = async |path: String| {
        let answer =
            mesh.bos.try_send(Method::GET, &path, None).await.map_err(|error| format!("{error:?}"))?;
        if answer.status == 200 { Ok(answer.body) } else { Err(answer.status.to_string()) }
    };
    let session = read(format!("/v2/sessions/{name}")).await?;
    let components = read(format!("/v2/components?session={name}&enabled=true")).await?;
    let enabled = components.as_array().map(Vec::len).unwrap_or_default();
    let is_complete = session["status"]["status"] == "complete";
    if is_complete && enabled > 0 {
        return Err(format!("EARLY: complete while {enabled} nodes are enabled"));
    }
    Ok(is_complete)
}

/// Step of a node that is seen before it is over, also on a busy machine.
const LONG_STEP: Duration = Duration::from_secs(3);

/// Longer than the session manager completes nothing after it has lost commits.
const WATCHED: Duration = Duration::from_secs(40);

/// Most time for a restored session: the wait after a loss, or the wait for a report, and the steps of a reboot.
const ENDED: Duration = Duration::from_secs(90);

/// Restores a backup under running services that was made when all nodes of a reboot had this `status`, after the end
/// of the session. The session of the backup reboots the nodes once more, and is completed then and not before. Returns
/// the errors that its nodes showed meanwhile.
async fn is_restored_when(status: &str) -> BTreeSet<String> {
    let Some(mut server) = Postgres::start().await else { return BTreeSet::new() };
    let (mesh, upstreams) = prepared_at(&server, LONG_STEP).await;
    // A boot with a lost report costs an attempt, and its time.
    mesh.bos.options(&json!({"default_retry_policy": 3, "max_boot_wait_time": 30})).await;
    create(&mesh.bos, "reboot", "restored").await;
    eventually_shown(status, async || {
        let components = mesh.bos.get("/v2/components").await;
        let others = components.as_array().unwrap().iter().map(|one| &one["status"]["status"]);
        let other = others.into_iter().find(|one| **one != status).cloned();
        other.map_or(Ok(()), Err)
    })
    .await;
    server.copy().await;
    mesh.bos.complete("restored").await;
    let mark = HistoryMark::now(&upstreams);
    // The services keep running, with memories of the lost history.
    server.fail_over().await;
    eventually_shown("the session of the backup", async || {
        let sql = "SELECT progress FROM sessions WHERE name = 'restored'";
        let progress = server.sql_in("session_manager", sql).await;
        if progress == "running" { Ok(()) } else { Err(progress) }
    })
    .await;
    let began = Instant::now();
    let (mut ended, mut errors) = (None, BTreeSet::new());
    while ended.is_none() || began.elapsed() < WATCHED {
        match ended_too_early(&mesh, "restored").await {
            Ok(true) => ended = ended.or(Some(began.elapsed())),
            Ok(false) => {}
            Err(early) if early.starts_with("EARLY") => panic!("{early}"),
            // The gateway waits for the database.
            Err(_) => {}
        }
        let components = mesh.bos.try_send(Method::GET, "/v2/components", None).await;
        let components = components.map(|answer| answer.body).unwrap_or_default();
        errors.extend(components.as_array().into_iter().flatten().map(|one| one["error"].to_string()));
        assert!(ended.is_some() || began.elapsed() < ENDED, "it does not end: {components}");
        sleep(Duration::from_millis(100)).await;
    }
    eprintln!("the restored session ended after {ended:.1?}");
    let status = mesh.bos.get("/v2/sessions/restored/status").await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
    is_safe(&upstreams, &mark, &["Soft-Off", "On"]);
    errors
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_backup_of_a_shutdown_reboots_without_force() {
    is_restored_when("power_off_gracefully_called").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_backup_without_boot_reports_reboots_after_the_wait() {
    let errors = is_restored_when("power_on_called").await;
    let is_told = errors.iter().any(|error| error.contains("waiting for the node to report the boot"));
    assert!(errors.is_empty() || is_told, "{errors:?}");
}

/// The newest revision of a component.
async fn newest(server: &Postgres) -> u64 {
    let sql = "SELECT revision FROM revisions WHERE kind = 'component'";
    server.sql_in("component_registry", sql).await.parse().expect("a revision")
}

#[tokio::test(flavor = "multi_thread")]
async fn failover_that_loses_commits_recovers_without_their_witnesses() {
    let Some(mut server) = Postgres::start().await else { return };
    let (mut mesh, _upstreams) = prepared(&server).await;
    see_through(&mesh.bos, "reboot", "kept").await;
    let kept = newest(&server).await;
    server.copy().await;
    create(&mesh.bos, "reboot", "lost").await;
    let before = eventually_shown("changes that the stand-in does not have", async || {
        let newest = newest(&server).await;
        if newest >= kept + 2 * u64::from(NODES) { Ok(newest) } else { Err(newest) }
    })
    .await;
    for part in mesh.parts() {
        mesh.kill_part(part).await;
    }
    server.fail_over().await;
    mesh.begin().await;
    eventually_shown("what was kept", async || {
        mesh.bos.try_send(Method::GET, "/v2/sessions/kept", None).await.map(drop)
    })
    .await;
    assert_eq!(mesh.bos.try_send(Method::GET, "/v2/sessions/lost", None).await.unwrap().status, 404);
    see_through(&mesh.bos, "reboot", "after").await;
    let after = newest(&server).await;
    assert!(after > before + FAR, "revisions may be given again: {before}, then {after}");
}
