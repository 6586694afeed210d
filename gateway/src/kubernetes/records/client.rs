//! Calls of the registry about objects.

use proto::host::{
    CreateHostDocumentRequest, CreateHostRequest, CreateHostSecretRequest, DeleteHostDocumentRequest,
    DeleteHostRequest, DeleteHostSecretRequest, DocumentKind, DocumentName, GetHostDocumentRequest,
    GetHostRequest, GetHostSecretRequest, HostName, ListHostDocumentsRequest, ListHostSecretsRequest,
    ListHostsRequest, Precondition, Propagation, ReplaceHostDocumentRequest,
    ReplaceHostDocumentStatusRequest, ReplaceHostRequest, ReplaceHostSecretRequest, ReplaceHostStatusRequest,
    SecretName,
};
use tonic::{Response, Status};

use super::{
    super::{
        failure::{ApiFailure, FailureCause},
        kinds::{ObjectSource, ResourceKind},
        object::{self, ApiObject},
        store::{FollowedKind, VersionBase},
    },
    documents, hosts, meta,
    refusal::{WriteFailure, failed},
    secrets::{self, WrittenSecret},
};
use crate::{
    http::call::{DEADLINE, call},
    mesh::MeshHandle,
};

/// Client of the registry, for objects of every kind.
#[derive(Clone)]
pub(crate) struct RecordClient {
    mesh: MeshHandle,
}

/// Conditions of a write on the record as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct WritePrecondition {
    /// Expected revision; 0: any.
    pub revision: u64,
    /// Expected unique id; empty: any.
    pub uid: String,
}

/// Request to delete a record.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordDeletion {
    pub precondition: WritePrecondition,
    /// Treatment of the records that name this one as their owner.
    pub propagation: Propagation,
    /// Whether nothing is deleted.
    pub validate_only: bool,
}

/// Object whose deletion was requested.
#[derive(Debug)]
pub(crate) struct DeletedObject {
    pub object: ApiObject,
    /// Whether the object is gone already.
    pub is_gone: bool,
}

impl From<WritePrecondition> for Precondition {
    fn from(precondition: WritePrecondition) -> Self {
        Self { revision: precondition.revision, uid: precondition.uid }
    }
}

/// Kind, namespace and name of the object that a call is about.
struct ObjectPlace<'a> {
    kind: &'static ResourceKind,
    namespace: &'a str,
    name: &'a str,
}

impl ObjectPlace<'_> {
    fn host(&self) -> Option<HostName> {
        Some(HostName { namespace: self.namespace.to_owned(), name: self.name.to_owned() })
    }

    fn secret(&self) -> Option<SecretName> {
        Some(SecretName { namespace: self.namespace.to_owned(), name: self.name.to_owned() })
    }

    fn document(&self, kind: DocumentKind) -> Option<DocumentName> {
        let (namespace, name) = (self.namespace.to_owned(), self.name.to_owned());
        Some(DocumentName { kind: kind.into(), namespace, name })
    }

    /// Waits for the answer to a call about the object.
    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, WriteFailure> {
        let outcome = tokio::time::timeout(DEADLINE, call).await;
        let outcome = outcome.unwrap_or_else(|_| Err(Status::deadline_exceeded("")));
        outcome.map(Response::into_inner).map_err(|status| failed(self.kind, self.name, status))
    }
}

fn shown<M: FollowedKind>(record: Option<M>, base: VersionBase) -> Result<ApiObject, WriteFailure> {
    let record = record.ok_or_else(|| ApiFailure::internal("a service answered without the resource"))?;
    Ok(record.shown(base))
}

impl RecordClient {
    pub(crate) fn new(mesh: MeshHandle) -> Self {
        Self { mesh }
    }

    /// Returns the revision of the registry, up to which a copy has to be complete to be the newest.
    ///
    /// # Errors
    /// When the registry does not answer.
    pub(crate) async fn newest(&self, kind: &'static ResourceKind) -> Result<u64, ApiFailure> {
        let place = ObjectPlace { kind, namespace: "", name: "" };
        let newest = match kind.source {
            ObjectSource::Hosts => {
                let request = ListHostsRequest { page_size: 1, ..ListHostsRequest::default() };
                let mut client = self.mesh.hosts.clone();
                let answer = place.answer(client.list_hosts(call(request))).await;
                first(&place, answer, |page| page.revision).await
            }
            ObjectSource::Documents(_) => {
                let request =
                    ListHostDocumentsRequest { page_size: 1, ..ListHostDocumentsRequest::default() };
                let mut client = self.mesh.host_documents.clone();
                let answer = place.answer(client.list_host_documents(call(request))).await;
                first(&place, answer, |page| page.revision).await
            }
            ObjectSource::Secrets => {
                let request = ListHostSecretsRequest { page_size: 1, ..ListHostSecretsRequest::default() };
                let mut client = self.mesh.host_secrets.clone();
                let answer = place.answer(client.list_host_secrets(call(request))).await;
                first(&place, answer, |page| page.revision).await
            }
            ObjectSource::Events | ObjectSource::Nowhere | ObjectSource::Question => Ok(0),
        };
        newest.map_err(|failure| failure.refused(kind, ""))
    }

    /// Returns the newest object; `None`: there is none.
    ///
    /// # Errors
    /// When the registry does not answer.
    pub(crate) async fn get(
        &self,
        kind: &'static ResourceKind,
        namespace: &str,
        name: &str,
        base: VersionBase,
    ) -> Result<Option<ApiObject>, ApiFailure> {
        let place = ObjectPlace { kind, namespace, name };
        let found = match kind.source {
            ObjectSource::Hosts => {
                let request = call(GetHostRequest { name: place.host() });
                let answer = place.answer(self.mesh.hosts.clone().get_host(request)).await;
                answer.and_then(|answer| shown(answer.host, base))
            }
            ObjectSource::Documents(document) => {
                let request = call(GetHostDocumentRequest { name: place.document(document) });
                let answer = place.answer(self.mesh.host_documents.clone().get_host_document(request)).await;
                answer.and_then(|answer| shown(answer.host_document, base))
            }
            ObjectSource::Secrets => {
                let request = call(GetHostSecretRequest { name: place.secret() });
                let answer = place.answer(self.mesh.host_secrets.clone().get_host_secret(request)).await;
                answer.and_then(|answer| shown(answer.host_secret, base))
            }
            ObjectSource::Events | ObjectSource::Nowhere | ObjectSource::Question => return Ok(None),
        };
        match found {
            Ok(object) => Ok(Some(object)),
            Err(WriteFailure::Refused(failure)) if failure.reason == "NotFound" => Ok(None),
            Err(failure) => Err(failure.refused(kind, name)),
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// The refusal of the registry.
    pub(crate) async fn create(
        &self,
        kind: &'static ResourceKind,
        object: &ApiObject,
        validate_only: bool,
        base: VersionBase,
    ) -> Result<ApiObject, WriteFailure> {
        let place = ObjectPlace { kind, namespace: object::namespace(object), name: object::name(object) };
        match kind.source {
            ObjectSource::Hosts => {
                let request = CreateHostRequest { host: Some(hosts::read(object)), validate_only };
                let answer = place.answer(self.mesh.hosts.clone().create_host(call(request))).await?;
                shown(answer.host, base)
            }
            ObjectSource::Documents(document) => {
                let host_document = Some(documents::read(document, object));
                let request = CreateHostDocumentRequest { host_document, validate_only };
                let mut client = self.mesh.host_documents.clone();
                let answer = client.create_host_document(call(request));
                shown(place.answer(answer).await?.host_document, base)
            }
            ObjectSource::Secrets => {
                let WrittenSecret { secret, values, .. } = written(object)?;
                let request = CreateHostSecretRequest { host_secret: Some(secret), values, validate_only };
                let mut client = self.mesh.host_secrets.clone();
                let answer = client.create_host_secret(call(request));
                shown(place.answer(answer).await?.host_secret, base)
            }
            ObjectSource::Events | ObjectSource::Nowhere | ObjectSource::Question => {
                Err(ApiFailure::method_not_allowed(kind).into())
            }
        }
    }

    /// Replaces facts and wishes of an object; `before` is the object that the new one was made from.
    ///
    /// # Errors
    /// The refusal of the registry, or that the record has changed.
    pub(crate) async fn replace(
        &self,
        kind: &'static ResourceKind,
        before: &ApiObject,
        object: &ApiObject,
        precondition: WritePrecondition,
        validate_only: bool,
        base: VersionBase,
    ) -> Result<ApiObject, WriteFailure> {
        let place = ObjectPlace { kind, namespace: object::namespace(object), name: object::name(object) };
        let precondition = Some(precondition.into());
        match kind.source {
            ObjectSource::Hosts => {
                let request =
                    ReplaceHostRequest { host: Some(hosts::read(object)), precondition, validate_only };
                let answer = place.answer(self.mesh.hosts.clone().replace_host(call(request))).await?;
                shown(answer.host, base)
            }
            ObjectSource::Documents(document) => {
                let host_document = Some(documents::read(document, object));
                let request = ReplaceHostDocumentRequest { host_document, precondition, validate_only };
                let mut client = self.mesh.host_documents.clone();
                let answer = client.replace_host_document(call(request));
                shown(place.answer(answer).await?.host_document, base)
            }
            ObjectSource::Secrets => {
                let known = written(before)?.names;
                let WrittenSecret { secret, values, names } = written(object)?;
                let request = ReplaceHostSecretRequest {
                    host_secret: Some(secret),
                    removed_keys: known.iter().filter(|name| !names.contains(name)).cloned().collect(),
                    values: values
                        .into_iter()
                        .filter(|(name, value)| !value.is_empty() || !known.contains(name))
                        .collect(),
                    keep_other_values: true,
                    precondition,
                    validate_only,
                };
                let mut client = self.mesh.host_secrets.clone();
                let answer = client.replace_host_secret(call(request));
                shown(place.answer(answer).await?.host_secret, base)
            }
            ObjectSource::Events | ObjectSource::Nowhere | ObjectSource::Question => {
                Err(ApiFailure::method_not_allowed(kind).into())
            }
        }
    }

    /// Replaces the status and the managed fields of an object.
    ///
    /// # Errors
    /// The refusal of the registry, or that the record has changed.
    pub(crate) async fn replace_status(
        &self,
        kind: &'static ResourceKind,
        object: &ApiObject,
        precondition: WritePrecondition,
        validate_only: bool,
        base: VersionBase,
    ) -> Result<ApiObject, WriteFailure> {
        let place = ObjectPlace { kind, namespace: object::namespace(object), name: object::name(object) };
        let precondition = Some(precondition.into());
        let managed_fields_json = Some(meta::managed_fields(object));
        match kind.source {
            ObjectSource::Hosts => {
                let request = ReplaceHostStatusRequest {
                    name: place.host(),
                    status: Some(hosts::read_status(object)),
                    managed_fields_json,
                    precondition,
                    validate_only,
                };
                let answer = place.answer(self.mesh.hosts.clone().replace_host_status(call(request))).await?;
                shown(answer.host, base)
            }
            ObjectSource::Documents(document) => {
                let request = ReplaceHostDocumentStatusRequest {
                    name: place.document(document),
                    status_json: documents::status_json(object),
                    managed_fields_json,
                    precondition,
                    validate_only,
                };
                let mut client = self.mesh.host_documents.clone();
                let answer = client.replace_host_document_status(call(request));
                shown(place.answer(answer).await?.host_document, base)
            }
            ObjectSource::Secrets | ObjectSource::Events | ObjectSource::Nowhere | ObjectSource::Question => {
                Err(ApiFailure::method_not_allowed(kind).into())
            }
        }
    }

    /// Requests the deletion of an object.
    ///
    /// # Errors
    /// The refusal of the registry, or that the record has changed.
    pub(crate) async fn delete(
        &self,
        kind: &'static ResourceKind,
        namespace: &str,
        name: &str,
        deletion: RecordDeletion,
        base: VersionBase,
    ) -> Result<DeletedObject, WriteFailure> {
        let place = ObjectPlace { kind, namespace, name };
        let RecordDeletion { precondition, propagation, validate_only } = deletion;
        let (precondition, propagation) = (Some(precondition.into()), propagation.into());
        match kind.source {
            ObjectSource::Hosts => {
                let name = place.host();
                let request =
                    DeleteHostRequest { name, precondition, forced: false, validate_only, propagation };
                let answer = place.answer(self.mesh.hosts.clone().delete_host(call(request))).await?;
                Ok(DeletedObject { object: shown(answer.host, base)?, is_gone: answer.gone })
            }
            ObjectSource::Documents(document) => {
                let name = place.document(document);
                let request = DeleteHostDocumentRequest { name, precondition, validate_only, propagation };
                let mut client = self.mesh.host_documents.clone();
                let answer = client.delete_host_document(call(request));
                let answer = place.answer(answer).await?;
                Ok(DeletedObject { object: shown(answer.host_document, base)?, is_gone: answer.gone })
            }
            ObjectSource::Secrets => {
                let name = place.secret();
                let request = DeleteHostSecretRequest { name, precondition, validate_only, propagation };
                let mut client = self.mesh.host_secrets.clone();
                let answer = client.delete_host_secret(call(request));
                let answer = place.answer(answer).await?;
                Ok(DeletedObject { object: shown(answer.host_secret, base)?, is_gone: answer.gone })
            }
            ObjectSource::Events | ObjectSource::Nowhere | ObjectSource::Question => {
                Err(ApiFailure::method_not_allowed(kind).into())
            }
        }
    }
}

fn written(object: &ApiObject) -> Result<WrittenSecret, WriteFailure> {
    secrets::read(object).map_err(|field| {
        let cause = FailureCause::invalid(field, "illegal base64 data");
        ApiFailure::invalid(secrets::kind(), object::name(object), vec![cause]).into()
    })
}

/// Returns the revision of the first message of a list. A registry of an earlier version sends none for an empty list.
async fn first<M>(
    place: &ObjectPlace<'_>,
    answer: Result<tonic::Streaming<M>, WriteFailure>,
    revision: fn(&M) -> u64,
) -> Result<u64, WriteFailure> {
    let message = answer?.message().await;
    let message = message.map_err(|status| failed(place.kind, place.name, status))?;
    Ok(message.map_or(0, |message| revision(&message)))
}
