//! A gate at which the tasks of a paused process wait until it continues.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Poll, Waker},
};

use parking_lot::Mutex;

/// Gate, open or closed with waiting tasks. Clones are the same gate.
#[derive(Clone, Default)]
pub(crate) struct TaskGate {
    waiting: Arc<Mutex<Option<Vec<Waker>>>>,
}

impl TaskGate {
    /// Holds all tasks until the gate is opened.
    pub(crate) fn close(&self) {
        self.waiting.lock().get_or_insert_default();
    }

    /// Releases all tasks, in the order of their arrival.
    pub(crate) fn open(&self) {
        let waiting = self.waiting.lock().take();
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Runs `task`, but not while the gate is closed. Events and time continue meanwhile.
    pub(crate) async fn pass<F: Future>(self, task: F) -> F::Output {
        let mut task = pin!(task);
        poll_fn(
            |context| if self.holds(context.waker()) { Poll::Pending } else { task.as_mut().poll(context) },
        )
        .await
    }

    /// Returns whether `who` has to wait; it is woken when the gate is opened.
    fn holds(&self, who: &Waker) -> bool {
        let mut waiting = self.waiting.lock();
        if let Some(waiting) = waiting.as_mut() {
            waiting.push(who.clone());
        }
        waiting.is_some()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn nothing_is_done_behind_a_closed_gate() {
        let (gate, (told, hears)) = (TaskGate::default(), tokio::sync::oneshot::channel());
        let mut task = Box::pin(gate.clone().pass(hears));
        assert!((&mut task).now_or_never().is_none());
        gate.close();
        told.send(1).unwrap();
        assert!((&mut task).now_or_never().is_none());
        gate.open();
        assert_eq!(task.await, Ok(1));
    }
}
