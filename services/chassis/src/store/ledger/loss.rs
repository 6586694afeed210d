//! A database that has lost its last commits.

use std::sync::Arc;

use sea_orm::DbErr;

use super::{
    LedgerStore, LedgerTransaction, Table,
    bookkeeping::LedgerCommit,
    draft::{DraftChanges, number},
    showing::show,
    state::LoadedState,
    store::CommitsSince,
};
use crate::{process::clock, store::resource::Resource};

/// Distance of the new revisions above the shown ones: other replicas may have shown more, but never by so much.
const MARGIN: u64 = 1_000_000;

/// Begins another incarnation after a loss of commits. A restored database, or a promoted standby without the last
/// commits, would reuse their revisions for other changes. So revisions continue above all that any replica has shown,
/// of which this one has shown up to `shown`; watches start over; and every resource passes through
/// `Table::after_loss`, because changes to it may be missing.
///
/// Restoring the same backup a second time must not give a revision a second time, and the revisions given after the first
/// restore are lost. Each of them was below the time at which it was given, in microseconds since 1970, because a kind has
/// fewer commits than that. So the revisions after a loss begin at the present time.
pub(super) async fn mend<T: Table>(
    transaction: &mut LedgerTransaction<T>,
    since: CommitsSince<T::Kind>,
    shown: u64,
) -> Result<CommitsSince<T::Kind>, DbErr> {
    if goes_unnoticed() {
        return Ok(since);
    }
    let (kind, revision) = (T::Kind::KIND, since.last().revision);
    tracing::error!(
        kind,
        revision,
        shown,
        "the database has lost commits or may have; every watch starts over"
    );
    let microseconds = clock::now().0.saturating_mul(1_000);
    let now = u64::try_from(microseconds).unwrap_or_default();
    let commit = transaction.break_off(revision, now.max(shown + MARGIN)).await?;
    match since.moved_to(commit) {
        CommitsSince::Anew(everything) => Ok(CommitsSince::Anew(begin_anew(transaction, everything).await?)),
        changes @ CommitsSince::Changes { .. } => Ok(changes),
    }
}

/// Begins another incarnation of a kind with `everything` of a database that is a backup.
pub(super) async fn mend_copy<T: Table>(
    store: &LedgerStore<T>,
    everything: LoadedState<T::Kind>,
) -> Result<LoadedState<T::Kind>, DbErr> {
    let shown = everything.last.revision;
    let mut transaction = store.begin().await?;
    let since = mend(&mut transaction, CommitsSince::Anew(everything), shown).await?;
    transaction.commit().await?;
    match since {
        CommitsSince::Anew(everything) => Ok(everything),
        CommitsSince::Changes { .. } => store.read_everything().await,
    }
}

#[cfg(feature = "simulation")]
fn goes_unnoticed() -> bool {
    crate::simulation::PlantedDefect::ContinuedHistories.is_planted()
}

#[cfg(not(feature = "simulation"))]
fn goes_unnoticed() -> bool {
    false
}

async fn begin_anew<T: Table>(
    transaction: &mut LedgerTransaction<T>,
    mut everything: LoadedState<T::Kind>,
) -> Result<LoadedState<T::Kind>, DbErr> {
    let from = everything.last.revision;
    let anew = |one: &Arc<T::Kind>| Some((one.shared_key(), Some(Arc::new(T::after_loss(one, from)?))));
    let changes: DraftChanges<T::Kind> = everything.state.all().filter_map(anew).collect();
    if changes.is_empty() {
        return Ok(everything);
    }
    let batch = number(changes, &mut [], from);
    let commit = LedgerCommit::to(batch.revision);
    if !transaction.save(&batch, &[], from, None, commit, everything.state.incarnation.id).await? {
        return Err(DbErr::RecordNotUpdated);
    }
    show(&mut everything.state, &batch);
    everything.state.revision = commit.revision;
    everything.last = commit;
    Ok(everything)
}
