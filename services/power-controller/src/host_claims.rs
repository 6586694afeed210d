//! Release of the hosts that nodes have claimed, once nothing more is done to the nodes
//! ([31](../../decisions/0031-one-authority-for-a-machine.md)).

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use chassis::{
    Channel, Context,
    kinds::{
        host::{HostRecord, parse_key},
        observation,
    },
    lease::Term,
    observe::mirror::{Change, Mirror},
    process::clock,
    within,
};
use domain::{
    boot::{
        component::Component,
        power::{self, Course, Outlook},
    },
    core::time::Timestamp,
};
use parking_lot::Mutex;
use proto::host::{
    ClaimedHost, HostName, NodeClaim, ReleaseNodesRequest,
    host_report_service_client::HostReportServiceClient,
};
use tokio::time::sleep;

use crate::{convert::AskedFor, journal, takeover::PowerSources};

/// Time between looks at the nodes that have claimed hosts. All of it is in memory.
const PERIOD: Duration = Duration::from_secs(1);

/// Most time of an answer of the registry.
const DEADLINE: Duration = Duration::from_secs(10);

/// Hosts that are claimed, by their keys.
#[derive(Clone)]
pub(crate) struct HostClaims {
    claims: Arc<Mutex<HashMap<String, NodeClaim>>>,
    registry: HostReportServiceClient<Channel>,
}

impl HostClaims {
    /// Follows the hosts of the registry.
    pub(crate) fn follow(context: &Context, registry: Channel) -> Self {
        let claims: Arc<Mutex<HashMap<String, NodeClaim>>> = Arc::default();
        let known = Arc::clone(&claims);
        // A mirror lasts as long as the process; its changes are all that is needed.
        let _hosts = Mirror::start(context, registry.clone(), move |changes: &[Change<HostRecord>]| {
            let mut claims = known.lock();
            changes.iter().for_each(|change| note(&mut claims, change));
        });
        Self { claims, registry: HostReportServiceClient::new(registry) }
    }

    /// Releases without end the hosts of nodes to which nothing more is done.
    pub(crate) async fn keep_released(
        self,
        sources: Arc<PowerSources>,
        term: Term,
    ) -> anyhow::Result<Infallible> {
        loop {
            sleep(PERIOD).await;
            let claims = self.claims.lock().clone();
            // Transitions of other replicas are on record before their hosts are claimed.
            if claims.is_empty() || sources.transitions.fresh().await.is_err() {
                continue;
            }
            let over = sources.over(claims);
            if over.is_empty() || !term.is_current() {
                continue;
            }
            let mut registry = self.registry.clone();
            let request = ReleaseNodesRequest { hosts: over };
            if let Err(status) = within(DEADLINE, registry.release_nodes(request)).await {
                tracing::debug!(%status, "hosts not released, trying again");
            }
        }
    }
}

fn note(claims: &mut HashMap<String, NodeClaim>, change: &Change<HostRecord>) {
    let claim = change.current.as_ref().and_then(|host| host.message.node_claim.clone());
    match claim.filter(|claim| !claim.released) {
        Some(claim) => drop(claims.insert(change.key().to_owned(), claim)),
        None => drop(claims.remove(change.key())),
    }
}

impl PowerSources {
    /// Returns the claims of nodes to which nothing more is done.
    fn over(&self, claims: HashMap<String, NodeClaim>) -> Vec<ClaimedHost> {
        let transitions = self.transitions.view().all();
        let open = transitions.iter().filter(|transition| journal::is_open(transition));
        let switched: HashSet<&str> =
            open.flat_map(|transition| &transition.members).map(|member| member.id.as_str()).collect();
        let now = clock::now();
        let over = claims.into_iter().filter(|(_, claim)| {
            !switched.contains(claim.component_id.as_str()) && self.is_left_alone(&claim.component_id, now)
        });
        over.map(|(host, claim)| claimed(&host, claim)).collect()
    }

    /// Returns whether no further attempt is made at a node, and its last action has no effect any more.
    fn is_left_alone(&self, id: &str, now: Timestamp) -> bool {
        match self.components.get(id) {
            None => true,
            Some(component) => !component.is_enabled() && !self.may_still_change(&component, now),
        }
    }

    fn may_still_change(&self, component: &Component, now: Timestamp) -> bool {
        let (Some(action), Some(begun)) = (component.last_action(), component.last_action_at()) else {
            return false;
        };
        let state = self.states.view().get(component.id.as_str());
        // A reading from before the action does not show its effect.
        let state =
            state.filter(|state| AskedFor::by(state).begun_actions >= AskedFor::of(component).begun_actions);
        let reading = observation::power(state.as_deref(), component.generation);
        let options = self.options.in_force();
        match power::outlook(action, Course::Taken(begun), &reading, &options, now) {
            Outlook::Settled => false,
            Outlook::Pending { .. } => true,
        }
    }
}

fn claimed(host: &str, claim: NodeClaim) -> ClaimedHost {
    let key = parse_key(host);
    let name = HostName { namespace: key.namespace.to_string(), name: key.name.to_string() };
    ClaimedHost { name: Some(name), claim: Some(claim) }
}
