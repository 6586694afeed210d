//! The rows of leases and replicas. All times in them are the database's.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, QueryResult, Statement,
    TransactionTrait, Value,
};
use sea_orm_migration::prelude::{MigrationTrait, SchemaManager, async_trait};
use tokio::sync::watch;

use super::{SHARDS, Shard};
use crate::{
    Context, database, fence,
    hints::{CHANNEL, Hub},
};

/// Creates the tables of leases and replicas. Every part that shares its work runs it; where a database is not
/// shared it does nothing.
pub struct Migration;

impl sea_orm_migration::MigrationName for Migration {
    fn name(&self) -> &str {
        "leases"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() != DbBackend::Postgres {
            return Ok(());
        }
        let connection = manager.get_connection();
        // Rows that are renewed every other second stay on their page.
        connection
            .execute_unprepared(
                "CREATE TABLE leases (part text NOT NULL, shard bigint NOT NULL, holder text NOT NULL, \
                 epoch bigint NOT NULL, expires_at timestamptz NOT NULL, PRIMARY KEY (part, shard)) \
                 WITH (fillfactor = 50)",
            )
            .await?;
        connection
            .execute_unprepared(
                "CREATE TABLE replicas (part text NOT NULL, id text NOT NULL, expires_at timestamptz NOT NULL, \
                 PRIMARY KEY (part, id)) WITH (fillfactor = 50)",
            )
            .await?;
        Ok(())
    }
}

/// Whether several replicas may use `database`.
#[cfg(not(feature = "simulation"))]
pub(super) fn is_shared(_: &Context, database: &DatabaseConnection) -> bool {
    database::is_shared(database)
}

/// The rows of one part, as one replica sees them.
#[derive(Clone)]
pub(super) struct Rows {
    part: &'static str,
    holder: Arc<str>,
    ttl: Duration,
    /// A connection of its own: however busy the others are, leases are renewed.
    database: DatabaseConnection,
    hub: Arc<Hub>,
}

impl Rows {
    /// Those in `database`, which must be shared.
    pub(super) fn new(
        context: &Context,
        part: &'static str,
        holder: Arc<str>,
        ttl: Duration,
        database: &DatabaseConnection,
    ) -> Self {
        let hub = Arc::clone(&context.hubs.of(&context.tasks, database).hub);
        Self { part, holder, ttl, database: database::reserved(database, 1), hub }
    }

    /// A number that changes with every hint at the rows.
    pub(super) fn hints(&self) -> watch::Receiver<u64> {
        self.hub.subscribe(&topic(self.part))
    }

    /// Makes the row of every shard that has none, held by nobody.
    pub(super) async fn make(&self) -> Result<(), DbErr> {
        let sql = "INSERT INTO leases (part, shard, holder, epoch, expires_at) \
                   SELECT $1, shard, '', 0, now() FROM generate_series(0, $2 - 1) AS shard \
                   ON CONFLICT DO NOTHING";
        execute(&self.database, sql, [self.part.into(), i64::from(SHARDS).into()]).await.map(drop)
    }

    /// Begins to change the rows.
    pub(super) async fn begin(&self) -> Result<Transaction, DbErr> {
        Ok(Transaction { rows: self.clone(), on: self.database.begin().await? })
    }

    fn and_ttl(&self) -> [Value; 3] {
        [self.part.into(), (&*self.holder).into(), self.ttl.as_secs_f64().into()]
    }
}

/// A change of the rows.
pub(super) struct Transaction {
    rows: Rows,
    on: DatabaseTransaction,
}

impl Transaction {
    /// Says that this replica lives, forgets those that do not, and counts the living. Also says whether this
    /// replica was not known before.
    pub(super) async fn live(&self) -> Result<(u64, bool), DbErr> {
        let sql = "INSERT INTO replicas (part, id, expires_at) \
                   VALUES ($1, $2, now() + $3 * interval '1 second') \
                   ON CONFLICT (part, id) DO UPDATE SET expires_at = excluded.expires_at \
                   RETURNING xmax = 0 AS is_new";
        let is_new = query(&self.on, sql, self.rows.and_ttl()).await?;
        let is_new = is_new.first().map_or(Ok(false), |row| row.try_get("", "is_new"))?;
        execute(
            &self.on,
            "DELETE FROM replicas WHERE part = $1 AND expires_at < now()",
            [self.rows.part.into()],
        )
        .await?;
        let rows = query(
            &self.on,
            "SELECT count(*) AS alive FROM replicas WHERE part = $1",
            [self.rows.part.into()],
        );
        let alive: i64 = rows.await?.first().map_or(Ok(0), |row| row.try_get("", "alive"))?;
        Ok((alive.cast_unsigned().max(1), is_new))
    }

    /// Renews what this replica acts upon, and gives what it has of it. A lease that has run out is not renewed: it can
    /// only be taken.
    ///
    /// No lock here is in the way of [`fence::check`], so that a long write costs no lease.
    pub(super) async fn renew(&self, acted_upon: &[Shard]) -> Result<BTreeMap<Shard, u64>, DbErr> {
        // Locked in the order of shards, so that replicas never wait for each other in a circle.
        let sql = "WITH mine AS (SELECT shard FROM leases WHERE part = $1 AND holder = $2 AND shard = ANY($4) \
                   AND expires_at >= now() ORDER BY shard FOR NO KEY UPDATE) \
                   UPDATE leases SET expires_at = now() + $3 * interval '1 second' \
                   FROM mine WHERE leases.part = $1 AND leases.shard = mine.shard AND leases.holder = $2 \
                   RETURNING leases.shard, leases.epoch";
        let values = self.rows.and_ttl().into_iter().chain([numbers(acted_upon)]);
        epochs(&query(&self.on, sql, values).await?)
    }

    /// Takes up to `most` shards, each under a new epoch: that nobody holds, or that are this replica's and not acted
    /// upon any more. Those that somebody is just writing under are left for the next time.
    pub(super) async fn take(
        &self,
        most: usize,
        acted_upon: &[Shard],
    ) -> Result<BTreeMap<Shard, u64>, DbErr> {
        let sql = "WITH free AS (SELECT shard FROM leases WHERE part = $1 AND (holder = '' OR expires_at < now() \
                   OR (holder = $2 AND shard <> ALL($5))) ORDER BY shard LIMIT $4 FOR UPDATE SKIP LOCKED) \
                   UPDATE leases SET holder = $2, epoch = epoch + 1, expires_at = now() + $3 * interval '1 second' \
                   FROM free WHERE leases.part = $1 AND leases.shard = free.shard \
                   RETURNING leases.shard, leases.epoch";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let values = self.rows.and_ttl().into_iter().chain([most.into(), numbers(acted_upon)]);
        epochs(&query(&self.on, sql, values).await?)
    }

    /// How soon there may be something to do about the shards beside those that are `held`: at once for what this
    /// replica still has to take or release, and, when it is `short` of shards, when the next lease of another may run
    /// out.
    pub(super) async fn next_change(&self, held: &[Shard], short: bool) -> Result<Option<Duration>, DbErr> {
        let sql = "SELECT CAST(extract(epoch FROM min(CASE WHEN holder = $2 THEN now() ELSE expires_at END) - now()) \
                   AS double precision) AS seconds \
                   FROM leases WHERE part = $1 AND shard <> ALL($3) AND (holder = $2 OR $4)";
        let values = [self.rows.part.into(), (&*self.rows.holder).into(), numbers(held), short.into()];
        let rows = query(&self.on, sql, values).await?;
        let seconds: Option<f64> = rows.first().map_or(Ok(None), |row| row.try_get("", "seconds"))?;
        Ok(seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))))
    }

    /// Gives back what this replica has beside the shards that are `held`, and counts it. Those that it is just writing
    /// under are left for the next time.
    pub(super) async fn release_others(&self, held: &[Shard]) -> Result<u64, DbErr> {
        let sql = "WITH other AS (SELECT shard FROM leases WHERE part = $1 AND holder = $2 AND shard <> ALL($3) \
                   ORDER BY shard FOR UPDATE SKIP LOCKED) \
                   UPDATE leases SET holder = '', expires_at = now() \
                   FROM other WHERE leases.part = $1 AND leases.shard = other.shard";
        execute(&self.on, sql, [self.rows.part.into(), (&*self.rows.holder).into(), numbers(held)]).await
    }

    /// Gives everything back, after the writes under it have ended, and says that this replica lives no more.
    pub(super) async fn leave(&self) -> Result<(), DbErr> {
        let me = || [Value::from(self.rows.part), Value::from(&*self.rows.holder)];
        let sql = "WITH mine AS (SELECT shard FROM leases WHERE part = $1 AND holder = $2 ORDER BY shard FOR UPDATE) \
                   UPDATE leases SET holder = '', expires_at = now() \
                   FROM mine WHERE leases.part = $1 AND leases.shard = mine.shard";
        execute(&self.on, sql, me()).await?;
        execute(&self.on, "DELETE FROM replicas WHERE part = $1 AND id = $2", me()).await.map(drop)
    }

    /// Tells every replica to look at the leases of the part, once this is committed.
    pub(super) async fn hint(&self) -> Result<(), DbErr> {
        let topic = topic(self.rows.part);
        execute(&self.on, "SELECT pg_notify($1, $2)", [CHANNEL.into(), topic.into()]).await.map(drop)
    }

    pub(super) async fn commit(self) -> Result<(), DbErr> {
        self.on.commit().await
    }
}

fn numbers(shards: &[Shard]) -> Value {
    shards.iter().map(|shard| i64::from(shard.number())).collect::<Vec<_>>().into()
}

fn epochs(rows: &[QueryResult]) -> Result<BTreeMap<Shard, u64>, DbErr> {
    rows.iter().map(fence::shard_and_epoch).collect()
}

async fn query(
    on: &impl ConnectionTrait,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<QueryResult>, DbErr> {
    on.query_all_raw(Statement::from_sql_and_values(DbBackend::Postgres, sql, values)).await
}

async fn execute(
    on: &impl ConnectionTrait,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<u64, DbErr> {
    let statement = Statement::from_sql_and_values(DbBackend::Postgres, sql, values);
    Ok(on.execute_raw(statement).await?.rows_affected())
}

/// What hints about the leases of `part` are about.
pub(super) fn topic(part: &str) -> String {
    format!("leases/{part}")
}
