//! Puts in place upstream the data that nodes need before they are switched on (BOS reference 5.5, steps 2 to 5).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use chassis::{kinds::options::OptionsRecord, lease::Term, observe::mirror::Mirror, process::traces};
use domain::{
    boot::{
        bos::options::Options,
        component::{Component, artifacts::BootArtifacts},
        configuration::preparation::Preparation,
        power::PowerObservation,
    },
    core::id::ComponentId,
};
use futures_util::{StreamExt, stream};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::{
    configure::{NodeConfigurator, term_is_over},
    groups::{self, BootGroup},
    isolate::{GroupPart, isolate},
    power::PowerMirror,
    preparation::DuePreparation,
    step::PlacingStep,
    taken::TakenSteps,
    trouble::StepTrouble,
    upstream::{FailureKind, boot_parameters, configuration::ConfigurationMode, images},
    verdicts::StepVerdicts,
};

/// Concurrent calls of one round to the same upstream. One session makes a call per boot set, so this limits the rare
/// case of as many images as nodes.
const CALLS: usize = 8;

/// Puts data in place, in the order of BOS: images, boot data, configuration. Each step is taken only for components
/// that passed the step before it, so that an upstream that is out of order costs the others no calls.
pub(crate) struct BootDataPlacer {
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    /// Power of nodes; only nodes that are off get new data.
    pub(crate) power: PowerMirror,
    pub(crate) term: Term,
    pub(crate) images: images::ImageUpstream,
    pub(crate) boot_parameters: boot_parameters::BootDataUpstream,
    pub(crate) configurator: Arc<NodeConfigurator>,
    /// Images that were projected for preparations that have not ended.
    pub(crate) projections: TakenSteps<()>,
    /// Tokens of boot data that were accepted for preparations that have not ended.
    pub(crate) tokens: TakenSteps<Arc<str>>,
    pub(crate) image_verdicts: StepVerdicts<ComponentId>,
    pub(crate) boot_verdicts: StepVerdicts<ComponentId>,
}

/// Components that need boot data, with their artifacts.
type BootingComponents<'a> = HashMap<&'a ComponentId, (&'a DuePreparation, &'a Arc<BootArtifacts>)>;

/// Failed step of a component, with its trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedStep {
    pub(crate) step: PlacingStep,
    pub(crate) trouble: StepTrouble,
}

/// Token of the boot script server, empty where no boot data are wanted; or the failed step.
pub(crate) type PlacingOutcome = Result<Arc<str>, FailedStep>;

impl BootDataPlacer {
    /// Puts data in place for `open` and returns the outcome of each. Components that have moved on meanwhile are left
    /// out.
    pub(crate) async fn place(&self, open: &[&DuePreparation]) -> HashMap<ComponentId, PlacingOutcome> {
        let mut outcomes = HashMap::new();
        let open = self.project_images(open, &mut outcomes).await;
        let open = self.put_boot_parameters(&open, &mut outcomes).await;
        self.set_configurations(&open, &mut outcomes).await;
        outcomes
    }

    /// Forgets the steps of preparations that have ended.
    pub(crate) fn end<'a>(&self, ids: impl IntoIterator<Item = &'a ComponentId> + Clone) {
        self.projections.forget(ids.clone());
        self.tokens.forget(ids);
    }

    /// Forgets components that no longer exist.
    pub(crate) fn forget(&self, ids: &[ComponentId]) {
        self.end(ids);
        self.image_verdicts.forget(ids);
        self.boot_verdicts.forget(ids);
        self.configurator.forget(ids);
    }

    /// Requests the projection of root file systems, once per image. Returns the preparations that continue.
    async fn project_images<'a>(
        &self,
        open: &[&'a DuePreparation],
        outcomes: &mut HashMap<ComponentId, PlacingOutcome>,
    ) -> Vec<&'a DuePreparation> {
        let now = Instant::now();
        let (waiting, mut ready): (Vec<&DuePreparation>, Vec<&DuePreparation>) = open
            .iter()
            .partition(|one| self.needs_image(one) && self.projections.outcome(one, now).is_none());
        let mut images = BTreeMap::<_, Vec<_>>::new();
        for one in &waiting {
            images.entry(kernel(one)).or_default().push(one.component.id.clone());
        }
        let deadline = self.deadline(|options| options.ims_read_timeout);
        let calls = images.into_iter().map(|(kernel, ids)| async move {
            let outcome = self.images.project(&kernel, deadline).await;
            vec![GroupPart::of_single_call(ids.into(), outcome)]
        });
        let mut groups: Vec<_> = stream::iter(calls).buffer_unordered(CALLS).collect().await;
        note_outcomes(&self.projections, &groups);
        let must_exist = self.options.in_force().ims_images_must_exist;
        for parts in &mut groups {
            parts.retain(|part| match &part.outcome {
                Err(failure) if boots_untagged(failure.kind, must_exist) => {
                    tracing::warn!(%failure, nodes = part.items.len(), "image is not tagged, its nodes boot all the same");
                    false
                }
                Ok(()) | Err(_) => true,
            });
        }
        let generations: HashMap<_, _> =
            waiting.iter().map(|one| (&one.component.id, one.component.generation)).collect();
        let generation = |id: &_| generations.get(id).copied().unwrap_or_default();
        let troubles = self.image_verdicts.troubles(&groups, generation, Instant::now());
        for one in waiting {
            match troubles.get(&one.component.id) {
                Some(trouble) => {
                    let failed = FailedStep { step: PlacingStep::Images, trouble: trouble.clone() };
                    outcomes.insert(one.component.id.clone(), Err(failed));
                }
                None => {
                    self.projections.keep(one, (), now);
                    ready.push(one);
                }
            }
        }
        ready
    }

    /// Sends boot data to the boot script server, one call for all components with the same data. Returns the
    /// preparations that continue, with the token of each.
    async fn put_boot_parameters<'a>(
        &self,
        open: &[&'a DuePreparation],
        outcomes: &mut HashMap<ComponentId, PlacingOutcome>,
    ) -> Vec<(&'a DuePreparation, Arc<str>)> {
        let now = Instant::now();
        let mut ready = Vec::with_capacity(open.len());
        let mut booting = HashMap::new();
        for one in open.iter().filter(|one| self.is_current(one)) {
            match self.tokens.outcome(one, now) {
                Some(token) => ready.push((*one, token)),
                None => drop(booting.insert(&one.component.id, (*one, &one.preparation.artifacts))),
            }
        }
        let groups = self.put_groups(&booting).await;
        note_outcomes(&self.tokens, &groups);
        let generation = |host: &_| booting.get(host).map_or(0, |(due, _)| due.component.generation);
        let troubles = self.boot_verdicts.troubles(&groups, generation, Instant::now());
        outcomes.extend(troubles.into_iter().map(|(host, trouble)| {
            let failed = FailedStep { step: PlacingStep::BootParameters, trouble };
            (host, Err(failed))
        }));
        for GroupPart { items, outcome, .. } in groups.into_iter().flatten() {
            let Ok(token) = outcome else { continue };
            for (due, _) in items.iter().filter_map(|host| booting.get(host)) {
                self.tokens.keep(due, Arc::clone(&token), now);
                ready.push((*due, Arc::clone(&token)));
            }
        }
        ready
    }

    /// Sends the boot data of each group, within the trace of the session of its first component. Returns the parts of each
    /// group that were taken or not, each with its token.
    async fn put_groups(
        &self,
        booting: &BootingComponents<'_>,
    ) -> Vec<Vec<GroupPart<ComponentId, Arc<str>>>> {
        let groups = booting.iter().map(|(id, (_, artifacts))| (*id, &***artifacts));
        let most = self.options.in_force().batch_size(self.boot_parameters.most_hosts());
        let groups = groups::by_artifacts(groups, most);
        let deadline = self.deadline(|options| options.bss_read_timeout);
        let round = self.boot_verdicts.next_round();
        let calls = groups.into_iter().map(|group| async move {
            let BootGroup { artifacts, hosts } = group;
            let put = |hosts: Arc<[ComponentId]>| {
                let artifacts = &artifacts;
                let due = hosts.first().and_then(|host| booting.get(host));
                let trace = due.map(|(due, _)| &*due.component.wish.trace).unwrap_or_default();
                let span = traces::work_span("put boot data in place", trace);
                async move {
                    // A call cannot be fenced: after the end of the lease it is left to the holder of the role.
                    if !self.term.is_current() {
                        return Err(term_is_over());
                    }
                    self.boot_parameters.put(&hosts, artifacts, deadline, self.term.fence()).await
                }
                .instrument(span)
            };
            isolate(hosts, round, put).await
        });
        stream::iter(calls).buffer_unordered(CALLS).collect().await
    }

    /// Sets configurations, within the trace of the session of the first component.
    async fn set_configurations(
        &self,
        open: &[(&DuePreparation, Arc<str>)],
        outcomes: &mut HashMap<ComponentId, PlacingOutcome>,
    ) {
        let open: Vec<_> = open.iter().filter(|(one, _)| self.is_current(one)).collect();
        let wanted = open.iter().map(|(one, _)| {
            let Preparation { configuration, session, .. } = &one.preparation;
            (&one.component.id, &**configuration, &**session)
        });
        let groups = groups::by_configuration(wanted, self.configurator.most_nodes());
        let trace = open.first().map(|(one, _)| &*one.component.wish.trace).unwrap_or_default();
        let span = traces::work_span("set configurations", trace);
        let setting = self.configurator.set(groups, ConfigurationMode::BeforeBoot);
        let mut troubles = setting.instrument(span).await;
        outcomes.extend(open.into_iter().map(|(one, token)| {
            let trouble = troubles.remove(&one.component.id);
            (one.component.id.clone(), configured(trouble, &one.preparation.configuration, token))
        }));
    }

    /// Returns whether the root file system of the image has to be projected.
    fn needs_image(&self, due: &DuePreparation) -> bool {
        self.images.is_needed(&due.preparation.artifacts)
    }

    fn is_current(&self, due: &DuePreparation) -> bool {
        let now = self.components.get(due.component.id.as_str());
        let is_due = |now: &Component| {
            now.generation == due.component.generation
                && self.power.of(now).observation == PowerObservation::Off
        };
        now.is_some_and(|now| is_due(&now)) && self.term.is_current()
    }

    fn deadline(&self, option: impl Fn(&Options) -> u32) -> Duration {
        Duration::from_secs(option(&self.options.in_force()).into())
    }
}

/// Returns the path of the kernel that a component boots.
fn kernel(due: &DuePreparation) -> Arc<str> {
    due.preparation.artifacts.kernel.clone().unwrap_or_default()
}

/// Notes for which components the upstream worked in this round, and for which it failed.
fn note_outcomes<T: Clone, O>(steps: &TakenSteps<T>, groups: &[Vec<GroupPart<ComponentId, O>>]) {
    let parts = groups.iter().flatten();
    let (failed, answered): (Vec<_>, Vec<_>) = parts.partition(|part| has_failed(part));
    let ids = |parts: Vec<&GroupPart<ComponentId, O>>| {
        let items = parts.into_iter().flat_map(|part| part.items.iter().cloned());
        items.collect::<Vec<_>>()
    };
    steps.note(ids(failed), ids(answered));
}

/// Returns whether the upstream did not work, so that it may have lost earlier data.
fn has_failed<I, T>(part: &GroupPart<I, T>) -> bool {
    match part.outcome.as_ref().map_err(|failure| failure.kind) {
        Ok(_) | Err(FailureKind::Refused | FailureKind::Denied) => false,
        Err(FailureKind::Unreachable | FailureKind::Ambiguous) => true,
    }
}

/// Returns whether nodes boot although their image was not tagged. As in BOS, they boot where the catalogue refuses the
/// image, or denies such calls, unless images `must_exist` there: such a node may fail to mount its root file system,
/// and no other harm comes of it. The end of an outage of the catalogue is waited for.
fn boots_untagged(kind: FailureKind, must_exist: bool) -> bool {
    match kind {
        FailureKind::Refused | FailureKind::Denied => !must_exist,
        FailureKind::Unreachable | FailureKind::Ambiguous => false,
    }
}

/// Returns the outcome of the last step. A component that wants no configuration does not wait for the end of an outage
/// of the configuration service: it has nothing to do there, and the service gets the empty configuration once the node
/// runs.
fn configured(trouble: Option<StepTrouble>, configuration: &str, token: &Arc<str>) -> PlacingOutcome {
    match trouble {
        None => Ok(Arc::clone(token)),
        Some(StepTrouble::Awaited(_) | StepTrouble::Refusing(_)) if configuration.is_empty() => {
            Ok(Arc::clone(token))
        }
        Some(trouble) => Err(FailedStep { step: PlacingStep::Configuration, trouble }),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn only_an_answer_lets_nodes_boot_untagged() {
        use FailureKind::*;
        for (kind, boots) in [(Refused, true), (Denied, true), (Unreachable, false), (Ambiguous, false)] {
            assert_eq!([false, true].map(|must| boots_untagged(kind, must)), [boots, false], "{kind:?}");
        }
    }

    #[test]
    fn who_wants_no_configuration_does_not_wait_for_the_service() {
        let mut rows = String::new();
        for configuration in ["base", ""] {
            let awaited = StepTrouble::Awaited("waiting for CFS".into());
            let refusing = StepTrouble::Refusing("waiting for CFS".into());
            let refused = StepTrouble::Refused("no".into());
            for trouble in [None, Some(awaited), Some(refusing), Some(refused), Some(StepTrouble::Missing)] {
                let told = configured(trouble.clone(), configuration, &"t1".into());
                let told = told.map_err(|failed| failed.trouble);
                rows += &format!("{configuration:?} {trouble:?}: {told:?}\n");
            }
        }
        expect![[r#"
            "base" None: Ok("t1")
            "base" Some(Awaited("waiting for CFS")): Err(Awaited("waiting for CFS"))
            "base" Some(Refusing("waiting for CFS")): Err(Refusing("waiting for CFS"))
            "base" Some(Refused("no")): Err(Refused("no"))
            "base" Some(Missing): Err(Missing)
            "" None: Ok("t1")
            "" Some(Awaited("waiting for CFS")): Ok("t1")
            "" Some(Refusing("waiting for CFS")): Ok("t1")
            "" Some(Refused("no")): Err(Refused("no"))
            "" Some(Missing): Err(Missing)
        "#]]
        .assert_eq(&rows);
    }
}
