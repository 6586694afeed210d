//! Prepares power-ons: the data put in place are on record before and after, and are reported when they are in place.
//!
//! The power controller switches a node on only after its preparation for that attempt was reported, so a node is
//! reported as prepared only once every upstream took its data (BUG-23).

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use chassis::{
    Channel, Fault,
    kinds::{Digests, component::artifacts_to_wire, trouble},
    lease::Fence,
    process::{clock, failpoint},
    store::ledger::{Draft, Ledger},
    within,
};
use domain::{boot::component::Component, core::id::ComponentId};
use proto::component::{
    BootToken, PreparationReport, ReportPreparationsRequest, report_service_client::ReportServiceClient,
};

use crate::{
    placing::{BootDataPlacer, FailedStep, PlacingOutcome},
    preparation::{DuePreparation, PreparationPlan, PreparationProgress, PreparationRecord},
    store::PreparationTable,
    trouble::StepTrouble,
};

/// Deadline of the registry for an answer. It commits thousands of reports within a second. A report without an answer
/// for this long is repeated, which changes nothing if the first one arrived.
const DEADLINE: Duration = Duration::from_secs(20);

/// Prepares power-ons.
pub(crate) struct BootPreparer {
    pub(crate) preparations: Ledger<PreparationTable>,
    pub(crate) placer: BootDataPlacer,
    pub(crate) registry: ReportServiceClient<Channel>,
    /// Fencing token of the term.
    pub(crate) fence: Fence,
}

/// Outcome of a round of preparations. Components in neither set have to be tried again soon.
pub(crate) struct PreparationRound {
    /// Components for which this attempt has ended on record, prepared or refused.
    pub(crate) ended: HashSet<ComponentId>,
    /// Components of an upstream that takes none at present.
    pub(crate) refusing: HashSet<ComponentId>,
}

impl BootPreparer {
    /// Prepares every component of a batch and reports the outcomes, failures with their reason.
    pub(crate) async fn prepare(&self, due: &[DuePreparation]) -> PreparationRound {
        let (records, refusing) = self.try_prepare(due).await.unwrap_or_else(|fault| {
            tracing::warn!(%fault, components = due.len(), "preparations are not recorded");
            Default::default()
        });
        let count = |word| records.iter().filter(|record| record.progress.word() == word).count();
        let (prepared, refused) = (count(PreparationProgress::ACCEPTED), count(PreparationProgress::REFUSED));
        if prepared + refused > 0 {
            tracing::info!(components = due.len(), prepared, refused, "power-ons prepared");
        }
        let ended = records.into_iter().filter(|record| !record.progress.is_open());
        let ended: HashSet<_> = ended.map(|record| record.id).collect();
        self.placer.end(&ended);
        PreparationRound { ended, refusing }
    }

    /// Forgets components that no longer exist.
    pub(crate) async fn forget(&self, ids: Vec<ComponentId>) -> Result<(), Fault> {
        self.placer.forget(&ids);
        let delete = move |draft: &mut Draft<'_, PreparationRecord>| {
            ids.iter().for_each(|id| draft.delete(id.as_str()));
            Ok(())
        };
        self.preparations.write_fenced(self.fence.clone(), delete).await.map(drop)
    }

    /// Prepares a batch. Returns the records afterwards, and the components of an upstream that refuses every
    /// component.
    async fn try_prepare(
        &self,
        due: &[DuePreparation],
    ) -> Result<(Vec<PreparationRecord>, HashSet<ComponentId>), Fault> {
        let mut digests = Digests::default();
        let mut records: Vec<_> = due.iter().map(|one| self.record(one, &mut digests)).collect();
        self.write(records.clone()).await?;
        failpoint::pass(format_args!("preparation.intended"));

        let open = due.iter().zip(&records).filter(|(_, record)| record.progress.is_open());
        let open: Vec<_> = open.map(|(one, _)| one).collect();
        let mut outcomes = self.placer.place(&open).await;
        let is_refusing = |failed: &FailedStep| matches!(failed.trouble, StepTrouble::Refusing(_));
        let refusing = outcomes.iter().filter(|(_, outcome)| outcome.as_ref().is_err_and(is_refusing));
        let refusing = refusing.map(|(id, _)| id.clone()).collect();
        for record in &mut records {
            if let Some(outcome) = outcomes.remove(&record.id) {
                record.advance(progress(outcome), clock::now());
            }
        }
        // The token is durable before it is reported: a crash between the two must not lose it.
        self.write(records.clone()).await?;
        failpoint::pass(format_args!("preparation.ended"));
        self.report(due, &records).await?;
        Ok((records, refusing))
    }

    /// Returns the record of the very same preparation, else a new record.
    fn record(&self, one: &DuePreparation, digests: &mut Digests) -> PreparationRecord {
        let id = &one.component.id;
        let plan = PreparationPlan::new(&one.component, &one.preparation, digests);
        let before = self.preparations.view().get(id.as_str()).filter(|before| *before.plan == plan);
        before.map(Arc::unwrap_or_clone).unwrap_or_else(|| PreparationRecord {
            id: id.clone(),
            plan: plan.into(),
            progress: PreparationProgress::Prepared.into(),
            since: clock::now(),
            revision: 0,
        })
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
        self.preparations.write_fenced(self.fence.clone(), put).await.map(drop)
    }

    async fn report(&self, due: &[DuePreparation], records: &[PreparationRecord]) -> Result<(), Fault> {
        let news = due.iter().zip(records).filter(|(one, record)| !is_told(&one.component, record));
        let reports: Vec<_> = news.filter_map(|(_, record)| report(record)).collect();
        if reports.is_empty() {
            return Ok(());
        }
        let tokens = tokens(due, records);
        let mut registry = self.registry.clone();
        let call = registry.report_preparations(ReportPreparationsRequest { reports, tokens });
        // Components with stale reports have moved on: the mirror brings their present wish.
        within(DEADLINE, call).await?;
        Ok(())
    }
}

fn progress(outcome: PlacingOutcome) -> PreparationProgress {
    let FailedStep { step, trouble } = match outcome {
        Ok(token) => return PreparationProgress::Accepted { token },
        Err(failed) => failed,
    };
    let known = trouble.of(step).into();
    match trouble {
        StepTrouble::Refused(_) => PreparationProgress::Refused { trouble: known },
        StepTrouble::Awaited(_) | StepTrouble::Refusing(_) | StepTrouble::Missing => {
            PreparationProgress::Failed { trouble: known, step: Some(step) }
        }
    }
}

/// Returns whether the record of the component already shows the same awaited upstream.
fn is_told(component: &Component, record: &PreparationRecord) -> bool {
    let PreparationProgress::Failed { trouble, .. } = &*record.progress else { return false };
    let told = component.preparation_of(record.plan.attempt);
    component.generation == record.plan.generation
        && told.is_some_and(|told| told.trouble.as_ref() == Some(trouble))
}

fn report(record: &PreparationRecord) -> Option<PreparationReport> {
    let (token, trouble, refused) = match &*record.progress {
        PreparationProgress::Prepared => return None,
        PreparationProgress::Accepted { token } => (&**token, None, false),
        PreparationProgress::Failed { trouble, .. } => ("", Some(&**trouble), false),
        PreparationProgress::Refused { trouble } => ("", Some(&**trouble), true),
    };
    Some(PreparationReport {
        id: record.id.as_str().to_owned(),
        generation: record.plan.generation,
        attempt: record.plan.attempt,
        bss_token: token.to_owned(),
        error: trouble::text_to_wire(trouble),
        error_kind: trouble::kind_to_wire(trouble).into(),
        refused,
    })
}

/// Returns the artifacts of each accepted token, once per token.
fn tokens(due: &[DuePreparation], records: &[PreparationRecord]) -> Vec<BootToken> {
    let mut tokens = BTreeMap::new();
    for (one, record) in due.iter().zip(records) {
        if let PreparationProgress::Accepted { token } = &*record.progress {
            tokens.entry(Arc::clone(token)).or_insert(&one.preparation.artifacts);
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
    use domain::core::trouble::Trouble;
    use domain::{
        boot::{
            component::{BootPreparation, artifacts::BootArtifacts},
            configuration::preparation::Preparation,
        },
        core::time::Timestamp,
    };
    use expect_test::expect;

    use super::*;
    use crate::step::PlacingStep;

    fn waiting(peer: &str) -> Arc<Trouble> {
        Trouble::waiting_for(peer).into()
    }

    fn failed() -> PreparationProgress {
        PreparationProgress::Failed { trouble: waiting("BSS"), step: Some(PlacingStep::BootParameters) }
    }

    fn due(name: &str, kernel: &str) -> DuePreparation {
        let artifacts = BootArtifacts { kernel: Some(kernel.into()), ..BootArtifacts::default() };
        let component = Component::new(ComponentId::parse(name).unwrap());
        let preparation = Preparation {
            attempt: 1,
            artifacts: artifacts.into(),
            configuration: Arc::default(),
            session: Arc::default(),
        };
        DuePreparation { component: Arc::new(component), preparation }
    }

    #[test]
    fn each_token_is_explained_once_and_failures_have_none() {
        let all = [
            due("x1", "k1"),
            due("x2", "k1"),
            due("x3", "k2"),
            due("x4", "k2"),
            due("x5", "k3"),
            due("x6", "k3"),
        ];
        let accepted = |token: &str| PreparationProgress::Accepted { token: token.into() };
        let progress = [
            accepted("t1"),
            accepted("t1"),
            failed(),
            accepted("t2"),
            PreparationProgress::Refused { trouble: Trouble::failed("no").unwrap().into() },
            PreparationProgress::Prepared,
        ];
        let mut digests = Digests::default();
        let records: Vec<_> = all
            .iter()
            .zip(progress)
            .map(|(one, progress)| PreparationRecord {
                id: one.component.id.clone(),
                plan: PreparationPlan::new(&one.component, &one.preparation, &mut digests).into(),
                progress: progress.into(),
                since: Timestamp(0),
                revision: 0,
            })
            .collect();
        let explained = tokens(&all, &records).into_iter().map(|one| {
            let artifacts = one.boot_artifacts.unwrap();
            format!("{:?} is {:?} {:?}\n", one.token, artifacts.kernel, artifacts.initrd)
        });
        let told = records.iter().filter_map(report);
        let told = told.map(|one| {
            let refused = if one.refused { " refused" } else { "" };
            format!("{} {:?} {:?}{refused}\n", one.id, one.bss_token, one.error)
        });
        expect![[r#"
            "t1" is Some("k1") None
            "t2" is Some("k2") None
            x1 "t1" ""
            x2 "t1" ""
            x3 "" "waiting for BSS"
            x4 "t2" ""
            x5 "" "no" refused
        "#]]
        .assert_eq(&explained.chain(told).collect::<String>());
    }

    #[test]
    fn the_same_silence_is_reported_once() {
        let one = due("x1", "k1");
        let record = |progress: PreparationProgress| PreparationRecord {
            id: one.component.id.clone(),
            plan: PreparationPlan::new(&one.component, &one.preparation, &mut Digests::default()).into(),
            progress: progress.into(),
            since: Timestamp(0),
            revision: 0,
        };
        let told = |generation, attempt, peer: &str| {
            Component::clone(&one.component).with(|c| {
                c.preparation.outcome =
                    Some(BootPreparation { generation, attempt, trouble: Some(waiting(peer)) })
            })
        };
        let failed = record(failed());
        let refused = record(PreparationProgress::Refused { trouble: waiting("BSS") });
        for (component, record, expected) in [
            (told(0, 1, "BSS"), &failed, true),
            (told(0, 1, "CFS"), &failed, false),
            (told(0, 2, "BSS"), &failed, false),
            (told(1, 1, "BSS"), &failed, false),
            (told(0, 1, "BSS"), &refused, false),
            (Component::clone(&one.component), &failed, false),
        ] {
            assert_eq!(is_told(&component, record), expected, "{:?}", component.preparation.outcome);
        }
    }
}
