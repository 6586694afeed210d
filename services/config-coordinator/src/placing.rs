//! Putting in place upstream what nodes need before they are switched on (BOS reference 5.5, steps 2 to 5).

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use chassis::{kinds::OptionsRecord, lease::Custody, mirror::Mirror};
use domain::{
    component::Component, evaluation::PowerObservation, id::ComponentId, options::Options,
    preparation::Preparation,
};
use futures_util::{StreamExt, stream};

use crate::{
    configure::{Configurator, another_has_them},
    groups::{self, BootGroup},
    isolate::{Part, isolate},
    power::PowerStates,
    prepare::Due,
    trouble::{Step, Trouble},
    upstream::{boot_parameters, configuration::Mode, images},
};

/// Calls of one round to the same upstream at the same time. One session makes a call per boot set, so this is a
/// limit for the odd case of as many images as nodes.
const CALLS: usize = 8;

/// Puts things in place, in the order of BOS: images, boot data, configuration. Each step is taken only for those
/// for which the one before it was, so that an upstream that is out of order costs the others no calls.
pub(crate) struct Placer {
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    /// Which nodes are off.
    pub(crate) power: PowerStates,
    /// Which components are this replica's.
    pub(crate) custody: Custody,
    pub(crate) images: images::Driver,
    pub(crate) boot_parameters: boot_parameters::Driver,
    pub(crate) configurator: Arc<Configurator>,
}

/// The token of the boot script server, empty where no boot data are wanted; or what is wrong.
pub(crate) type Outcome = Result<Arc<str>, Trouble>;

impl Placer {
    /// How it went for each of `open`. Components that have moved on meanwhile are left out.
    pub(crate) async fn place(&self, open: &[&Due]) -> HashMap<ComponentId, Outcome> {
        let mut outcomes = HashMap::new();
        let open = self.project_images(open, &mut outcomes).await;
        let open = self.put_boot_parameters(&open, &mut outcomes).await;
        self.set_configurations(&open, &mut outcomes).await;
        outcomes
    }

    /// Has the root file systems served that need it, once per image. Gives those that can go on.
    async fn project_images<'a>(
        &self,
        open: &[&'a Due],
        outcomes: &mut HashMap<ComponentId, Outcome>,
    ) -> Vec<&'a Due> {
        let kernels: BTreeSet<Arc<str>> = open.iter().filter_map(|one| self.projected(one)).collect();
        let deadline = self.deadline(|options| options.ims_read_timeout);
        let calls = kernels.into_iter().map(|kernel| async move {
            let projected = self.images.project(&kernel, deadline).await;
            (kernel, projected)
        });
        let mut calls = stream::iter(calls).buffer_unordered(CALLS);
        let mut troubles = HashMap::new();
        while let Some((kernel, projected)) = calls.next().await {
            if let Err(failure) = projected {
                tracing::warn!(%failure, %kernel, "image not projected");
                troubles.insert(kernel, Trouble::of(Step::Images, &failure));
            }
        }
        let mut ready = Vec::with_capacity(open.len());
        for &one in open {
            match self.projected(one).and_then(|kernel| troubles.get(&kernel)) {
                Some(trouble) => drop(outcomes.insert(one.component.id.clone(), Err(trouble.clone()))),
                None => ready.push(one),
            }
        }
        ready
    }

    /// Path of the kernel whose image has to be projected.
    fn projected(&self, due: &Due) -> Option<Arc<str>> {
        let artifacts = due.preparation.artifacts.as_ref()?;
        self.images.is_needed(artifacts).then(|| artifacts.kernel.clone().unwrap_or_default())
    }

    /// Gives boot data to the boot script server, one call for all that boot the same. Gives those that can go on,
    /// with the token of each.
    async fn put_boot_parameters<'a>(
        &self,
        open: &[&'a Due],
        outcomes: &mut HashMap<ComponentId, Outcome>,
    ) -> Vec<(&'a Due, Arc<str>)> {
        let mut ready = Vec::with_capacity(open.len());
        let mut booting = HashMap::new();
        for one in open.iter().filter(|one| self.is_current(one)) {
            match &one.preparation.artifacts {
                Some(artifacts) => drop(booting.insert(&one.component.id, (*one, artifacts))),
                None => ready.push((*one, Arc::from(""))),
            }
        }
        let groups = booting.iter().map(|(id, (_, artifacts))| (*id, &***artifacts));
        let most = self.options.in_force().batch_size(self.boot_parameters.most_hosts());
        let groups = groups::by_artifacts(groups, most);
        let deadline = self.deadline(|options| options.bss_read_timeout);
        let booting = &booting;
        let calls = groups.into_iter().map(|group| async move {
            let BootGroup { artifacts, hosts } = group;
            let put = |hosts: Arc<[ComponentId]>| {
                let artifacts = &artifacts;
                async move {
                    // A call cannot be fenced: whoever slept leaves it to the replica that has the components now.
                    let ours = |host| booting.get(host).is_some_and(|(due, _)| self.is_ours(due));
                    if !hosts.iter().all(ours) {
                        return Err(another_has_them());
                    }
                    self.boot_parameters.put(&hosts, artifacts, deadline).await
                }
            };
            isolate(hosts, put).await
        });
        let mut calls = stream::iter(calls).buffer_unordered(CALLS);
        while let Some(parts) = calls.next().await {
            for Part { items, outcome } in parts {
                let outcome = outcome.map_err(|failure| {
                    tracing::warn!(%failure, hosts = items.len(), "boot parameters not accepted");
                    Trouble::of(Step::BootParameters, &failure)
                });
                for host in items.iter() {
                    match (&outcome, booting.get(host)) {
                        (Ok(token), Some((due, _))) => ready.push((*due, Arc::clone(token))),
                        (Err(trouble), _) => drop(outcomes.insert(host.clone(), Err(trouble.clone()))),
                        (Ok(_), None) => {}
                    }
                }
            }
        }
        ready
    }

    async fn set_configurations(
        &self,
        open: &[(&Due, Arc<str>)],
        outcomes: &mut HashMap<ComponentId, Outcome>,
    ) {
        let open: Vec<_> = open.iter().filter(|(one, _)| self.is_current(one)).collect();
        let wanted = open.iter().map(|(one, _)| {
            let Preparation { configuration, session, .. } = &one.preparation;
            (&one.component.id, &**configuration, &**session)
        });
        let groups = groups::by_configuration(wanted, self.configurator.most_nodes());
        let mut troubles = self.configurator.set(groups, Mode::BeforeBoot).await;
        outcomes.extend(open.into_iter().map(|(one, token)| {
            let trouble = troubles.remove(&one.component.id);
            (one.component.id.clone(), configured(trouble, &one.preparation.configuration, token))
        }));
    }

    fn is_current(&self, due: &Due) -> bool {
        let now = self.components.get(due.component.id.as_str());
        let is_due = |now: &Component| {
            now.generation == due.component.generation
                && self.power.of(now).observation == PowerObservation::Off
        };
        now.is_some_and(|now| is_due(&now)) && self.is_ours(due)
    }

    fn is_ours(&self, due: &Due) -> bool {
        self.custody.tenure(due.component.id.as_str()) == Some(due.tenure)
    }

    fn deadline(&self, option: impl Fn(&Options) -> u32) -> Duration {
        Duration::from_secs(option(&self.options.in_force()).into())
    }
}

/// What the last step says about a component. One that wants no configuration need not wait until the service
/// that would hear so is back: it has nothing to do there, and is told so once the node runs.
fn configured(trouble: Option<Trouble>, configuration: &str, token: &Arc<str>) -> Outcome {
    match trouble {
        None => Ok(Arc::clone(token)),
        Some(Trouble::Awaited(_)) if configuration.is_empty() => Ok(Arc::clone(token)),
        Some(trouble) => Err(trouble),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn who_wants_no_configuration_does_not_wait_for_the_service() {
        let mut rows = String::new();
        for configuration in ["base", ""] {
            let awaited = Trouble::Awaited("waiting for CFS".into());
            for trouble in [None, Some(awaited), Some(Trouble::Refused("no".into())), Some(Trouble::Missing)]
            {
                let told = configured(trouble.clone(), configuration, &"t1".into());
                rows += &format!("{configuration:?} {trouble:?}: {told:?}\n");
            }
        }
        expect![[r#"
            "base" None: Ok("t1")
            "base" Some(Awaited("waiting for CFS")): Err(Awaited("waiting for CFS"))
            "base" Some(Refused("no")): Err(Refused("no"))
            "base" Some(Missing): Err(Missing)
            "" None: Ok("t1")
            "" Some(Awaited("waiting for CFS")): Ok("t1")
            "" Some(Refused("no")): Err(Refused("no"))
            "" Some(Missing): Err(Missing)
        "#]]
        .assert_eq(&rows);
    }
}
