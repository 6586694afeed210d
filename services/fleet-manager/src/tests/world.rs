//! A fleet manager with the registry, and their clients.

use std::{fmt::Debug, time::Duration};

use chassis::{Channel, Context, Settings};
use futures_util::TryStreamExt;
use proto::{
    device::{
        CreateDeviceRequest, Device, GetDeviceRequest, ReplaceDeviceRequest,
        device_service_client::DeviceServiceClient,
    },
    event::{EventFilter, ListEventsRequest, event_service_client::EventServiceClient},
    fleet::{
        CreateFleetRequest, Fleet, FleetSelector, FleetSpec, ListTemplateVersionsRequest,
        ReplaceFleetRequest, TemplateVersion, fleet_service_client::FleetServiceClient,
    },
};
use tempfile::TempDir;
use test_databases::EmptyDatabase;
use test_registry::TestRegistry;
use tokio::net::TcpListener;

/// Deadline for expected events.
pub(super) const PATIENCE: Duration = Duration::from_secs(150);

/// A fleet manager beside the real registry.
pub(super) struct World {
    pub(super) registry: TestRegistry,
    context: Context,
    manager: Channel,
    /// Address of the manager.
    url: String,
    _database: EmptyDatabase,
    /// Directory of the authority.
    _directory: TempDir,
}

impl World {
    /// Starts the manager on `database`.
    pub(super) async fn start(database: EmptyDatabase) -> Self {
        let registry = TestRegistry::start().await;
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        settings.component_registry.url = registry.url();
        settings.fleet_manager.database_url.clone_from(&database.url);
        let context = Context::new(settings);
        let (manager, url) = serve(&context).await;
        Self { registry, context, manager, url, _database: database, _directory: directory }
    }

    /// Starts the status evaluator beside the manager, as another process.
    pub(super) async fn start_evaluator(&self) -> Context {
        let mut settings = Settings::default();
        settings.component_registry.url = self.registry.url();
        settings.fleet_manager.url.clone_from(&self.url);
        let evaluator = Context::new(settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        status_evaluator::start(evaluator.clone(), listener.into()).await.unwrap();
        evaluator
    }

    pub(super) async fn stop(self) {
        stop(&self.context).await;
        self.registry.stop().await;
    }

    /// Stops the manager, runs `meanwhile`, and starts it again on its database.
    pub(super) async fn restart(&mut self, meanwhile: impl AsyncFnOnce(&Self)) {
        stop(&self.context).await;
        meanwhile(self).await;
        self.context = Context::new(Settings::clone(&self.context.settings));
        (self.manager, self.url) = serve(&self.context).await;
    }

    pub(super) fn fleets(&self) -> FleetServiceClient<Channel> {
        FleetServiceClient::new(self.manager.clone())
    }

    pub(super) fn devices(&self) -> DeviceServiceClient<Channel> {
        DeviceServiceClient::new(self.registry.channel())
    }

    pub(super) async fn create_fleet(&self, name: &str, labels: &[(&str, &str)], document: &str) -> Fleet {
        let request = CreateFleetRequest {
            name: name.to_owned(),
            spec: Some(spec(labels, document)),
            ..CreateFleetRequest::default()
        };
        self.fleets().create_fleet(request).await.unwrap().into_inner().fleet.unwrap()
    }

    pub(super) async fn replace_fleet(&self, name: &str, labels: &[(&str, &str)], document: &str) -> Fleet {
        let request = ReplaceFleetRequest {
            name: name.to_owned(),
            spec: Some(spec(labels, document)),
            ..ReplaceFleetRequest::default()
        };
        self.fleets().replace_fleet(request).await.unwrap().into_inner().fleet.unwrap()
    }

    pub(super) async fn versions(&self, fleet: &str) -> Vec<TemplateVersion> {
        let fleet = fleet.to_owned();
        let request = ListTemplateVersionsRequest { fleet, ..ListTemplateVersionsRequest::default() };
        let pages = self.fleets().list_template_versions(request).await.unwrap().into_inner();
        let pages: Vec<_> = pages.try_collect().await.unwrap();
        pages.into_iter().flat_map(|page| page.template_versions).collect()
    }

    pub(super) async fn create_device(&self, name: &str, labels: &[(&str, &str)], document: &str) {
        let request = CreateDeviceRequest {
            name: name.to_owned(),
            labels: owned(labels),
            spec: Some(device_spec(document)),
        };
        self.devices().create_device(request).await.unwrap();
    }

    pub(super) async fn replace_device(
        &self,
        name: &str,
        labels: &[(&str, &str)],
        document: &str,
    ) -> Result<(), tonic::Status> {
        let request = ReplaceDeviceRequest {
            name: name.to_owned(),
            labels: owned(labels),
            spec: Some(device_spec(document)),
            expected_revision: 0,
        };
        self.devices().replace_device(request).await.map(drop)
    }

    pub(super) async fn device(&self, name: &str) -> Device {
        let request = GetDeviceRequest { name: name.to_owned() };
        self.devices().get_device(request).await.unwrap().into_inner().device.unwrap()
    }

    /// Waits until `seen` of a device is that value.
    pub(super) async fn shows<T: PartialEq + Debug>(&self, name: &str, wanted: T, seen: fn(&Device) -> T) {
        let wait = async {
            while seen(&self.device(name).await) != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            let device = self.device(name).await;
            panic!("{name} shows {:?} and not {wanted:?}: {device:?}", seen(&device));
        }
    }

    /// Returns the kinds of events of a device, the oldest first.
    pub(super) async fn device_story(&self, name: &str) -> Vec<String> {
        story(self.registry.channel(), "device", name).await
    }

    /// Returns the kinds of events of a fleet, the oldest first.
    pub(super) async fn fleet_story(&self, name: &str) -> Vec<String> {
        story(self.manager.clone(), "fleet", name).await
    }
}

/// Starts the manager; returns a connection to it, and its address.
async fn serve(context: &Context) -> (Channel, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    crate::start(context.clone(), listener.into()).await.unwrap();
    (chassis::plain_channel(&url).unwrap(), url)
}

pub(super) async fn stop(context: &Context) {
    context.tasks.shutdown().cancel();
    context.tasks.finished(PATIENCE).await.unwrap();
}

async fn story(channel: Channel, resource: &str, name: &str) -> Vec<String> {
    let (keys, resource) = (vec![name.to_owned()], resource.to_owned());
    let filter = Some(EventFilter { keys, resource, ..EventFilter::default() });
    let request = ListEventsRequest { filter, ..ListEventsRequest::default() };
    let events = EventServiceClient::new(channel).list_events(request).await.unwrap().into_inner().events;
    let mut events: Vec<_> =
        events.into_iter().filter_map(|event| Some((event.revision, event.body?))).collect();
    events.sort_by_key(|(revision, _)| *revision);
    events.into_iter().map(|(_, body)| body.kind).collect()
}

/// Makes the spec of a fleet whose template has that document.
pub(super) fn spec(labels: &[(&str, &str)], document: &str) -> FleetSpec {
    let selector = FleetSelector { match_labels: owned(labels), ..FleetSelector::default() };
    FleetSpec { selector: Some(selector), template: Some(device_spec(document)), ..FleetSpec::default() }
}

pub(super) fn device_spec(document: &str) -> proto::device::DeviceSpec {
    proto::device::DeviceSpec { document_json: document.to_owned(), ..Default::default() }
}

pub(super) fn owned(labels: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
