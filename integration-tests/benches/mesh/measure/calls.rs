//! Single reads, and what the gateway adds to them.

use std::time::Duration;

use proto::component::GetComponentRequest;

use super::Bench;
use crate::{
    load,
    records::{self, Size, id},
    samples::percentile,
    stage::Server,
};

const COMPONENTS: usize = 10_000;
const A_SECOND: u32 = 1_000;

/// Measures single reads.
pub async fn measure(bench: &mut Bench<'_>) {
    if !bench.wants(&["T13.p50", "T13.p99", "O4.get"]) {
        return;
    }
    let lasting = bench.command.scale.of(Duration::from_secs(2), Duration::from_secs(5));
    let server = Server::empty(bench.stage).await;
    records::fill(&server, COMPONENTS, Size::Usual, |_| false).await;
    let registry = server.registry();
    let directly = move |number: usize| {
        let mut registry = registry.clone();
        async move {
            let request = GetComponentRequest { id: id(number % COMPONENTS), scope: None };
            registry.get_component(request).await.expect("a component");
        }
    };
    let (client, url) = (reqwest::Client::new(), server.components_url());
    let over_rest = move |number: usize| {
        let request = client.get(format!("{url}/{}", id(number % COMPONENTS)));
        async move {
            let answer = request.send().await.expect("an answer");
            assert!(answer.status().is_success(), "{}", answer.status());
            answer.bytes().await.expect("a whole answer");
        }
    };
    // The first calls connect.
    load::callers(8, Duration::from_millis(200), directly.clone()).await;
    load::callers(8, Duration::from_millis(200), over_rest.clone()).await;
    let (mut p50, mut p99, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.runs() {
        let mut direct = load::pace(A_SECOND, lasting, &directly).await.times();
        let mut passed_on = load::pace(A_SECOND, lasting, &over_rest).await.times();
        p50.push(percentile(&mut passed_on, 50.0) - percentile(&mut direct, 50.0));
        p99.push(percentile(&mut passed_on, 99.0) - percentile(&mut direct, 99.0));
        rates.push(load::callers(8, lasting, over_rest.clone()).await.rate());
    }
    bench.note("T13.p50", COMPONENTS, p50);
    bench.note("T13.p99", COMPONENTS, p99);
    bench.note("O4.get", COMPONENTS, rates);
    server.stop().await;
}
