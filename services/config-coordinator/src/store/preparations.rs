//! The data put in place upstream for the coming power-on of each component.

use std::{fmt::Display, sync::Arc};

use chassis::{
    kinds::{Interner, trouble},
    store::{
        database::{self, Unreadable},
        ledger::Table,
        resource::Resource,
    },
};
use domain::core::{id::ComponentId, time::Timestamp, trouble::Trouble};
use proto::meta::TroubleKind;
use sea_orm::{ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*};

use crate::{
    preparation::{Plan, PreparationRecord, Progress},
    step::Step,
};

/// Table of boot preparations.
pub(crate) struct Preparations;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "boot_preparations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub revision: i64,
    pub generation: i64,
    pub attempt: i64,
    pub artifacts: String,
    pub configuration: String,
    pub session: String,
    pub progress: String,
    pub token: String,
    pub error: String,
    pub since: i64,
    /// Kind of the trouble by its name in the proto; `None`: no trouble, or a row of an earlier version.
    pub error_kind: Option<String>,
    pub failed_step: Option<String>,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Preparations {
    type Kind = PreparationRecord;

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<PreparationRecord, Unreadable>>, DbErr> {
        let mut interner = Interner::default();
        let read = |row| read(row, &mut interner);
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(
        transaction: &DatabaseTransaction,
        records: &[Arc<PreparationRecord>],
    ) -> Result<(), DbErr> {
        let rows = records.iter().map(|record| row(record)).collect();
        database::upsert::<Entity, ActiveModel>(transaction, Column::Id, rows).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        database::delete::<Entity>(transaction, Column::Id, keys).await
    }
}

fn row(record: &PreparationRecord) -> ActiveModel {
    let (token, trouble, failed_step) = match &record.progress {
        Progress::Prepared => ("", None, None),
        Progress::Accepted { token } => (&**token, None, None),
        Progress::Failed { trouble, step } => ("", Some(&**trouble), *step),
        Progress::Refused { trouble } => ("", Some(&**trouble), None),
    };
    ActiveModel {
        id: Set(record.id.as_str().to_owned()),
        revision: Set(record.revision.cast_signed()),
        generation: Set(record.plan.generation.cast_signed()),
        attempt: Set(record.plan.attempt.into()),
        artifacts: Set(record.plan.artifacts.to_string()),
        configuration: Set(record.plan.configuration.to_string()),
        session: Set(record.plan.session.to_string()),
        progress: Set(record.progress.word().to_owned()),
        token: Set(token.to_owned()),
        error: Set(trouble::text_to_wire(trouble)),
        since: Set(record.since.0),
        error_kind: Set(trouble.map(|one| trouble::kind_to_wire(Some(one)).as_str_name().to_owned())),
        failed_step: Set(failed_step.map(|step| step.word().to_owned())),
    }
}

fn read(row: Model, interner: &mut Interner) -> Result<PreparationRecord, Unreadable> {
    let unreadable = |why: &dyn Display| database::unreadable(PreparationRecord::KIND, &row.id, why);
    let id = ComponentId::parse(&row.id).map_err(|error| unreadable(&error))?;
    let attempt = u32::try_from(row.attempt).map_err(|error| unreadable(&error))?;
    let progress = match row.progress.as_str() {
        Progress::PREPARED => Progress::Prepared,
        Progress::ACCEPTED => Progress::Accepted { token: interner.share(&row.token) },
        Progress::FAILED => {
            let step = Step::ALL.into_iter().find(|step| row.failed_step.as_deref() == Some(step.word()));
            Progress::Failed { trouble: read_trouble(&row, interner)?, step }
        }
        Progress::REFUSED => Progress::Refused { trouble: read_trouble(&row, interner)? },
        word => return Err(unreadable(&format!("'{word}' is no progress"))),
    };
    let plan = Plan {
        generation: row.generation.cast_unsigned(),
        attempt,
        artifacts: interner.share(&row.artifacts),
        configuration: interner.share(&row.configuration),
        session: interner.share(&row.session),
    };
    let (since, revision) = (Timestamp(row.since), row.revision.cast_unsigned());
    Ok(PreparationRecord { id, plan, progress, since, revision })
}

fn read_trouble(row: &Model, interner: &mut Interner) -> Result<Arc<Trouble>, Unreadable> {
    // A kind of a later version is read as a failure, as on the wire.
    let kind = |name| TroubleKind::from_str_name(name).unwrap_or(TroubleKind::Failed);
    let kind = row.error_kind.as_deref().map(kind).unwrap_or_default();
    let trouble = interner.trouble(kind.into(), &row.error);
    trouble.ok_or_else(|| database::unreadable(PreparationRecord::KIND, &row.id, "its error is missing"))
}
