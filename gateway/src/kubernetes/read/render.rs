//! Forms of objects in answers.

use std::{convert::Infallible, iter, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use chrono::Utc;
use futures_util::stream;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use super::{
    super::{
        answer::json_answer,
        failure::ApiFailure,
        kinds::ResourceKind,
        object::{self, ApiObject},
        request::{
            negotiation::{ObjectForm, object_form},
            parameters::ApiParameters,
        },
        store::CachedRecord,
    },
    columns::{cells, definitions},
};

/// Bytes of a list after which a part of it is sent.
const PART_BYTES: usize = 64 << 10;

/// Form of objects that a client wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownForm {
    form: ObjectForm,
    row: RowObject,
}

/// Object beside the cells of a row.
#[derive(Debug, Clone, Copy)]
enum RowObject {
    Nothing,
    Metadata,
    Whole,
}

/// Facts about a list.
#[derive(Debug, Default)]
pub(super) struct ListFacts {
    pub version: u64,
    /// Token of the next page; empty: there is none.
    pub next: String,
    pub remaining: Option<usize>,
}

impl ListFacts {
    fn shown(&self) -> Map<String, Value> {
        let mut metadata = Map::from_iter([("resourceVersion".to_owned(), self.version.to_string().into())]);
        if !self.next.is_empty() {
            metadata.insert("continue".to_owned(), self.next.clone().into());
        }
        if let Some(remaining) = self.remaining {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
        metadata
    }
}

impl ShownForm {
    /// Reads the form from a request.
    ///
    /// # Errors
    /// When none is acceptable.
    pub(crate) fn read(headers: &HeaderMap, parameters: &ApiParameters) -> Result<Self, ApiFailure> {
        let row = match parameters.text("includeObject") {
            Some("None") => RowObject::Nothing,
            Some("Object") => RowObject::Whole,
            _ => RowObject::Metadata,
        };
        Ok(Self { form: object_form(headers)?, row })
    }

    /// Returns whether objects are shown as they are.
    pub(super) fn is_whole(self) -> bool {
        self.form == ObjectForm::Whole
    }

    /// Returns a list. Objects are rendered one after the other, as the client takes them; whole ones are not even
    /// parsed.
    pub(super) fn list(
        self,
        kind: &'static ResourceKind,
        records: Vec<Arc<CachedRecord>>,
        facts: &ListFacts,
    ) -> Body {
        let append = move |json: &mut Vec<u8>, record: Arc<CachedRecord>| match self.form {
            ObjectForm::Whole => record.append_to(json),
            ObjectForm::Table | ObjectForm::Metadata => self.append_item(json, kind, record.object()),
        };
        self.framed(kind, facts, records, append)
    }

    /// Returns a list of objects.
    pub(super) fn list_of(
        self,
        kind: &'static ResourceKind,
        objects: Vec<ApiObject>,
        facts: &ListFacts,
    ) -> Body {
        self.framed(kind, facts, objects, move |json, object| self.append_item(json, kind, object))
    }

    /// Returns a list with `items`, each of which `append` writes.
    fn framed<T: Send + 'static>(
        self,
        kind: &'static ResourceKind,
        facts: &ListFacts,
        items: Vec<T>,
        append: impl Fn(&mut Vec<u8>, T) + Send + 'static,
    ) -> Body {
        let (head, member) = self.head(kind, facts);
        let head = head.to_string();
        let head = format!("{},\"{member}\":[", head.strip_suffix('}').unwrap_or(&head));
        let mut items = items.into_iter().peekable();
        let parts = iter::from_fn(move || {
            items.peek()?;
            let mut part = Vec::new();
            while part.len() < PART_BYTES
                && let Some(item) = items.next()
            {
                append(&mut part, item);
                if items.peek().is_some() {
                    part.push(b',');
                }
            }
            Some(Bytes::from(part))
        });
        let parts = iter::once(Bytes::from(head)).chain(parts).chain([Bytes::from_static(b"]}")]);
        Body::from_stream(stream::iter(parts.map(Ok::<_, Infallible>)))
    }

    /// Returns a list without its items, and the name of their member.
    fn head(self, kind: &ResourceKind, facts: &ListFacts) -> (Value, &'static str) {
        let metadata = Value::Object(facts.shown());
        match self.form {
            ObjectForm::Whole => {
                let kind_of_list = format!("{}List", kind.kind);
                let version = kind.api_version();
                (json!({ "kind": kind_of_list, "apiVersion": version, "metadata": metadata }), "items")
            }
            ObjectForm::Metadata => {
                let (kind, version) = ("PartialObjectMetadataList", "meta.k8s.io/v1");
                (json!({ "kind": kind, "apiVersion": version, "metadata": metadata }), "items")
            }
            ObjectForm::Table => {
                let mut table = self.table(kind, &[], metadata, true);
                table.as_object_mut().and_then(|table| table.remove("rows"));
                (table, "rows")
            }
        }
    }

    /// Appends an object of a list.
    fn append_item(self, json: &mut Vec<u8>, kind: &ResourceKind, object: ApiObject) {
        let item = match self.form {
            ObjectForm::Whole => Value::Object(object),
            ObjectForm::Metadata => partial(&object),
            ObjectForm::Table => self.row(kind, &object),
        };
        json.extend_from_slice(item.to_string().as_bytes());
    }

    /// Returns an object of an event of a watch. The first of a table describes the columns.
    pub(super) fn watched(self, kind: &ResourceKind, object: ApiObject, is_first: bool) -> Value {
        match self.form {
            ObjectForm::Whole => Value::Object(object),
            ObjectForm::Metadata => partial(&object),
            ObjectForm::Table => {
                let version = json!({ "resourceVersion": object::metadata_text(&object, "resourceVersion") });
                self.table(kind, &[object], version, is_first)
            }
        }
    }

    /// Returns the object of a bookmark.
    pub(super) fn bookmark(self, kind: &ResourceKind, version: u64, ends_initial: bool) -> Value {
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if ends_initial {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        match self.form {
            ObjectForm::Whole => {
                json!({ "kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata })
            }
            ObjectForm::Metadata => {
                json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
            }
            ObjectForm::Table => self.table(kind, &[], metadata, false),
        }
    }

    fn table(self, kind: &ResourceKind, objects: &[ApiObject], metadata: Value, has_columns: bool) -> Value {
        let columns = if has_columns { definitions(kind) } else { Value::Null };
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns,
            "rows": objects.iter().map(|object| self.row(kind, object)).collect::<Value>(),
        })
    }

    fn row(self, kind: &ResourceKind, object: &ApiObject) -> Value {
        let mut row = json!({ "cells": cells(kind, object, Utc::now()) });
        match self.row {
            RowObject::Nothing => {}
            RowObject::Metadata => row["object"] = partial(object),
            RowObject::Whole => row["object"] = Value::Object(object.clone()),
        }
        row
    }
}

fn partial(object: &ApiObject) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
}

/// Answers with one object.
pub(crate) fn one(
    form: ShownForm,
    kind: &ResourceKind,
    object: ApiObject,
    code: StatusCode,
) -> axum::response::Response {
    json_answer(code, form.watched(kind, object, true).to_string())
}
