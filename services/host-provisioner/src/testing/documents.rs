//! Companions of hosts at a component registry, as far as the host provisioner uses them.

use chassis::{
    Context,
    kinds::host::{DocumentRecord, document_key},
    store::ledger::{Column, Ledger, Migrations, Responses, StoredRow, Table},
};
use proto::{
    Encoded,
    host::{self as wire, host_document_service_server::HostDocumentService},
};
use sea_orm_migration::{MigrationTrait, MigratorTrait};
use tonic::{Request, Response, Status, async_trait};

type Answer<M> = Result<Response<M>, Status>;

/// Companions of hosts. Clones share them.
#[derive(Clone)]
pub(crate) struct FakeDocuments(Ledger<DocumentTable>);

impl FakeDocuments {
    pub(crate) async fn open(context: &Context) -> Self {
        let file = context.settings.data_dir.join("documents.sqlite");
        let url = format!("sqlite://{}?mode=rwc", file.display());
        let database = chassis::store::database::connect::<DocumentMigrator>(&url).await.unwrap();
        Self(Ledger::open(context, database).await.unwrap())
    }

    pub(crate) async fn put(&self, document: wire::HostDocument) {
        let put = self.0.write(|draft| {
            draft.put(DocumentRecord::of(document));
            Ok(())
        });
        put.await.unwrap();
    }

    pub(crate) fn get(&self, kind: wire::DocumentKind, name: &str) -> Option<wire::HostDocument> {
        Some(self.0.view().get(&document_key(kind, "m", name))?.message())
    }

    fn named(&self, name: Option<wire::DocumentName>) -> Result<wire::HostDocument, Status> {
        let name = name.unwrap_or_default();
        let found = self.0.view().get(&document_key(name.kind(), &name.namespace, &name.name));
        Ok(found.ok_or_else(|| Status::not_found("no such document"))?.message())
    }
}

struct DocumentTable;

impl Table for DocumentTable {
    type Kind = DocumentRecord;
    type Pool = ();
    const NAME: &'static str = "documents";
    const COLUMNS: &'static [Column<DocumentRecord>] = &[Column::record()];

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<DocumentRecord> {
        row.record(pool)
    }
}

struct DocumentMigrator;

impl MigratorTrait for DocumentMigrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default().kind::<DocumentTable>().into_vec()
    }
}

#[async_trait]
impl HostDocumentService for FakeDocuments {
    type ListHostDocumentsStream = Responses<wire::ListHostDocumentsResponse>;

    async fn list_host_documents(
        &self,
        _: Request<wire::ListHostDocumentsRequest>,
    ) -> Answer<Self::ListHostDocumentsStream> {
        Err(unused())
    }

    async fn get_host_document(
        &self,
        request: Request<wire::GetHostDocumentRequest>,
    ) -> Answer<wire::GetHostDocumentResponse> {
        let host_document = Some(self.named(request.into_inner().name)?);
        Ok(Response::new(wire::GetHostDocumentResponse { host_document }))
    }

    type WatchHostDocumentsStream = Responses<Encoded<wire::WatchHostDocumentsResponse>>;

    async fn watch_host_documents(
        &self,
        request: Request<wire::WatchHostDocumentsRequest>,
    ) -> Answer<Self::WatchHostDocumentsStream> {
        let kind = request.get_ref().kind();
        self.0.serve_watch_of(request, move |record| record.message().kind() == kind).await
    }

    async fn create_host_document(
        &self,
        request: Request<wire::CreateHostDocumentRequest>,
    ) -> Answer<wire::CreateHostDocumentResponse> {
        let host_document = request.into_inner().host_document;
        self.put(host_document.clone().unwrap()).await;
        Ok(Response::new(wire::CreateHostDocumentResponse { host_document }))
    }

    async fn replace_host_document(
        &self,
        _: Request<wire::ReplaceHostDocumentRequest>,
    ) -> Answer<wire::ReplaceHostDocumentResponse> {
        Err(unused())
    }

    async fn replace_host_document_status(
        &self,
        request: Request<wire::ReplaceHostDocumentStatusRequest>,
    ) -> Answer<wire::ReplaceHostDocumentStatusResponse> {
        let request = request.into_inner();
        let mut document = self.named(request.name)?;
        if request.precondition.unwrap_or_default().revision != document.revision {
            return Err(Status::aborted("the document has changed"));
        }
        document.status_json = request.status_json;
        self.put(document.clone()).await;
        let host_document = Some(document);
        Ok(Response::new(wire::ReplaceHostDocumentStatusResponse { host_document }))
    }

    async fn delete_host_document(
        &self,
        _: Request<wire::DeleteHostDocumentRequest>,
    ) -> Answer<wire::DeleteHostDocumentResponse> {
        Err(unused())
    }
}

fn unused() -> Status {
    Status::unimplemented("the host provisioner does not need it")
}
