//! A new kind of resource, from its declaration to a mirror of it in another part. Copy the first half to add one.
//!
//! A kind of its own has its message, and a service with its list and its watch, in `proto`. This one borrows those of
//! configuration states.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::{borrow::Cow, time::Duration};

use chassis::{
    Context, Server, Settings,
    observe::mirror::{Mirror, MirroredKind},
    store::{
        database,
        ledger::{Column, Ledger, Migrations, Responses, Selection, StoredRow, Table},
        resource::{Facet, Resource, WireForm},
    },
};
use domain::core::invalid::Invalid;
use futures_util::TryStreamExt;
use proto::{
    Encoded,
    configuration::{
        ConfigurationState, ListConfigurationStatesRequest as ListRequest,
        ListConfigurationStatesResponse as Listed, WatchConfigurationStatesRequest as WatchRequest,
        WatchConfigurationStatesResponse as Watched,
        configuration_service_client::ConfigurationServiceClient,
        configuration_service_server::{ConfigurationService, ConfigurationServiceServer},
    },
};
use sea_orm_migration::{MigrationTrait, MigratorTrait};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};

// In a module of `chassis::kinds`: the type, its key, its indexes, its form on the wire.

#[derive(Debug, Clone, PartialEq)]
struct Lamp {
    name: String,
    colour: String,
    revision: u64,
}

impl Resource for Lamp {
    const KIND: &'static str = "lamp";

    fn key(&self) -> &str {
        &self.name
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
        [("colour", self.colour.as_str())].into_iter()
    }
}

impl WireForm for Lamp {
    type Message = ConfigurationState;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, ConfigurationState> {
        let (id, status, revision) = (self.name.clone(), self.colour.clone(), self.revision);
        Cow::Owned(ConfigurationState { id, status, revision, ..ConfigurationState::default() })
    }

    fn from_wire(message: ConfigurationState, (): &mut ()) -> Result<Self, Invalid> {
        Ok(Self { name: message.id, colour: message.status, revision: message.revision })
    }
}

impl MirroredKind for Lamp {}

// In the `store` of the part that owns the kind: its table.

struct Lamps;

impl Table for Lamps {
    type Kind = Lamp;
    type Pool = ();
    const NAME: &'static str = "lamps";
    const COLUMNS: &'static [Column<Lamp>] = &[Column::record()];

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<Lamp> {
        row.record(pool)
    }
}

// In the `rpc` of that part: its list and its watch.

struct LampRpc(Ledger<Lamps>);

#[tonic::async_trait]
impl ConfigurationService for LampRpc {
    type ListConfigurationStatesStream = Responses<Listed>;
    type WatchConfigurationStatesStream = Responses<Encoded<Watched>>;

    async fn list_configuration_states(&self, request: Request<ListRequest>) -> Answer<Listed> {
        self.0.list(Selection::of(request.into_inner().ids), 100).await
    }

    async fn watch_configuration_states(&self, request: Request<WatchRequest>) -> Answer<Encoded<Watched>> {
        self.0.serve_watch(request).await
    }
}

type Answer<M> = Result<Response<Responses<M>>, Status>;

// The part, which names each of its kinds once for its migrations.

struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default().kind::<Lamps>().into_vec()
    }
}

/// A start of the part that owns lamps, on its database; returns its address.
async fn start(database: &str) -> (Context, Ledger<Lamps>, String) {
    let context = Context::new(Settings::default());
    let database = database::connect::<Migrator>(database).await.unwrap();
    let ledger = Ledger::open(&context, database).await.unwrap();
    let mut server = Server::default();
    server.add(ConfigurationServiceServer::new(LampRpc(ledger.clone())));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    chassis::serve(&context, "lamps", listener, server).await.unwrap().now();
    (context, ledger, url)
}

async fn list(url: &str, ids: &[&str]) -> Vec<String> {
    let mut client = ConfigurationServiceClient::new(chassis::plain_channel(url).unwrap());
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    let answer = client.list_configuration_states(ListRequest { ids }).await.unwrap();
    let pages: Vec<_> = answer.into_inner().try_collect().await.unwrap();
    let lamps = pages.into_iter().flat_map(|page| page.configuration_states);
    lamps.map(|lamp| format!("{} {}", lamp.id, lamp.status)).collect()
}

/// Returns the lamps as another part sees them, once its mirror includes `revision`.
async fn mirrored(url: &str, revision: u64) -> Vec<Lamp> {
    let context = Context::new(Settings::default());
    let mirror = Mirror::<Lamp>::start(&context, chassis::plain_channel(url).unwrap(), |_| {});
    tokio::time::timeout(Duration::from_secs(20), mirror.reached(revision)).await.unwrap();
    let mut lamps: Vec<_> = mirror.all().into_iter().map(|lamp| Lamp::clone(&lamp)).collect();
    lamps.sort_by(|one, other| one.name.cmp(&other.name));
    stop(context).await;
    lamps
}

async fn stop(context: Context) {
    context.tasks.shutdown().cancel();
    context.tasks.finished(Duration::from_secs(20)).await.unwrap();
}

fn lamp(name: &str, colour: &str, revision: u64) -> Lamp {
    Lamp { name: name.to_owned(), colour: colour.to_owned(), revision }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_kind_is_stored_listed_watched_and_mirrored() {
    for database in test_databases::every_kind().await {
        let (context, ledger, url) = start(&database.url).await;
        let put = ledger.write(|draft| {
            ["a", "b", "c"].into_iter().for_each(|name| draft.put(lamp(name, "red", 0)));
            Ok(())
        });
        put.await.unwrap();
        assert_eq!(mirrored(&url, 3).await, [lamp("a", "red", 1), lamp("b", "red", 2), lamp("c", "red", 3)]);
        let change = ledger.write(|draft| {
            draft.delete("b");
            draft.put(lamp("c", "blue", 0));
            let red = draft.select_among(&[vec![("colour", "red".to_owned())]], |lamp| lamp.colour == "red");
            Ok(red.len())
        });
        assert_eq!(change.await.unwrap(), (1, 5));
        assert_eq!(list(&url, &[]).await, ["a red", "c blue"]);
        assert_eq!(list(&url, &["c", "b"]).await, ["c blue"]);
        stop(context).await;

        let (context, ledger, url) = start(&database.url).await;
        assert_eq!(ledger.view().revision(), 5);
        assert_eq!(mirrored(&url, 5).await, [lamp("a", "red", 1), lamp("c", "blue", 5)], "{}", database.kind);
        stop(context).await;
    }
}
