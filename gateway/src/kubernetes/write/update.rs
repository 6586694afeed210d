//! Replacement and patches.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, Value};

use super::{
    super::{
        apply::{AppliedObject, ManagedRows, apply},
        face::{ApiRequest, KubernetesFace},
        failure::{ApiFailure, FailureCause},
        kinds::ResourceKind,
        object::{self, ApiObject},
        patch::ObjectPatch,
        read::{ShownForm, one},
        records::{WriteFailure, WritePrecondition},
        request::body::ApiBody,
        store::{VersionBase, read_version},
    },
    draft::{clean, complete, is_same, judge, judge_finalizers, keep_server_metadata, now, object_of, place},
    options::WriteOptions,
};
use crate::http::warnings::with_warnings;

/// Most attempts at a write that is computed anew whenever the object changes.
const ATTEMPTS: u32 = 10;

/// Object that a write is to store.
struct DraftedObject {
    object: ApiObject,
    remarks: Vec<String>,
    /// Whether the client expects a version of the object.
    is_conditional: bool,
}

/// Outcome of one attempt.
struct StoredObject {
    object: ApiObject,
    remarks: Vec<String>,
    code: StatusCode,
}

/// Replaces an object.
///
/// # Errors
/// When there is none, it has changed, or the new one is wrong.
pub(crate) async fn update(
    face: &KubernetesFace,
    request: &ApiRequest,
    name: &str,
) -> Result<Response, ApiFailure> {
    let options = WriteOptions::read(request)?;
    let ApiBody { value, repeated } = ApiBody::read(&request.headers, &request.body)?;
    let object = object_of(options.kind, value)?;
    let write = ObjectWrite { face, request, name, options };
    write.answered(|write, before| write.replaced(before, object.clone(), &repeated)).await
}

/// Patches an object, or applies wishes to it.
///
/// # Errors
/// When there is none, it does not fit the patch, or the patched one is wrong.
pub(crate) async fn patch(
    face: &KubernetesFace,
    request: &ApiRequest,
    name: &str,
) -> Result<Response, ApiFailure> {
    let options = WriteOptions::read(request)?;
    let (patch, repeated) = ObjectPatch::read(options.kind, &request.headers, &request.body)?;
    let write = ObjectWrite { face, request, name, options };
    match &patch {
        ObjectPatch::Apply(wishes) => {
            write.options.applier()?;
            let wishes = write.wishes(wishes.clone())?;
            write.answered(|write, before| write.applied(before, wishes.clone(), &repeated)).await
        }
        ObjectPatch::Merge(_) | ObjectPatch::Json(_) | ObjectPatch::Strategic(_) => {
            write.answered(|write, before| write.patched(before, &patch, &repeated)).await
        }
    }
}

/// Write of one object.
struct ObjectWrite<'a> {
    face: &'a KubernetesFace,
    request: &'a ApiRequest,
    name: &'a str,
    options: WriteOptions,
}

impl ObjectWrite<'_> {
    fn kind(&self) -> &'static ResourceKind {
        self.options.kind
    }

    fn not_found(&self) -> ApiFailure {
        ApiFailure::not_found(self.kind(), self.name)
    }

    /// Stores the object that `draft` makes of the present one, again as long as that changes meanwhile.
    async fn answered(
        &self,
        draft: impl Fn(&Self, Option<&ApiObject>) -> Result<DraftedObject, ApiFailure>,
    ) -> Result<Response, ApiFailure> {
        let form = ShownForm::read(&self.request.headers, &self.request.parameters)?;
        let namespace = self.request.path.namespace.as_deref().unwrap_or_default();
        let base = self.face.base(self.kind()).await?;
        for _ in 0..ATTEMPTS {
            let before = self.face.records.get(self.kind(), namespace, self.name, base).await?;
            let drafted = draft(self, before.as_ref())?;
            let is_conditional = drafted.is_conditional;
            match self.store(before.as_ref(), drafted, base).await {
                Ok(StoredObject { object, remarks, code }) => {
                    return Ok(with_warnings(one(form, self.kind(), object, code), &remarks));
                }
                Err(WriteFailure::Outdated) if !is_conditional => {}
                // Another client has created the object that was missing.
                Err(WriteFailure::Refused(failure))
                    if failure.reason == "AlreadyExists" && before.is_none() => {}
                Err(failure) => return Err(failure.refused(self.kind(), self.name)),
            }
        }
        Err(ApiFailure::outdated(self.kind(), self.name))
    }

    async fn store(
        &self,
        before: Option<&ApiObject>,
        drafted: DraftedObject,
        base: VersionBase,
    ) -> Result<StoredObject, WriteFailure> {
        let DraftedObject { object, remarks, .. } = drafted;
        let (records, dry_run) = (&self.face.records, self.options.dry_run);
        let Some(before) = before else {
            let object = records.create(self.kind(), &object, dry_run, base).await?;
            return Ok(StoredObject { object, remarks, code: StatusCode::CREATED });
        };
        let rows = |object| ManagedRows::read(object).unwrap_or_default();
        if is_same(before, &object) && rows(before) == rows(&object) {
            return Ok(StoredObject { object: before.clone(), remarks, code: StatusCode::OK });
        }
        let version = read_version(object::metadata_text(before, "resourceVersion"))?;
        let uid = object::metadata_text(before, "uid").to_owned();
        let precondition = WritePrecondition { revision: base.revision(version).unwrap_or_default(), uid };
        let object = match self.options.is_status {
            true => records.replace_status(self.kind(), &object, precondition, dry_run, base).await?,
            false => records.replace(self.kind(), before, &object, precondition, dry_run, base).await?,
        };
        Ok(StoredObject { object, remarks, code: StatusCode::OK })
    }

    /// Returns the object of a PUT.
    fn replaced(
        &self,
        before: Option<&ApiObject>,
        mut object: ApiObject,
        repeated: &[String],
    ) -> Result<DraftedObject, ApiFailure> {
        let before = before.ok_or_else(|| self.not_found())?;
        self.named(&mut object)?;
        let is_conditional = self.expects(before, &object)?;
        if !is_conditional && !self.kind().is_core() {
            let message = "Invalid value: 0: must be specified for an update";
            let cause = FailureCause::invalid("metadata.resourceVersion", message);
            return Err(ApiFailure::invalid(self.kind(), self.name, vec![cause]));
        }
        self.finished(before, object, repeated, is_conditional)
    }

    /// Returns the object after a patch.
    fn patched(
        &self,
        before: Option<&ApiObject>,
        patch: &ObjectPatch,
        repeated: &[String],
    ) -> Result<DraftedObject, ApiFailure> {
        let before = before.ok_or_else(|| self.not_found())?;
        let patched = patch.applied(self.kind(), self.name, Value::Object(before.clone()))?;
        let mut object = object_of(self.kind(), patched)?;
        self.named(&mut object)?;
        // The version is that of the present object, unless the patch has one.
        let is_conditional = self.expects(before, &object)? && self.mentions_version(patch);
        self.finished(before, object, repeated, is_conditional)
    }

    fn mentions_version(&self, patch: &ObjectPatch) -> bool {
        match patch {
            ObjectPatch::Merge(patch) | ObjectPatch::Strategic(patch) | ObjectPatch::Apply(patch) => {
                !patch["metadata"]["resourceVersion"].is_null()
            }
            ObjectPatch::Json(patch) => {
                patch.iter().any(|step| step.path().as_str().starts_with("/metadata/resourceVersion"))
            }
        }
    }

    /// Reads the wishes of an apply.
    fn wishes(&self, wishes: Value) -> Result<ApiObject, ApiFailure> {
        let Value::Object(mut wishes) = wishes else {
            return Err(ApiFailure::bad_request("the body is no object"));
        };
        for member in ["kind", "apiVersion"] {
            if !wishes.contains_key(member) {
                let cause =
                    FailureCause::new("FieldValueRequired", member, "Required value: must not be empty");
                return Err(ApiFailure::invalid(self.kind(), self.name, vec![cause]));
            }
        }
        let managed = object::metadata(&wishes).and_then(|metadata| metadata.get("managedFields"));
        if managed.is_some_and(|rows| rows.as_array().is_none_or(|rows| !rows.is_empty())) {
            return Err(ApiFailure::bad_request("metadata.managedFields must be nil"));
        }
        object::metadata_mut(&mut wishes).entry("name").or_insert_with(|| self.name.into());
        let mut wishes = object_of(self.kind(), Value::Object(wishes))?;
        self.named(&mut wishes)?;
        Ok(wishes)
    }

    /// Returns the object after an apply.
    fn applied(
        &self,
        before: Option<&ApiObject>,
        mut wishes: ApiObject,
        repeated: &[String],
    ) -> Result<DraftedObject, ApiFailure> {
        if before.is_none() && self.options.is_status {
            return Err(self.not_found());
        }
        let is_conditional = match before {
            Some(before) => self.expects(before, &wishes)?,
            None if object::metadata_text(&wishes, "uid").is_empty() => false,
            None => {
                return Err(ApiFailure::conflict(
                    self.kind(),
                    self.name,
                    "uid mismatch: the object does not exist",
                ));
            }
        };
        self.scope(&mut wishes);
        let schema = self.kind().schema();
        let remarks = clean(&mut wishes, repeated, &self.options)?;
        let nothing = self.empty();
        let present = before.unwrap_or(&nothing);
        let rows = before.and_then(ManagedRows::read).unwrap_or_default();
        let writer = self.options.applier()?;
        let applied = apply(present, rows, &wishes, &writer, self.options.insists, schema, &now());
        let AppliedObject { mut object, rows } = applied?;
        keep_server_metadata(&mut object, before);
        // Defaults belong to nobody, and so are filled after the rows of writers are made.
        complete(self.kind(), &mut object);
        self.judged(present, &object)?;
        rows.write(&mut object);
        Ok(DraftedObject { object, remarks, is_conditional })
    }

    /// Returns the object that an apply creates, without content.
    fn empty(&self) -> ApiObject {
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), self.kind().api_version().into());
        object.insert("kind".to_owned(), self.kind().kind.into());
        let metadata = object::metadata_mut(&mut object);
        metadata.insert("name".to_owned(), self.name.into());
        if let Some(namespace) = &self.request.path.namespace {
            metadata.insert("namespace".to_owned(), namespace.clone().into());
        }
        object
    }

    /// Removes members that a write of this path does not touch.
    fn scope(&self, wishes: &mut ApiObject) {
        if self.options.is_status {
            wishes.retain(|name, _| matches!(&**name, "apiVersion" | "kind" | "metadata" | "status"));
            object::metadata_mut(wishes).retain(|name, _| matches!(&**name, "name" | "namespace"));
        } else if self.kind().has_status {
            wishes.remove("status");
        }
    }

    /// Checks that an object is the one of the path.
    fn named(&self, object: &mut ApiObject) -> Result<(), ApiFailure> {
        place(object, self.request.path.namespace.as_deref())?;
        if object::name(object).is_empty() && self.options.is_status {
            object::metadata_mut(object).insert("name".to_owned(), self.name.into());
        }
        if object::name(object) == self.name {
            return Ok(());
        }
        let (given, name) = (object::name(object), self.name);
        Err(ApiFailure::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )))
    }

    /// Returns whether the client expects a version, and checks it and the id.
    fn expects(&self, before: &ApiObject, object: &ApiObject) -> Result<bool, ApiFailure> {
        let uid = object::metadata_text(object, "uid");
        let known = object::metadata_text(before, "uid");
        if !uid.is_empty() && uid != known {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {known}");
            return Err(ApiFailure::conflict(self.kind(), self.name, &why));
        }
        let version = object::metadata_text(object, "resourceVersion");
        if !version.is_empty() && version != object::metadata_text(before, "resourceVersion") {
            return Err(ApiFailure::outdated(self.kind(), self.name));
        }
        Ok(!version.is_empty())
    }

    /// Completes the object of a plain write.
    fn finished(
        &self,
        before: &ApiObject,
        mut object: ApiObject,
        repeated: &[String],
        is_conditional: bool,
    ) -> Result<DraftedObject, ApiFailure> {
        let is_given =
            object::metadata(&object).is_some_and(|metadata| metadata.contains_key("managedFields"));
        let given = is_given.then(|| ManagedRows::read(&object)).flatten();
        let mut rows = given.or_else(|| ManagedRows::read(before)).unwrap_or_default();
        self.keep_other_half(before, &mut object);
        keep_server_metadata(&mut object, Some(before));
        let remarks = clean(&mut object, repeated, &self.options)?;
        complete(self.kind(), &mut object);
        self.judged(before, &object)?;
        if !is_same(before, &object) {
            rows.note_write(&self.options.writer(), before, &object, self.kind().schema(), &now());
        }
        rows.write(&mut object);
        Ok(DraftedObject { object, remarks, is_conditional })
    }

    /// Restores what a write of this path does not touch: the status, or everything else.
    fn keep_other_half(&self, before: &ApiObject, object: &mut ApiObject) {
        let status =
            if self.options.is_status { object.remove("status") } else { before.get("status").cloned() };
        if self.options.is_status {
            let rows = object::metadata_mut(object).remove("managedFields");
            *object = before.clone();
            if let Some(rows) = rows {
                object::metadata_mut(object).insert("managedFields".to_owned(), rows);
            }
        } else if !self.kind().has_status {
            return;
        }
        match status {
            Some(status) => drop(object.insert("status".to_owned(), status)),
            None => drop(object.remove("status")),
        }
    }

    fn judged(&self, before: &ApiObject, object: &ApiObject) -> Result<(), ApiFailure> {
        judge(self.kind(), object)?;
        judge_finalizers(self.kind(), before, object)
    }
}
