//! Lists of a large fleet, whole and filtered, over gRPC and REST.

use std::time::{Duration, Instant};

use chassis::mesh::call_class::{CallClass, scope};
use futures_util::future::join_all;
use proto::component::{ComponentFilter, ListComponentsRequest};

use super::BenchRun;
use crate::{
    samples::{milliseconds, percentile},
    stage::{Registry, Server},
};

/// Number of filtered lists in a run.
const ASKED: usize = 100;

/// Clients that list everything at a time.
const STORM: usize = 20;

/// Rows of whole lists.
pub const WHOLE: [&str; 6] = ["T7.first", "T7.total", "T7.memory", "T7b.first", "T7b.total", "T13.list"];

/// Rows of filtered lists.
pub const FILTERED: [&str; 2] = ["T7c.session", "T7c.status"];

/// Measures lists of all components.
///
/// # Panics
/// When there are not so many.
pub async fn whole(bench: &mut BenchRun<'_>, server: &Server, count: usize) {
    let (client, url, registry) = (reqwest::Client::new(), server.components_url(), server.registry());
    let before = server.memory();
    for _ in 0..bench.runs() {
        let (first, direct) = grpc(&registry, ListComponentsRequest::default(), count).await;
        bench.note("T7.first", count, milliseconds(first));
        bench.note("T7.total", count, direct.as_secs_f64());
        bench.note("T7.memory", count, ((server.memory() - before) / (1 << 20) as f64).max(0.0));
        let (first, passed_on) = rest(&client, &url).await;
        bench.note("T7b.first", count, milliseconds(first));
        bench.note("T7b.total", count, passed_on.as_secs_f64());
        bench.note("T13.list", count, 100.0 * direct.as_secs_f64() / passed_on.as_secs_f64());
    }
}

/// Measures the memory while [`STORM`] clients list all components at a time, every other one over REST.
///
/// # Panics
/// When a list fails.
pub async fn storm(bench: &mut BenchRun<'_>, server: &Server, count: usize) {
    for _ in 0..bench.runs() {
        server.forget_peak();
        let lists = (0..STORM).map(|n| list(server, n % 2 == 0, count));
        join_all(lists).await;
        bench.note("T7.storm", count, server.peak() / (1 << 20) as f64);
    }
}

/// Lists as a client with a connection of its own.
async fn list(server: &Server, over_rest: bool, count: usize) {
    if over_rest {
        rest(&reqwest::Client::new(), &server.components_url()).await;
    } else {
        grpc(&server.registry(), ListComponentsRequest::default(), count).await;
    }
}

/// Measures lists of the `chosen` ones of `count` components, which belong to the session `chosen` and failed.
///
/// # Panics
/// When there are not so many.
pub async fn filtered(bench: &mut BenchRun<'_>, server: &Server, chosen: usize, count: usize) {
    let registry = server.registry();
    let session = ComponentFilter { session: Some("chosen".into()), ..ComponentFilter::default() };
    let status = ComponentFilter { statuses: vec!["failed".into()], ..ComponentFilter::default() };
    for (row, filter) in FILTERED.into_iter().zip([session, status]) {
        for _ in 0..bench.runs() {
            let mut times = Vec::new();
            for _ in 0..ASKED {
                let request = ListComponentsRequest { filter: Some(filter.clone()), ..Default::default() };
                times.push(milliseconds(grpc(&registry, request, chosen).await.1));
            }
            bench.note(row, count, percentile(&mut times, 99.0));
        }
    }
}

/// Lists over gRPC; returns the times of the first and the last message.
///
/// # Panics
/// When the list has another length.
pub async fn grpc(registry: &Registry, request: ListComponentsRequest, count: usize) -> (Duration, Duration) {
    let mut registry = registry.clone();
    let began = Instant::now();
    let listed = scope(CallClass::List, registry.list_components(request)).await;
    let mut pages = listed.expect("a list").into_inner();
    let (mut first, mut listed) = (None, 0);
    while let Some(page) = pages.message().await.expect("a page") {
        first.get_or_insert_with(|| began.elapsed());
        listed += page.components.len();
    }
    assert_eq!(listed, count, "components in a list");
    (first.unwrap_or_default(), began.elapsed())
}

/// Lists over REST; returns the times of the first and the last byte of the body.
///
/// # Panics
/// When it fails.
pub async fn rest(client: &reqwest::Client, url: &str) -> (Duration, Duration) {
    let began = Instant::now();
    let mut answer = client.get(url).send().await.expect("a list");
    assert!(answer.status().is_success(), "{}", answer.status());
    let mut first = None;
    while answer.chunk().await.expect("a chunk").is_some() {
        first.get_or_insert_with(|| began.elapsed());
    }
    (first.unwrap_or_default(), began.elapsed())
}

/// Returns the newest revision of the components.
///
/// # Panics
/// When there are none.
pub async fn revision(registry: &Registry) -> u64 {
    let request = ListComponentsRequest { page_size: 1, ..ListComponentsRequest::default() };
    let mut pages = registry.clone().list_components(request).await.expect("a list").into_inner();
    pages.message().await.expect("a page").expect("a component").revision
}
