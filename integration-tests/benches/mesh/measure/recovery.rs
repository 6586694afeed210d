//! How soon work goes on after something broke.

use std::time::{Duration, Instant};

use proto::component::{Component, GetComponentRequest};
use tokio::sync::watch;

use super::Bench;
use crate::{
    records::{self, Size},
    stage::{Database, Registry, Server},
};

const COMPONENTS: usize = 100;

/// Measures a crash of the database. A crash of a replica has nothing to be measured on yet.
pub async fn measure(bench: &mut Bench<'_>) {
    if bench.wants(&["T12b"]) {
        bench.leave(&["T12b"], "a mesh in one process has no replicas");
    }
    if bench.wants(&["T12c"]) {
        crash_of_database(bench).await;
    }
}

async fn crash_of_database(bench: &mut Bench<'_>) {
    let Database::Postgresql(database) = &bench.stage.database else {
        return bench.leave(&["T12c"], "SQLite has no server that could be restarted");
    };
    let server = Server::empty(bench.stage).await;
    records::fill(&server, COMPONENTS, Size::Usual, |_| false).await;
    let mut times = Vec::new();
    for _ in 0..bench.runs() {
        let (stop, stopped) = watch::channel(false);
        let writing = tokio::spawn(write(server.registry(), stopped));
        tokio::time::sleep(Duration::from_millis(500)).await;
        let back = database.crash_and_recover().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut registry = server.registry();
        while registry.patch_components(records::patch(std::iter::once(0), "again")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop.send(true).expect("a writer");
        let written = writing.await.expect("a writer that ends");
        let first = written.iter().find(|(at, _)| *at > back);
        times.push(first.map_or(0.0, |(at, _)| (*at - back).as_secs_f64()));
        let (_, last) = written.last().expect("writes");
        assert_eq!(noted(&server).await.as_ref(), Some(last), "an acknowledged write was lost");
    }
    bench.note("T12c", COMPONENTS, times);
    server.stop().await;
}

/// Writes one text after the other to a component until told to stop; gives when each was acknowledged, and what it
/// was.
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
