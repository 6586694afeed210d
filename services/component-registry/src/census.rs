//! Census of components by status, and the time that phases of work took, from changes of the records.
//!
//! Components without any work due are counted and not remembered, so that a fleet at rest costs no memory.

use std::{
    collections::{BTreeSet, HashMap},
    convert::Infallible,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use chassis::{
    process::{clock, memory::leave_room},
    store::resource::Batch,
};
use domain::{
    boot::component::{
        Component,
        status::{ComponentStatus, computed_status},
        work_phase::{PhaseEnd, WorkPhase},
    },
    core::{id::ComponentId, time::Timestamp},
};
use futures_util::StreamExt;
use metrics::{Unit, gauge, histogram};

use crate::RegistryState;

/// Components by status.
const COMPONENTS: &str = "reveille_components";

/// Time at which the component came to its status that has been in it longest.
const OLDEST: &str = "reveille_components_oldest_timestamp_seconds";

/// Duration of phases.
const PHASES: &str = "reveille_component_phase_duration_seconds";

/// Label of statuses that a client has written.
const OTHER: &str = "other";

/// Counts components until the end of a term, while this replica acts: every replica would count the same.
pub(crate) async fn run(registry: Arc<RegistryState>) -> anyhow::Result<Infallible> {
    metrics::describe_gauge!(COMPONENTS, "Components by status");
    metrics::describe_gauge!(
        OLDEST,
        Unit::Seconds,
        "Time since which the component has its status that has it longest"
    );
    metrics::describe_histogram!(PHASES, Unit::Seconds, "Time that phases of the work on a component took");
    let shown = ShownCensus;
    let mut census = ComponentCensus::default();
    let mut batches = pin!(registry.components.follow());
    while let Some(batch) = batches.next().await {
        for ended in census.apply(&batch, clock::now()) {
            let (phase, outcome) = (ended.phase.word(), ended.end.word());
            histogram!(PHASES, "phase" => phase, "outcome" => outcome).record(ended.took);
        }
        let view = registry.components.view();
        if batch.synced {
            census.keep(|id| view.get(id.as_str()).is_some());
        }
        shown.show(&census, view.len());
    }
    anyhow::bail!("the ledger of components ended")
}

/// Census in the metrics, which is withdrawn when this is dropped.
struct ShownCensus;

impl ShownCensus {
    fn show(&self, census: &ComponentCensus, components: usize) {
        let busy = census.standings.len();
        for status in ComponentStatus::OWN.map(label).into_iter().chain([OTHER]) {
            let count = match status == label(ComponentStatus::STABLE) {
                true => components.saturating_sub(busy),
                false => census.count(status),
            };
            gauge!(COMPONENTS, "status" => status).set(count as f64);
            if status != label(ComponentStatus::STABLE) {
                let oldest = census.oldest(status).map_or(f64::NAN, |since| since.0 as f64 / 1e3);
                gauge!(OLDEST, "status" => status).set(oldest);
            }
        }
    }
}

impl Drop for ShownCensus {
    fn drop(&mut self) {
        self.show(&ComponentCensus::default(), 0);
    }
}

fn label(status: ComponentStatus<'_>) -> &'static str {
    match status {
        ComponentStatus::OnHold => "on_hold",
        ComponentStatus::Failed => "failed",
        ComponentStatus::Progress(progress) => progress.word(),
        ComponentStatus::Overridden(_) => OTHER,
    }
}

/// Standing of a component that is not at rest.
#[derive(Debug, Clone, Copy)]
struct ComponentStanding {
    status: &'static str,
    since: Timestamp,
    /// Phase with its begin; `None`: there is no phase, or its begin was not seen.
    phase: Option<(WorkPhase, Timestamp)>,
}

/// Phase that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EndedPhase {
    phase: WorkPhase,
    end: PhaseEnd,
    took: Duration,
}

/// Components that are not at rest.
#[derive(Default)]
struct ComponentCensus {
    standings: HashMap<ComponentId, ComponentStanding>,
    /// Components by status and the time since which they have it.
    ages: HashMap<&'static str, BTreeSet<(Timestamp, ComponentId)>>,
    /// Whether everything on record was seen once.
    is_complete: bool,
}

impl ComponentCensus {
    /// Applies changes that are seen at `now`, and returns the phases that they ended.
    fn apply(&mut self, batch: &Batch<Component>, now: Timestamp) -> Vec<EndedPhase> {
        for deletion in &batch.deleted {
            if let Ok(id) = ComponentId::parse(&deletion.key) {
                self.remove(&id);
            }
        }
        let ended = batch.changed.iter().filter_map(|component| self.follow(component, now)).collect();
        leave_room(&mut self.standings);
        self.is_complete |= batch.synced;
        ended
    }

    /// Removes components that are not on record any more.
    fn keep(&mut self, is_kept: impl Fn(&ComponentId) -> bool) {
        let gone: Vec<_> = self.standings.keys().filter(|id| !is_kept(id)).cloned().collect();
        gone.iter().for_each(|id| {
            self.remove(id);
        });
    }

    fn follow(&mut self, component: &Component, now: Timestamp) -> Option<EndedPhase> {
        let next = computed_status(component);
        let status = label(next);
        let before = self.standings.get(&component.id).copied();
        if before.map_or(label(ComponentStatus::STABLE), |before| before.status) == status {
            return None;
        }
        self.remove(&component.id);
        let begun = before.and_then(|before| before.phase);
        let ended = begun.and_then(|(phase, since)| {
            let end = phase.end_with(next)?;
            Some(EndedPhase { phase, end, took: now.since(since) })
        });
        // The begin of what was on record before is known as well as the record tells.
        let since = if self.is_complete { now } else { component.last_action_at().unwrap_or(now) };
        let phase = match begun.filter(|_| ended.is_none()) {
            Some(begun) => Some(begun),
            None => WorkPhase::of(next).filter(|_| self.is_complete).map(|phase| (phase, since)),
        };
        if next != ComponentStatus::STABLE {
            self.standings.insert(component.id.clone(), ComponentStanding { status, since, phase });
            self.ages.entry(status).or_default().insert((since, component.id.clone()));
        }
        ended
    }

    fn remove(&mut self, id: &ComponentId) {
        let Some((id, before)) = self.standings.remove_entry(id) else { return };
        if let Some(ages) = self.ages.get_mut(before.status) {
            ages.remove(&(before.since, id));
        }
    }

    fn count(&self, status: &'static str) -> usize {
        self.ages.get(status).map_or(0, BTreeSet::len)
    }

    fn oldest(&self, status: &'static str) -> Option<Timestamp> {
        self.ages.get(status)?.first().map(|(since, _)| *since)
    }
}

#[cfg(test)]
mod tests {
    use domain::boot::component::{Action, LastAction, Phase, Status};
    use expect_test::expect;

    use super::*;

    fn component(id: &str, word: &str) -> Arc<Component> {
        let (phase, action, over) = match word {
            "stable" => (Phase::None, None, ""),
            "off" => (Phase::PoweringOff, None, ""),
            "forced" => (Phase::PoweringOff, Some(Action::PoweringOffForcefully), ""),
            "on" => (Phase::PoweringOn, None, ""),
            "called" => (Phase::PoweringOn, Some(Action::PoweringOn), ""),
            "configuring" => (Phase::Configuring, None, ""),
            over => (Phase::None, None, over),
        };
        let component = Component::new(ComponentId::parse(id).unwrap()).with(|one| {
            let last_updated = Some(Timestamp(1));
            one.power.last_action = Some(LastAction { action, failed: None, last_updated });
            let status_override = Some(over.into());
            one.evaluation.status = Some(Status { phase: Some(phase), status_override });
        });
        Arc::new(component)
    }

    #[test]
    fn census_follows_changes_and_measures_phases() {
        let mut census = ComponentCensus::default();
        let mut rows = String::new();
        for (at, words) in [
            (10, "x1:called x2:stable x3:failed"),
            (20, "x1:configuring x2:off"),
            (30, "x2:forced x3:failed"),
            (45, "x2:on x1:stable"),
            (50, "x2:called x4:Resting"),
            (60, "x2:off"),
            (70, "x2:failed x1:configuring"),
            (80, "x1:on_hold x3:stable x4:stable"),
        ] {
            let changed = words.split(' ').map(|word| word.split_once(':').unwrap());
            let changed = changed.map(|(id, word)| component(id, word)).collect();
            let batch = Batch { changed, deleted: Vec::new(), revision: at as u64, synced: at == 10 };
            let ended = census.apply(&batch, Timestamp(at));
            let ended = ended.iter().map(|one| {
                format!(" {} {} after {}", one.phase.word(), one.end.word(), one.took.as_millis())
            });
            let ended = ended.collect::<String>();
            let mut counts: Vec<_> = census.ages.keys().copied().collect();
            counts.sort_unstable();
            let counts = counts.into_iter().filter_map(|status| {
                let oldest = census.oldest(status)?.0;
                Some(format!(" {status}={}@{oldest}", census.count(status)))
            });
            rows += &format!(
                "{words}:{}{}{ended}\n",
                counts.collect::<String>(),
                if ended.is_empty() { "" } else { ";" }
            );
        }
        census.keep(|id| id.as_str() != "x2");
        rows += &format!("without x2: {}\n", census.standings.len());
        expect![[r#"
            x1:called x2:stable x3:failed: failed=1@1 power_on_called=1@1
            x1:configuring x2:off: configuring=1@20 failed=1@1 power_off_pending=1@20
            x2:forced x3:failed: configuring=1@20 failed=1@1 power_off_forcefully_called=1@30
            x2:on x1:stable: failed=1@1 power_on_pending=1@45; power_off done after 25 configure done after 25
            x2:called x4:Resting: failed=1@1 other=1@50 power_on_called=1@50; power_on done after 5
            x2:off: failed=1@1 other=1@50 power_off_pending=1@60; boot retried after 10
            x2:failed x1:configuring: configuring=1@70 failed=2@1 other=1@50; power_off failed after 10
            x1:on_hold x3:stable x4:stable: failed=1@70 on_hold=1@80; configure held after 10
            without x2: 1
        "#]]
        .assert_eq(&rows);
    }
}
