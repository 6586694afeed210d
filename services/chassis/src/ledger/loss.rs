//! A database that has lost its last commits.

use std::sync::Arc;

use sea_orm::DbErr;

use super::{
    Table, Transaction,
    bookkeeping::Commit,
    draft::{Changes, number},
    showing::show,
    state::Everything,
    store::Since,
};
use crate::resource::Resource;

/// How far to go on above what was shown here: other replicas may have shown more, and none of them so much more.
const MARGIN: u64 = 1_000_000;

/// A database that was restored, or a stand-in without the last commits, would give the same revisions again to other
/// changes. So it goes on above all that anybody has seen, of which this replica has `shown` some; another incarnation begins, in which who watches starts over;
/// and every resource becomes what it has to be once nobody knows what was lost of it.
pub(super) async fn mend<T: Table>(
    transaction: &mut Transaction<T>,
    since: Since<T::Kind>,
    shown: u64,
) -> Result<Since<T::Kind>, DbErr> {
    let (kind, revision) = (T::Kind::KIND, since.last().revision);
    tracing::error!(
        kind,
        revision,
        shown,
        "the database has lost commits or may have; every watch starts over"
    );
    let commit = transaction.break_off(revision, shown + MARGIN).await?;
    match since.moved_to(commit) {
        Since::Anew(everything) => Ok(Since::Anew(begin_anew(transaction, everything).await?)),
        changes @ Since::Changes { .. } => Ok(changes),
    }
}

async fn begin_anew<T: Table>(
    transaction: &mut Transaction<T>,
    mut everything: Everything<T::Kind>,
) -> Result<Everything<T::Kind>, DbErr> {
    let from = everything.last.revision;
    let anew = |one: &Arc<T::Kind>| Some((one.shared_key(), Some(Arc::new(T::after_loss(one, from)?))));
    let changes: Changes<T::Kind> = everything.state.all().filter_map(anew).collect();
    if changes.is_empty() {
        return Ok(everything);
    }
    let batch = number(changes, from);
    let commit = Commit::to(batch.revision);
    if !transaction.save(&batch, from, None, commit, everything.state.incarnation.id).await? {
        return Err(DbErr::RecordNotUpdated);
    }
    show(&mut everything.state, &batch);
    everything.state.revision = commit.revision;
    everything.last = commit;
    Ok(everything)
}
