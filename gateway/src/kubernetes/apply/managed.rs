//! The rows of `managedFields`: writers and their fields.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    super::{
        object::{self, ApiObject},
        schema::SchemaNode,
    },
    fields::{FieldPath, FieldSet, leaves},
};

/// Most rows of plain writes; beyond it the oldest are joined.
const MOST_UPDATES: usize = 10;

/// Writer in whose name the oldest rows of plain writes are joined.
const ANCIENT: &str = "ancient-changes";

/// Writer that owns an object from before its first apply.
const BEFORE: &str = "before-first-apply";

const APPLY: &str = "Apply";
const UPDATE: &str = "Update";

/// Writer of fields, as rows are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriterName {
    pub manager: String,
    /// Whether the writer applies; otherwise it replaces or patches.
    pub applies: bool,
    pub api_version: String,
    /// Subresource, such as `status`; empty: none.
    pub subresource: String,
}

/// Row of a writer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ManagedRow {
    pub writer: WriterName,
    /// Time of the last change.
    pub time: String,
    pub fields: FieldSet,
}

/// Rows of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ManagedRows(pub Vec<ManagedRow>);

impl WriterName {
    /// Returns whether two writes are of one writer.
    fn is_same(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.applies == other.applies
            && self.subresource == other.subresource
            && (self.applies || self.api_version == other.api_version)
    }
}

impl ManagedRows {
    /// Reads the rows of an object; none if they have another form. An empty list, or one with an empty row, drops all.
    pub(crate) fn read(object: &ApiObject) -> Option<Self> {
        let Some(listed) = object::metadata(object).and_then(|metadata| metadata.get("managedFields")) else {
            return Some(Self::default());
        };
        let rows = listed.as_array()?;
        let is_reset = rows.iter().all(|row| row.as_object().is_some_and(serde_json::Map::is_empty));
        if is_reset {
            return Some(Self::default());
        }
        rows.iter().map(row).collect::<Option<_>>().map(Self)
    }

    /// Writes the rows into an object.
    pub(crate) fn write(&self, object: &mut ApiObject) {
        let metadata = object::metadata_mut(object);
        match self.0.is_empty() {
            true => drop(metadata.remove("managedFields")),
            false => drop(metadata.insert("managedFields".to_owned(), self.shown())),
        }
    }

    fn shown(&self) -> Value {
        Value::Array(self.0.iter().map(shown).collect())
    }

    /// Returns the fields of a writer.
    pub(crate) fn of(&self, writer: &WriterName) -> FieldSet {
        let row = self.0.iter().find(|row| row.writer.is_same(writer));
        row.map(|row| row.fields.clone()).unwrap_or_default()
    }

    /// Returns the rows of all other writers.
    pub(crate) fn others<'a>(&'a self, writer: &'a WriterName) -> impl Iterator<Item = &'a ManagedRow> {
        self.0.iter().filter(move |row| !row.writer.is_same(writer))
    }

    /// Gives a writer these fields. The time of a row whose fields stay is kept.
    pub(crate) fn set(&mut self, writer: &WriterName, fields: FieldSet, now: &str) {
        let place = self.0.iter().position(|row| row.writer.is_same(writer));
        match place {
            Some(place) if fields.is_empty() => drop(self.0.remove(place)),
            Some(place) if self.0[place].fields == fields => {}
            Some(place) => {
                let row = &mut self.0[place];
                row.fields = fields;
                row.time = now.to_owned();
                row.writer.api_version.clone_from(&writer.api_version);
            }
            None if fields.is_empty() => {}
            None => self.0.push(ManagedRow { writer: writer.clone(), time: now.to_owned(), fields }),
        }
        self.join_oldest();
    }

    /// Takes fields from all writers but one.
    pub(crate) fn take_from_others(&mut self, writer: &WriterName, is_taken: impl Fn(&FieldPath) -> bool) {
        for row in self.0.iter_mut().filter(|row| !row.writer.is_same(writer)) {
            row.fields.0.retain(|path| !is_taken(path));
        }
        self.0.retain(|row| row.writer.is_same(writer) || !row.fields.is_empty());
    }

    /// Records a plain write: changed fields move to the writer, removed ones belong to nobody.
    pub(crate) fn note_write(
        &mut self,
        writer: &WriterName,
        before: &ApiObject,
        after: &ApiObject,
        schema: &SchemaNode,
        now: &str,
    ) {
        let old = leaves(before, schema);
        let new = leaves(after, schema);
        let changed: Vec<_> = changed(&old, &new).cloned().collect();
        let mut fields = self.of(writer);
        fields.0.retain(|path| new.contains_key(path));
        fields.0.extend(changed.iter().cloned());
        self.take_from_others(writer, |path| {
            changed.contains(path) || !new.contains_key(path) && old.contains_key(path)
        });
        self.set(writer, fields, now);
    }

    /// Gives an object without rows to a writer that stands for everybody before the first apply.
    pub(crate) fn begin(&mut self, object: &ApiObject, schema: &SchemaNode, api_version: &str, now: &str) {
        if self.0.is_empty() {
            let writer = WriterName {
                manager: BEFORE.to_owned(),
                applies: false,
                api_version: api_version.to_owned(),
                subresource: String::new(),
            };
            self.set(&writer, FieldSet::of(object, schema), now);
        }
    }

    fn join_oldest(&mut self) {
        while self.0.iter().filter(|row| !row.writer.applies).count() > MOST_UPDATES {
            let mut updates: Vec<_> = (0..self.0.len()).filter(|n| !self.0[*n].writer.applies).collect();
            updates.sort_by_key(|n| (self.0[*n].writer.manager != ANCIENT, self.0[*n].time.clone()));
            let &[into, from, ..] = &updates[..] else { return };
            let joined = std::mem::take(&mut self.0[from].fields);
            self.0[into].fields.0.extend(joined.0);
            self.0[into].writer.manager = ANCIENT.to_owned();
            self.0[into].writer.subresource.clear();
            self.0.remove(from);
        }
    }
}

/// Returns the fields that are new or have another value.
pub(super) fn changed<'a>(
    old: &'a BTreeMap<FieldPath, &'a Value>,
    new: &'a BTreeMap<FieldPath, &'a Value>,
) -> impl Iterator<Item = &'a FieldPath> {
    new.iter().filter(|(path, value)| old.get(*path) != Some(value)).map(|(path, _)| path)
}

fn row(value: &Value) -> Option<ManagedRow> {
    let text = |member: &str| value.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let applies = match &*text("operation") {
        APPLY => true,
        UPDATE => false,
        _ => return None,
    };
    let writer = WriterName {
        manager: text("manager"),
        applies,
        api_version: text("apiVersion"),
        subresource: text("subresource"),
    };
    let fields = match value.get("fieldsV1") {
        Some(fields) => FieldSet::read(fields)?,
        None => FieldSet::default(),
    };
    Some(ManagedRow { writer, time: text("time"), fields })
}

fn shown(row: &ManagedRow) -> Value {
    let WriterName { manager, applies, api_version, subresource } = &row.writer;
    let mut shown = json!({
        "manager": manager, "operation": if *applies { APPLY } else { UPDATE }, "apiVersion": api_version,
        "time": row.time, "fieldsType": "FieldsV1", "fieldsV1": row.fields.shown(),
    });
    if !subresource.is_empty() {
        shown["subresource"] = subresource.clone().into();
    }
    shown
}
