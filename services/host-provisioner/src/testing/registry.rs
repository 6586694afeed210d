//! A component registry that keeps hosts as tests put them, and has one login for all of them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use chassis::{
    Context, Server,
    kinds::host::HostRecord,
    store::ledger::{Column, Ledger, Migrations, Responses, StoredRow, Table},
};
use proto::{
    Encoded,
    host::{
        self as wire,
        host_secret_service_server::{HostSecretService, HostSecretServiceServer},
        host_service_server::{HostService, HostServiceServer},
    },
};
use sea_orm_migration::{MigrationTrait, MigratorTrait};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, async_trait};

type Answer<M> = Result<Response<M>, Status>;

/// Registry. Clones share it.
#[derive(Clone)]
pub(crate) struct FakeRegistry {
    hosts: Ledger<HostTable>,
    login: BTreeMap<&'static str, String>,
    /// Whether logins cannot be read.
    hides_logins: Arc<AtomicBool>,
}

impl FakeRegistry {
    /// Serves on an address of its own until the context ends, and returns that address.
    pub(crate) async fn start(context: &Context, password: &str) -> (Self, String) {
        let file = context.settings.data_dir.join("registry.sqlite");
        let url = match context.settings.component_registry.database_url.as_str() {
            "" => format!("sqlite://{}?mode=rwc", file.display()),
            url => url.to_owned(),
        };
        let database = chassis::store::database::connect::<HostMigrator>(&url).await.unwrap();
        let hosts = Ledger::open(context, database).await.unwrap();
        let login = BTreeMap::from([("username", "admin\n".to_owned()), ("password", password.to_owned())]);
        let registry = Self { hosts, login, hides_logins: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = Server::default();
        server.add(HostServiceServer::new(registry.clone()));
        server.add(HostSecretServiceServer::new(registry.clone()));
        chassis::serve(context, "registry", listener, server).await.unwrap().now();
        (registry, url)
    }

    /// Shows or hides the logins.
    pub(crate) fn hide_logins(&self, are_hidden: bool) {
        self.hides_logins.store(are_hidden, Ordering::Relaxed);
    }

    pub(crate) async fn put(&self, host: wire::Host) {
        let put = self.hosts.write(|draft| {
            draft.put(HostRecord::of(host));
            Ok(())
        });
        put.await.unwrap();
    }

    pub(crate) async fn delete(&self, key: &str) {
        let key = key.to_owned();
        let delete = self.hosts.write(move |draft| {
            draft.delete(&key);
            Ok(())
        });
        delete.await.unwrap();
    }

    pub(crate) fn get(&self, key: &str) -> wire::Host {
        self.hosts.view().get(key).unwrap().message()
    }
}

struct HostTable;

impl Table for HostTable {
    type Kind = HostRecord;
    type Pool = ();
    const NAME: &'static str = "hosts";
    const COLUMNS: &'static [Column<HostRecord>] = &[Column::record()];

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<HostRecord> {
        row.record(pool)
    }
}

struct HostMigrator;

impl MigratorTrait for HostMigrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default().kind::<HostTable>().into_vec()
    }
}

#[async_trait]
impl HostService for FakeRegistry {
    type ListHostsStream = Responses<wire::ListHostsResponse>;

    async fn list_hosts(&self, _: Request<wire::ListHostsRequest>) -> Answer<Self::ListHostsStream> {
        Err(unused())
    }

    async fn get_host(&self, _: Request<wire::GetHostRequest>) -> Answer<wire::GetHostResponse> {
        Err(unused())
    }

    type WatchHostsStream = Responses<Encoded<wire::WatchHostsResponse>>;

    async fn watch_hosts(&self, request: Request<wire::WatchHostsRequest>) -> Answer<Self::WatchHostsStream> {
        self.hosts.serve_watch(request).await
    }

    async fn create_host(&self, _: Request<wire::CreateHostRequest>) -> Answer<wire::CreateHostResponse> {
        Err(unused())
    }

    async fn replace_host(&self, _: Request<wire::ReplaceHostRequest>) -> Answer<wire::ReplaceHostResponse> {
        Err(unused())
    }

    async fn replace_host_status(
        &self,
        _: Request<wire::ReplaceHostStatusRequest>,
    ) -> Answer<wire::ReplaceHostStatusResponse> {
        Err(unused())
    }

    async fn delete_host(&self, _: Request<wire::DeleteHostRequest>) -> Answer<wire::DeleteHostResponse> {
        Err(unused())
    }

    async fn set_host_power(
        &self,
        _: Request<wire::SetHostPowerRequest>,
    ) -> Answer<wire::SetHostPowerResponse> {
        Err(unused())
    }

    async fn reboot_host(&self, _: Request<wire::RebootHostRequest>) -> Answer<wire::RebootHostResponse> {
        Err(unused())
    }

    async fn inspect_host(&self, _: Request<wire::InspectHostRequest>) -> Answer<wire::InspectHostResponse> {
        Err(unused())
    }

    async fn detach_host(&self, _: Request<wire::DetachHostRequest>) -> Answer<wire::DetachHostResponse> {
        Err(unused())
    }

    async fn attach_host(&self, _: Request<wire::AttachHostRequest>) -> Answer<wire::AttachHostResponse> {
        Err(unused())
    }

    async fn retry_host(&self, _: Request<wire::RetryHostRequest>) -> Answer<wire::RetryHostResponse> {
        Err(unused())
    }

    async fn change_host_bmc(
        &self,
        _: Request<wire::ChangeHostBmcRequest>,
    ) -> Answer<wire::ChangeHostBmcResponse> {
        Err(unused())
    }

    async fn abort_host(&self, _: Request<wire::AbortHostRequest>) -> Answer<wire::AbortHostResponse> {
        Err(unused())
    }
}

#[async_trait]
impl HostSecretService for FakeRegistry {
    type ListHostSecretsStream = Responses<wire::ListHostSecretsResponse>;

    async fn list_host_secrets(
        &self,
        _: Request<wire::ListHostSecretsRequest>,
    ) -> Answer<Self::ListHostSecretsStream> {
        Err(unused())
    }

    async fn get_host_secret(
        &self,
        _: Request<wire::GetHostSecretRequest>,
    ) -> Answer<wire::GetHostSecretResponse> {
        Err(unused())
    }

    type WatchHostSecretsStream = Responses<Encoded<wire::WatchHostSecretsResponse>>;

    async fn watch_host_secrets(
        &self,
        _: Request<wire::WatchHostSecretsRequest>,
    ) -> Answer<Self::WatchHostSecretsStream> {
        Err(unused())
    }

    async fn create_host_secret(
        &self,
        _: Request<wire::CreateHostSecretRequest>,
    ) -> Answer<wire::CreateHostSecretResponse> {
        Err(unused())
    }

    async fn replace_host_secret(
        &self,
        _: Request<wire::ReplaceHostSecretRequest>,
    ) -> Answer<wire::ReplaceHostSecretResponse> {
        Err(unused())
    }

    async fn delete_host_secret(
        &self,
        _: Request<wire::DeleteHostSecretRequest>,
    ) -> Answer<wire::DeleteHostSecretResponse> {
        Err(unused())
    }

    async fn read_secret_values(
        &self,
        _: Request<wire::ReadSecretValuesRequest>,
    ) -> Answer<wire::ReadSecretValuesResponse> {
        if self.hides_logins.load(Ordering::Relaxed) {
            return Err(Status::unavailable("the registry is away"));
        }
        let values =
            ["username", "password"].map(|name| (name.to_owned(), self.login[name].clone().into_bytes()));
        Ok(Response::new(wire::ReadSecretValuesResponse {
            values: values.into_iter().collect(),
            ..wire::ReadSecretValuesResponse::default()
        }))
    }
}

fn unused() -> Status {
    Status::unimplemented("the host provisioner does not need it")
}
