//! What the configuration upstream says of nodes, and how fresh that is.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use chassis::{Fault, convert::time, ledger::Ledger, mirror::Mirror, work::WorkQueue};
use domain::{component::Component, evaluation::ConfigurationObservation, id::ComponentId, time::Timestamp};
use parking_lot::Mutex;
use proto::configuration::{ConfigurationReading, ConfigurationState};

use crate::{
    store::ConfigurationStates,
    upstream::{
        Failure,
        configuration::{Driver, Said},
    },
};

/// Asks the upstream, and keeps its answers with the generation that was current when it was asked.
///
/// Answers may overtake each other: one that was asked for earlier never replaces one that was asked for
/// later. Only answers that differ from what is kept are written.
pub(crate) struct Observer {
    states: Ledger<ConfigurationStates>,
    components: Mirror<Component>,
    upstream: Driver,
    order: Arc<Mutex<Order>>,
    /// Is told of components of which something else is known now.
    changed: WorkQueue<ComponentId>,
}

/// When answers were asked for, on a clock that only counts.
#[derive(Default)]
struct Order {
    now: u64,
    /// What was asked for before does not count: changes after it may have been missed.
    missed_before: u64,
    asked: HashMap<ComponentId, u64>,
}

/// Why nothing could be learnt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObserveError {
    /// The upstream did not answer.
    #[error("cannot be read: {0}")]
    Upstream(#[from] Failure),
    /// The answer could not be kept.
    #[error("cannot be stored: {0}")]
    Store(#[from] Fault),
}

/// One node as the upstream described it.
struct Sighting {
    id: ComponentId,
    generation: u64,
    observation: ConfigurationObservation,
}

impl Observer {
    pub(crate) fn new(
        states: Ledger<ConfigurationStates>,
        components: Mirror<Component>,
        upstream: Driver,
        changed: WorkQueue<ComponentId>,
    ) -> Self {
        Self { states, components, upstream, order: Arc::default(), changed }
    }

    /// The generation for which the upstream has to be asked about a component; none when what is known is
    /// fresh, or when the component is not enabled and nobody needs to know.
    ///
    /// A node that the upstream left out counts as not known: sooner or later it comes back.
    pub(crate) fn wanted(&self, id: &ComponentId) -> Option<u64> {
        let component = self.components.get(id.as_str()).filter(|component| component.is_enabled())?;
        let known = self.states.view().get(id.as_str()).is_some_and(|state| {
            state.generation == component.generation && state.reading() == ConfigurationReading::Known
        });
        let fresh = known && self.order.lock().is_fresh(id);
        (!fresh).then_some(component.generation)
    }

    /// Asks about components, at least one and no more than fit into one call.
    pub(crate) async fn look(&self, ids: &[ComponentId]) -> Result<(), ObserveError> {
        let asked = self.order.lock().tick();
        let about: Vec<_> = ids.iter().filter_map(|id| self.current(id.as_str())).collect();
        let mut said: HashMap<String, _> = self.upstream.get(ids).await?.into_iter().collect();
        let sightings = about.into_iter().map(|(id, generation)| {
            let observation = said.remove(id.as_str()).unwrap_or(ConfigurationObservation::Missing);
            Sighting { id, generation, observation }
        });
        Ok(self.keep(asked, sightings.collect()).await?)
    }

    /// Takes what the upstream said on its own account. It counts as asked for on arrival.
    pub(crate) async fn told(&self, said: Vec<Said>) -> Result<(), Fault> {
        let asked = self.order.lock().tick();
        let sightings = said.into_iter().filter_map(|(id, observation)| {
            let (id, generation) = self.current(&id)?;
            Some(Sighting { id, generation, observation })
        });
        self.keep(asked, sightings.collect()).await
    }

    /// What was said of any node until now may be out of date.
    pub(crate) fn may_have_missed(&self) {
        let mut order = self.order.lock();
        order.missed_before = order.tick();
    }

    /// Forgets components that no longer exist, unless they have come back by the time of the write: what was
    /// learnt about those since would be lost, and nothing would ask for it again.
    pub(crate) async fn forget(&self, mut ids: Vec<ComponentId>) -> Result<(), Fault> {
        let (order, components) = (Arc::clone(&self.order), self.components.clone());
        let delete = move |draft: &mut chassis::ledger::Draft<'_, ConfigurationState>| {
            ids.retain(|id| components.get(id.as_str()).is_none());
            order.lock().forget(&ids);
            ids.iter().for_each(|id| draft.delete(id.as_str()));
            Ok(())
        };
        self.states.write(delete).await.map(drop)
    }

    fn current(&self, id: &str) -> Option<(ComponentId, u64)> {
        self.components.get(id).map(|component| (component.id.clone(), component.generation))
    }

    async fn keep(&self, asked: u64, sightings: Vec<Sighting>) -> Result<(), Fault> {
        let ids: Vec<_> = sightings.iter().map(|sighting| sighting.id.clone()).collect();
        let (order, at) = (Arc::clone(&self.order), time::now());
        let write = move |draft: &mut chassis::ledger::Draft<'_, ConfigurationState>| {
            // Answers are put in order here, where writes are.
            let mut order = order.lock();
            let mut changed = HashSet::new();
            for sighting in sightings.into_iter().filter(|sighting| sighting.is_usable()) {
                if !order.admits(&sighting.id, asked) {
                    continue;
                }
                let kept = draft.get(sighting.id.as_str());
                let id = sighting.id.clone();
                if let Some(state) = sighting.replaces(kept.as_deref(), at) {
                    draft.put(state);
                    changed.insert(id);
                }
            }
            Ok(changed)
        };
        match self.states.write(write).await {
            Ok((changed, _)) => {
                self.changed.mark(changed);
                Ok(())
            }
            Err(fault) => {
                self.order.lock().forget(&ids);
                Err(fault)
            }
        }
    }
}

impl Order {
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Whether an answer asked for at `asked` may be kept; then it is the newest.
    fn admits(&mut self, id: &ComponentId, asked: u64) -> bool {
        let newest = self.asked.entry(id.clone()).or_default();
        let admitted = *newest <= asked;
        *newest = asked.max(*newest);
        admitted
    }

    fn is_fresh(&self, id: &ComponentId) -> bool {
        self.asked.get(id).copied().unwrap_or_default() >= self.missed_before
    }

    fn forget(&mut self, ids: &[ComponentId]) {
        for id in ids {
            self.asked.remove(id);
        }
    }
}

impl Sighting {
    fn is_usable(&self) -> bool {
        self.observation != ConfigurationObservation::Unknown
    }

    /// The state to keep instead of `kept`; none if it says the same.
    fn replaces(self, kept: Option<&ConfigurationState>, at: Timestamp) -> Option<ConfigurationState> {
        let (reading, desired_configuration, status) = match self.observation {
            ConfigurationObservation::Known { desired, status } => {
                (ConfigurationReading::Known, desired, status)
            }
            ConfigurationObservation::Missing | ConfigurationObservation::Unknown => {
                (ConfigurationReading::Missing, None, String::new())
            }
        };
        let same = kept.is_some_and(|kept| {
            kept.reading() == reading
                && kept.desired_configuration == desired_configuration
                && kept.status == status
                && kept.generation == self.generation
        });
        (!same).then(|| ConfigurationState {
            id: self.id.as_str().to_owned(),
            reading: reading.into(),
            desired_configuration,
            status,
            observed_at: Some(time::to_wire(at)),
            generation: self.generation,
            revision: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use chassis::convert::observation;
    use expect_test::expect;

    use super::*;

    fn id() -> ComponentId {
        ComponentId::parse("x1").unwrap()
    }

    #[test]
    fn an_answer_never_replaces_one_that_was_asked_for_later() {
        let mut order = Order::default();
        let (first, second) = (order.tick(), order.tick());
        assert!(order.admits(&id(), second));
        assert!(!order.admits(&id(), first));
        assert!(order.admits(&id(), second), "one message may describe a node twice");
        order.forget(&[id()]);
        assert!(order.admits(&id(), first));
    }

    #[test]
    fn what_was_said_before_a_gap_is_not_fresh() {
        let mut order = Order::default();
        let asked = order.tick();
        order.admits(&id(), asked);
        assert!(order.is_fresh(&id()));
        order.missed_before = order.tick();
        assert!(!order.is_fresh(&id()));
        let asked = order.tick();
        order.admits(&id(), asked);
        assert!(order.is_fresh(&id()));
    }

    #[test]
    fn only_what_differs_is_written() {
        let known = |desired: Option<&str>, status: &str| ConfigurationObservation::Known {
            desired: desired.map(str::to_owned),
            status: status.to_owned(),
        };
        let sighting = |observation, generation| Sighting { id: id(), generation, observation };
        let at = Timestamp(7_000);
        let kept = sighting(known(Some("base"), "pending"), 2).replaces(None, at).unwrap();
        let mut rows = String::new();
        for (observation, generation) in [
            (known(Some("base"), "pending"), 2),
            (known(Some("base"), "configured"), 2),
            (known(Some(""), "pending"), 2),
            (known(None, "pending"), 2),
            (known(Some("base"), "pending"), 3),
            (ConfigurationObservation::Missing, 2),
        ] {
            let written = sighting(observation.clone(), generation).replaces(Some(&kept), at);
            let written = written.map(|state| observation::configuration(Some(&state), generation));
            rows += &format!("{observation:?} of {generation}: {written:?}\n");
        }
        expect![[r#"
            Known { desired: Some("base"), status: "pending" } of 2: None
            Known { desired: Some("base"), status: "configured" } of 2: Some(Known { desired: Some("base"), status: "configured" })
            Known { desired: Some(""), status: "pending" } of 2: Some(Known { desired: Some(""), status: "pending" })
            Known { desired: None, status: "pending" } of 2: Some(Known { desired: None, status: "pending" })
            Known { desired: Some("base"), status: "pending" } of 3: Some(Known { desired: Some("base"), status: "pending" })
            Missing of 2: Some(Missing)
        "#]].assert_eq(&rows);
        expect![[r#"
            ConfigurationState {
                id: "x1",
                reading: Known,
                desired_configuration: Some(
                    "base",
                ),
                status: "pending",
                observed_at: Some(
                    Timestamp {
                        seconds: 7,
                        nanos: 0,
                    },
                ),
                generation: 2,
                revision: 0,
            }
        "#]]
        .assert_debug_eq(&kept);
    }
}
