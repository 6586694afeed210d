//! Companions of hosts, and namespaces, over gRPC.

use chassis::{
    Fault,
    kinds::host::{DocumentRecord, OpenDocument, document_key, document_word},
    process::clock,
    store::{ledger::Responses, resource::Resource},
};
use domain::core::{invalid::Invalid, time::Timestamp};
use proto::{
    Encoded,
    host::{
        CreateHostDocumentRequest, CreateHostDocumentResponse, DeleteHostDocumentRequest,
        DeleteHostDocumentResponse, DocumentKind, DocumentName, GetHostDocumentRequest,
        GetHostDocumentResponse, HostDocument, ListHostDocumentsRequest, ListHostDocumentsResponse,
        Precondition, ReplaceHostDocumentRequest, ReplaceHostDocumentResponse,
        ReplaceHostDocumentStatusRequest, ReplaceHostDocumentStatusResponse, WatchHostDocumentsRequest,
        WatchHostDocumentsResponse, host_document_service_server::HostDocumentService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use super::{
    ledgers::{self, HostLedgers, ObjectWrite},
    object::{self, DeletionRequest, ObjectChange, ObjectRecord as _},
    records::missing,
};

/// Documents in one message of a list.
const PAGE: usize = 50;

#[async_trait]
impl HostDocumentService for HostLedgers {
    type ListHostDocumentsStream = Responses<ListHostDocumentsResponse>;

    async fn list_host_documents(
        &self,
        request: Request<ListHostDocumentsRequest>,
    ) -> Result<Response<Self::ListHostDocumentsStream>, Status> {
        let request = request.into_inner();
        self.documents.fresh().await?;
        let revision = self.documents.view().revision();
        let kind = request.kind();
        let after = request.start_after.as_ref().map_or_else(String::new, key_of);
        let wanted = move |record: &DocumentRecord| is_of(record, kind);
        let selection = ledgers::selection(request.filter, after, request.page_size, wanted);
        Ok(self.documents.serve_list(selection, PAGE, move |found| ListHostDocumentsResponse {
            host_documents: found.iter().map(|record| record.message()).collect(),
            revision,
        }))
    }

    async fn get_host_document(
        &self,
        request: Request<GetHostDocumentRequest>,
    ) -> Result<Response<GetHostDocumentResponse>, Status> {
        let key = named(request.into_inner().name)?;
        let document = ledgers::read(&self.documents, &key).await?.message();
        Ok(Response::new(GetHostDocumentResponse { host_document: Some(document) }))
    }

    type WatchHostDocumentsStream = Responses<Encoded<WatchHostDocumentsResponse>>;

    async fn watch_host_documents(
        &self,
        request: Request<WatchHostDocumentsRequest>,
    ) -> Result<Response<Self::WatchHostDocumentsStream>, Status> {
        let kind = request.get_ref().kind();
        let filter = request.get_ref().filter.clone();
        if kind == DocumentKind::Unspecified && filter.is_none() {
            return self.documents.serve_watch(request).await;
        }
        let filter = filter.unwrap_or_default();
        let wanted = move |record: &DocumentRecord| is_of(record, kind) && object::passes(record, &filter);
        self.documents.serve_watch_of(request, wanted).await
    }

    async fn create_host_document(
        &self,
        request: Request<CreateHostDocumentRequest>,
    ) -> Result<Response<CreateHostDocumentResponse>, Status> {
        let CreateHostDocumentRequest { host_document, validate_only } = request.into_inner();
        let record = OpenDocument::of(host_document.ok_or_else(|| missing("host_document"))?);
        self.check_namespace(&record.meta().namespace)?;
        let write = ObjectWrite::of(record.key().to_owned(), validate_only);
        let create = move |current: Option<&OpenDocument>| create(current, record, clock::now());
        let (record, _) = ledgers::write(&self.documents, write, create).await?;
        Ok(Response::new(CreateHostDocumentResponse { host_document: Some(record.message) }))
    }

    async fn replace_host_document(
        &self,
        request: Request<ReplaceHostDocumentRequest>,
    ) -> Result<Response<ReplaceHostDocumentResponse>, Status> {
        let ReplaceHostDocumentRequest { host_document, precondition, validate_only } = request.into_inner();
        let record = OpenDocument::of(host_document.ok_or_else(|| missing("host_document"))?);
        let write = ObjectWrite::of(record.key().to_owned(), validate_only);
        let precondition = precondition.unwrap_or_default();
        let replace = move |current: Option<&OpenDocument>| replace(current, record, &precondition);
        let (record, _) = ledgers::write(&self.documents, write, replace).await?;
        Ok(Response::new(ReplaceHostDocumentResponse { host_document: Some(record.message) }))
    }

    async fn replace_host_document_status(
        &self,
        request: Request<ReplaceHostDocumentStatusRequest>,
    ) -> Result<Response<ReplaceHostDocumentStatusResponse>, Status> {
        let request = request.into_inner();
        let key = named(request.name.clone())?;
        let write = ObjectWrite::of(key.clone(), request.validate_only);
        let replace = move |current: Option<&OpenDocument>| replace_status(&key, current, request);
        let (record, _) = ledgers::write(&self.documents, write, replace).await?;
        Ok(Response::new(ReplaceHostDocumentStatusResponse { host_document: Some(record.message) }))
    }

    async fn delete_host_document(
        &self,
        request: Request<DeleteHostDocumentRequest>,
    ) -> Result<Response<DeleteHostDocumentResponse>, Status> {
        let request = request.into_inner();
        let deletion = DeletionRequest::of(request.precondition.clone(), request.propagation());
        let write = ObjectWrite::of(named(request.name)?, request.validate_only);
        let (record, gone) = self.delete_document(write, deletion).await?;
        Ok(Response::new(DeleteHostDocumentResponse { host_document: Some(record.message), gone }))
    }
}

impl HostLedgers {
    /// Requests the deletion of a document; returns the document and whether it is gone.
    pub(super) async fn delete_document(
        &self,
        write: ObjectWrite,
        request: DeletionRequest,
    ) -> Result<(OpenDocument, bool), Fault> {
        let key = write.key.clone();
        let delete = move |current: Option<&OpenDocument>| {
            let record = object::delete(&key, current, &request, clock::now())?;
            Ok(object::settle(current, record))
        };
        ledgers::write(&self.documents, write, delete).await
    }
}

/// Makes a document.
fn create(
    current: Option<&OpenDocument>,
    record: OpenDocument,
    now: Timestamp,
) -> Result<ObjectChange<OpenDocument>, Fault> {
    check(&record.message)?;
    Ok(ObjectChange::Stored(object::create(current, record, now)?))
}

/// Replaces facts and wishes of a document.
fn replace(
    current: Option<&OpenDocument>,
    mut record: OpenDocument,
    precondition: &Precondition,
) -> Result<ObjectChange<OpenDocument>, Fault> {
    check(&record.message)?;
    let key = record.key().to_owned();
    let known = object::expected(&key, current, precondition)?;
    record.message.status_json.clone_from(&known.message.status_json);
    let record = object::replace(&key, current, record, precondition)?;
    Ok(object::settle(current, record))
}

fn replace_status(
    key: &str,
    current: Option<&OpenDocument>,
    request: ReplaceHostDocumentStatusRequest,
) -> Result<ObjectChange<OpenDocument>, Fault> {
    let precondition = request.precondition.unwrap_or_default();
    let mut record = object::expected(key, current, &precondition)?.clone();
    check_json("status_json", &request.status_json)?;
    record.message.status_json = request.status_json;
    if let Some(managed) = request.managed_fields_json {
        record.meta_mut().managed_fields_json = managed;
    }
    Ok(object::settle(current, record))
}

fn check(document: &HostDocument) -> Result<(), Fault> {
    if document.kind() == DocumentKind::Unspecified {
        return Err(missing("kind"));
    }
    let namespace = document.meta.as_ref().map_or("", |meta| &meta.namespace);
    if document.kind() != DocumentKind::Namespace {
        object::check_name("metadata.namespace", namespace)?;
    } else if !namespace.is_empty() {
        return Err(Invalid::new("metadata.namespace", "has to be empty for a namespace").into());
    }
    check_json("spec_json", &document.spec_json)?;
    check_json("status_json", &document.status_json)
}

fn check_json(field: &str, text: &str) -> Result<(), Fault> {
    let read = |text| serde_json::from_str::<serde_json::Value>(text);
    match read(text) {
        Err(error) if !text.is_empty() => Err(Invalid::new(field, format!("is no JSON: {error}")).into()),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn is_of(record: &DocumentRecord, kind: DocumentKind) -> bool {
    let rest = record.key().strip_prefix(document_word(kind));
    kind == DocumentKind::Unspecified || rest.is_some_and(|rest| rest.starts_with('/'))
}

fn key_of(name: &DocumentName) -> String {
    document_key(name.kind(), &name.namespace, &name.name)
}

fn named(name: Option<DocumentName>) -> Result<String, Fault> {
    Ok(key_of(&name.ok_or_else(|| missing("name"))?))
}
