//! Devices with the real registry: their agents fall silent, and are seen again.

use std::time::Duration;

use chassis::{Channel, Context, Settings, lease::Role};
use proto::{
    device::{
        CreateDeviceRequest, Device, GetDeviceRequest, ReportDeviceStatusRequest, ReportHeartbeatsRequest,
        device_agent_service_client::DeviceAgentServiceClient, device_service_client::DeviceServiceClient,
    },
    event::{EventFilter, ListEventsRequest, event_service_client::EventServiceClient},
};
use test_registry::TestRegistry;

/// Deadline for expected events.
const PATIENCE: Duration = Duration::from_secs(60);

/// A registry, and the evaluator of devices.
struct Shop {
    registry: TestRegistry,
    evaluator: Context,
}

impl Shop {
    /// Starts with devices that count as disconnected after so many seconds.
    async fn start(disconnect_seconds: u32) -> Self {
        let registry =
            TestRegistry::start_with(|settings| settings.devices.disconnect_seconds = disconnect_seconds)
                .await;
        let mut settings = Settings::default();
        settings.devices.disconnect_seconds = disconnect_seconds;
        settings.component_registry.url = registry.url();
        let evaluator = Context::new(settings);
        super::start(&evaluator, Role::forever()).unwrap();
        Self { registry, evaluator }
    }

    async fn stop(self) {
        stop(&self.evaluator).await;
        self.registry.stop().await;
    }

    /// Starts the evaluator anew.
    async fn restart_evaluator(&mut self) {
        stop(&self.evaluator).await;
        self.evaluator = Context::new(Settings::clone(&self.evaluator.settings));
        super::start(&self.evaluator, Role::forever()).unwrap();
    }

    fn devices(&self) -> DeviceServiceClient<Channel> {
        DeviceServiceClient::new(self.registry.channel())
    }

    async fn create(&self, name: &str) {
        let request = CreateDeviceRequest { name: name.to_owned(), ..CreateDeviceRequest::default() };
        self.devices().create_device(request).await.unwrap();
    }

    async fn heartbeat(&self, name: &str) {
        let request = ReportHeartbeatsRequest { names: vec![name.to_owned()] };
        DeviceAgentServiceClient::new(self.registry.channel()).report_heartbeats(request).await.unwrap();
    }

    async fn report(&self, name: &str) -> String {
        let request = ReportDeviceStatusRequest { name: name.to_owned(), ..Default::default() };
        let mut agents = DeviceAgentServiceClient::new(self.registry.channel());
        summary(&agents.report_device_status(request).await.unwrap().into_inner().device.unwrap())
    }

    async fn device(&self, name: &str) -> Device {
        let request = GetDeviceRequest { name: name.to_owned() };
        self.devices().get_device(request).await.unwrap().into_inner().device.unwrap()
    }

    /// Waits until the story of a device has an event so many times.
    async fn happens(&self, name: &str, event: &str, times: usize) {
        let (keys, resource) = (vec![name.to_owned()], "device".to_owned());
        let filter = Some(EventFilter { keys, resource, ..EventFilter::default() });
        let request = ListEventsRequest { filter, ..ListEventsRequest::default() };
        let wait = async {
            loop {
                let mut client = EventServiceClient::new(self.registry.channel());
                let story = client.list_events(request.clone()).await.unwrap().into_inner().events;
                let kinds = story.into_iter().filter_map(|event| event.body).map(|body| body.kind);
                if kinds.filter(|kind| kind == event).count() >= times {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap();
    }

    /// Waits until a device has that summary.
    async fn becomes(&self, name: &str, wanted: &str) {
        let wait = async {
            while summary(&self.device(name).await) != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let summary = async || summary(&self.device(name).await);
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            panic!("{name} is {}, and not {wanted}", summary().await);
        }
    }
}

async fn stop(context: &Context) {
    context.tasks.shutdown().cancel();
    context.tasks.finished(Duration::from_secs(20)).await.unwrap();
}

fn summary(device: &Device) -> String {
    device.status.clone().unwrap_or_default().summary.unwrap_or_default().status
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_devices_are_disconnected_and_return_with_a_heartbeat() {
    let shop = Shop::start(2).await;
    shop.create("a").await;
    assert_eq!(summary(&shop.device("a").await), "Unknown", "its agent was never seen");
    assert_eq!(shop.report("a").await, "Online", "the answer shows it");
    shop.happens("a", "DeviceDisconnected", 1).await;
    shop.heartbeat("a").await;
    shop.happens("a", "DeviceConnected", 2).await;
    shop.happens("a", "DeviceDisconnected", 2).await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn device_whose_agent_gives_signs_stays_connected() {
    let shop = Shop::start(3600).await;
    shop.create("a").await;
    shop.heartbeat("a").await;
    shop.becomes("a", "Online").await;
    let online = shop.device("a").await;
    shop.create("b").await;
    shop.heartbeat("a").await;
    shop.heartbeat("b").await;
    shop.becomes("b", "Online").await;
    assert_eq!(shop.device("a").await, online, "a heartbeat is no revision");
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_survive_a_restart_of_the_evaluator() {
    let mut shop = Shop::start(2).await;
    shop.create("a").await;
    assert_eq!(shop.report("a").await, "Online");
    shop.restart_evaluator().await;
    shop.becomes("a", "Unknown").await;
    shop.stop().await;
}
