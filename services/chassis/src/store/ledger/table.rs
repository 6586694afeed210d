//! The declaration of a kind's table: its rows and its migrations follow from it.

pub mod rows;

use std::{future::Future, sync::Arc};

use domain::core::event::Actor;
use proto::Message;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult, TryGetable, Value};

use super::events::EventRule;
use crate::store::{
    database::UnreadableRow,
    resource::{Resource, WireForm},
};

/// Column of the revision.
pub(super) const REVISION: &str = "revision";

/// Table of the resources of one kind. A service implements it on an empty type of its own, so that the resource itself
/// knows nothing of tables.
///
/// A table has the columns [`Self::KEY`] and `revision`, and those of [`Self::COLUMNS`]. A kind that keeps rows in other
/// tables as well overrides [`Self::load`], [`Self::save`] and [`Self::delete`], which call the functions of [`rows`].
pub trait Table: Sized + Send + Sync + 'static {
    /// Kind of resource that the table keeps.
    type Kind: Resource;

    /// Values that the rows of one load or one save share, such as interned texts or rows of another table; `()`: none.
    type Pool: Default + Send;

    /// Name of the table.
    const NAME: &'static str;

    /// Column of the key.
    const KEY: &'static str = "id";

    /// Columns beside those of the key and the revision.
    const COLUMNS: &'static [Column<Self::Kind, Self::Pool>];

    /// Columns with an index of their own. Reads of the kind come from memory and need none.
    const INDEXED: &'static [&'static str] = &[];

    /// Rule for the events of a change; `None`: changes have no events.
    const EVENTS: Option<EventRule<Self::Kind>> = None;

    /// Author of writes that name none: the service that owns the table.
    const OWNER: Actor = Actor::Service("");

    /// Reads a resource; the caller sets its revision.
    ///
    /// # Errors
    /// The row has no valid resource. The row stays in place, and does not hide the others.
    fn read(row: &StoredRow, pool: &mut Self::Pool) -> anyhow::Result<Self::Kind>;

    /// Makes parts of a resource that is to be written one with equal parts of other resources. The writer calls this
    /// with one `pool` as long as the ledger is open.
    fn share(_resource: &mut Self::Kind, _pool: &mut Self::Pool) {}

    /// Reads the resources changed after revision `after`, or every one for `None`.
    fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> impl Future<Output = Result<Vec<Result<Self::Kind, UnreadableRow>>, DbErr>> + Send {
        rows::load::<Self>(on, after, Self::Pool::default())
    }

    /// Inserts or overwrites resources.
    fn save(
        transaction: &DatabaseTransaction,
        resources: &[Arc<Self::Kind>],
    ) -> impl Future<Output = Result<(), DbErr>> + Send {
        rows::save(transaction, rows::of::<Self>(resources, &mut Self::Pool::default()))
    }

    /// Deletes resources by key.
    fn delete(
        transaction: &DatabaseTransaction,
        keys: &[Arc<str>],
    ) -> impl Future<Output = Result<(), DbErr>> + Send {
        rows::delete::<Self>(transaction, keys)
    }

    /// Returns the resource after a loss of commits, which may have been about it; the ledger continues at `revision`,
    /// above every revision that was ever shown. `None`: the resource stays unchanged.
    fn after_loss(_resource: &Self::Kind, _revision: u64) -> Option<Self::Kind> {
        None
    }
}

/// Column of a table of the kind `R`, whose rows share `P`.
pub struct Column<R, P = ()> {
    pub(super) name: &'static str,
    pub(super) value: ColumnValue<R, P>,
    pub(super) is_later: bool,
}

/// Type of a column, with the function that returns its value for a resource.
pub(super) enum ColumnValue<R, P> {
    Text(fn(&R, &mut P) -> String),
    OptionalText(fn(&R, &mut P) -> Option<String>),
    Number(fn(&R, &mut P) -> i64),
    OptionalFlag(fn(&R, &mut P) -> Option<bool>),
    Bytes(fn(&R, &mut P) -> Vec<u8>),
    OptionalBytes(fn(&R, &mut P) -> Option<Vec<u8>>),
}

impl<R, P> Column<R, P> {
    const fn new(name: &'static str, value: ColumnValue<R, P>) -> Self {
        Self { name, value, is_later: false }
    }

    /// Text.
    pub const fn text(name: &'static str, value: fn(&R, &mut P) -> String) -> Self {
        Self::new(name, ColumnValue::Text(value))
    }

    /// Text or null.
    pub const fn optional_text(name: &'static str, value: fn(&R, &mut P) -> Option<String>) -> Self {
        Self::new(name, ColumnValue::OptionalText(value))
    }

    /// Number of 64 bits.
    pub const fn number(name: &'static str, value: fn(&R, &mut P) -> i64) -> Self {
        Self::new(name, ColumnValue::Number(value))
    }

    /// Truth value or null.
    pub const fn optional_flag(name: &'static str, value: fn(&R, &mut P) -> Option<bool>) -> Self {
        Self::new(name, ColumnValue::OptionalFlag(value))
    }

    /// Bytes.
    pub const fn bytes(name: &'static str, value: fn(&R, &mut P) -> Vec<u8>) -> Self {
        Self::new(name, ColumnValue::Bytes(value))
    }

    /// Bytes or null.
    pub const fn optional_bytes(name: &'static str, value: fn(&R, &mut P) -> Option<Vec<u8>>) -> Self {
        Self::new(name, ColumnValue::OptionalBytes(value))
    }

    /// Marks a column that a later release adds to the table of an earlier one. Earlier rows have null, or 0, or an empty
    /// text, and so have the rows of an earlier release that runs beside.
    pub const fn later(mut column: Self) -> Self {
        column.is_later = true;
        column
    }

    /// Returns whether the column may be null.
    pub(super) fn is_optional(&self) -> bool {
        match self.value {
            ColumnValue::OptionalText(_) | ColumnValue::OptionalFlag(_) | ColumnValue::OptionalBytes(_) => {
                true
            }
            ColumnValue::Text(_) | ColumnValue::Number(_) | ColumnValue::Bytes(_) => false,
        }
    }

    pub(super) fn value(&self, resource: &R, pool: &mut P) -> Value {
        match self.value {
            ColumnValue::Text(value) => value(resource, pool).into(),
            ColumnValue::OptionalText(value) => value(resource, pool).into(),
            ColumnValue::Number(value) => value(resource, pool).into(),
            ColumnValue::OptionalFlag(value) => value(resource, pool).into(),
            ColumnValue::Bytes(value) => value(resource, pool).into(),
            ColumnValue::OptionalBytes(value) => value(resource, pool).into(),
        }
    }
}

impl<R: WireForm, P> Column<R, P> {
    /// Column `record` with the form of the resource on the wire, which [`StoredRow::record`] reads.
    pub const fn record() -> Self {
        Self::bytes("record", |resource: &R, _| resource.to_wire().encode_to_vec())
    }
}

/// Row of a kind's table.
pub struct StoredRow {
    row: QueryResult,
    key: String,
    revision: u64,
}

impl StoredRow {
    fn of<T: Table>(row: QueryResult) -> Result<Self, DbErr> {
        let key = row.try_get("", T::KEY)?;
        let revision: i64 = row.try_get("", REVISION)?;
        Ok(Self { row, key, revision: revision.cast_unsigned() })
    }

    /// Key of the resource.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Revision of the last change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the value of a column.
    ///
    /// # Errors
    /// The value is of another type.
    pub fn get<V: TryGetable>(&self, column: &str) -> Result<V, DbErr> {
        self.row.try_get("", column)
    }

    /// Returns the message in a column.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub fn message<M: Message + Default>(&self, column: &str) -> anyhow::Result<M> {
        let bytes: Vec<u8> = self.get(column)?;
        Ok(M::decode(bytes.as_slice())?)
    }

    /// Returns the resource whose form on the wire is the column `record`.
    ///
    /// # Errors
    /// The bytes are not such a resource.
    pub fn record<K: WireForm>(&self, pool: &mut K::Pool) -> anyhow::Result<K> {
        Ok(K::from_wire(self.message("record")?, pool)?)
    }
}
