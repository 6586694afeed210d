//! Steps of preparations that upstreams took while another step waits, so that an outage repeats only its own step.
//!
//! They are a memory of this process: after a restart every step is taken again, which does no harm.

use std::{collections::HashMap, sync::Arc};

use chassis::memory::leave_room;
use domain::{
    artifacts::BootArtifacts,
    id::ComponentId,
    preparation::{self, StepTaken},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::prepare::Due;

/// Outcomes of one step for components whose preparation has not ended.
pub(crate) struct TakenSteps<T> {
    state: Mutex<StepState<T>>,
}

struct StepState<T> {
    taken: HashMap<ComponentId, Taken<T>>,
    /// Number of calls that the upstream did not answer as it should.
    disturbances: u64,
}

struct Taken<T> {
    outcome: T,
    tenure: u64,
    generation: u64,
    attempt: u32,
    artifacts: Arc<BootArtifacts>,
    at: Instant,
    disturbances: u64,
}

impl<T> Default for TakenSteps<T> {
    fn default() -> Self {
        Self { state: Mutex::new(StepState { taken: HashMap::new(), disturbances: 0 }) }
    }
}

impl<T: Clone> TakenSteps<T> {
    /// Outcome of the step for this preparation; none if it has to be taken, for the first time or again.
    pub(crate) fn outcome(&self, due: &Due, now: Instant) -> Option<T> {
        let state = self.state.lock();
        let taken = state.taken.get(&due.component.id)?;
        let step = StepTaken {
            generation: taken.generation,
            attempt: taken.attempt,
            artifacts: Arc::clone(&taken.artifacts),
            age: now.saturating_duration_since(taken.at),
            disturbed: taken.disturbances != state.disturbances,
        };
        let stands = preparation::stands(&step, due.component.generation, &due.preparation);
        // Another replica may have prepared the component in between.
        (stands && taken.tenure == due.tenure).then(|| taken.outcome.clone())
    }

    /// Notes that the upstream took the step.
    pub(crate) fn keep(&self, due: &Due, outcome: T, now: Instant) {
        let mut state = self.state.lock();
        let taken = Taken {
            outcome,
            tenure: due.tenure,
            generation: due.component.generation,
            attempt: due.preparation.attempt,
            artifacts: Arc::clone(&due.preparation.artifacts),
            at: now,
            disturbances: state.disturbances,
        };
        state.taken.insert(due.component.id.clone(), taken);
    }

    /// Notes that the upstream is in trouble. What it took until now may be lost.
    pub(crate) fn disturb(&self) {
        let mut state = self.state.lock();
        state.disturbances += 1;
        state.taken.clear();
    }

    /// Forgets components whose preparation has ended, or that no longer exist.
    pub(crate) fn forget<'a>(&self, ids: impl IntoIterator<Item = &'a ComponentId>) {
        let mut state = self.state.lock();
        ids.into_iter().for_each(|id| drop(state.taken.remove(id)));
        leave_room(&mut state.taken);
    }
}
