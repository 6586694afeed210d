//! The actions on the nodes of a mesh.

use std::collections::BTreeMap;

use integration_tests::replicas::Replicas;
use proto::simulation::{
    ListTransitionsRequest, TransitionOperation, fleet_service_client::FleetServiceClient,
};

/// Actions of the hardware so far, all before the beginning of a session.
pub struct Told {
    transitions: usize,
}

impl Told {
    /// Everything until now.
    pub async fn until_now(mesh: &Replicas) -> Self {
        Self { transitions: transitions(mesh).await.len() }
    }

    /// Checks that since then every one of `nodes` nodes got exactly the `expected` operations, in that order.
    pub async fn then_exactly(&self, mesh: &Replicas, nodes: usize, expected: &[TransitionOperation]) {
        let mut told = BTreeMap::<_, Vec<_>>::new();
        for (operation, ids) in transitions(mesh).await.into_iter().skip(self.transitions) {
            for id in ids {
                told.entry(id).or_default().push(operation);
            }
        }
        assert_eq!(told.len(), nodes);
        let odd: Vec<_> = told.iter().filter(|(_, told)| *told != expected).collect();
        assert!(odd.is_empty(), "{} of {nodes} nodes were told something else: {odd:?}", odd.len());
    }
}

async fn transitions(mesh: &Replicas) -> Vec<(TransitionOperation, Vec<String>)> {
    let mut fleet =
        FleetServiceClient::new(chassis::plain_channel(&mesh.url("simulator", 0)).expect("an address"));
    let answer =
        fleet.list_transitions(ListTransitionsRequest { since: None }).await.expect("an answer").into_inner();
    answer.transitions.into_iter().map(|one| (one.operation(), one.ids)).collect()
}
