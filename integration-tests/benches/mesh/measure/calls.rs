//! Cost that the gateway adds to single reads.

use std::time::Duration;

use proto::component::GetComponentRequest;

use super::{BenchRun, LASTING};
use crate::{
    load,
    records::{self, RecordSize, id},
    samples::percentile,
};

const COMPONENTS: usize = 10_000;
const A_SECOND: u32 = 1_000;

/// The first calls connect.
const WARM_UP: Duration = Duration::from_millis(200);

/// Measures single reads.
pub async fn measure(bench: &mut BenchRun<'_>) {
    bench.attempt("single GETs", &["T13.p50", "T13.p99"], 5, single_reads).await;
}

async fn single_reads(bench: &mut BenchRun<'_>) {
    let server = records::filled(bench.stage, COMPONENTS, RecordSize::Usual, |_| false).await;
    let registry = server.registry();
    let directly = move |number: usize| {
        let mut registry = registry.clone();
        async move {
            let request = GetComponentRequest { id: id(number % COMPONENTS), scope: None };
            registry.get_component(request).await.expect("a component");
        }
    };
    let (client, url) = (reqwest::Client::new(), server.components_url());
    let over_rest =
        move |number: usize| load::taken(client.get(format!("{url}/{}", id(number % COMPONENTS))));
    load::callers(8, WARM_UP, directly.clone()).await;
    load::callers(8, WARM_UP, over_rest.clone()).await;
    for _ in 0..bench.runs() {
        let mut direct = load::pace(A_SECOND, LASTING, &directly).await.times();
        let mut passed_on = load::pace(A_SECOND, LASTING, &over_rest).await.times();
        for (row, percent) in [("T13.p50", 50.0), ("T13.p99", 99.0)] {
            let added = percentile(&mut passed_on, percent) - percentile(&mut direct, percent);
            bench.note(row, COMPONENTS, added);
        }
    }
    server.stop().await;
}
