//! A component registry that keeps hosts, their companions and secrets in memory. Its one rule: no image of a host
//! is at `http://refused`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use chassis::{Context, Server};
use futures_util::{StreamExt, stream, stream::BoxStream};
use proto::{
    Encoded,
    event::{
        Event, EventBody, ListEventsRequest, ListEventsResponse, WatchEventsRequest, WatchEventsResponse,
        event_service_server::{EventService, EventServiceServer},
    },
    host::{
        host_document_service_server::{HostDocumentService, HostDocumentServiceServer},
        host_secret_service_server::{HostSecretService, HostSecretServiceServer},
        host_service_server::{HostService, HostServiceServer},
        *,
    },
};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, async_trait};
use tonic_types::{ErrorDetails, StatusExt};

use super::ledger::{FakeLedger, FakeRecord, document_key};

/// Values of a secret by name.
type SecretValues = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Default)]
pub(crate) struct HostRegistry {
    pub hosts: FakeLedger<Host>,
    pub documents: FakeLedger<HostDocument>,
    pub secrets: FakeLedger<HostSecret>,
    /// Values of secrets by key.
    pub values: Arc<Mutex<BTreeMap<String, SecretValues>>>,
    /// Treatments of dependents that deletions of hosts asked for.
    pub propagations: Arc<Mutex<Vec<Propagation>>>,
}

impl HostRegistry {
    pub(crate) async fn serve(self, context: &Context, listener: TcpListener) {
        let mut server = Server::default();
        server.add(HostServiceServer::new(self.clone()));
        server.add(HostDocumentServiceServer::new(self.clone()));
        server.add(HostSecretServiceServer::new(self.clone()));
        server.add(EventServiceServer::new(self));
        chassis::serve(context, "registry", listener, server).await.unwrap().now();
    }
}

fn key(name: Option<HostName>) -> String {
    let HostName { namespace, name } = name.unwrap_or_default();
    format!("{namespace}/{name}")
}

fn judge(host: &Host) -> Result<(), Status> {
    let image = host.spec.as_ref().and_then(|spec| spec.image.as_ref());
    if image.is_none_or(|image| image.url != "http://refused") {
        return Ok(());
    }
    let mut details = ErrorDetails::with_error_info("INVALID", "reveille", std::collections::HashMap::new());
    details.add_bad_request_violation("spec.image.url", "is refused");
    details.add_bad_request_violation("spec.image.checksum", "is missing");
    Err(Status::with_error_details(tonic::Code::InvalidArgument, "spec.image.url: is refused", details))
}

fn unused<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not part of this test"))
}

type Pages<M> = BoxStream<'static, Result<M, Status>>;

#[async_trait]
impl HostService for HostRegistry {
    type ListHostsStream = Pages<ListHostsResponse>;
    type WatchHostsStream = Pages<Encoded<WatchHostsResponse>>;

    async fn list_hosts(
        &self,
        _: Request<ListHostsRequest>,
    ) -> Result<Response<Self::ListHostsStream>, Status> {
        let (hosts, revision) = self.hosts.all();
        Ok(Response::new(stream::iter([Ok(ListHostsResponse { hosts, revision })]).boxed()))
    }

    async fn get_host(&self, request: Request<GetHostRequest>) -> Result<Response<GetHostResponse>, Status> {
        let host = self.hosts.get(&key(request.into_inner().name))?;
        Ok(Response::new(GetHostResponse { host: Some(host) }))
    }

    async fn watch_hosts(
        &self,
        request: Request<WatchHostsRequest>,
    ) -> Result<Response<Self::WatchHostsStream>, Status> {
        Ok(Response::new(self.hosts.watch(request.into_inner().resume_revision)))
    }

    async fn create_host(
        &self,
        request: Request<CreateHostRequest>,
    ) -> Result<Response<CreateHostResponse>, Status> {
        let CreateHostRequest { host, validate_only } = request.into_inner();
        let host = host.unwrap_or_default();
        judge(&host)?;
        Ok(Response::new(CreateHostResponse { host: Some(self.hosts.create(host, validate_only)?) }))
    }

    async fn replace_host(
        &self,
        request: Request<ReplaceHostRequest>,
    ) -> Result<Response<ReplaceHostResponse>, Status> {
        let ReplaceHostRequest { host, precondition, validate_only } = request.into_inner();
        let host = host.unwrap_or_default();
        judge(&host)?;
        let stored = self.hosts.change(&host.key(), precondition, validate_only, |present| {
            let deleted_at = present.meta().deleted_at;
            present.meta = host.meta.clone();
            present.meta().deleted_at = deleted_at;
            present.spec = host.spec.clone();
        })?;
        Ok(Response::new(ReplaceHostResponse { host: Some(stored) }))
    }

    async fn replace_host_status(
        &self,
        request: Request<ReplaceHostStatusRequest>,
    ) -> Result<Response<ReplaceHostStatusResponse>, Status> {
        let ReplaceHostStatusRequest { name, status, managed_fields_json, precondition, validate_only } =
            request.into_inner();
        let stored = self.hosts.change(&key(name), precondition, validate_only, |present| {
            present.status = status;
            if let Some(rows) = managed_fields_json {
                present.meta().managed_fields_json = rows;
            }
        })?;
        Ok(Response::new(ReplaceHostStatusResponse { host: Some(stored) }))
    }

    async fn delete_host(
        &self,
        request: Request<DeleteHostRequest>,
    ) -> Result<Response<DeleteHostResponse>, Status> {
        self.propagations.lock().unwrap().push(request.get_ref().propagation());
        let DeleteHostRequest { name, precondition, validate_only, .. } = request.into_inner();
        let (host, gone) = self.hosts.delete(&key(name), precondition, validate_only)?;
        Ok(Response::new(DeleteHostResponse { host: Some(host), gone }))
    }

    async fn set_host_power(
        &self,
        _: Request<SetHostPowerRequest>,
    ) -> Result<Response<SetHostPowerResponse>, Status> {
        unused()
    }

    async fn reboot_host(
        &self,
        _: Request<RebootHostRequest>,
    ) -> Result<Response<RebootHostResponse>, Status> {
        unused()
    }

    async fn inspect_host(
        &self,
        _: Request<InspectHostRequest>,
    ) -> Result<Response<InspectHostResponse>, Status> {
        unused()
    }

    async fn detach_host(
        &self,
        _: Request<DetachHostRequest>,
    ) -> Result<Response<DetachHostResponse>, Status> {
        unused()
    }

    async fn attach_host(
        &self,
        _: Request<AttachHostRequest>,
    ) -> Result<Response<AttachHostResponse>, Status> {
        unused()
    }

    async fn retry_host(&self, _: Request<RetryHostRequest>) -> Result<Response<RetryHostResponse>, Status> {
        unused()
    }

    async fn change_host_bmc(
        &self,
        _: Request<ChangeHostBmcRequest>,
    ) -> Result<Response<ChangeHostBmcResponse>, Status> {
        unused()
    }

    async fn abort_host(&self, _: Request<AbortHostRequest>) -> Result<Response<AbortHostResponse>, Status> {
        unused()
    }
}

fn place(name: Option<DocumentName>) -> String {
    let DocumentName { kind, namespace, name } = name.unwrap_or_default();
    document_key(kind, &namespace, &name)
}

#[async_trait]
impl HostDocumentService for HostRegistry {
    type ListHostDocumentsStream = Pages<ListHostDocumentsResponse>;
    type WatchHostDocumentsStream = Pages<Encoded<WatchHostDocumentsResponse>>;

    async fn list_host_documents(
        &self,
        _: Request<ListHostDocumentsRequest>,
    ) -> Result<Response<Self::ListHostDocumentsStream>, Status> {
        let (host_documents, revision) = self.documents.all();
        Ok(Response::new(stream::iter([Ok(ListHostDocumentsResponse { host_documents, revision })]).boxed()))
    }

    async fn get_host_document(
        &self,
        request: Request<GetHostDocumentRequest>,
    ) -> Result<Response<GetHostDocumentResponse>, Status> {
        let document = self.documents.get(&place(request.into_inner().name))?;
        Ok(Response::new(GetHostDocumentResponse { host_document: Some(document) }))
    }

    async fn watch_host_documents(
        &self,
        request: Request<WatchHostDocumentsRequest>,
    ) -> Result<Response<Self::WatchHostDocumentsStream>, Status> {
        Ok(Response::new(self.documents.watch(request.into_inner().resume_revision)))
    }

    async fn create_host_document(
        &self,
        request: Request<CreateHostDocumentRequest>,
    ) -> Result<Response<CreateHostDocumentResponse>, Status> {
        let CreateHostDocumentRequest { host_document, validate_only } = request.into_inner();
        let stored = self.documents.create(host_document.unwrap_or_default(), validate_only)?;
        Ok(Response::new(CreateHostDocumentResponse { host_document: Some(stored) }))
    }

    async fn replace_host_document(
        &self,
        request: Request<ReplaceHostDocumentRequest>,
    ) -> Result<Response<ReplaceHostDocumentResponse>, Status> {
        let ReplaceHostDocumentRequest { host_document, precondition, validate_only } = request.into_inner();
        let document = host_document.unwrap_or_default();
        let stored = self.documents.change(&document.key(), precondition, validate_only, |present| {
            let deleted_at = present.meta().deleted_at;
            present.meta = document.meta.clone();
            present.meta().deleted_at = deleted_at;
            present.spec_json = document.spec_json.clone();
        })?;
        Ok(Response::new(ReplaceHostDocumentResponse { host_document: Some(stored) }))
    }

    async fn replace_host_document_status(
        &self,
        request: Request<ReplaceHostDocumentStatusRequest>,
    ) -> Result<Response<ReplaceHostDocumentStatusResponse>, Status> {
        let request = request.into_inner();
        let key = place(request.name);
        let stored = self.documents.change(&key, request.precondition, request.validate_only, |present| {
            present.status_json = request.status_json;
        })?;
        Ok(Response::new(ReplaceHostDocumentStatusResponse { host_document: Some(stored) }))
    }

    async fn delete_host_document(
        &self,
        request: Request<DeleteHostDocumentRequest>,
    ) -> Result<Response<DeleteHostDocumentResponse>, Status> {
        let DeleteHostDocumentRequest { name, precondition, validate_only, .. } = request.into_inner();
        let (document, gone) = self.documents.delete(&place(name), precondition, validate_only)?;
        Ok(Response::new(DeleteHostDocumentResponse { host_document: Some(document), gone }))
    }
}

fn secret_key(name: Option<SecretName>) -> String {
    let SecretName { namespace, name } = name.unwrap_or_default();
    format!("{namespace}/{name}")
}

#[async_trait]
impl HostSecretService for HostRegistry {
    type ListHostSecretsStream = Pages<ListHostSecretsResponse>;
    type WatchHostSecretsStream = Pages<Encoded<WatchHostSecretsResponse>>;

    async fn list_host_secrets(
        &self,
        _: Request<ListHostSecretsRequest>,
    ) -> Result<Response<Self::ListHostSecretsStream>, Status> {
        let (host_secrets, revision) = self.secrets.all();
        Ok(Response::new(stream::iter([Ok(ListHostSecretsResponse { host_secrets, revision })]).boxed()))
    }

    async fn get_host_secret(
        &self,
        request: Request<GetHostSecretRequest>,
    ) -> Result<Response<GetHostSecretResponse>, Status> {
        let secret = self.secrets.get(&secret_key(request.into_inner().name))?;
        Ok(Response::new(GetHostSecretResponse { host_secret: Some(secret) }))
    }

    async fn watch_host_secrets(
        &self,
        request: Request<WatchHostSecretsRequest>,
    ) -> Result<Response<Self::WatchHostSecretsStream>, Status> {
        Ok(Response::new(self.secrets.watch(request.into_inner().resume_revision)))
    }

    async fn create_host_secret(
        &self,
        request: Request<CreateHostSecretRequest>,
    ) -> Result<Response<CreateHostSecretResponse>, Status> {
        let CreateHostSecretRequest { host_secret, values, validate_only } = request.into_inner();
        let mut secret = host_secret.unwrap_or_default();
        secret.data_keys = values.keys().cloned().collect();
        let stored = self.secrets.create(secret, validate_only)?;
        if !validate_only {
            self.values.lock().unwrap().insert(stored.key(), values.into_iter().collect());
        }
        Ok(Response::new(CreateHostSecretResponse { host_secret: Some(stored) }))
    }

    async fn replace_host_secret(
        &self,
        request: Request<ReplaceHostSecretRequest>,
    ) -> Result<Response<ReplaceHostSecretResponse>, Status> {
        let request = request.into_inner();
        assert!(request.keep_other_values, "values that are not shown are kept");
        let secret = request.host_secret.unwrap_or_default();
        let mut values = self.values.lock().unwrap().get(&secret.key()).cloned().unwrap_or_default();
        values.retain(|name, _| !request.removed_keys.contains(name));
        values.extend(request.values);
        let stored =
            self.secrets.change(&secret.key(), request.precondition, request.validate_only, |present| {
                present.meta = secret.meta.clone();
                present.r#type = secret.r#type.clone();
                present.data_keys = values.keys().cloned().collect();
            })?;
        self.values.lock().unwrap().insert(secret.key(), values);
        Ok(Response::new(ReplaceHostSecretResponse { host_secret: Some(stored) }))
    }

    async fn delete_host_secret(
        &self,
        request: Request<DeleteHostSecretRequest>,
    ) -> Result<Response<DeleteHostSecretResponse>, Status> {
        let DeleteHostSecretRequest { name, precondition, validate_only, .. } = request.into_inner();
        let (secret, gone) = self.secrets.delete(&secret_key(name), precondition, validate_only)?;
        Ok(Response::new(DeleteHostSecretResponse { host_secret: Some(secret), gone }))
    }

    async fn read_secret_values(
        &self,
        _: Request<ReadSecretValuesRequest>,
    ) -> Result<Response<ReadSecretValuesResponse>, Status> {
        unused()
    }
}

/// Every host that was ever created has one event.
#[async_trait]
impl EventService for HostRegistry {
    type WatchEventsStream = Pages<WatchEventsResponse>;

    async fn list_events(
        &self,
        request: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        let keys = request.into_inner().filter.unwrap_or_default().keys;
        let (hosts, revision) = self.hosts.all();
        let hosts = hosts.into_iter().filter(|host| keys.is_empty() || keys.contains(&host.key()));
        let events = hosts.map(|host| Event {
            key: host.key(),
            resource: "host".to_owned(),
            revision: host.revision,
            time: host.meta.clone().unwrap_or_default().created_at,
            actor: "client".to_owned(),
            request_id: String::new(),
            body: Some(EventBody { kind: "host_created".to_owned(), ..EventBody::default() }),
            index: 0,
        });
        let events = events.collect();
        Ok(Response::new(ListEventsResponse { events, revision, ..ListEventsResponse::default() }))
    }

    async fn watch_events(
        &self,
        _: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        Ok(Response::new(stream::pending().boxed()))
    }
}
