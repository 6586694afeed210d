//! Tasks that live as long as the process: none ends unnoticed.

use std::{collections::HashMap, future::Future, sync::Arc, task::Poll, time::Duration};

use anyhow::Context as _;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::{self, JoinSet},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// The tasks of one process or one in-process mesh. Clones share them.
///
/// A task runs until shutdown. One that ends earlier, with an error, a panic or quietly, is a defect that would go
/// unnoticed, so it ends the process: [`Tasks::finished`] reports it.
#[derive(Clone, Default)]
pub struct Tasks {
    shutdown: CancellationToken,
    shared: Arc<TasksInner>,
    #[cfg(feature = "simulation")]
    gate: crate::simulation::TaskGate,
}

#[derive(Default)]
struct TasksInner {
    running: Mutex<RunningTasks>,
    spawned: Notify,
}

#[derive(Default)]
struct RunningTasks {
    tasks: JoinSet<anyhow::Result<()>>,
    names: HashMap<task::Id, &'static str>,
}

/// Task that ended: its name, and how it ended.
type Ended = (&'static str, anyhow::Result<()>);

impl Tasks {
    /// Starts a task that must run until shutdown.
    pub fn spawn<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        // Not a field called "name": JSON lines have the name of the span under that key.
        let task = Box::pin(task).instrument(tracing::info_span!("run", task = name));
        #[cfg(feature = "simulation")]
        let task = self.gate.clone().pass(task);
        self.shared.running.lock().spawn(name, task);
        self.shared.spawned.notify_one();
    }

    /// Starts a task that must run until shutdown and may stop anywhere: it is dropped then. For work that resumes from
    /// stored state.
    ///
    /// In one process all tasks stop at once, and a task may see a stream of another end before it sees the shutdown.
    /// How a task ends after the shutdown has begun is therefore logged and no failure.
    pub fn spawn_until_shutdown<F, T>(&self, name: &'static str, task: F)
    where
        F: Future<Output = anyhow::Result<T>> + Send + 'static,
    {
        let shutdown = self.shutdown();
        // A debug build copies a task on the stack wherever it is passed on, and some have a hundred kilobytes.
        let task = Box::pin(task);
        self.spawn(name, async move {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => Ok(()),
                ended = task => match ended {
                    Err(error) if shutdown.is_cancelled() => {
                        tracing::debug!("ended during shutdown: {error:#}");
                        Ok(())
                    }
                    ended => ended.map(drop),
                },
            }
        });
    }

    /// Is cancelled when everything should stop.
    pub fn shutdown(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// Waits until shutdown was asked for and every task has ended, at most `grace` after the request.
    ///
    /// # Errors
    /// When a task ended or panicked before shutdown, ended with an error, or did not end in time.
    pub async fn finished(&self, grace: Duration) -> anyhow::Result<()> {
        let outcome = self.watch_over().await;
        self.shutdown.cancel();
        let drained = tokio::time::timeout(grace, self.drain()).await;
        let late = self.shared.running.lock().abort_all();
        outcome?;
        drained.unwrap_or_else(|_| {
            Err(anyhow::anyhow!("tasks did not end within {grace:?}: {}", late.join(", ")))
        })
    }

    /// Drops every task where it is, as the end of the process would.
    #[cfg(feature = "simulation")]
    pub fn abort(&self) {
        self.shared.running.lock().abort_all();
    }

    /// Stops every task where it is, as if the process was stopped. Work outside of the tasks continues.
    #[cfg(feature = "simulation")]
    pub fn pause(&self) {
        self.gate.close();
    }

    /// Ends [`Self::pause`].
    #[cfg(feature = "simulation")]
    pub fn go_on(&self) {
        self.gate.open();
    }

    async fn watch_over(&self) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return Ok(()),
                // An empty set of tasks never wakes its waiter, so each spawn does.
                () = self.shared.spawned.notified() => {}
                (name, outcome) = self.next_ended() => {
                    outcome?;
                    if !self.shutdown.is_cancelled() {
                        anyhow::bail!("task {name} ended although nobody asked it to");
                    }
                }
            }
        }
    }

    async fn drain(&self) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        while !self.shared.running.lock().tasks.is_empty() {
            let (_, ended) = self.next_ended().await;
            outcome = outcome.and(ended);
        }
        outcome
    }

    /// Waits for the next task that ends; while there is none, for ever.
    async fn next_ended(&self) -> Ended {
        std::future::poll_fn(|context| self.shared.running.lock().poll_ended(context)).await
    }
}

impl RunningTasks {
    fn spawn(&mut self, name: &'static str, task: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
        let id = self.tasks.spawn(task).id();
        self.names.insert(id, name);
    }

    fn poll_ended(&mut self, context: &mut std::task::Context<'_>) -> Poll<Ended> {
        let Poll::Ready(Some(ended)) = self.tasks.poll_join_next_with_id(context) else {
            return Poll::Pending;
        };
        let id = ended.as_ref().map_or_else(task::JoinError::id, |(id, _)| *id);
        let name = self.names.remove(&id).unwrap_or_default();
        let outcome = match ended {
            Ok((_, outcome)) => outcome.with_context(|| format!("task {name}")),
            Err(panicked) => Err(anyhow::anyhow!("task {name} panicked: {panicked}")),
        };
        Poll::Ready((name, outcome))
    }

    /// Has every task dropped where it waits next, and returns their names in order.
    fn abort_all(&mut self) -> Vec<&'static str> {
        self.tasks.abort_all();
        let mut names: Vec<_> = self.names.values().copied().collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_task_that_dies_ends_the_process() {
        for (told, task) in
            [("boom", fails as fn() -> anyhow::Result<()>), ("nobody asked", ends), ("panicked", panics)]
        {
            let tasks = Tasks::default();
            tasks.spawn("steady", until_shutdown(tasks.shutdown()));
            tasks.spawn("doomed", async move { task() });
            let error = format!("{:#}", tasks.finished(GRACE).await.unwrap_err());
            assert!(error.contains(told), "{error}");
        }
    }

    #[tokio::test]
    async fn shutdown_waits_for_every_task() {
        let tasks = Tasks::default();
        tasks.spawn("steady", until_shutdown(tasks.shutdown()));
        tasks.spawn_until_shutdown("endless", std::future::pending::<anyhow::Result<()>>());
        tasks.shutdown().cancel();
        tasks.finished(GRACE).await.unwrap();
    }

    #[tokio::test]
    async fn tasks_that_do_not_end_are_named() {
        let tasks = Tasks::default();
        tasks.spawn("deaf", std::future::pending());
        tasks.spawn("steady", until_shutdown(tasks.shutdown()));
        tasks.shutdown().cancel();
        let error = tasks.finished(Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.to_string(), "tasks did not end within 50ms: deaf");
    }

    #[tokio::test]
    async fn a_task_that_sees_the_end_of_another_during_shutdown_ends_in_order() {
        let tasks = Tasks::default();
        let shutdown = tasks.shutdown();
        tasks.spawn_until_shutdown("reader", async move {
            // The shutdown begins while this task runs, and the stream that it reads ends at once.
            shutdown.cancel();
            fails()
        });
        tasks.finished(GRACE).await.unwrap();
    }

    async fn until_shutdown(shutdown: CancellationToken) -> anyhow::Result<()> {
        shutdown.cancelled().await;
        Ok(())
    }

    fn fails() -> anyhow::Result<()> {
        anyhow::bail!("boom")
    }

    fn ends() -> anyhow::Result<()> {
        Ok(())
    }

    fn panics() -> anyhow::Result<()> {
        panic!("on purpose")
    }
}
