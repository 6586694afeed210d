//! A million components.

use proto::component::ListComponentsRequest;

use super::{Bench, lists};
use crate::{
    records::{self, Size},
    stage::Server,
};

const MILLION: usize = 1_000_000;
const ROWS: [&str; 3] = ["T18.list", "T18.start", "T18.memory"];

/// Measures a list, a start and the memory, once.
pub async fn measure(bench: &mut Bench<'_>) {
    if !bench.wants(&ROWS) {
        return;
    }
    if !bench.command.million {
        return bench.leave(&ROWS, "takes --million");
    }
    let mut server = Server::empty(bench.stage).await;
    records::fill(&server, MILLION, Size::Usual, |_| false).await;
    let start = server.start_again().await;
    let (_, list) = lists::grpc(&server.registry(), ListComponentsRequest::default(), MILLION).await;
    let memory = server.memory() / (1 << 20) as f64;
    bench.note("T18.list", MILLION, vec![list.as_secs_f64()]);
    bench.note("T18.start", MILLION, vec![start.as_secs_f64()]);
    bench.note("T18.memory", MILLION, vec![memory]);
    server.stop().await;
}
