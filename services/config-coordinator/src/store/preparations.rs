//! The data put in place upstream for the coming power-on of each component.

use std::sync::Arc;

use anyhow::{Context, bail};
use chassis::{
    kinds::{Interner, trouble},
    store::ledger::{Column, StoredRow, Table},
};
use domain::core::{id::ComponentId, time::Timestamp, trouble::Trouble};
use proto::meta::TroubleKind;

use crate::{
    preparation::{PreparationPlan, PreparationPools, PreparationProgress, PreparationRecord},
    step::PlacingStep,
};

/// Values that records share.
#[derive(Default)]
pub(crate) struct PreparationValues {
    interner: Interner,
    pools: PreparationPools,
}

/// Table of boot preparations. Earlier releases read and write its columns, and so there is no message in a row.
pub(crate) struct PreparationTable;

impl Table for PreparationTable {
    type Kind = PreparationRecord;
    type Pool = PreparationValues;

    const NAME: &'static str = "boot_preparations";

    const COLUMNS: &'static [Column<PreparationRecord, PreparationValues>] = &[
        Column::number("generation", |one, _| one.plan.generation.cast_signed()),
        Column::number("attempt", |one, _| one.plan.attempt.into()),
        Column::text("artifacts", |one, _| one.plan.artifacts.to_string()),
        Column::text("configuration", |one, _| one.plan.configuration.to_string()),
        Column::text("session", |one, _| one.plan.session.to_string()),
        Column::text("progress", |one, _| one.progress.word().to_owned()),
        Column::text("token", |one, _| one.progress.token().to_owned()),
        Column::text("error", |one, _| trouble::text_to_wire(one.progress.trouble())),
        Column::later(Column::number("since", |one, _| one.since.0)),
        // The name in the proto; null: no trouble, or a row of an earlier release.
        Column::later(Column::optional_text("error_kind", |one, _| kind(one.progress.trouble()))),
        Column::later(Column::optional_text("failed_step", |one, _| failed_step(&one.progress))),
    ];

    fn read(row: &StoredRow, values: &mut PreparationValues) -> anyhow::Result<PreparationRecord> {
        let interner = &mut values.interner;
        let mut text = |column| anyhow::Ok(interner.share(&row.get::<String>(column)?));
        let plan = PreparationPlan {
            generation: row.get::<i64>("generation")?.cast_unsigned(),
            attempt: row.get::<i64>("attempt")?.try_into()?,
            artifacts: text("artifacts")?,
            configuration: text("configuration")?,
            session: text("session")?,
        };
        let mut record = PreparationRecord {
            id: ComponentId::parse(row.key())?,
            plan: plan.into(),
            progress: read_progress(row, interner)?.into(),
            since: Timestamp(row.get("since")?),
            revision: row.revision(),
        };
        values.pools.share(&mut record);
        Ok(record)
    }

    fn share(record: &mut PreparationRecord, values: &mut PreparationValues) {
        values.pools.share(record);
    }
}

fn kind(trouble: Option<&Trouble>) -> Option<String> {
    trouble.map(|one| trouble::kind_to_wire(Some(one)).as_str_name().to_owned())
}

fn failed_step(progress: &PreparationProgress) -> Option<String> {
    match progress {
        PreparationProgress::Failed { step, .. } => step.map(|step| step.word().to_owned()),
        PreparationProgress::Prepared
        | PreparationProgress::Accepted { .. }
        | PreparationProgress::Refused { .. } => None,
    }
}

fn read_progress(row: &StoredRow, interner: &mut Interner) -> anyhow::Result<PreparationProgress> {
    let word: String = row.get("progress")?;
    Ok(match word.as_str() {
        PreparationProgress::PREPARED => PreparationProgress::Prepared,
        PreparationProgress::ACCEPTED => {
            PreparationProgress::Accepted { token: interner.share(&row.get::<String>("token")?) }
        }
        PreparationProgress::FAILED => {
            let failed: Option<String> = row.get("failed_step")?;
            let step = PlacingStep::ALL.into_iter().find(|step| failed.as_deref() == Some(step.word()));
            PreparationProgress::Failed { trouble: read_trouble(row, interner)?, step }
        }
        PreparationProgress::REFUSED => {
            PreparationProgress::Refused { trouble: read_trouble(row, interner)? }
        }
        word => bail!("'{word}' is no progress"),
    })
}

fn read_trouble(row: &StoredRow, interner: &mut Interner) -> anyhow::Result<Arc<Trouble>> {
    let name: Option<String> = row.get("error_kind")?;
    // A kind of a later release is read as a failure, as on the wire.
    let kind = name.map(|name| TroubleKind::from_str_name(&name).unwrap_or(TroubleKind::Failed));
    let error: String = row.get("error")?;
    interner.trouble(kind.unwrap_or_default().into(), &error).context("its error is missing")
}
