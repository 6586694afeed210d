//! Putting boot data and configuration in place before a power-on (BOS reference 5.5, steps 2 to 5).
//!
//! The power controller switches a node on only after it was reported here as prepared for that attempt, so
//! nothing is reported as prepared unless every upstream took it (BUG-23).

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use chassis::{
    Channel, Fault,
    convert::{Digests, component::artifacts_to_wire},
    ledger::{Draft, Ledger},
    within,
};
use domain::{component::Component, id::ComponentId, preparation::Preparation};
use futures_util::{StreamExt, stream};
use proto::component::{
    BootToken, PreparationReport, ReportPreparationsRequest, report_service_client::ReportServiceClient,
};

use crate::{
    configure::Configurator,
    groups,
    preparation::{Plan, PreparationRecord, Progress},
    store::Preparations,
    upstream::{
        boot_parameters::Driver,
        configuration::{MOST_NODES, Mode},
    },
};

/// Calls of one round to the boot script server at the same time. One session makes a call per boot set, so
/// this is a limit for the odd case of as many images as nodes.
const CALLS: usize = 8;

/// The registry commits thousands of reports within a second. One that is silent for this long is told
/// again, which changes nothing if it had listened.
const DEADLINE: Duration = Duration::from_secs(20);

/// Prepares power-ons.
pub(crate) struct Preparer {
    pub(crate) preparations: Ledger<Preparations>,
    pub(crate) boot_parameters: Driver,
    pub(crate) configurator: Arc<Configurator>,
    pub(crate) registry: ReportServiceClient<Channel>,
}

/// A component whose coming power-on has to be prepared.
pub(crate) struct Due {
    pub(crate) component: Arc<Component>,
    pub(crate) preparation: Preparation,
}

/// The token that the boot script server gave for a component, or what went wrong.
type Token = Result<Arc<str>, Arc<str>>;

impl Preparer {
    /// Prepares every component of a batch and reports how that went, failures with their reason. Gives
    /// those that are prepared and reported so; the others have to be tried again.
    pub(crate) async fn prepare(&self, due: &[Due]) -> HashSet<ComponentId> {
        let prepared = self.try_prepare(due).await.unwrap_or_else(|fault| {
            tracing::warn!(%fault, components = due.len(), "preparations are not recorded");
            HashSet::new()
        });
        tracing::info!(components = due.len(), prepared = prepared.len(), "power-ons prepared");
        prepared
    }

    /// Forgets components that no longer exist.
    pub(crate) async fn forget(&self, ids: Vec<ComponentId>) -> Result<(), Fault> {
        let delete = move |draft: &mut Draft<'_, PreparationRecord>| {
            ids.iter().for_each(|id| draft.delete(id.as_str()));
            Ok(())
        };
        self.preparations.write(delete).await.map(drop)
    }

    async fn try_prepare(&self, due: &[Due]) -> Result<HashSet<ComponentId>, Fault> {
        let mut digests = Digests::default();
        let mut records: Vec<_> = due.iter().map(|one| self.record(one, &mut digests)).collect();
        self.write(records.clone()).await?;

        let open = due.iter().zip(&records).filter(|(_, record)| record.progress == Progress::Prepared);
        let mut outcomes = self.put_in_place(open.map(|(one, _)| one).collect()).await;
        for record in &mut records {
            if let Some(outcome) = outcomes.remove(&record.id) {
                record.progress = outcome;
            }
        }
        // The token is durable before anybody learns of it: a crash between the two must not lose it.
        self.write(records.clone()).await?;
        self.report(due, &records).await?;
        let accepted = records.into_iter().filter(|one| matches!(one.progress, Progress::Accepted { .. }));
        Ok(accepted.map(|record| record.id).collect())
    }

    /// What was accepted already, when the very same was, else a fresh record.
    fn record(&self, one: &Due, digests: &mut Digests) -> PreparationRecord {
        let id = &one.component.id;
        let plan = Plan::new(&one.component, &one.preparation, digests);
        let before = self.preparations.view().get(id.as_str()).filter(|before| before.plan == plan);
        let progress = match before.as_ref().map(|before| &before.progress) {
            Some(accepted @ Progress::Accepted { .. }) => accepted.clone(),
            Some(Progress::Prepared | Progress::Failed { .. }) | None => Progress::Prepared,
        };
        PreparationRecord { id: id.clone(), plan, progress, revision: 0 }
    }

    async fn write(&self, records: Vec<PreparationRecord>) -> Result<(), Fault> {
        let put = move |draft: &mut Draft<'_, PreparationRecord>| {
            for record in records {
                let same = draft
                    .get(record.id.as_str())
                    .is_some_and(|kept| kept.plan == record.plan && kept.progress == record.progress);
                if !same {
                    draft.put(record);
                }
            }
            Ok(())
        };
        self.preparations.write(put).await.map(drop)
    }

    /// How it went for each of `open`.
    async fn put_in_place(&self, open: Vec<&Due>) -> HashMap<ComponentId, Progress> {
        let wanted = open.iter().map(|one| {
            let Preparation { configuration, session, .. } = &one.preparation;
            (&one.component.id, configuration.as_str(), session.as_str())
        });
        let configurations = groups::by_configuration(wanted, MOST_NODES);
        let (tokens, errors) = tokio::join!(
            self.put_boot_parameters(&open),
            self.configurator.set(configurations, Mode::BeforeBoot),
        );
        let outcomes = tokens.into_iter().map(|(id, token)| {
            let outcome = outcome(token, errors.get(&id));
            (id, outcome)
        });
        outcomes.collect()
    }

    /// The token of each of `open`; an empty one where no boot data are wanted.
    async fn put_boot_parameters(&self, open: &[&Due]) -> HashMap<ComponentId, Token> {
        let mut tokens = HashMap::new();
        let mut booting = Vec::new();
        for one in open {
            match &one.preparation.artifacts {
                Some(artifacts) => booting.push((&one.component.id, artifacts)),
                None => drop(tokens.insert(one.component.id.clone(), Ok("".into()))),
            }
        }
        let calls = groups::by_artifacts(booting).into_iter().map(|group| async move {
            let token = self.boot_parameters.put(&group.hosts, &group.artifacts).await;
            (group.hosts, token)
        });
        let mut calls = stream::iter(calls).buffer_unordered(CALLS);
        while let Some((hosts, token)) = calls.next().await {
            let token: Token = token.map_err(|failure| {
                tracing::warn!(%failure, hosts = hosts.len(), "boot parameters not accepted");
                format!("boot parameters were not accepted: {failure}").into()
            });
            tokens.extend(hosts.into_iter().map(|host| (host, token.clone())));
        }
        tokens
    }

    async fn report(&self, due: &[Due], records: &[PreparationRecord]) -> Result<(), Fault> {
        let reports = records.iter().filter_map(report).collect();
        let tokens = tokens(due, records);
        let mut registry = self.registry.clone();
        let call = registry.report_preparations(ReportPreparationsRequest { reports, tokens });
        // Those that come back stale have moved on: the mirror brings what they want now.
        within(DEADLINE, call).await?;
        Ok(())
    }
}

/// Accepted only if everything was.
fn outcome(token: Token, configuration_error: Option<&Arc<str>>) -> Progress {
    match (token, configuration_error) {
        (Ok(token), None) => Progress::Accepted { token },
        (Err(error), None) => Progress::Failed { error },
        (Ok(_), Some(error)) => Progress::Failed { error: Arc::clone(error) },
        (Err(one), Some(other)) => Progress::Failed { error: format!("{one}; {other}").into() },
    }
}

fn report(record: &PreparationRecord) -> Option<PreparationReport> {
    let (token, error) = match &record.progress {
        Progress::Prepared => return None,
        Progress::Accepted { token } => (&**token, ""),
        Progress::Failed { error } => ("", &**error),
    };
    Some(PreparationReport {
        id: record.id.as_str().to_owned(),
        generation: record.plan.generation,
        attempt: record.plan.attempt,
        bss_token: token.to_owned(),
        error: error.to_owned(),
    })
}

/// What each accepted token stands for, once per token.
fn tokens(due: &[Due], records: &[PreparationRecord]) -> Vec<BootToken> {
    let mut tokens = BTreeMap::new();
    for (one, record) in due.iter().zip(records) {
        if let (Progress::Accepted { token }, Some(artifacts)) =
            (&record.progress, &one.preparation.artifacts)
        {
            tokens.entry(Arc::clone(token)).or_insert(artifacts);
        }
    }
    let tokens = tokens.into_iter().map(|(token, artifacts)| BootToken {
        token: token.to_string(),
        boot_artifacts: Some(artifacts_to_wire(artifacts)),
    });
    tokens.collect()
}

#[cfg(test)]
mod tests {
    use domain::artifacts::BootArtifacts;
    use expect_test::expect;

    use super::*;

    fn due(name: &str, kernel: Option<&str>) -> Due {
        let artifacts =
            kernel.map(|kernel| BootArtifacts { kernel: Some(kernel.into()), ..BootArtifacts::default() });
        let component = Component::new(ComponentId::parse(name).unwrap());
        let preparation =
            Preparation { attempt: 1, artifacts, configuration: String::new(), session: String::new() };
        Due { component: Arc::new(component), preparation }
    }

    #[test]
    fn a_power_on_is_prepared_only_if_every_upstream_took_its_part() {
        let refused: Arc<str> = "configuration was not accepted: busy".into();
        let mut rows = String::new();
        for token in [Ok("t1"), Ok(""), Err("boot parameters were not accepted: full")] {
            for configuration in [None, Some(&refused)] {
                let token = token.map(Arc::from).map_err(Arc::from);
                rows += &format!("{token:?} {}: ", configuration.is_none());
                rows += &format!("{:?}\n", outcome(token, configuration));
            }
        }
        expect![[r#"
            Ok("t1") true: Accepted { token: "t1" }
            Ok("t1") false: Failed { error: "configuration was not accepted: busy" }
            Ok("") true: Accepted { token: "" }
            Ok("") false: Failed { error: "configuration was not accepted: busy" }
            Err("boot parameters were not accepted: full") true: Failed { error: "boot parameters were not accepted: full" }
            Err("boot parameters were not accepted: full") false: Failed { error: "boot parameters were not accepted: full; configuration was not accepted: busy" }
        "#]].assert_eq(&rows);
    }

    #[test]
    fn each_token_is_explained_once_and_failures_have_none() {
        let all = [due("x1", Some("k1")), due("x2", Some("k1")), due("x3", Some("k2")), due("x4", None)];
        let accepted = |token: &str| Progress::Accepted { token: token.into() };
        let progress =
            [accepted("t1"), accepted("t1"), Progress::Failed { error: "full".into() }, accepted("")];
        let mut digests = Digests::default();
        let records: Vec<_> = all
            .iter()
            .zip(progress)
            .map(|(one, progress)| PreparationRecord {
                id: one.component.id.clone(),
                plan: Plan::new(&one.component, &one.preparation, &mut digests),
                progress,
                revision: 0,
            })
            .collect();
        let explained = tokens(&all, &records).into_iter().map(|one| {
            let artifacts = one.boot_artifacts.unwrap();
            format!("{:?} is {:?} {:?}\n", one.token, artifacts.kernel, artifacts.initrd)
        });
        let told = records.iter().filter_map(report);
        let told = told.map(|one| format!("{} {:?} {:?}\n", one.id, one.bss_token, one.error));
        expect![[r#"
            "t1" is Some("k1") None
            x1 "t1" ""
            x2 "t1" ""
            x3 "" "full"
            x4 "" ""
        "#]]
        .assert_eq(&explained.chain(told).collect::<String>());
    }
}
