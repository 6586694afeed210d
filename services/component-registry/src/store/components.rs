//! Components.

use std::sync::Arc;

use chassis::{
    kinds::component as convert,
    store::{
        database::UnreadableRow,
        ledger::{Column, Draft, EventRule, StoredRow, Table, rows},
        resource::WireForm,
    },
};
use domain::{
    boot::component::{
        Component, StagedState, artifacts::BootArtifacts, event, loss, status::computed_status,
    },
    core::event::Actor,
};
use proto::Message;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr};

use super::artifacts::ArtifactSets;

/// Column of the digest of the artifacts that the component reported.
const ACTUAL: &str = "actual_artifacts";

/// Column of the digest of the desired artifacts.
const DESIRED: &str = "desired_artifacts";

/// Column of the digest of the staged artifacts.
const STAGED: &str = "staged_artifacts";

/// Columns with digests of artifacts.
pub(super) const ARTIFACTS: [&str; 3] = [ACTUAL, DESIRED, STAGED];

/// The table of components. The columns beside `record` are for people who inspect the database, and for shared
/// artifact sets.
pub struct ComponentTable;

impl Table for ComponentTable {
    type Kind = Component;
    type Pool = ArtifactSets;

    const NAME: &'static str = "components";

    const COLUMNS: &'static [Column<Component, ArtifactSets>] = &[
        Column::number("generation", |component, _| component.generation.cast_signed()),
        Column::optional_flag("enabled", |component, _| component.wish.enabled),
        Column::optional_text("session", |component, _| component.wish.session.as_deref().map(str::to_owned)),
        Column::optional_text("phase", |component, _| phase(component)),
        Column::text("status", |component, _| computed_status(component).word().to_owned()),
        Column::optional_text(ACTUAL, |component, sets| {
            sets.digest_of(component.reported.actual_state.as_ref().map(|state| &state.boot_artifacts))
        }),
        Column::optional_text(DESIRED, |component, sets| {
            sets.digest_of(component.wish.desired_state.as_ref().map(|state| &state.boot_artifacts))
        }),
        Column::optional_text(STAGED, |component, sets| {
            sets.digest_of(component.wish.staged_state.as_ref().map(|state| &state.boot_artifacts))
        }),
        // The texts of the record's artifacts are stored in the sets to which the columns refer.
        Column::bytes("record", |component, _| convert::to_wire_without_texts(component).encode_to_vec()),
    ];

    const EVENTS: Option<EventRule<Component>> = Some(|before, after, actor, reason| {
        let session = event::session(before, after);
        let events = event::events(before, after, actor, reason).into_iter();
        events.map(|event| event.content().within(session.clone())).collect()
    });

    const OWNER: Actor = Actor::Service("component-registry");

    fn read(row: &StoredRow, sets: &mut ArtifactSets) -> anyhow::Result<Component> {
        let mut component = Component::from_wire(row.message("record")?, &mut sets.interner)?;
        if let Some(actual) = &mut component.reported.actual_state {
            fill(&mut actual.boot_artifacts, row.get(ACTUAL)?, sets)?;
        }
        if let Some(desired) = &mut component.wish.desired_state {
            fill(&mut desired.boot_artifacts, row.get(DESIRED)?, sets)?;
        }
        let digest: Option<String> = row.get(STAGED)?;
        if let Some(staged) = component.wish.staged_state.as_mut().filter(|_| digest.is_some()) {
            fill(&mut Arc::make_mut(staged).boot_artifacts, digest, sets)?;
            *staged = sets.interner.staged(StagedState::clone(staged));
        }
        sets.interner.share_groups(&mut component);
        Ok(component)
    }

    fn share(component: &mut Component, sets: &mut ArtifactSets) {
        sets.interner.share_groups(component);
    }

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<Component, UnreadableRow>>, DbErr> {
        rows::load::<Self>(on, after, ArtifactSets::load(on).await?).await
    }

    async fn save(transaction: &DatabaseTransaction, components: &[Arc<Component>]) -> Result<(), DbErr> {
        let mut sets = ArtifactSets::default();
        let rows = rows::of::<Self>(components, &mut sets);
        sets.save(transaction).await?;
        rows::save(transaction, rows).await
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

fn phase(component: &Component) -> Option<String> {
    let phase = component.evaluation.status.as_ref()?.phase?;
    Some(phase.word().to_owned())
}

/// Completes artifacts of a record by the stored set of that digest.
fn fill(
    artifacts: &mut Option<Arc<BootArtifacts>>,
    digest: Option<String>,
    sets: &mut ArtifactSets,
) -> anyhow::Result<()> {
    let (Some(artifacts), Some(digest)) = (artifacts, digest) else { return Ok(()) };
    let set = sets.stored(&digest)?.clone();
    *artifacts = sets.interner.artifacts(BootArtifacts { timestamp: artifacts.timestamp, ..set });
    Ok(())
}
