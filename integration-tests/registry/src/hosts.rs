//! Hosts of the registry, changed as people and the status evaluator change them.

use chassis::Channel;
use proto::host::{
    CreateHostDocumentRequest, CreateHostRequest, CreateHostSecretRequest, DeleteHostRequest, DocumentKind,
    DocumentName, GetHostDocumentRequest, GetHostRequest, Host, HostDecision, HostDocument, HostName,
    HostProgress, HostSecret, HostStatus, ObjectMeta, ReplaceHostDocumentRequest, ReportHostDecisionsRequest,
    host_document_service_client::HostDocumentServiceClient,
    host_report_service_client::HostReportServiceClient, host_secret_service_client::HostSecretServiceClient,
    host_service_client::HostServiceClient,
};

use crate::TestRegistry;

/// Namespace of all hosts and secrets.
const NAMESPACE: &str = "m";

impl TestRegistry {
    /// Stores a secret as a person does.
    ///
    /// # Panics
    /// When the call fails.
    pub async fn create_secret(&self, name: &str, values: &[(&str, &str)]) {
        let meta = ObjectMeta { namespace: NAMESPACE.into(), name: name.into(), ..ObjectMeta::default() };
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        let host_secret = Some(HostSecret { meta: Some(meta), ..HostSecret::default() });
        let request = CreateHostSecretRequest {
            host_secret,
            values: values.collect(),
            ..CreateHostSecretRequest::default()
        };
        HostSecretServiceClient::new(self.channel()).create_host_secret(request).await.expect("a secret");
    }

    /// Stores a host as a person does.
    ///
    /// # Panics
    /// When the call fails.
    pub async fn create_host(&self, host: Host) {
        let request = CreateHostRequest { host: Some(host), ..CreateHostRequest::default() };
        self.hosts().create_host(request).await.expect("a host");
    }

    /// Requests the deletion of a host as a person does. Without a finalizer it is gone at once.
    ///
    /// # Panics
    /// When the call fails.
    pub async fn delete_host(&self, name: &str) {
        let request = DeleteHostRequest { name: Some(host_name(name)), ..DeleteHostRequest::default() };
        self.hosts().delete_host(request).await.expect("a deletion");
    }

    /// Returns a host; `None`: there is none with this name.
    pub async fn host(&self, name: &str) -> Option<Host> {
        let request = GetHostRequest { name: Some(host_name(name)) };
        self.hosts().get_host(request).await.ok()?.into_inner().host
    }

    /// Reports a decision about a host as the status evaluator does.
    ///
    /// # Panics
    /// When there is no such host, or another change came first.
    pub async fn decide_host(&self, name: &str, status: Option<HostStatus>, progress: Option<HostProgress>) {
        let host = self.host(name).await.expect("a host");
        let decision = HostDecision {
            name: Some(host_name(name)),
            revision: host.revision,
            status,
            progress,
            ..HostDecision::default()
        };
        let request = ReportHostDecisionsRequest { decisions: vec![decision] };
        let mut reports = HostReportServiceClient::new(self.channel());
        let answer = reports.report_host_decisions(request).await.expect("a report").into_inner();
        assert!(answer.stale_names.is_empty(), "{answer:?}");
    }

    /// Stores a companion of hosts with these wishes as a person does, or changes its wishes.
    ///
    /// # Panics
    /// When the call fails.
    pub async fn put_document(&self, kind: DocumentKind, name: &str, spec_json: &str) {
        let spec_json = spec_json.to_owned();
        if let Some(document) = self.document(kind, name).await {
            let host_document = Some(HostDocument { spec_json, ..document });
            let request = ReplaceHostDocumentRequest { host_document, ..Default::default() };
            self.documents().replace_host_document(request).await.expect("changed wishes");
        } else {
            let meta = ObjectMeta { namespace: NAMESPACE.into(), name: name.into(), ..ObjectMeta::default() };
            let document =
                HostDocument { kind: kind.into(), meta: Some(meta), spec_json, ..HostDocument::default() };
            let request = CreateHostDocumentRequest { host_document: Some(document), ..Default::default() };
            self.documents().create_host_document(request).await.expect("a document");
        }
    }

    /// Returns a companion of hosts; `None`: there is none with this name.
    pub async fn document(&self, kind: DocumentKind, name: &str) -> Option<HostDocument> {
        let name = DocumentName { kind: kind.into(), namespace: NAMESPACE.into(), name: name.into() };
        let request = GetHostDocumentRequest { name: Some(name) };
        self.documents().get_host_document(request).await.ok()?.into_inner().host_document
    }

    fn documents(&self) -> HostDocumentServiceClient<Channel> {
        HostDocumentServiceClient::new(self.channel())
    }

    fn hosts(&self) -> HostServiceClient<Channel> {
        HostServiceClient::new(self.channel())
    }
}

fn host_name(name: &str) -> HostName {
    HostName { namespace: NAMESPACE.into(), name: name.into() }
}
