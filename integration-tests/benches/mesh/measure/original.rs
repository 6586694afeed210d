//! Rows of the original on components outside any session.

use reqwest::RequestBuilder;
use serde_json::json;

use super::{BenchRun, LASTING, lists::rest};
use crate::{
    load,
    records::{self, RecordSize, id},
    samples::timed,
    stage::Server,
};

/// The original's page.
const PAGE: usize = 2_800;

/// Components in one bulk patch.
const BULK: usize = 2_000;

/// Callers of single components.
const CALLERS: usize = 8;

#[derive(Clone, Copy)]
enum ListWorkload {
    All,
    Pages,
    Tenth,
    Nobody,
    Get,
    Patch,
    BulkPatch,
    Memory,
}

use ListWorkload::{All, BulkPatch, Get, Memory, Nobody, Pages, Patch, Tenth};

const FEW: [(&str, ListWorkload); 4] =
    [("O1.1k", All), ("O2.1k", Pages), ("O3.1k", Tenth), ("O3.none1k", Nobody)];

const USUAL: [(&str, ListWorkload); 7] = [
    ("O1", All),
    ("O2", Pages),
    ("O3", Tenth),
    ("O3.none", Nobody),
    ("O4.get", Get),
    ("O4.patch", Patch),
    ("O5", BulkPatch),
];

const MANY: [(&str, ListWorkload); 8] = [
    ("O1.50k", All),
    ("O2.50k", Pages),
    ("O3.50k", Tenth),
    ("O3.none50k", Nobody),
    ("O4.get50k", Get),
    ("O4.patch50k", Patch),
    ("O5.50k", BulkPatch),
    ("O11.50k", Memory),
];

/// Measures lists, single calls and bulk patches of 1,000, 10,000 and 50,000 components over REST.
pub async fn measure(bench: &mut BenchRun<'_>) {
    on(bench, 1_000, &FEW).await;
    on(bench, 10_000, &USUAL).await;
    if bench.wants_full(&MANY.map(|(row, _)| row)) {
        on(bench, 50_000, &MANY).await;
    }
}

async fn on(bench: &mut BenchRun<'_>, count: usize, workloads: &[(&str, ListWorkload)]) {
    let rows: Vec<_> = workloads.iter().map(|(row, _)| *row).collect();
    let what = format!("the original's workloads on {count} components");
    let measured = async |bench: &mut BenchRun<'_>| {
        let stage = ListStage::with(bench, count).await;
        for (row, workload) in workloads {
            if bench.wants(&[row]) {
                repeat(bench, &stage, row, *workload).await;
            }
        }
        stage.server.stop().await;
    };
    bench.attempt(&what, &rows, 5, measured).await;
}

async fn repeat(bench: &mut BenchRun<'_>, stage: &ListStage, row: &str, workload: ListWorkload) {
    for run in 0..bench.runs() {
        let value = stage.measured(workload, run).await;
        bench.note(row, stage.ids.len(), value);
    }
}

struct ListStage {
    server: Server,
    client: reqwest::Client,
    url: String,
    /// Ids in order.
    ids: Vec<String>,
}

impl ListStage {
    async fn with(bench: &BenchRun<'_>, count: usize) -> Self {
        let server = records::filled(bench.stage, count, RecordSize::Usual, |n| n % 10 == 0).await;
        let (client, url) = (reqwest::Client::new(), server.components_url());
        let mut ids: Vec<_> = (0..count).map(id).collect();
        ids.sort_unstable();
        Self { server, client, url, ids }
    }

    /// Seconds, calls in a second, or MiB.
    async fn measured(&self, workload: ListWorkload, run: u32) -> f64 {
        match workload {
            All => self.list("").await,
            Pages => self.pages().await,
            Tenth => self.list("?session=chosen").await,
            Nobody => self.list("?session=nobody").await,
            Get => self.singly(reqwest::Client::get).await,
            Patch => {
                let noted = json!({"error": format!("noted alone {run}")});
                self.singly(move |client, url| client.patch(url).json(&noted)).await
            }
            BulkPatch => self.bulk_patch(run).await,
            Memory => self.server.memory() / (1 << 20) as f64,
        }
    }

    async fn list(&self, query: &str) -> f64 {
        rest(&self.client, &format!("{}{query}", self.url)).await.1.as_secs_f64()
    }

    async fn pages(&self) -> f64 {
        let mut took = self.list(&format!("?page_size={PAGE}")).await;
        for last in self.ids.chunks(PAGE).filter_map(|page| page.last()) {
            took += self.list(&format!("?page_size={PAGE}&start_after_id={last}")).await;
        }
        took
    }

    async fn singly<R>(&self, request: R) -> f64
    where
        R: Fn(&reqwest::Client, String) -> RequestBuilder + Clone + Send + 'static,
    {
        let (client, url, count) = (self.client.clone(), self.url.clone(), self.ids.len());
        let call = move |number: usize| {
            let request = request(&client, format!("{url}/{}", id(number % count)));
            async move { load::taken(request).await }
        };
        load::callers(CALLERS, LASTING, call).await.rate()
    }

    async fn bulk_patch(&self, run: u32) -> f64 {
        let noted = format!("noted together {run}");
        let patches: Vec<_> = (0..BULK).map(|n| json!({"id": id(n), "error": noted})).collect();
        let patch = self.client.patch(&self.url).json(&patches);
        timed(load::taken(patch)).await.1.as_secs_f64()
    }
}
