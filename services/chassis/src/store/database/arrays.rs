//! Many rows in one statement of PostgreSQL: an array for each column. The statement is the same for any number of
//! rows, so that the server plans it once and the number of parameters is no limit.

use std::sync::Arc;

use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement, Value, sea_query::ArrayType};

use super::RowHeader;

/// Rows in one statement: some megabytes.
pub(super) const ROWS: usize = 5_000;

/// Inserts rows, or overwrites those whose key exists.
pub(super) async fn upsert(
    on: &impl ConnectionTrait,
    header: &RowHeader,
    rows: Vec<Vec<Value>>,
) -> Result<(), DbErr> {
    let columns =
        header.columns.iter().map(|(name, is_optional)| ArrayColumn::of(name, *is_optional, rows.len()));
    let mut columns: Vec<_> = columns.collect();
    for row in rows {
        for (value, column) in row.into_iter().zip(&mut columns) {
            column.push(value)?;
        }
    }
    let sql = statement(header.table, header.key, &columns)?;
    let values = columns.into_iter().flat_map(ArrayColumn::into_arrays);
    on.execute_raw(Statement::from_sql_and_values(DbBackend::Postgres, sql, values)).await.map(drop)
}

/// Deletes the rows whose `key` is one of `keys`.
pub(super) async fn delete(
    on: &impl ConnectionTrait,
    table: &str,
    key: &str,
    keys: &[Arc<str>],
) -> Result<(), DbErr> {
    let sql = format!(r#"DELETE FROM "{table}" WHERE "{key}" = ANY($1)"#);
    let keys: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
    on.execute_raw(Statement::from_sql_and_values(DbBackend::Postgres, sql, [keys.into()])).await.map(drop)
}

/// The values of one column.
struct ArrayColumn {
    name: &'static str,
    kind: Option<ArrayType>,
    values: Vec<Value>,
    /// Flags of the null values, where there may be any: an array of ours has none.
    nulls: Option<Vec<Value>>,
}

impl ArrayColumn {
    fn of(name: &'static str, is_optional: bool, rows: usize) -> Self {
        let nulls = is_optional.then(|| Vec::with_capacity(rows));
        Self { name, kind: None, values: Vec::with_capacity(rows), nulls }
    }

    fn push(&mut self, value: Value) -> Result<(), DbErr> {
        self.kind.get_or_insert_with(|| value.array_type());
        let is_null = value == value.as_null();
        match &mut self.nulls {
            Some(nulls) => nulls.push(is_null.into()),
            None if is_null => return Err(DbErr::Type(format!("column {} may not be null", self.name))),
            None => {}
        }
        self.values.push(if is_null { value.dummy_value() } else { value });
        Ok(())
    }

    fn into_arrays(self) -> impl Iterator<Item = Value> {
        let values = self.kind.map(|kind| Value::Array(kind, Some(Box::new(self.values))));
        let nulls = self.nulls.map(|nulls| Value::Array(ArrayType::Bool, Some(Box::new(nulls))));
        values.into_iter().chain(nulls)
    }
}

/// A statement with one array for each column, followed by an array of null flags for each nullable column.
fn statement(table: &str, key: &str, columns: &[ArrayColumn]) -> Result<String, DbErr> {
    let (mut arrays, mut names, mut picked) = (Vec::new(), Vec::new(), Vec::new());
    for (n, column) in columns.iter().enumerate() {
        let kind = sql_type(column)?;
        arrays.push(format!("${}::{kind}[]", arrays.len() + 1));
        names.push(format!("c{n}"));
        if column.nulls.is_some() {
            arrays.push(format!("${}::boolean[]", arrays.len() + 1));
            names.push(format!("n{n}"));
            picked.push(format!("CASE WHEN n{n} THEN NULL ELSE c{n} END"));
        } else {
            picked.push(format!("c{n}"));
        }
    }
    let quoted = columns.iter().map(|column| format!(r#""{}""#, column.name)).collect::<Vec<_>>();
    let others = columns.iter().filter(|column| column.name != key);
    let overwrite =
        others.map(|column| format!(r#""{0}" = excluded."{0}""#, column.name)).collect::<Vec<_>>();
    Ok(format!(
        r#"INSERT INTO "{table}" ({}) SELECT {} FROM unnest({}) AS given({}) ON CONFLICT ("{key}") DO UPDATE SET {}"#,
        quoted.join(", "),
        picked.join(", "),
        arrays.join(", "),
        names.join(", "),
        overwrite.join(", "),
    ))
}

fn sql_type(column: &ArrayColumn) -> Result<&'static str, DbErr> {
    match &column.kind {
        Some(ArrayType::String) => Ok("text"),
        Some(ArrayType::BigInt) => Ok("bigint"),
        Some(ArrayType::Int) => Ok("integer"),
        Some(ArrayType::Bool) => Ok("boolean"),
        Some(ArrayType::Bytes) => Ok("bytea"),
        Some(ArrayType::Double) => Ok("double precision"),
        kind => Err(DbErr::Type(format!("column {} has values of {kind:?}", column.name))),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn nulls_have_an_array_of_their_own() {
        let column = |name, nulls: bool, value: Value| {
            let mut column =
                ArrayColumn { name, kind: None, values: Vec::new(), nulls: nulls.then(Vec::new) };
            column.push(value).unwrap();
            column
        };
        let columns = [
            column("id", false, "a".into()),
            column("enabled", true, Value::Bool(None)),
            column("record", false, vec![1_u8].into()),
        ];
        expect![[r#"INSERT INTO "nodes" ("id", "enabled", "record") SELECT c0, CASE WHEN n1 THEN NULL ELSE c1 END, c2 FROM unnest($1::text[], $2::boolean[], $3::boolean[], $4::bytea[]) AS given(c0, c1, n1, c2) ON CONFLICT ("id") DO UPDATE SET "enabled" = excluded."enabled", "record" = excluded."record""#]].assert_eq(&statement("nodes", "id", &columns).unwrap());
    }
}
