//! A mesh and the systems around it, with the actions and checks of the tests.

use chassis::settings::{Peer, Settings};
use integration_tests::{eventually, eventually_shown, mesh::Mesh};
use proto::power::{ListTransitionsRequest, Transition, power_service_client::PowerServiceClient};
use serde_json::{Value, json};
use upstreams::{EventKind, MachinePlan, NodeChange, NodeFaults, PowerRecord, Service, Upstreams};

/// Template that every scene has: it boots every node and has it configured.
pub const TEMPLATE: &str = "image-1";

/// A mesh and the systems around it.
pub struct MeshScene {
    pub mesh: Mesh,
    pub upstreams: Upstreams,
}

/// Makes a template boot nodes of every role.
pub fn every_role(template: &mut Value) {
    template["boot_sets"]["compute"]["node_roles_groups"] = json!(["Compute", "Application"]);
}

/// Makes calls to every peer time out early.
pub fn brisk(settings: &mut Settings) {
    peers(settings).into_iter().for_each(|peer| peer.total_seconds = 1.0);
}

/// Returns the settings of every peer that is called.
pub fn peers(settings: &mut Settings) -> [&mut Peer; 7] {
    let Settings { inventory, power, boot_parameters, configuration, images, tenants, .. } = settings;
    [
        &mut inventory.hsm,
        &mut power.pcs,
        &mut boot_parameters.bss,
        &mut configuration.cfs,
        &mut images.s3,
        &mut images.ims,
        &mut tenants.tapms,
    ]
}

impl MeshScene {
    /// Sets up `nodes` nodes that are off, with nothing wrong, and hardware without delay.
    pub async fn new(nodes: u32) -> Self {
        Self::of(MachinePlan::quick(nodes), |_| {}).await
    }

    /// Starts the machine of `plan`, and a mesh whose settings `adjust` has edited.
    pub async fn of(plan: MachinePlan, adjust: impl FnOnce(&mut Settings)) -> Self {
        let (mesh, upstreams) = Mesh::among(plan, async |settings| adjust(settings)).await;
        mesh.bos.template(TEMPLATE).await;
        Self { mesh, upstreams }
    }

    /// Ids of so many nodes, from the first on.
    pub fn first(&self, nodes: usize) -> Vec<String> {
        self.upstreams.ids().into_iter().take(nodes).collect()
    }

    /// Begins to boot every node.
    pub async fn boot(&self) -> String {
        self.begin("boot", &self.upstreams.ids()).await
    }

    /// Creates a session for these nodes, waits until it is no longer pending, and returns its name.
    pub async fn begin(&self, operation: &str, ids: &[String]) -> String {
        let name = self.mesh.bos.session_of(TEMPLATE, operation, ids).await;
        eventually("a session that runs", async || {
            let session = self.mesh.bos.get(&format!("/v2/sessions/{name}")).await;
            (session["status"]["status"] != "pending").then_some(())
        })
        .await;
        name
    }

    /// Waits until a session is complete and every member of it is as it should be.
    pub async fn succeeds(&self, session: &str) {
        let complete = self.mesh.bos.complete(session).await;
        assert_eq!(complete["status"]["error"], Value::Null, "{complete}");
        let status = self.mesh.bos.get(&format!("/v2/sessions/{session}/status")).await;
        assert_eq!(status["percent_successful"], json!(100.0), "{status}");
        for id in complete["components"].as_str().unwrap().split(',') {
            let component = self.mesh.bos.component(id).await;
            assert_eq!(component["error"], "", "{component}");
        }
    }

    /// Waits until each of `ids` satisfies `wanted`.
    pub async fn until(&self, what: &str, ids: &[String], wanted: impl Fn(&Value) -> bool) {
        let all = async || {
            let components = self.mesh.bos.get(&format!("/v2/components?ids={}", ids.join(","))).await;
            let components = components.as_array().unwrap().clone();
            match components.iter().find(|component| !wanted(component)) {
                None if components.len() == ids.len() => Ok(()),
                other => Err(format!("{} components, {other:?}", components.len())),
            }
        };
        eventually_shown(what, all).await;
    }

    /// Waits until each of `ids` shows all of these words as its error.
    pub async fn show(&self, ids: &[String], words: &[&str]) {
        let what = format!("{} nodes to show {words:?}", ids.len());
        self.until(&what, ids, |component| {
            let error = component["error"].as_str().unwrap();
            words.iter().all(|word| error.contains(word))
        })
        .await;
    }

    /// Waits until each of `ids` is in this status.
    pub async fn are(&self, ids: &[String], status: &str) {
        self.until(&format!("{} nodes to be {status}", ids.len()), ids, |component| {
            component["status"]["status"] == status
        })
        .await;
    }

    /// Waits until a system was called `times` more times, so that its caller has had time to act on an answer.
    pub async fn asked_again(&self, service: Service, operation: &str, times: u64) {
        let before = self.upstreams.requests(service, operation);
        eventually(&format!("{times} more {operation}"), async || {
            (self.upstreams.requests(service, operation) >= before + times).then_some(())
        })
        .await;
    }

    /// Waits until a system was asked so often since the start.
    pub async fn asked_at_least(&self, service: Service, operation: &str, times: u64) {
        eventually(&format!("{times} {operation}"), async || {
            (self.upstreams.requests(service, operation) >= times).then_some(())
        })
        .await;
    }

    /// Sets the faults of nodes.
    pub fn faults(&self, ids: &[String], faults: NodeFaults) {
        let change = NodeChange { faults: Some(faults), ..NodeChange::default() };
        self.upstreams.change(ids, &change).unwrap();
    }

    /// Power operations that were requested for a node, in order.
    pub fn asked(&self, id: &str) -> Vec<&'static str> {
        let events = self.upstreams.history(id).unwrap().into_iter();
        let asked = events.filter_map(|event| match event.what {
            EventKind::Asked { operation, .. } => Some(operation),
            _ => None,
        });
        asked.collect()
    }

    /// Checks that exactly these power operations were requested for each of `ids`.
    pub fn were_asked(&self, ids: &[String], operations: &[&str]) {
        for id in ids {
            assert_eq!(self.asked(id), operations, "{id}");
        }
    }

    /// Checks that no node was asked for two actions at once, or while it was reserved elsewhere.
    pub fn was_orderly(&self) {
        let PowerRecord { crossings, overlaps, refused_reservations, .. } = self.upstreams.summary().power;
        assert_eq!((crossings, overlaps, refused_reservations), (0, 0, 0));
    }

    /// Transitions on record at the power controller.
    pub async fn transitions(&self) -> Vec<Transition> {
        let channel = chassis::plain_channel(&self.mesh.settings.power_controller.url).unwrap();
        let request = ListTransitionsRequest::default();
        let mut pages =
            PowerServiceClient::new(channel).list_transitions(request).await.unwrap().into_inner();
        let mut transitions = Vec::new();
        while let Some(page) = pages.message().await.unwrap() {
            transitions.extend(page.transitions);
        }
        transitions
    }

    /// The highest attempt that was made at anything.
    pub async fn most_attempts(&self) -> u32 {
        let transitions = self.transitions().await;
        transitions.iter().flat_map(|one| &one.members).map(|member| member.attempt).max().unwrap_or_default()
    }

    /// Returns the session's present wait in the REST API; `None`: it does not wait.
    pub async fn waiting_for(&self, session: &str) -> Option<String> {
        let session = self.mesh.bos.get(&format!("/v2/sessions/{session}")).await;
        session["status"]["waiting_for"].as_str().map(str::to_owned)
    }

    /// Stops both.
    pub async fn end(self) {
        self.mesh.stop().await;
        self.upstreams.stop().await;
    }
}
