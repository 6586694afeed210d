//! The rows of roles. All times in them are the database's.

use std::{sync::Arc, time::Duration};

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, QueryResult, Statement, Value};
use sea_orm_migration::prelude::{MigrationTrait, SchemaManager, async_trait};
use tokio::sync::watch;

use crate::{
    Context,
    store::{
        database,
        fence::HeldElsewhere,
        hints::{CHANNEL, HintHub, HintHubs},
    },
};

/// Creates the tables of leases by shard, which [`RoleMigration`] replaces. Where a database is not shared it does nothing.
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

/// Replaces the leases by shard by one lease per role. Every part that has a role runs this migration; where a database
/// is not shared it does nothing.
///
/// A replica of the previous version renews its shards until their table is gone, and acts until the end of its last
/// renewal. So the first lease of a role begins when the longest lease of its shards is over.
pub struct RoleMigration;

impl sea_orm_migration::MigrationName for RoleMigration {
    fn name(&self) -> &str {
        "roles"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RoleMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() != DbBackend::Postgres {
            return Ok(());
        }
        let connection = manager.get_connection();
        // A row that is renewed every other second stays on its page. The lock waits for renewals under way.
        let statements = [
            "CREATE TABLE roles (part text PRIMARY KEY, holder text NOT NULL, epoch bigint NOT NULL, \
             expires_at timestamptz NOT NULL, taken_over boolean NOT NULL) WITH (fillfactor = 50)",
            "LOCK TABLE leases IN ACCESS EXCLUSIVE MODE",
            "INSERT INTO roles (part, holder, epoch, expires_at, taken_over) \
             SELECT part, max(holder), max(epoch), max(expires_at), false FROM leases GROUP BY part",
            "DROP TABLE leases",
            "DROP TABLE replicas",
        ];
        for statement in statements {
            connection.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// Returns whether several replicas may use `database`.
#[cfg(not(feature = "simulation"))]
pub(super) fn is_shared(_: &Context, database: &DatabaseConnection) -> bool {
    database::is_shared(database)
}

/// The row of one role, as one replica uses it.
#[derive(Clone)]
pub(super) struct RoleTable {
    part: &'static str,
    holder: Arc<str>,
    ttl: Duration,
    /// A connection of its own: however busy the others are, the lease is renewed.
    database: DatabaseConnection,
    hub: Arc<HintHub>,
}

impl RoleTable {
    /// The row in `database`, which must be shared.
    pub(super) fn new(
        context: &Context,
        part: &'static str,
        holder: Arc<str>,
        ttl: Duration,
        database: &DatabaseConnection,
    ) -> Self {
        let hub = Arc::clone(&context.shared.of::<HintHubs>().of(&context.tasks, database).hub);
        Self { part, holder, ttl, database: database::reserved(database, 1), hub }
    }

    /// A number that changes with every hint at the row.
    pub(super) fn hints(&self) -> watch::Receiver<u64> {
        self.hub.subscribe(&topic(self.part))
    }

    /// Creates the row without a holder, if there is none.
    pub(super) async fn make(&self) -> Result<(), DbErr> {
        let sql = "INSERT INTO roles (part, holder, epoch, expires_at, taken_over) \
                   VALUES ($1, '', 0, now(), false) ON CONFLICT DO NOTHING";
        self.execute(sql, [self.part.into()]).await.map(drop)
    }

    /// Renews the lease under `epoch`, and records whether this replica has taken over. Returns whether the lease
    /// continues: an expired one is not renewed, it can only be acquired.
    ///
    /// No lock here blocks [`fence::check`](crate::store::fence::check), so that a long write costs no lease.
    pub(super) async fn renew(&self, epoch: u64, taken_over: bool) -> Result<bool, DbErr> {
        let sql = "UPDATE roles SET expires_at = now() + $3 * interval '1 second', taken_over = $5 \
                   WHERE part = $1 AND holder = $2 AND epoch = $4 AND expires_at >= now()";
        let values = self.and_ttl().into_iter().chain([epoch.cast_signed().into(), taken_over.into()]);
        Ok(self.execute(sql, values).await? > 0)
    }

    /// Acquires the role under a new epoch, if no replica holds it, or this one does and does not act under it any more.
    /// While a write is made under the last epoch the role cannot be had. The epoch is greater than `last`, the last one of
    /// this replica, which a database that has lost commits does not know any more.
    pub(super) async fn acquire(&self, last: u64) -> Result<Option<u64>, DbErr> {
        let sql = "WITH free AS (SELECT part FROM roles WHERE part = $1 \
                   AND (holder = '' OR holder = $2 OR expires_at < now()) FOR UPDATE SKIP LOCKED) \
                   UPDATE roles SET holder = $2, epoch = greatest(epoch, $4) + 1, expires_at = now() + $3 * interval '1 second', \
                   taken_over = false FROM free WHERE roles.part = free.part RETURNING roles.epoch";
        let values = self.and_ttl().into_iter().chain([last.cast_signed().into()]);
        let acquired = self.query(sql, values).await?;
        let epoch = acquired.map(|row| row.try_get::<i64>("", "epoch")).transpose()?;
        Ok(epoch.map(i64::cast_unsigned))
    }

    /// Returns how the role is held; `None` if it has no row.
    pub(super) async fn look(&self) -> Result<Option<HeldElsewhere>, DbErr> {
        let sql = "SELECT epoch, taken_over AND holder <> '' AS taken_over, CASE WHEN holder = '' THEN 0 ELSE \
                   CAST(extract(epoch FROM expires_at - now()) AS double precision) END AS seconds \
                   FROM roles WHERE part = $1";
        let Some(row) = self.query(sql, [self.part.into()]).await? else { return Ok(None) };
        let epoch: i64 = row.try_get("", "epoch")?;
        let seconds: f64 = row.try_get("", "seconds")?;
        Ok(Some(HeldElsewhere {
            epoch: epoch.cast_unsigned(),
            left: Duration::from_secs_f64(seconds.clamp(0.0, 3600.0)),
            taken_over: row.try_get("", "taken_over")?,
        }))
    }

    /// Releases the role, after the writes under its epoch have ended, and notifies the other replicas. A role that
    /// this replica does not hold stays unchanged.
    pub(super) async fn release(&self) -> Result<(), DbErr> {
        let sql = "WITH mine AS (SELECT part FROM roles WHERE part = $1 AND holder = $2 FOR UPDATE) \
                   UPDATE roles SET holder = '', expires_at = now() FROM mine WHERE roles.part = mine.part";
        if self.execute(sql, [self.part.into(), (&*self.holder).into()]).await? > 0 {
            let hint = [CHANNEL.into(), topic(self.part).into()];
            self.execute("SELECT pg_notify($1, $2)", hint).await?;
        }
        Ok(())
    }

    fn and_ttl(&self) -> [Value; 3] {
        [self.part.into(), (&*self.holder).into(), self.ttl.as_secs_f64().into()]
    }

    async fn query(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Option<QueryResult>, DbErr> {
        let statement = Statement::from_sql_and_values(DbBackend::Postgres, sql, values);
        self.database.query_one_raw(statement).await
    }

    async fn execute(&self, sql: &str, values: impl IntoIterator<Item = Value>) -> Result<u64, DbErr> {
        let statement = Statement::from_sql_and_values(DbBackend::Postgres, sql, values);
        Ok(self.database.execute_raw(statement).await?.rows_affected())
    }
}

/// The topic of hints about the role of `part`.
pub(super) fn topic(part: &str) -> String {
    format!("roles/{part}")
}
