//! The boot data of each node, for our own boot scripts.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use chassis::store::{
    database::{self, Unreadable},
    ledger::Table,
    resource::Resource,
};
use domain::{boot::component::artifacts::BootArtifacts, core::id::ComponentId};
use sea_orm::{
    ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*, sea_query::Query,
};

/// Boot data of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BootScript {
    pub(crate) id: ComponentId,
    /// Token of the artifacts, shared by all nodes that got them together.
    pub(crate) token: Arc<str>,
    pub(crate) artifacts: BootArtifacts,
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

/// Tables of boot scripts: nodes with their tokens, and the data of each token, stored once.
pub(crate) struct BootScripts;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "boot_scripts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub revision: i64,
    pub token: String,
}

impl ActiveModelBehavior for ActiveModel {}

mod data {
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

impl Table for BootScripts {
    type Kind = BootScript;

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<BootScript, Unreadable>>, DbErr> {
        let data = data::Entity::find().all(on).await?.into_iter();
        let data: HashMap<Arc<str>, _> =
            data.map(|row| (row.token.as_str().into(), artifacts(row))).collect();
        database::rows::<Entity, _>(on, Column::Revision, after, |row| read(row, &data)).await
    }

    async fn save(transaction: &DatabaseTransaction, scripts: &[Arc<BootScript>]) -> Result<(), DbErr> {
        let data: BTreeMap<_, _> = scripts.iter().map(|one| (&one.token, &one.artifacts)).collect();
        let data = data.into_iter().map(|(token, artifacts)| data_row(token, artifacts)).collect();
        database::upsert::<data::Entity, data::ActiveModel>(transaction, data::Column::Token, data).await?;
        let rows = scripts.iter().map(|one| ActiveModel {
            id: Set(one.id.as_str().to_owned()),
            revision: Set(one.revision.cast_signed()),
            token: Set(one.token.to_string()),
        });
        database::upsert::<Entity, ActiveModel>(transaction, Column::Id, rows.collect()).await?;
        delete_unused(transaction).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        if keys.is_empty() {
            return Ok(());
        }
        database::delete::<Entity>(transaction, Column::Id, keys).await?;
        delete_unused(transaction).await
    }
}

/// Deletes data that no node boots any more.
async fn delete_unused(transaction: &DatabaseTransaction) -> Result<(), DbErr> {
    let used = Query::select().column(Column::Token).from(Entity).to_owned();
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

fn read(row: Model, data: &HashMap<Arc<str>, BootArtifacts>) -> Result<BootScript, Unreadable> {
    let unreadable = |why: &dyn std::fmt::Display| database::unreadable(BootScript::KIND, &row.id, why);
    let id = ComponentId::parse(&row.id).map_err(|error| unreadable(&error))?;
    let (token, artifacts) =
        data.get_key_value(row.token.as_str()).ok_or_else(|| unreadable(&"its boot data are missing"))?;
    Ok(BootScript {
        id,
        token: Arc::clone(token),
        artifacts: artifacts.clone(),
        revision: row.revision.cast_unsigned(),
    })
}
