//! The boot data of each node, for our own boot scripts.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use anyhow::Context;
use chassis::store::{
    database::{self, UnreadableRow},
    ledger::{Column, StoredRow, Table, rows},
    resource::Resource,
};
use domain::{
    boot::{component::artifacts::BootArtifacts, explanation::ScriptRequests},
    core::{id::ComponentId, time::Timestamp},
};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter,
    sea_query::Query,
};

/// Column of the token.
const TOKEN: &str = "token";

/// Columns of the preparation and of the requests since, in milliseconds of Unix time; 0: none.
const PREPARED_AT: &str = "prepared_at";
const FIRST_REQUEST: &str = "first_request";
const LAST_REQUEST: &str = "last_request";
/// Column of the number of requests.
const REQUESTS: &str = "requests";

/// Boot data of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BootScript {
    pub(crate) id: ComponentId,
    /// Token of the artifacts, shared by all nodes that got them together.
    pub(crate) token: Arc<str>,
    pub(crate) artifacts: BootArtifacts,
    /// Time of the preparation; `None`: an earlier version made it.
    pub(crate) prepared_at: Option<Timestamp>,
    /// Requests since the preparation.
    pub(crate) requests: Option<ScriptRequests>,
    pub(crate) revision: u64,
}

impl Resource for BootScript {
    const KIND: &'static str = "boot_script";

    fn key(&self) -> &str {
        self.id.as_str()
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

pub(super) mod data {
    //! The data of each token, stored once.

    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "boot_data")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub token: String,
        pub kernel: Option<String>,
        pub kernel_parameters: Option<String>,
        pub initrd: Option<String>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Table of the nodes with their tokens. The data of each token are in a table of their own.
pub(crate) struct BootScriptTable;

impl Table for BootScriptTable {
    type Kind = BootScript;
    /// Artifacts by their token.
    type Pool = HashMap<Arc<str>, BootArtifacts>;

    const NAME: &'static str = "boot_scripts";

    const COLUMNS: &'static [Column<BootScript, Self::Pool>] = &[
        Column::text(TOKEN, |one, _| one.token.to_string()),
        Column::later(Column::number(PREPARED_AT, |one, _| one.prepared_at.unwrap_or_default().0)),
        Column::later(Column::number(FIRST_REQUEST, |one, _| one.requests.map_or(0, |seen| seen.first_at.0))),
        Column::later(Column::number(LAST_REQUEST, |one, _| one.requests.map_or(0, |seen| seen.last_at.0))),
        Column::later(Column::number(REQUESTS, |one, _| one.requests.map_or(0, |seen| seen.count.into()))),
    ];

    // Data are deleted when no node refers to them.
    const INDEXED: &'static [&'static str] = &[TOKEN];

    fn read(row: &StoredRow, data: &mut Self::Pool) -> anyhow::Result<BootScript> {
        let token: String = row.get(TOKEN)?;
        let (token, artifacts) = data.get_key_value(token.as_str()).context("its boot data are missing")?;
        Ok(BootScript {
            id: ComponentId::parse(row.key())?,
            token: Arc::clone(token),
            artifacts: artifacts.clone(),
            prepared_at: Some(Timestamp(row.get(PREPARED_AT)?)).filter(|at| at.0 > 0),
            requests: requests(row)?,
            revision: row.revision(),
        })
    }

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<BootScript, UnreadableRow>>, DbErr> {
        let data = data::Entity::find().all(on).await?.into_iter();
        let data = data.map(|row| (row.token.as_str().into(), artifacts(row))).collect();
        rows::load::<Self>(on, after, data).await
    }

    async fn save(transaction: &DatabaseTransaction, scripts: &[Arc<BootScript>]) -> Result<(), DbErr> {
        let data: BTreeMap<_, _> = scripts.iter().map(|one| (&one.token, &one.artifacts)).collect();
        let data = data.into_iter().map(|(token, artifacts)| data_row(token, artifacts)).collect();
        database::upsert::<data::Entity, data::ActiveModel>(transaction, data::Column::Token, data).await?;
        rows::save(transaction, rows::of::<Self>(scripts, &mut HashMap::new())).await?;
        delete_unused(transaction).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        rows::delete::<Self>(transaction, keys).await?;
        delete_unused(transaction).await
    }
}

fn requests(row: &StoredRow) -> anyhow::Result<Option<ScriptRequests>> {
    let count = u32::try_from(row.get::<i64>(REQUESTS)?).unwrap_or(u32::MAX);
    let requests = ScriptRequests {
        first_at: Timestamp(row.get(FIRST_REQUEST)?),
        last_at: Timestamp(row.get(LAST_REQUEST)?),
        count,
    };
    Ok((count > 0).then_some(requests))
}

/// Deletes data that no node boots any more.
async fn delete_unused(transaction: &DatabaseTransaction) -> Result<(), DbErr> {
    let used = Query::select().column(TOKEN).from(BootScriptTable::NAME).to_owned();
    data::Entity::delete_many().filter(data::Column::Token.not_in_subquery(used)).exec(transaction).await?;
    Ok(())
}

fn data_row(token: &str, artifacts: &BootArtifacts) -> data::ActiveModel {
    let text = |text: &Option<Arc<str>>| Set(text.as_deref().map(str::to_owned));
    data::ActiveModel {
        token: Set(token.to_owned()),
        kernel: text(&artifacts.kernel),
        kernel_parameters: text(&artifacts.kernel_parameters),
        initrd: text(&artifacts.initrd),
    }
}

fn artifacts(row: data::Model) -> BootArtifacts {
    let text = |text: Option<String>| text.map(Arc::from);
    BootArtifacts {
        kernel: text(row.kernel),
        kernel_parameters: text(row.kernel_parameters),
        initrd: text(row.initrd),
        timestamp: None,
    }
}
