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
    fn is_whole(self) -> bool {
        self.form == ObjectForm::Whole
    }

    /// Returns a list. Bodies of whole objects are neither copied nor parsed.
    pub(super) fn list(
        self,
        kind: &ResourceKind,
        records: Vec<Arc<CachedRecord>>,
        facts: &ListFacts,
    ) -> Body {
        if !self.is_whole() {
            let objects: Vec<_> = records.iter().map(|record| record.object()).collect();
            return self.list_of(kind, objects, facts).into();
        }
        let head = json!({
            "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(), "metadata": facts.shown(),
        });
        let head = format!("{}}},\"items\":[", head.to_string().trim_end_matches('}'));
        let items = records.into_iter().enumerate().flat_map(|(n, record)| {
            let comma = if n > 0 { Bytes::from_static(b",") } else { Bytes::new() };
            [comma, record.body.clone()]
        });
        let parts = iter::once(Bytes::from(head)).chain(items).chain([Bytes::from_static(b"]}")]);
        let parts = parts.filter(|part| !part.is_empty());
        Body::from_stream(stream::iter(parts.map(Ok::<_, Infallible>)))
    }

    /// Returns a list of objects.
    pub(super) fn list_of(self, kind: &ResourceKind, objects: Vec<ApiObject>, facts: &ListFacts) -> Bytes {
        let list = match self.form {
            ObjectForm::Table => self.table(kind, &objects, Value::Object(facts.shown()), true),
            ObjectForm::Metadata => json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": facts.shown(),
                "items": objects.iter().map(partial).collect::<Value>(),
            }),
            ObjectForm::Whole => json!({
                "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(), "metadata": facts.shown(),
                "items": objects,
            }),
        };
        list.to_string().into()
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
        let now = Utc::now();
        let rows = objects.iter().map(|object| {
            let mut row = json!({ "cells": cells(kind, object, now) });
            match self.row {
                RowObject::Nothing => {}
                RowObject::Metadata => row["object"] = partial(object),
                RowObject::Whole => row["object"] = Value::Object(object.clone()),
            }
            row
        });
        let columns = if has_columns { definitions(kind) } else { Value::Null };
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns,
            "rows": rows.collect::<Value>(),
        })
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
