//! A mesh among the systems of a real site, which this process plays.

use chassis::Settings;
use reveille::surroundings;
use tokio::net::TcpListener;
use upstreams::{MachinePlan, Service, Upstreams};

use super::{Server, Stage};

/// A mesh and the systems around it.
pub struct PlayedSurroundings {
    /// Mesh, with the default poll periods unless others are set.
    pub server: Server,
    /// The systems.
    pub upstreams: Upstreams,
}

impl PlayedSurroundings {
    /// Starts the systems of `plan` and a mesh among them, and waits until it has discovered their nodes.
    ///
    /// # Panics
    /// When either does not start.
    pub async fn start(stage: &Stage, plan: MachinePlan) -> Self {
        Self::start_with(stage, plan, |_| {}).await
    }

    /// Starts with settings that `adjust` has edited.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn start_with(stage: &Stage, plan: MachinePlan, adjust: impl FnOnce(&mut Settings)) -> Self {
        let nodes = plan.hardware.len();
        let mut started = None;
        let server = Server::start(stage, async |settings: &mut Settings| {
            surroundings::csm(settings);
            adjust(settings);
            let plan = MachinePlan { gateway_url: settings.gateway.url.clone(), ..plan };
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
            let upstreams = Upstreams::start(plan, listener).expect("upstreams");
            surroundings::play(settings, &upstreams);
            started = Some(upstreams);
        })
        .await;
        crate::watching::discovered(&server, nodes).await;
        Self { server, upstreams: started.expect("started with the settings") }
    }

    /// Calls of the systems since the counters were reset: power polls, and all others.
    pub fn calls(&self) -> (u64, u64) {
        let is_look = |service: Service, operation: &str| {
            service == Service::Pcs
                && (operation == "POST /power-status" || operation == "GET /transitions/{id}")
        };
        let (mut looks, mut others) = (0, 0);
        for count in self.upstreams.counts() {
            let sum = if is_look(count.service, count.operation) { &mut looks } else { &mut others };
            *sum += count.requests;
        }
        (looks, others)
    }

    /// Operations and their calls since the counters were reset, most frequent first.
    pub fn operations(&self) -> String {
        let mut counts = self.upstreams.counts();
        counts.sort_by_key(|count| std::cmp::Reverse(count.requests));
        let called = counts.iter().filter(|count| count.requests > 0);
        let words =
            called.map(|count| format!("{} x {:?} {}", count.requests, count.service, count.operation));
        format!("    {}", words.collect::<Vec<_>>().join(", "))
    }
}
