//! A million components.

use proto::component::ListComponentsRequest;

use super::{BenchRun, ONE_DATABASE, lists};
use crate::records::{self, RecordSize};

const MILLION: usize = 1_000_000;
const ROWS: [&str; 3] = ["T18.list", "T18.start", "T18.memory"];

/// Measures a list, a start and the memory, once; where both databases are measured, on PostgreSQL.
pub async fn measure(bench: &mut BenchRun<'_>) {
    if !bench.wants_full(&ROWS) {
        return;
    }
    if bench.is_first_of_two() {
        return bench.leave(&ROWS, ONE_DATABASE);
    }
    bench.attempt("a million components", &ROWS, 10, million).await;
}

async fn million(bench: &mut BenchRun<'_>) {
    let mut server = records::filled(bench.stage, MILLION, RecordSize::Usual, |_| false).await;
    bench.note("T18.start", MILLION, server.start_again().await.as_secs_f64());
    let (_, list) = lists::grpc(&server.registry(), ListComponentsRequest::default(), MILLION).await;
    bench.note("T18.list", MILLION, list.as_secs_f64());
    bench.note("T18.memory", MILLION, server.memory() / (1 << 20) as f64);
    server.stop().await;
}
