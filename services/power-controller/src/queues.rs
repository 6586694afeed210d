//! Work that is queued for the engine.

use chassis::observe::work::{OpenQueue, WorkQueue};
use domain::core::id::ComponentId;

use crate::engine::TransitionId;

/// Work that is queued for the engine. Clones share the queues.
#[derive(Clone)]
pub(crate) struct EngineQueues {
    /// Components that may need an action.
    pub(crate) undecided: WorkQueue<ComponentId>,
    /// Components whose power may have to be read.
    pub(crate) unread: WorkQueue<ComponentId>,
    /// Transitions without an answer of the upstream on record that can go a step further.
    pub(crate) undelivered: WorkQueue<TransitionId>,
    /// Transitions that the upstream is working on and that are due for a poll.
    pub(crate) unfollowed: WorkQueue<TransitionId>,
}

impl Default for EngineQueues {
    fn default() -> Self {
        Self {
            undecided: WorkQueue::closed(),
            unread: WorkQueue::closed(),
            undelivered: WorkQueue::closed(),
            unfollowed: WorkQueue::closed(),
        }
    }
}

/// Keeps the queues open for a term.
pub(crate) type OpenQueues = ([OpenQueue<ComponentId>; 2], [OpenQueue<TransitionId>; 2]);

impl EngineQueues {
    pub(crate) fn open(&self) -> OpenQueues {
        ([self.undecided.open(), self.unread.open()], [self.undelivered.open(), self.unfollowed.open()])
    }
}
