//! Release of the hosts that nodes have claimed, once nothing more is done to the nodes
//! ([31](../../../decisions/0031-one-authority-for-a-machine.md)).
//!
//! A claim is judged when it is made, whenever something changes that it rests on, and at the time that its judgement
//! names. Without claims nothing is done.

mod index;

use std::{collections::HashSet, convert::Infallible, pin::pin, sync::Arc, time::Duration};

use chassis::{
    Channel, Context,
    kinds::{
        host::{HostRecord, parse_key},
        observation,
    },
    lease::Term,
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
    process::clock,
    store::resource::Resource as _,
    within,
};
use domain::{
    boot::{
        component::Component,
        power::{Outlook, claim},
    },
    core::time::Timestamp,
};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use proto::host::{
    ClaimedHost, HostName, NodeClaim, ReleaseNodesRequest,
    host_report_service_client::HostReportServiceClient,
};
use tokio::time::Instant;
use tonic::Status;

use self::index::ClaimIndex;
use crate::{convert::AskedFor, journal, takeover::PowerSources};

/// Nodes whose claims are judged at a time.
const MOST_NODES: usize = 1000;

/// Time until claims are judged again after the registry or the database did not answer.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// Most time of an answer of the registry.
const DEADLINE: Duration = Duration::from_secs(10);

/// Hosts that are claimed, and the nodes whose claims are to be judged.
#[derive(Clone)]
pub(crate) struct HostClaims {
    claims: Arc<Mutex<ClaimIndex>>,
    queue: WorkQueue<Arc<str>>,
    registry: HostReportServiceClient<Channel>,
}

impl HostClaims {
    /// Follows the hosts, the components and the options of the registry.
    pub(crate) fn follow(context: &Context, registry: Channel) -> Self {
        let claims = Self {
            claims: Arc::default(),
            queue: WorkQueue::closed(),
            registry: HostReportServiceClient::new(registry.clone()),
        };
        // Mirrors last as long as the process; their changes are all that is needed.
        let noted = claims.clone();
        let _hosts = Mirror::start(context, registry.clone(), move |changes: &[Change<HostRecord>]| {
            changes.iter().for_each(|change| noted.note(change));
        });
        let noted = claims.clone();
        let _components = Mirror::start(context, registry.clone(), move |changes: &[Change<Component>]| {
            noted.judge(changes.iter().map(Change::key));
        });
        let noted = claims.clone();
        let _options = Mirror::of_options(context, registry, move || noted.judge_all());
        claims
    }

    fn note(&self, change: &Change<HostRecord>) {
        let Some(host) = change.newest().map(|host| host.shared_key()) else { return };
        let claim = change.current.as_ref().and_then(|host| host.message().node_claim);
        let news = self.claims.lock().note(host, claim);
        if let Some(node) = news {
            self.queue.mark([node]);
        }
    }

    /// Queues those of `nodes` that have claimed a host.
    fn judge<'a>(&self, nodes: impl Iterator<Item = &'a str>) {
        let claims = self.claims.lock();
        let claimed: Vec<Arc<str>> = nodes.filter(|node| claims.has(node)).map(Into::into).collect();
        drop(claims);
        if !claimed.is_empty() {
            self.queue.mark(claimed);
        }
    }

    fn judge_all(&self) {
        let nodes: Vec<_> = self.claims.lock().nodes().collect();
        self.queue.mark(nodes);
    }

    /// Releases without end the hosts of nodes to which nothing more is done.
    pub(crate) async fn keep_released(
        self,
        sources: Arc<PowerSources>,
        term: Term,
    ) -> anyhow::Result<Infallible> {
        let _open = self.queue.open();
        self.judge_all();
        tokio::join!(
            self.follow_states(&sources),
            self.follow_transitions(&sources),
            self.release_queued(&sources, &term)
        );
        std::future::pending().await
    }

    async fn follow_states(&self, sources: &PowerSources) {
        let mut changes = pin!(sources.states.follow());
        while let Some(batch) = changes.next().await {
            self.judge(batch.changed.iter().map(|state| state.key()));
        }
    }

    async fn follow_transitions(&self, sources: &PowerSources) {
        let mut changes = pin!(sources.transitions.follow());
        while let Some(batch) = changes.next().await {
            let closed = batch.changed.iter().filter(|transition| !journal::is_open(transition));
            let members = closed.flat_map(|transition| &transition.members);
            self.judge(members.map(|member| member.id.as_str()));
        }
    }

    async fn release_queued(&self, sources: &PowerSources, term: &Term) {
        loop {
            let nodes = self.queue.next(MOST_NODES).await;
            if let Err(status) = self.release(sources, term, &nodes).await {
                tracing::debug!(%status, "hosts not released, trying again");
                let at = Instant::now() + AFTER_FAULT;
                nodes.into_iter().for_each(|node| self.queue.mark_at(node, at));
            }
        }
    }

    /// Releases the hosts of those of `nodes` to which nothing more is done, and marks the others for their time.
    async fn release(&self, sources: &PowerSources, term: &Term, nodes: &[Arc<str>]) -> Result<(), Status> {
        // Transitions of other replicas are on record before their hosts are claimed.
        sources.transitions.fresh().await?;
        let (now, switched) = (clock::now(), sources.switched());
        let mut over = Vec::new();
        for node in nodes {
            let claims: Vec<_> =
                self.claims.lock().of(node).map(|(host, claim)| claimed(host, claim.clone())).collect();
            if claims.is_empty() {
                continue;
            }
            match sources.claim_outlook(node, switched.contains(&**node), now) {
                Outlook::Settled => over.extend(claims),
                Outlook::Pending { until: Some(until) } => {
                    self.queue.mark_at(Arc::clone(node), Instant::now() + until.since(now));
                }
                // A change brings the next judgement.
                Outlook::Pending { until: None } => {}
            }
        }
        if !over.is_empty() && term.is_current() {
            let request = ReleaseNodesRequest { hosts: over };
            within(DEADLINE, self.registry.clone().release_nodes(request)).await?;
        }
        Ok(())
    }
}

impl PowerSources {
    /// Returns the nodes with a transition under way.
    fn switched(&self) -> HashSet<String> {
        let transitions = self.transitions.view().all();
        let open = transitions.iter().filter(|transition| journal::is_open(transition));
        open.flat_map(|transition| &transition.members).map(|member| member.id.to_string()).collect()
    }

    fn claim_outlook(&self, node: &str, is_switched: bool, now: Timestamp) -> Outlook {
        let component = self.components.get(node);
        let state = self.states.view().get(node).map(|state| state.message());
        let generation = component.as_ref().map_or(0, |component| component.generation);
        // A reading from before the action does not show its effect.
        let state = state.filter(|state| {
            let asked_for = component.as_deref().map(AskedFor::of).unwrap_or_default();
            AskedFor::by(state).begun_actions >= asked_for.begun_actions
        });
        let power = observation::power(state.as_ref(), generation);
        claim::outlook(component.as_deref(), is_switched, &power, &self.options.in_force(), now)
    }
}

fn claimed(host: &str, claim: NodeClaim) -> ClaimedHost {
    let key = parse_key(host);
    let name = HostName { namespace: key.namespace.to_string(), name: key.name.to_string() };
    ClaimedHost { name: Some(name), claim: Some(claim) }
}
