//! Hosts over gRPC.

use chassis::{
    Fault,
    kinds::host::{HostRecord, OpenHost, key},
    process::clock,
    store::{ledger::Responses, resource::Resource},
};
use domain::core::invalid::Invalid;
use proto::{
    Encoded,
    host::{
        AbortHostRequest, AbortHostResponse, AttachHostRequest, AttachHostResponse, ChangeHostBmcRequest,
        ChangeHostBmcResponse, CreateHostRequest, CreateHostResponse, DeleteHostRequest, DeleteHostResponse,
        DetachHostRequest, DetachHostResponse, GetHostRequest, GetHostResponse, Host, HostName,
        InspectHostRequest, InspectHostResponse, ListHostsRequest, ListHostsResponse, RebootHostRequest,
        RebootHostResponse, ReplaceHostRequest, ReplaceHostResponse, ReplaceHostStatusRequest,
        ReplaceHostStatusResponse, RetryHostRequest, RetryHostResponse, SetHostPowerRequest,
        SetHostPowerResponse, WatchHostsRequest, WatchHostsResponse, host_service_server::HostService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use super::{
    edit::{self, HostCall},
    ledgers::{self, HostLedgers, ObjectWrite, OtherRecords},
    object::{self, DeletionRequest, ObjectRecord as _},
};

/// Hosts in one message of a list.
const PAGE: usize = 100;

#[async_trait]
impl HostService for HostLedgers {
    type ListHostsStream = Responses<ListHostsResponse>;

    async fn list_hosts(
        &self,
        request: Request<ListHostsRequest>,
    ) -> Result<Response<Self::ListHostsStream>, Status> {
        let ListHostsRequest { filter, start_after, page_size } = request.into_inner();
        self.hosts.fresh().await?;
        let revision = self.hosts.view().revision();
        let after = start_after.map_or_else(String::new, |name| key_of(&name));
        let selection = ledgers::selection(filter, after, page_size, |_: &HostRecord| true);
        Ok(self.hosts.serve_list(selection, PAGE, move |found| ListHostsResponse {
            hosts: found.iter().map(|record| record.message()).collect(),
            revision,
        }))
    }

    async fn get_host(&self, request: Request<GetHostRequest>) -> Result<Response<GetHostResponse>, Status> {
        let key = named(request.into_inner().name)?;
        let host = ledgers::read(&self.hosts, &key).await?.message();
        Ok(Response::new(GetHostResponse { host: Some(host) }))
    }

    type WatchHostsStream = Responses<Encoded<WatchHostsResponse>>;

    async fn watch_hosts(
        &self,
        request: Request<WatchHostsRequest>,
    ) -> Result<Response<Self::WatchHostsStream>, Status> {
        match request.get_ref().filter.clone() {
            None => self.hosts.serve_watch(request).await,
            Some(filter) => {
                let wanted = move |record: &HostRecord| object::passes(record, &filter);
                self.hosts.serve_watch_of(request, wanted).await
            }
        }
    }

    async fn create_host(
        &self,
        request: Request<CreateHostRequest>,
    ) -> Result<Response<CreateHostResponse>, Status> {
        let CreateHostRequest { host, validate_only } = request.into_inner();
        let host = host.ok_or_else(|| missing("host"))?;
        let record = OpenHost::of(host.clone());
        self.check_namespace(&record.meta().namespace)?;
        let write = ObjectWrite::of(record.key().to_owned(), validate_only);
        let create = move |current: Option<&OpenHost>| edit::create(current, host, clock::now());
        let (record, _) = ledgers::write(&self.hosts, write, create).await?;
        Ok(Response::new(CreateHostResponse { host: Some(record.message) }))
    }

    async fn replace_host(
        &self,
        request: Request<ReplaceHostRequest>,
    ) -> Result<Response<ReplaceHostResponse>, Status> {
        let ReplaceHostRequest { host, precondition, validate_only } = request.into_inner();
        let host = host.ok_or_else(|| missing("host"))?;
        let key = OpenHost::of(host.clone()).key().to_owned();
        let write = ObjectWrite::of(key.clone(), validate_only);
        let precondition = precondition.unwrap_or_default();
        let limit = self.discards;
        let replace = move |current: Option<&OpenHost>, others: &OtherRecords<'_, OpenHost>| {
            let change = edit::replace(&key, current, host, &precondition)?;
            edit::guard(limit, current, change, others, clock::now())
        };
        let (record, _) = ledgers::write_among(&self.hosts, write, replace).await?;
        Ok(Response::new(ReplaceHostResponse { host: Some(record.message) }))
    }

    async fn replace_host_status(
        &self,
        request: Request<ReplaceHostStatusRequest>,
    ) -> Result<Response<ReplaceHostStatusResponse>, Status> {
        let request = request.into_inner();
        let key = named(request.name)?;
        let status = request.status.unwrap_or_default();
        let (managed, precondition) = (request.managed_fields_json, request.precondition.unwrap_or_default());
        let write = ObjectWrite { reason: "status", ..ObjectWrite::of(key.clone(), request.validate_only) };
        let replace = move |current: Option<&OpenHost>| {
            edit::replace_status(&key, current, status, managed, &precondition)
        };
        let (record, _) = ledgers::write(&self.hosts, write, replace).await?;
        Ok(Response::new(ReplaceHostStatusResponse { host: Some(record.message) }))
    }

    async fn delete_host(
        &self,
        request: Request<DeleteHostRequest>,
    ) -> Result<Response<DeleteHostResponse>, Status> {
        let request = request.into_inner();
        let deletion = DeletionRequest::of(request.precondition.clone(), request.propagation());
        let reason = if request.forced { "forced" } else { "" };
        let write = ObjectWrite { reason, ..ObjectWrite::of(named(request.name)?, request.validate_only) };
        let (record, gone) = self.delete_host_record(write, deletion, request.forced).await?;
        Ok(Response::new(DeleteHostResponse { host: Some(record.message), gone }))
    }

    async fn set_host_power(
        &self,
        request: Request<SetHostPowerRequest>,
    ) -> Result<Response<SetHostPowerResponse>, Status> {
        let request = request.into_inner();
        let host = self.call(request.name.clone(), request).await?;
        Ok(Response::new(SetHostPowerResponse { host: Some(host) }))
    }

    async fn reboot_host(
        &self,
        request: Request<RebootHostRequest>,
    ) -> Result<Response<RebootHostResponse>, Status> {
        let request = request.into_inner();
        let host = self.call(request.name.clone(), request).await?;
        Ok(Response::new(RebootHostResponse { host: Some(host) }))
    }

    async fn inspect_host(
        &self,
        request: Request<InspectHostRequest>,
    ) -> Result<Response<InspectHostResponse>, Status> {
        let request = request.into_inner();
        let host = self.call(request.name.clone(), request).await?;
        Ok(Response::new(InspectHostResponse { host: Some(host) }))
    }

    async fn detach_host(
        &self,
        request: Request<DetachHostRequest>,
    ) -> Result<Response<DetachHostResponse>, Status> {
        let request = request.into_inner();
        let host = self.call(request.name.clone(), request).await?;
        Ok(Response::new(DetachHostResponse { host: Some(host) }))
    }

    async fn attach_host(
        &self,
        request: Request<AttachHostRequest>,
    ) -> Result<Response<AttachHostResponse>, Status> {
        let request = request.into_inner();
        let host = self.call(request.name.clone(), request).await?;
        Ok(Response::new(AttachHostResponse { host: Some(host) }))
    }

    async fn retry_host(
        &self,
        request: Request<RetryHostRequest>,
    ) -> Result<Response<RetryHostResponse>, Status> {
        let request = request.into_inner();
        let host = self.call(request.name.clone(), request).await?;
        Ok(Response::new(RetryHostResponse { host: Some(host) }))
    }

    async fn change_host_bmc(
        &self,
        request: Request<ChangeHostBmcRequest>,
    ) -> Result<Response<ChangeHostBmcResponse>, Status> {
        let request = request.into_inner();
        let host = self.call(request.name.clone(), request).await?;
        Ok(Response::new(ChangeHostBmcResponse { host: Some(host) }))
    }

    async fn abort_host(
        &self,
        request: Request<AbortHostRequest>,
    ) -> Result<Response<AbortHostResponse>, Status> {
        let request = request.into_inner();
        let host = self.call(request.name.clone(), request).await?;
        Ok(Response::new(AbortHostResponse { host: Some(host) }))
    }
}

impl HostLedgers {
    /// Carries out a call about a host, and returns the host.
    async fn call<C: HostCall>(&self, name: Option<HostName>, call: C) -> Result<Host, Fault> {
        let key = named(name)?;
        let write = ObjectWrite { reason: C::REASON, ..ObjectWrite::of(key.clone(), false) };
        let change = move |current: Option<&OpenHost>| edit::call(&key, current, call);
        Ok(ledgers::write(&self.hosts, write, change).await?.0.message)
    }

    /// Requests the deletion of a host; returns the host and whether it is gone.
    ///
    /// # Errors
    /// There is no such host, or too many hosts would lose their systems within a short time.
    pub(super) async fn delete_host_record(
        &self,
        write: ObjectWrite,
        request: DeletionRequest,
        forced: bool,
    ) -> Result<(OpenHost, bool), Fault> {
        let (key, limit) = (write.key.clone(), self.discards);
        let delete = move |current: Option<&OpenHost>, others: &OtherRecords<'_, OpenHost>| {
            let change = edit::delete(&key, current, &request, forced, clock::now())?;
            edit::guard(limit, current, change, others, clock::now())
        };
        ledgers::write_among(&self.hosts, write, delete).await
    }
}

/// Returns the key of a host.
pub(super) fn key_of(name: &HostName) -> String {
    key(&name.namespace, &name.name)
}

fn named(name: Option<HostName>) -> Result<String, Fault> {
    Ok(key_of(&name.ok_or_else(|| missing("name"))?))
}

/// Returns the refusal of a request that lacks a field.
pub(super) fn missing(field: &str) -> Fault {
    Fault::Invalid(Invalid::new(field, "is missing"))
}
