//! Times of recovery after a failure.

use std::time::{Duration, Instant};

use proto::{
    component::{Component, GetComponentRequest},
    session::Progress,
};
use tokio::{sync::watch, task::JoinSet};
use upstreams::MachinePlan;

use super::BenchRun;
use crate::{
    records::{self, RecordSize},
    samples::timed,
    stage::{Database, PlayedSurroundings, Registry, Server},
    watching::SessionWatch,
};

const COMPONENTS: usize = 100;

/// Nodes of the machine whose mesh has two replicas.
const SHARED: u32 = 1_000;

/// Pause between two checks of the holders of roles.
const LOOK: Duration = Duration::from_millis(20);

const REPLICAS: [&str; 2] = ["T12b", "T12b.handover"];

/// Measures a crash of a replica and of the database.
pub async fn measure(bench: &mut BenchRun<'_>) {
    if let Database::Sqlite = bench.stage.database {
        bench.leave(&REPLICAS, "replicas share a PostgreSQL");
        bench.leave(&["T12c"], "SQLite has no server that could be restarted");
    } else {
        bench.attempt("an end of a replica", &REPLICAS, 5, end_of_replica).await;
        bench.attempt("crashes of the database", &["T12c"], 5, crash_of_database).await;
    }
}

/// The process that dies holds every role, and a session of all nodes is created at that moment.
async fn end_of_replica(bench: &mut BenchRun<'_>) {
    let site =
        PlayedSurroundings::start(bench.stage, MachinePlan { up: true, ..MachinePlan::quick(SHARED) }).await;
    let mut active = site.server;
    active.bos.template("image").await;
    let all = active.roles().await;
    for _ in 0..bench.runs() {
        let standby = active.replica().await;
        let mut watched = SessionWatch::of(&standby).await;
        let died = Instant::now();
        active.kill().await;
        let name = standby.bos.session("image", "reboot").await;
        watched.reach(&name, Progress::Complete).await;
        bench.note("T12b", SHARED as usize, died.elapsed().as_secs_f64());
        hold(&standby, all).await;
        active = standby.replica().await;
        let (_, took) = tokio::join!(standby.stop(), timed(hold(&active, all)));
        bench.note("T12b.handover", SHARED as usize, took.1.as_secs_f64());
    }
    active.stop().await;
}

/// Waits until a process holds that many roles.
async fn hold(server: &Server, roles: u32) {
    while server.roles().await < roles {
        tokio::time::sleep(LOOK).await;
    }
}

async fn crash_of_database(bench: &mut BenchRun<'_>) {
    let Database::Postgresql(database) = &bench.stage.database else { return };
    let server = records::filled(bench.stage, COMPONENTS, RecordSize::Usual, |_| false).await;
    for _ in 0..bench.runs() {
        let (stop, stopped) = watch::channel(false);
        let mut writing = JoinSet::new();
        writing.spawn(write(server.registry(), stopped));
        tokio::time::sleep(Duration::from_millis(500)).await;
        let back = database.crash_and_recover().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut registry = server.registry();
        while registry.patch_components(records::patch(std::iter::once(0), "again")).await.is_err() {
            tokio::time::sleep(LOOK).await;
        }
        stop.send(true).expect("a writer");
        let written = writing.join_next().await.expect("a writer").expect("a writer that ends");
        let first = written.iter().find(|(at, _)| *at > back).expect("a write after the crash");
        bench.note("T12c", COMPONENTS, (first.0 - back).as_secs_f64());
        let (_, last) = written.last().expect("writes");
        assert_eq!(noted(&server).await.as_ref(), Some(last), "an acknowledged write was lost");
    }
    server.stop().await;
}

/// Writes one text after another to a component until signalled; returns the texts and the times of their
/// acknowledgement.
async fn write(mut registry: Registry, stopped: watch::Receiver<bool>) -> Vec<(Instant, String)> {
    let mut written = Vec::new();
    for number in 0.. {
        if *stopped.borrow() {
            break;
        }
        let text = format!("written {number}");
        let patch = records::patch(std::iter::once(1), &text);
        match registry.patch_components(patch).await {
            Ok(_) => written.push((Instant::now(), text)),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    written
}

async fn noted(server: &Server) -> Option<String> {
    let request = GetComponentRequest { id: records::id(1), scope: None };
    let answer = server.registry().get_component(request).await.expect("a component").into_inner();
    answer.component.and_then(|component: Component| component.error)
}
