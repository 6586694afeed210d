//! Lists of components, whole, in pages and filtered, over gRPC and REST.

use std::time::{Duration, Instant};

use proto::component::{ComponentFilter, ListComponentsRequest};

use super::Bench;
use crate::{
    command::Scale,
    records::{self, Size, id},
    samples::{median, milliseconds, percentile},
    stage::{Registry, Server},
};

const LARGE: usize = 100_000;

/// The original's page.
const PAGE: usize = 2_800;

/// How often a filtered list is asked for in a run.
const ASKED: usize = 100;

/// Measures lists of 10,000, 50,000 and 100,000 components.
pub async fn measure(bench: &mut Bench<'_>) {
    let original = [
        (10_000, ["O1", "O2", "O3", "O3.none"], true),
        (50_000, ["O1.50k", "O2.50k", "O3.50k", "O3.none50k"], bench.command.scale == Scale::Full),
    ];
    for (count, rows, possible) in original {
        if !possible {
            bench.leave(&rows, "takes --scale full");
        } else if bench.wants(&rows) {
            as_original(bench, count, rows).await;
        }
    }
    let whole = ["T7.first", "T7.total", "T7.memory", "T7b.first", "T7b.total", "T13.list"];
    let filtered = ["T7c.session", "T7c.status"];
    if bench.wants_full(&[&whole[..], &filtered].concat()) {
        let mut server = Server::empty(bench.stage).await;
        records::fill(&server, LARGE, Size::Long, |n| n % 100 == 0).await;
        // What creating them left behind would hide what lists take.
        server.start_again().await;
        whole_lists(bench, &server).await;
        filtered_lists(bench, &server).await;
        server.stop().await;
    }
}

async fn as_original(bench: &mut Bench<'_>, count: usize, [all, pages, tenth, none]: [&str; 4]) {
    let server = Server::empty(bench.stage).await;
    records::fill(&server, count, Size::Usual, |n| n % 10 == 0).await;
    let (client, url) = (reqwest::Client::new(), server.components_url());
    let get = async |query: &str| rest(&client, &format!("{url}{query}")).await.1.as_secs_f64();
    let ids = sorted_ids(count);
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..bench.runs() {
        times[0].push(get("").await);
        let mut paged = get(&format!("?page_size={PAGE}")).await;
        for last in ids.chunks(PAGE).filter_map(|page| page.last()) {
            paged += get(&format!("?page_size={PAGE}&start_after_id={last}")).await;
        }
        times[1].push(paged);
        times[2].push(get("?session=chosen").await);
        times[3].push(get("?session=nobody").await);
    }
    for (id, times) in [all, pages, tenth, none].into_iter().zip(times) {
        bench.note(id, count, times);
    }
    server.stop().await;
}

fn sorted_ids(count: usize) -> Vec<String> {
    let mut ids: Vec<_> = (0..count).map(id).collect();
    ids.sort_unstable();
    ids
}

async fn whole_lists(bench: &mut Bench<'_>, server: &Server) {
    let (client, url, registry) = (reqwest::Client::new(), server.components_url(), server.registry());
    let before = server.memory();
    let (mut grpc_first, mut grpc_total, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rest_first, mut rest_total) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs() {
        let (first, total) = grpc(&registry, ListComponentsRequest::default(), LARGE).await;
        grpc_first.push(milliseconds(first));
        grpc_total.push(total.as_secs_f64());
        memory.push(((server.memory() - before) / (1 << 20) as f64).max(0.0));
        let (first, total) = rest(&client, &url).await;
        rest_first.push(milliseconds(first));
        rest_total.push(total.as_secs_f64());
    }
    let share = 100.0 * median(&grpc_total) / median(&rest_total);
    bench.note("T7.first", LARGE, grpc_first);
    bench.note("T7.total", LARGE, grpc_total);
    bench.note("T7.memory", LARGE, memory);
    bench.note("T7b.first", LARGE, rest_first);
    bench.note("T7b.total", LARGE, rest_total);
    bench.note("T13.list", LARGE, vec![share]);
}

async fn filtered_lists(bench: &mut Bench<'_>, server: &Server) {
    let registry = server.registry();
    let session = ComponentFilter { session: Some("chosen".into()), ..ComponentFilter::default() };
    let status = ComponentFilter { statuses: vec!["failed".into()], ..ComponentFilter::default() };
    for (row, filter) in [("T7c.session", session), ("T7c.status", status)] {
        let mut p99 = Vec::new();
        for _ in 0..bench.runs() {
            let mut times = Vec::new();
            for _ in 0..ASKED {
                let request = ListComponentsRequest { filter: Some(filter.clone()), ..Default::default() };
                times.push(milliseconds(grpc(&registry, request, LARGE / 100).await.1));
            }
            p99.push(percentile(&mut times, 99.0));
        }
        bench.note(row, LARGE, p99);
    }
}

/// Lists over gRPC; gives when the first message came and when the last.
///
/// # Panics
/// When it is not as long as that.
pub async fn grpc(registry: &Registry, request: ListComponentsRequest, count: usize) -> (Duration, Duration) {
    let mut registry = registry.clone();
    let began = Instant::now();
    let mut pages = registry.list_components(request).await.expect("a list").into_inner();
    let (mut first, mut listed) = (None, 0);
    while let Some(page) = pages.message().await.expect("a page") {
        first.get_or_insert_with(|| began.elapsed());
        listed += page.components.len();
    }
    assert_eq!(listed, count);
    (first.unwrap_or_default(), began.elapsed())
}

/// The newest revision of the components.
///
/// # Panics
/// When there are none.
pub async fn revision(registry: &Registry) -> u64 {
    let request = ListComponentsRequest { page_size: 1, ..ListComponentsRequest::default() };
    let mut pages = registry.clone().list_components(request).await.expect("a list").into_inner();
    pages.message().await.expect("a page").expect("a component").revision
}

async fn rest(client: &reqwest::Client, url: &str) -> (Duration, Duration) {
    let began = Instant::now();
    let mut answer = client.get(url).send().await.expect("a list");
    assert!(answer.status().is_success(), "{}", answer.status());
    let mut first = None;
    while answer.chunk().await.expect("a chunk").is_some() {
        first.get_or_insert_with(|| began.elapsed());
    }
    (first.unwrap_or_default(), began.elapsed())
}
