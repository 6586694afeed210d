//! Measurements that may fail or hang, which costs their own rows their values and no other row anything.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;
use tokio::time::timeout;

use super::BenchRun;

/// Letters of a failure that are shown: it begins with the cause, and the log of a process may follow.
const SHOWN: usize = 300;

impl BenchRun<'_> {
    /// Measures `rows` within `minutes` if any of them was picked. Returns `None` if not, or after a failure, which is
    /// noted with the rows.
    pub async fn attempt<T>(
        &mut self,
        what: &str,
        rows: &[&str],
        minutes: u64,
        measure: impl AsyncFnOnce(&mut Self) -> T,
    ) -> Option<T> {
        if !self.wants(rows) {
            return None;
        }
        let began = Instant::now();
        let bound = Duration::from_secs(60 * minutes);
        let ended = timeout(bound, AssertUnwindSafe(measure(self)).catch_unwind()).await;
        let (made, trouble) = match ended {
            Ok(Ok(made)) => (Some(made), None),
            Ok(Err(panic)) => (None, Some(format!("{what} failed: {}", words(&*panic)))),
            Err(_) => (None, Some(format!("{what} did not end within {minutes} minutes"))),
        };
        if let Some(trouble) = trouble {
            self.leave(rows, &trouble);
        }
        self.report.close(what, rows, Some(&self.stage.database), began.elapsed());
        made
    }
}

/// Message of a panic, on one line.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown");
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(SHOWN) {
        words.truncate(end);
        words += "...";
    }
    words
}
