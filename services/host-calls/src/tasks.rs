//! Tasks of hosts: one for each host at most.

use std::{collections::HashSet, future::Future, sync::Arc};

use tokio::task::{JoinError, JoinSet};
use tracing::Instrument;

/// Tasks under way, by the keys of their hosts. They end when this is dropped.
pub struct HostTasks<T> {
    tasks: JoinSet<(Arc<str>, T)>,
    under_way: HashSet<Arc<str>>,
}

impl<T> Default for HostTasks<T> {
    fn default() -> Self {
        Self { tasks: JoinSet::new(), under_way: HashSet::new() }
    }
}

impl<T: Send + 'static> HostTasks<T> {
    /// Returns whether a task of the host is under way.
    pub fn contains(&self, key: &Arc<str>) -> bool {
        self.under_way.contains(key)
    }

    /// Number of tasks under way.
    pub fn count(&self) -> usize {
        self.under_way.len()
    }

    /// Begins a task of a host that has none.
    pub fn spawn(&mut self, key: Arc<str>, task: impl Future<Output = T> + Send + 'static) {
        self.under_way.insert(Arc::clone(&key));
        self.tasks.spawn(async move { (key, task.await) }.in_current_span());
    }

    /// Waits for the end of a task; never returns while there is none.
    pub async fn ended(&mut self) -> (Arc<str>, T) {
        let Some(ended) = self.tasks.join_next().await else { return std::future::pending().await };
        let (key, result) = ended.unwrap_or_else(resume);
        self.under_way.remove(&key);
        (key, result)
    }
}

/// Resumes the panic of a task; nothing else ends a task early.
fn resume<T>(error: JoinError) -> T {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => unreachable!("tasks are aborted only with all others: {error}"),
    }
}
