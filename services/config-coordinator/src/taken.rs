//! Steps of preparations that upstreams took while another step waits, so that an outage repeats only its own step.
//!
//! The outcomes are a memory of one term: after a take-over every step is taken again, which does no harm.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use chassis::process::memory::leave_room;
use domain::{
    boot::{
        component::artifacts::BootArtifacts,
        configuration::preparation::{self, StepTaken},
    },
    core::id::ComponentId,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::preparation::DuePreparation;

/// Outcomes of one step for components whose preparation has not ended.
pub(crate) struct TakenSteps<T> {
    state: Mutex<StepState<T>>,
}

struct StepState<T> {
    taken: HashMap<ComponentId, TakenStep<T>>,
    /// Components for which the last call failed.
    failing: HashSet<ComponentId>,
    /// Number of outages. An outage lasts as long as calls fail for any component.
    outages: u64,
}

struct TakenStep<T> {
    outcome: T,
    generation: u64,
    attempt: u32,
    artifacts: Arc<BootArtifacts>,
    at: Instant,
    /// Number of outages until then.
    outages: u64,
}

impl<T> Default for TakenSteps<T> {
    fn default() -> Self {
        let state = StepState { taken: HashMap::new(), failing: HashSet::new(), outages: 0 };
        Self { state: Mutex::new(state) }
    }
}

impl<T: Clone> TakenSteps<T> {
    /// Returns the outcome of the step for this preparation; `None` if the step has to be taken, for the first time or
    /// again.
    pub(crate) fn outcome(&self, due: &DuePreparation, now: Instant) -> Option<T> {
        let state = self.state.lock();
        let taken = state.taken.get(&due.component.id)?;
        let step = StepTaken {
            generation: taken.generation,
            attempt: taken.attempt,
            artifacts: Arc::clone(&taken.artifacts),
            age: now.saturating_duration_since(taken.at),
            disturbed: taken.outages != state.outages,
        };
        let stands = preparation::stands(&step, due.component.generation, &due.preparation);
        stands.then(|| taken.outcome.clone())
    }

    /// Records that the upstream took the step.
    pub(crate) fn keep(&self, due: &DuePreparation, outcome: T, now: Instant) {
        let mut state = self.state.lock();
        let taken = TakenStep {
            outcome,
            generation: due.component.generation,
            attempt: due.preparation.attempt,
            artifacts: Arc::clone(&due.preparation.artifacts),
            at: now,
            outages: state.outages,
        };
        state.taken.insert(due.component.id.clone(), taken);
    }

    /// Records for which components the upstream failed in a round, and for which it answered. At the beginning of an
    /// outage, all that the upstream took until now may be lost. Its later outcomes hold, whichever other calls fail.
    pub(crate) fn note(
        &self,
        failed: impl IntoIterator<Item = ComponentId>,
        answered: impl IntoIterator<Item = ComponentId>,
    ) {
        let mut state = self.state.lock();
        let is_outage = !state.failing.is_empty();
        state.failing.extend(failed);
        state.outages += u64::from(!is_outage && !state.failing.is_empty());
        for id in answered {
            state.failing.remove(&id);
        }
        state.leave_room();
    }

    /// Forgets components whose preparation has ended, or that no longer exist.
    pub(crate) fn forget<'a>(&self, ids: impl IntoIterator<Item = &'a ComponentId>) {
        let mut state = self.state.lock();
        for id in ids {
            state.taken.remove(id);
            state.failing.remove(id);
        }
        state.leave_room();
    }
}

impl<T> StepState<T> {
    fn leave_room(&mut self) {
        leave_room(&mut self.taken);
        if self.failing.is_empty() {
            self.failing = HashSet::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::boot::{component::Component, configuration::preparation::Preparation};

    use super::*;

    fn due(name: &str) -> DuePreparation {
        let component = Component::new(ComponentId::parse(name).unwrap());
        let preparation = Preparation {
            attempt: 1,
            artifacts: Arc::default(),
            configuration: Arc::default(),
            session: Arc::default(),
        };
        DuePreparation { component: Arc::new(component), preparation }
    }

    /// Plays rounds, each with the letters of components with failing calls, of those with taken calls, and of those
    /// forgotten then. Returns the components whose step still holds at the end.
    fn standing(rounds: &[(&str, &str, &str)]) -> String {
        let (steps, now) = (TakenSteps::default(), Instant::now());
        let dues: Vec<_> = ["a", "b", "c"].map(due).into();
        let picked = |letters: &str| {
            let dues = dues.iter().filter(|due| letters.contains(due.component.id.as_str()));
            dues.collect::<Vec<_>>()
        };
        let ids =
            |letters| picked(letters).into_iter().map(|due| due.component.id.clone()).collect::<Vec<_>>();
        for (failed, taken, forgotten) in rounds {
            steps.note(ids(failed), ids(taken));
            picked(taken).into_iter().for_each(|due| steps.keep(due, (), now));
            steps.forget(&ids(forgotten));
        }
        let standing = dues.iter().filter(|due| steps.outcome(due, now).is_some());
        standing.map(|due| due.component.id.to_string()).collect()
    }

    #[test]
    fn an_outage_disturbs_once_what_was_taken_before() {
        for (name, rounds, expected) in [
            ("no trouble", &[("", "ab", "")][..], "ab"),
            ("taken before", &[("", "a", ""), ("b", "", "")], ""),
            ("taken as it begins", &[("b", "a", "")], "a"),
            ("taken while it lasts", &[("b", "", ""), ("", "a", ""), ("b", "", ""), ("b", "", "")], "a"),
            ("others fail as well", &[("b", "", ""), ("", "a", ""), ("c", "", "")], "a"),
            ("others take over", &[("b", "a", ""), ("c", "b", ""), ("", "c", "")], "abc"),
            ("it ended, and another began", &[("b", "a", ""), ("", "b", ""), ("c", "", "")], ""),
            ("nobody waits for its end", &[("b", "a", ""), ("", "", "b"), ("c", "", "")], ""),
        ] {
            assert_eq!(standing(rounds), expected, "{name}");
        }
    }
}
