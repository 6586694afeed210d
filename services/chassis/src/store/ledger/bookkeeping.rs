//! The tables that every part's database has beside its own: revisions and deletions per kind.

use sea_orm::{
    ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, QueryFilter, QueryOrder,
    Statement, entity::prelude::*, sea_query::OnConflict,
};
use uuid::Uuid;

use super::lineage::{COPY, LineageComparison, LineageSource};
use crate::store::{hints::CHANNEL, resource::ResourceDeletion};

pub(super) mod revision {
    use super::*;

    /// The newest revision of a kind.
    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "revisions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        pub revision: i64,
        /// Deletions up to here may have been forgotten.
        pub compacted: i64,
        /// Id of the commit that led to the revision; empty when none was recorded.
        pub last_commit: String,
        /// Lineage of the database at that commit; empty when none was recorded.
        pub lineage: String,
        /// The incarnation of the kind; empty in a row from before there were any.
        pub incarnation: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(super) mod deletion {
    use super::*;

    /// A key that was deleted.
    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "deletions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub revision: i64,
        pub key: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// A commit of a kind. A database that has lost commits reuses their revisions, but never their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LedgerCommit {
    /// Revision after the commit.
    pub(super) revision: u64,
    /// Random id; nil when none was recorded.
    pub(super) id: Uuid,
}

impl LedgerCommit {
    /// A new one, which takes the kind to `revision`.
    pub(super) fn to(revision: u64) -> Self {
        Self { revision, id: Uuid::now_v7() }
    }

    /// Returns whether a database with this last commit has lost `shown`.
    pub(super) fn is_without(self, shown: Self) -> bool {
        self.revision < shown.revision || (self.revision == shown.revision && self.id != shown.id)
    }
}

/// Position of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LedgerPosition {
    pub(super) last: LedgerCommit,
    /// Deletions up to here may have been forgotten.
    pub(super) compacted: u64,
    /// Nil in a database from before there were any.
    pub(super) incarnation: Uuid,
    /// Whether this is a backup, which lacks later commits.
    pub(super) is_copy: bool,
}

/// The row of a kind, locked until the end of the transaction.
pub(super) struct LockedRow {
    pub(super) position: LedgerPosition,
    pub(super) lineage: LineageComparison,
    /// The number of the transaction, by which its outcome can be asked for.
    pub(super) transaction: String,
}

/// Identity of a transaction, by which its outcome can be looked up.
#[derive(Debug, Clone)]
pub(super) struct TransactionIdentity {
    /// The server's number of the transaction; `None` where the database is not shared.
    pub(super) transaction: Option<String>,
    pub(super) commit: LedgerCommit,
}

/// Outcome of a transaction whose end was not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionOutcome {
    Committed,
    NotCommitted,
    /// Still running, or the server has not noticed the lost connection.
    Open,
    /// Other commits followed, and the remaining records are inconclusive.
    Unknown,
}

/// Makes the row of `kind`, unless it is there. An empty store is an incarnation of its own.
pub(super) async fn make(on: &impl ConnectionTrait, kind: &str) -> Result<(), DbErr> {
    let first = revision::ActiveModel {
        kind: Set(kind.to_owned()),
        revision: Set(0),
        compacted: Set(0),
        last_commit: Set(String::new()),
        lineage: Set(String::new()),
        incarnation: Set(Uuid::now_v7().to_string()),
    };
    let keep = OnConflict::column(revision::Column::Kind).do_nothing().to_owned();
    revision::Entity::insert(first).on_conflict(keep).exec_without_returning(on).await.map(drop)
}

/// Reads where `kind` stands.
pub(super) async fn position(on: &impl ConnectionTrait, kind: &str) -> Result<LedgerPosition, DbErr> {
    let found = revision::Entity::find_by_id(kind).one(on).await?;
    let found = found.ok_or_else(|| DbErr::RecordNotFound(format!("revision of {kind}")))?;
    let last = LedgerCommit { revision: unsigned(found.revision), id: id(&found.last_commit) };
    Ok(LedgerPosition {
        last,
        compacted: unsigned(found.compacted),
        incarnation: id(&found.incarnation),
        is_copy: found.lineage == COPY,
    })
}

/// Locks `kind` for this transaction, after any other holder.
pub(super) async fn lock(
    on: &DatabaseTransaction,
    kind: &str,
    lineage_source: &LineageSource,
) -> Result<LockedRow, DbErr> {
    let sql = format!(
        "SELECT revision, compacted, last_commit, lineage, incarnation, {} AS of_now, \
         CAST(pg_current_xact_id() AS text) AS transaction \
         FROM revisions WHERE kind = $1 FOR UPDATE",
        lineage_source.expression()
    );
    let row =
        on.query_one_raw(Statement::from_sql_and_values(DbBackend::Postgres, sql, [kind.into()])).await?;
    let row = row.ok_or_else(|| DbErr::RecordNotFound(format!("revision of {kind}")))?;
    let last_commit: String = row.try_get("", "last_commit")?;
    let last = LedgerCommit { revision: unsigned(row.try_get("", "revision")?), id: id(&last_commit) };
    let incarnation: String = row.try_get("", "incarnation")?;
    let compacted = unsigned(row.try_get("", "compacted")?);
    let position = LedgerPosition { last, compacted, incarnation: id(&incarnation), is_copy: false };
    let lineage = LineageComparison { written: row.try_get("", "lineage")?, now: row.try_get("", "of_now")? };
    Ok(LockedRow { position, lineage, transaction: row.try_get("", "transaction")? })
}

/// Looks up the outcome of a transaction.
pub(super) async fn outcome(
    on: &impl ConnectionTrait,
    kind: &str,
    identity: &TransactionIdentity,
) -> Result<TransactionOutcome, DbErr> {
    let Some(transaction) = &identity.transaction else {
        let position = position(on, kind).await?;
        return Ok(if position.last == identity.commit {
            TransactionOutcome::Committed
        } else {
            TransactionOutcome::NotCommitted
        });
    };
    let sql = "SELECT pg_xact_status(CAST($1 AS xid8)) AS status, revision, last_commit \
               FROM revisions WHERE kind = $2";
    let values = [transaction.into(), kind.into()];
    let row = on.query_one_raw(Statement::from_sql_and_values(DbBackend::Postgres, sql, values)).await?;
    let row = row.ok_or_else(|| DbErr::RecordNotFound(format!("revision of {kind}")))?;
    let status: Option<String> = row.try_get("", "status")?;
    let last_commit: String = row.try_get("", "last_commit")?;
    let last = LedgerCommit { revision: unsigned(row.try_get("", "revision")?), id: id(&last_commit) };
    Ok(judge(status.as_deref(), last, identity.commit))
}

/// Judges the outcome of `asked` where `last` is the last commit. A server that crashed, or a standby that was
/// promoted, may give the transaction's number to another one: a committed number is inconclusive, whereas an aborted
/// one means that `asked` was not committed.
fn judge(status: Option<&str>, last: LedgerCommit, asked: LedgerCommit) -> TransactionOutcome {
    match status {
        _ if last == asked => TransactionOutcome::Committed,
        Some("in progress") => TransactionOutcome::Open,
        Some("aborted") => TransactionOutcome::NotCommitted,
        // The commit may have happened after the row was read.
        Some("committed") if last.revision < asked.revision => TransactionOutcome::Open,
        _ => TransactionOutcome::Unknown,
    }
}

/// Moves `kind` from one revision to that of `to`, if it has not moved, and records lineage and incarnation. On a
/// shared database, sends a hint to the other replicas with the commit.
pub(super) async fn advance(
    on: &DatabaseTransaction,
    kind: &str,
    from: u64,
    to: LedgerCommit,
    lineage: &str,
    incarnation: Uuid,
) -> Result<bool, DbErr> {
    let (revision, id, incarnation) = (signed(to.revision), to.id.to_string(), incarnation.to_string());
    if on.get_database_backend() == DbBackend::Postgres {
        let sql = "WITH moved AS (UPDATE revisions SET revision = $3, last_commit = $6, lineage = $7, incarnation = $8 \
                   WHERE kind = $1 AND revision = $2 RETURNING kind) SELECT pg_notify($4, $5) FROM moved";
        let hint = format!("{kind} {revision}");
        let values = [
            kind.into(),
            signed(from).into(),
            revision.into(),
            CHANNEL.into(),
            hint.into(),
            id.into(),
            lineage.into(),
            incarnation.into(),
        ];
        let moved =
            on.query_all_raw(Statement::from_sql_and_values(DbBackend::Postgres, sql, values)).await?;
        return Ok(moved.len() == 1);
    }
    let moved = revision::Entity::update_many()
        .col_expr(revision::Column::Revision, Expr::value(revision))
        .col_expr(revision::Column::LastCommit, Expr::value(id))
        .col_expr(revision::Column::Lineage, Expr::value(lineage))
        .col_expr(revision::Column::Incarnation, Expr::value(incarnation))
        .filter(revision::Column::Kind.eq(kind))
        .filter(revision::Column::Revision.eq(signed(from)))
        .exec(on)
        .await?;
    Ok(moved.rows_affected == 1)
}

/// The deletions that are remembered of those after revision `after`, oldest first.
pub(super) async fn deletions(
    on: &impl ConnectionTrait,
    kind: &str,
    after: u64,
) -> Result<Vec<ResourceDeletion>, DbErr> {
    let rows = deletion::Entity::find()
        .filter(deletion::Column::Kind.eq(kind))
        .filter(deletion::Column::Revision.gt(signed(after)))
        .order_by_asc(deletion::Column::Revision)
        .all(on)
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| ResourceDeletion { key: row.key.into(), revision: unsigned(row.revision) })
        .collect())
}

/// Remembers deletions.
pub(super) async fn remember(
    on: &DatabaseTransaction,
    kind: &str,
    deleted: &[ResourceDeletion],
) -> Result<(), DbErr> {
    for chunk in deleted.chunks(1000) {
        let rows = chunk.iter().map(|deletion| deletion::ActiveModel {
            kind: Set(kind.to_owned()),
            revision: Set(signed(deletion.revision)),
            key: Set(deletion.key.to_string()),
        });
        deletion::Entity::insert_many(rows).exec_without_returning(on).await?;
    }
    Ok(())
}

/// Forgets the deletions up to a revision.
pub(super) async fn forget(on: &DatabaseTransaction, kind: &str, up_to: u64) -> Result<(), DbErr> {
    deletion::Entity::delete_many()
        .filter(deletion::Column::Kind.eq(kind))
        .filter(deletion::Column::Revision.lte(signed(up_to)))
        .exec(on)
        .await?;
    revision::Entity::update_many()
        .col_expr(revision::Column::Compacted, Expr::value(signed(up_to)))
        .filter(revision::Column::Kind.eq(kind))
        .exec(on)
        .await?;
    Ok(())
}

fn id(written: &str) -> Uuid {
    Uuid::try_parse(written).unwrap_or_default()
}

fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_counts_as_committed_only_by_its_own_id() {
        let asked = LedgerCommit::to(7);
        let (before, ahead, twin) = (LedgerCommit::to(6), LedgerCommit::to(8), LedgerCommit::to(7));
        for (status, last, outcome) in [
            (Some("committed"), asked, TransactionOutcome::Committed),
            // The crash gave its number away, or forgot it.
            (Some("in progress"), asked, TransactionOutcome::Committed),
            (None, asked, TransactionOutcome::Committed),
            (Some("in progress"), before, TransactionOutcome::Open),
            (Some("committed"), before, TransactionOutcome::Open),
            (Some("aborted"), before, TransactionOutcome::NotCommitted),
            (Some("aborted"), ahead, TransactionOutcome::NotCommitted),
            (Some("committed"), ahead, TransactionOutcome::Unknown),
            (Some("committed"), twin, TransactionOutcome::Unknown),
            (None, ahead, TransactionOutcome::Unknown),
        ] {
            assert_eq!(judge(status, last, asked), outcome, "{status:?} {last:?} {asked:?}");
        }
    }

    #[test]
    fn a_commit_is_lost_where_another_has_its_revision() {
        let shown = LedgerCommit::to(7);
        assert!(LedgerCommit::to(6).is_without(shown) && LedgerCommit::to(7).is_without(shown));
        assert!(!shown.is_without(shown) && !LedgerCommit::to(8).is_without(shown));
    }
}
