//! Components.

use std::{collections::HashMap, fmt::Display, sync::Arc};

use chassis::{
    kinds::{Interner, component as convert},
    store::{
        database::{self, Unreadable},
        ledger::{Draft, EventRule, Table},
        resource::Resource,
    },
};
use domain::{
    boot::component::{
        Component, StagedState,
        artifacts::BootArtifacts,
        event::{self, ComponentEvent},
        loss,
        status::computed_status,
    },
    core::event::Actor,
};
use prost::Message;
use proto::component as wire;
use sea_orm::{ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*};

use super::artifacts::{self, ArtifactSets};

/// The table of components. The columns beside `record` are for people who inspect the database, and for shared
/// artifact sets.
pub struct ComponentTable;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "components")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub revision: i64,
    pub generation: i64,
    pub enabled: Option<bool>,
    pub session: Option<String>,
    pub phase: Option<String>,
    pub status: String,
    pub actual_artifacts: Option<String>,
    pub desired_artifacts: Option<String>,
    pub staged_artifacts: Option<String>,
    pub record: Vec<u8>,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for ComponentTable {
    type Kind = Component;

    const EVENTS: Option<EventRule<Component>> = Some(|before, after, actor, reason| {
        let events = event::events(before, after, actor, reason);
        events.into_iter().map(ComponentEvent::content).collect()
    });

    const OWNER: Actor = Actor::Service("component-registry");

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<Component, Unreadable>>, DbErr> {
        let sets = artifacts::load(on).await?;
        let mut interner = Interner::default();
        let read = |row| read(row, &sets, &mut interner);
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(transaction: &DatabaseTransaction, components: &[Arc<Component>]) -> Result<(), DbErr> {
        let mut sets = ArtifactSets::default();
        let rows = components.iter().map(|component| row(component, &mut sets)).collect();
        sets.save(transaction).await?;
        database::upsert::<Entity, ActiveModel>(transaction, Column::Id, rows).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        database::delete::<Entity>(transaction, Column::Id, keys).await
    }

    fn after_loss(component: &Component, revision: u64) -> Option<Component> {
        Some(loss::begin_anew(component, revision))
    }
}

/// Stores a new component. Its generations begin after every earlier revision, so that evidence about a deleted
/// component of the same id never counts for it.
pub(crate) fn create(draft: &mut Draft<'_, Component>, component: Component) {
    let generation = draft.base_revision() + 1;
    draft.put(Component { generation, ..component });
}

fn row(component: &Component, sets: &mut ArtifactSets) -> ActiveModel {
    let mut digest =
        |artifacts: Option<&BootArtifacts>| Set(artifacts.map(|artifacts| sets.digest(artifacts)));
    ActiveModel {
        id: Set(component.id.as_str().to_owned()),
        revision: Set(component.revision.cast_signed()),
        generation: Set(component.generation.cast_signed()),
        enabled: Set(component.enabled),
        session: Set(component.session.as_deref().map(str::to_owned)),
        phase: Set(component
            .status
            .as_ref()
            .and_then(|status| status.phase)
            .map(|phase| phase.word().to_owned())),
        status: Set(computed_status(component).word().to_owned()),
        actual_artifacts: digest(
            component.actual_state.as_ref().and_then(|state| state.boot_artifacts.as_deref()),
        ),
        desired_artifacts: digest(
            component.desired_state.as_ref().and_then(|state| state.boot_artifacts.as_deref()),
        ),
        staged_artifacts: digest(
            component.staged_state.as_ref().and_then(|state| state.boot_artifacts.as_deref()),
        ),
        // The texts of the record's artifacts are stored in the sets to which the columns refer.
        record: Set(convert::to_wire_without_texts(component).encode_to_vec()),
    }
}

fn read(
    row: Model,
    sets: &HashMap<String, BootArtifacts>,
    interner: &mut Interner,
) -> Result<Component, Unreadable> {
    let unreadable = |why: &dyn Display| database::unreadable(Component::KIND, &row.id, why);
    let record = wire::Component::decode(row.record.as_slice()).map_err(|error| unreadable(&error))?;
    let mut component = convert::from_wire(record, interner).map_err(|error| unreadable(&error))?;
    component.revision = row.revision.cast_unsigned();
    let mut fill = |artifacts: &mut Option<Arc<BootArtifacts>>, digest: &Option<String>| {
        let (Some(artifacts), Some(digest)) = (artifacts, digest) else { return Ok(()) };
        let set = sets.get(digest).ok_or_else(|| unreadable(&"its boot artifacts are missing"))?;
        *artifacts = interner.artifacts(BootArtifacts { timestamp: artifacts.timestamp, ..set.clone() });
        Ok(())
    };
    if let Some(actual) = &mut component.actual_state {
        fill(&mut actual.boot_artifacts, &row.actual_artifacts)?;
    }
    if let Some(desired) = &mut component.desired_state {
        fill(&mut desired.boot_artifacts, &row.desired_artifacts)?;
    }
    if let Some(staged) = component.staged_state.as_mut().filter(|_| row.staged_artifacts.is_some()) {
        fill(&mut Arc::make_mut(staged).boot_artifacts, &row.staged_artifacts)?;
        *staged = interner.staged(StagedState::clone(staged));
    }
    Ok(component)
}
