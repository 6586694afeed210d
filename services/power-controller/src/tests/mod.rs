//! The whole service between the real registry and played power upstreams.
//!
//! - `follow`: transitions that the upstream takes; `crossing`: actions while another one is under way
//! - `trouble`: an upstream that does not answer, or answers wrongly; `telling`: one that does not push
//! - `motion`: transitions of other clients that begin meanwhile
//! - `evidence`: which readings count; `replicas`: two replicas on one database
//! - `redfish`: BMCs as the upstream; `abandonment`: operators give up transitions of other clients
//! - `shutdown`: nodes that were off since they were asked, while nobody judged them

mod abandonment;
mod crossing;
mod evidence;
mod follow;
mod motion;
mod redfish;
mod replicas;
mod shutdown;
mod telling;
mod trouble;

use std::time::Duration;

use chassis::{Context, Settings, kinds::component::action_from_wire, mesh::time, settings::PowerDriver};
use domain::{
    boot::component::{Action, Component, Phase},
    core::time::Timestamp,
};
use futures_util::StreamExt;
use proto::{
    component::{ActionReport, ReportActionsRequest},
    option::Options,
    power::{
        AbandonTransitionRequest, Delivery, ListPowerStatesRequest, ListTransitionsRequest, PowerReading,
        PowerState, ReadHoldersRequest, Transition, WatchPowerStatesRequest,
        power_service_client::PowerServiceClient,
    },
};
use tempfile::TempDir;
use test_registry::{SessionWish, TestRegistry};
use tokio::net::TcpListener;

use crate::testing::{pcs::FakePcs, until};

/// Time long before every test.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// Returns the time as the service writes it.
fn now() -> String {
    chrono::Utc::now().to_rfc3339()
}

struct ControllerMesh {
    pcs: FakePcs,
    registry: TestRegistry,
    around: Context,
    settings: Settings,
    running: Option<(Context, chassis::Channel)>,
    _directory: TempDir,
}

impl ControllerMesh {
    /// Creates a mesh without a running power controller, with a patience of a second with the service.
    async fn new(options: Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pcs = FakePcs::start().await;
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        settings.power.driver = PowerDriver::Pcs;
        settings.power.pcs = pcs.settings();
        settings.power.pcs.total_seconds = 1.0;
        settings.power.follow_seconds = 0.05;
        settings.power.poll_seconds = 0.2;
        settings.power.confirm_seconds = 0.0;
        let around = Context::new(settings.clone());
        let registry = TestRegistry::start_with(|settings| settings.inventory.lock_poll_seconds = 0.2).await;
        registry.set_options(options).await;
        settings.component_registry.url = registry.url();
        Self { pcs, registry, around, settings, running: None, _directory: directory }
    }

    async fn started() -> Self {
        let mut mesh = Self::new(Options::default()).await;
        mesh.start().await;
        mesh.until_listed().await;
        mesh
    }

    async fn start(&mut self) {
        self.running = Some(run(self.settings.clone()).await);
    }

    async fn stop(&mut self) {
        let (context, _) = self.running.take().unwrap();
        context.tasks.shutdown().cancel();
        context.tasks.finished(Duration::from_secs(10)).await.unwrap();
    }

    fn client(&self) -> PowerServiceClient<chassis::Channel> {
        PowerServiceClient::new(self.channel())
    }

    fn channel(&self) -> chassis::Channel {
        self.running.as_ref().unwrap().1.clone()
    }

    /// Has a session assign nodes that are prepared for a first power-on, and then are in `phase`.
    async fn assign(&self, ids: &[&str], phase: Phase) {
        self.registry.assign(ids, &SessionWish::default()).await;
        self.registry.report_prepared(ids).await;
        self.registry.report_phase(ids, phase).await;
    }

    /// Adds nodes that are off and are to be switched on.
    async fn power_on(&self, ids: &[&str]) {
        self.pcs.set_power(ids, "off", LONG_AGO);
        self.assign(ids, Phase::PoweringOn).await;
    }

    /// Adds nodes that are on and are to be switched off.
    async fn power_off(&self, ids: &[&str]) {
        self.pcs.set_power(ids, "on", LONG_AGO);
        self.assign(ids, Phase::PoweringOff).await;
    }

    /// Returns the reports of actions so far, one line each.
    fn reports(&self) -> Vec<String> {
        let requests = self.registry.proxy.requests::<ReportActionsRequest>("ReportActions");
        requests.iter().flat_map(|request| &request.reports).map(report_line).collect()
    }

    async fn transitions(&self) -> Vec<Transition> {
        let listed = self.client().list_transitions(ListTransitionsRequest::default()).await.unwrap();
        let pages: Vec<_> = listed.into_inner().collect().await;
        pages.into_iter().flat_map(|page| page.unwrap().transitions).collect()
    }

    async fn state(&self, id: &str) -> Option<PowerState> {
        let request = ListPowerStatesRequest { ids: vec![id.to_owned()] };
        let listed = self.client().list_power_states(request).await.unwrap();
        let pages: Vec<_> = listed.into_inner().collect().await;
        pages.into_iter().flat_map(|page| page.unwrap().power_states).next()
    }

    async fn until_read(&self, id: &str, reading: PowerReading) -> PowerState {
        let look = || async { self.state(id).await.filter(|state| state.reading() == reading) };
        until(&format!("{id} is {reading:?}"), look).await
    }

    async fn until_taken(&self, count: usize) -> Vec<String> {
        let look = || async { Some(self.pcs.taken()).filter(|taken| taken.len() >= count) };
        until(&format!("{count} transitions"), look).await
    }

    /// Waits until `count` nodes are in taken transitions.
    async fn until_members_taken(&self, count: usize) {
        let members = |taken: &String| taken.split(' ').count() - 1;
        let look = || async {
            let taken: usize = self.pcs.taken().iter().map(members).sum();
            (taken >= count).then_some(())
        };
        until(&format!("{count} nodes in transitions"), look).await;
    }

    /// Waits until the newest transition has this delivery.
    async fn until_delivery(&self, delivery: Delivery) -> Transition {
        let look = || async { self.transitions().await.pop().filter(|newest| newest.delivery() == delivery) };
        until(&format!("{delivery:?}"), look).await
    }

    async fn until_component(&self, id: &str, what: &str, is: impl Fn(&Component) -> bool) -> Component {
        self.registry.until(id, what, is).await
    }

    /// Waits until the node shows since when it waits for the end of a transition that cannot be withdrawn.
    async fn until_shown_as_endless(&self, id: &str, upstream_id: &str) {
        let waits = |one: &Component| {
            one.power_error().contains("it cannot be withdrawn, and it is not known to have ended")
        };
        let waiting = self.until_component(id, "shows what is waited for", waits).await;
        let open = self.transitions().await.pop().unwrap();
        let since = domain::core::bos_time::text(time::from_wire(open.withdrawn_at.unwrap()));
        let text = format!(
            "no results from transition {upstream_id} of the power upstream: its time was over at {since}Z, it cannot be \
             withdrawn, and it is not known to have ended"
        );
        assert_eq!((waiting.power_error(), open.delivery()), (text.as_str(), Delivery::Accepted));
    }

    /// Abandons the newest transition as an operator does.
    async fn abandon_open_transition(&self) {
        let id = self.transitions().await.pop().unwrap().id;
        let request = AbandonTransitionRequest { id, request_id: "r1".to_owned(), ..Default::default() };
        self.client().abandon_transition(request).await.unwrap();
    }

    /// Waits until the service was asked for its open transitions, which comes before any other call.
    async fn until_listed(&self) {
        let is_listed = || async { (self.pcs.count("GET /transitions") > 0).then_some(()) };
        until("the list of transitions", is_listed).await;
    }

    /// Waits until the service got `more` such calls, so that its earlier answers were processed.
    async fn until_called(&self, call: &str, more: usize) {
        let wanted = self.pcs.count(call) + more;
        until(call, || async { (self.pcs.count(call) >= wanted).then_some(()) }).await;
    }
}

/// Starts a power controller.
async fn run(settings: Settings) -> (Context, chassis::Channel) {
    let context = Context::new(settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    crate::start(context.clone(), listener.into()).await.unwrap();
    (context, chassis::plain_channel(&url).unwrap())
}

impl Drop for ControllerMesh {
    fn drop(&mut self) {
        self.around.tasks.shutdown().cancel();
        if let Some((context, _)) = &self.running {
            context.tasks.shutdown().cancel();
        }
    }
}

fn report_line(report: &ActionReport) -> String {
    let action = action_from_wire(report.action).unwrap().word();
    let failed = if report.failed { " failed" } else { "" };
    format!("{} {action} {}{failed} '{}'", report.id, report.attempt, report.error)
}

fn summary(transition: &Transition) -> String {
    let members = transition.members.iter().map(|member| {
        let error = if member.error.is_empty() { String::new() } else { format!(" ({})", member.error) };
        format!("{} {:?}{error}", member.id, member.outcome())
    });
    let members: Vec<_> = members.collect();
    format!("{:?} {:?} {}", transition.action(), transition.delivery(), members.join(", "))
}

fn attempts(component: &Component, action: Action) -> u32 {
    component.attempts(action)
}

fn timestamp(time: Option<Timestamp>) -> Timestamp {
    time.unwrap_or_default()
}
