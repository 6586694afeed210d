//! Operators give up transitions that other clients requested from the upstream.

use proto::event::{ListEventsRequest, event_service_client::EventServiceClient};
use tonic::Code;

use super::{
    crossing::{foreign, later, overdue_shutdown},
    *,
};
use crate::testing::pcs::PcsTrouble;

impl ControllerMesh {
    async fn abandon(&self, id: &str, component_id: &str) -> Result<Transition, Code> {
        let request = AbandonTransitionRequest {
            id: id.to_owned(),
            request_id: "me-1".to_owned(),
            component_id: component_id.to_owned(),
        };
        let answer = self.client().abandon_transition(request).await;
        answer.map(|answer| answer.into_inner().transition.unwrap()).map_err(|status| status.code())
    }

    async fn holder(&self, component_id: &str) -> Result<Option<Transition>, Code> {
        let request = ReadHoldersRequest { component_ids: vec![component_id.to_owned()] };
        let answer = self.client().read_holders(request).await.map_err(|status| status.code())?.into_inner();
        assert!(answer.holders.len() <= 1);
        Ok(answer.holders.into_iter().next().and_then(|holder| holder.transition))
    }

    /// Waits until the power of the node is unknown because of this transition.
    pub(super) async fn until_waiting_for(&self, id: &str, upstream_id: &str) {
        let text = format!(
            "waiting for transition {upstream_id} of the power upstream to end, which is not on record here and began at 2"
        );
        until(&text, || async { self.state(id).await.filter(|state| state.error.starts_with(&text)) }).await;
    }
}

/// Returns a mesh with two running nodes to be switched off, each of which an administrator shuts down without end.
async fn administrated() -> ControllerMesh {
    let mut mesh = ControllerMesh::new(Options::default()).await;
    mesh.pcs.add_transition(foreign("admin1", "Soft-Off", "x1"));
    mesh.pcs.add_transition(foreign("admin2", "Soft-Off", "x2"));
    mesh.power_off(&["x1", "x2"]).await;
    mesh.start().await;
    mesh.until_waiting_for("x1", "admin1").await;
    mesh.until_waiting_for("x2", "admin2").await;
    mesh
}

#[tokio::test(flavor = "multi_thread")]
async fn outage_is_shown_in_place_of_the_wait_for_a_transition() {
    let options = Options { polling_frequency: Some(1), ..Options::default() };
    let mut mesh = ControllerMesh::new(options).await;
    mesh.pcs.add_transition(foreign("admin1", "Soft-Off", "x1"));
    mesh.power_off(&["x1"]).await;
    mesh.start().await;
    mesh.until_waiting_for("x1", "admin1").await;
    mesh.pcs.trouble("status", Some(PcsTrouble::Answers(503, String::new())));
    let is_outage = |state: &PowerState| state.error.contains("failing since");
    let shown = until("the outage", || async { mesh.state("x1").await.filter(is_outage) }).await;
    assert_eq!(shown.reading(), PowerReading::Unspecified);
    mesh.pcs.trouble("status", None);
    mesh.until_waiting_for("x1", "admin1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_transition_is_given_up_by_id_or_node() {
    let mut mesh = administrated().await;
    let first = mesh.abandon("admin1", "").await.unwrap();
    let members: Vec<_> = first.members.iter().map(|member| member.id.as_str()).collect();
    let shown = (first.upstream_id.as_str(), first.abandoned_by.as_str(), first.delivery());
    assert_eq!((shown, members), (("admin1", "me-1", Delivery::Finished), vec!["x1"]));
    let again = mesh.abandon("admin1", "").await.unwrap();
    assert_eq!((again.id, again.abandoned_at), (first.id, first.abandoned_at), "it changes nothing");
    mesh.until_called("POST /power-status", 2).await;
    assert_eq!(mesh.pcs.taken().len(), 2, "a reading from before that is no evidence");
    mesh.pcs.set_power(&["x1"], "on", &later());
    assert_eq!(mesh.until_taken(3).await[2], "Soft-Off x1");
    mesh.until_waiting_for("x2", "admin2").await;

    // Nobody waits for it after a restart either, although the upstream still has it.
    mesh.stop().await;
    mesh.start().await;
    mesh.until_waiting_for("x2", "admin2").await;
    assert_eq!(mesh.state("x1").await.unwrap().error, "");
    assert_eq!(mesh.abandon("", "x2").await.unwrap().upstream_id, "admin2");
    mesh.pcs.set_power(&["x2"], "on", &later());
    assert_eq!(mesh.until_taken(4).await[3], "Soft-Off x2");
    assert_eq!(mesh.pcs.count("DELETE"), 0, "the upstream goes on with both");

    let listed = EventServiceClient::new(mesh.channel()).list_events(ListEventsRequest::default()).await;
    let events = listed.unwrap().into_inner().events;
    let events = events.into_iter().map(|event| {
        let body = event.body.unwrap();
        let details = body.details.into_iter().map(|detail| format!("{} {}", detail.name, detail.value));
        let details = details.collect::<Vec<_>>().join(", ");
        format!("{} {} by {}: {details}", body.kind, body.reason, event.actor)
    });
    let events: Vec<_> = events.collect();
    let of = |node: &str, upstream_id: &str| {
        format!(
            "transition_abandoned powering_off_gracefully by client: nodes {node}, request me-1, upstream_id {upstream_id}"
        )
    };
    assert_eq!(events, [of("x1", "admin1"), of("x2", "admin2")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_transition_that_somebody_waits_for_is_given_up() {
    let mesh = administrated().await;
    mesh.pcs.set_status_of("admin2", "completed");
    for (id, component, code) in [
        ("none", "", Code::NotFound),
        ("admin2", "", Code::FailedPrecondition),
        ("../power-status", "", Code::NotFound),
        ("", "x2", Code::NotFound),
        ("", "x3", Code::NotFound),
        ("", "", Code::InvalidArgument),
        ("admin1", "x1", Code::InvalidArgument),
    ] {
        assert_eq!(mesh.abandon(id, component).await, Err(code), "'{id}' of '{component}'");
    }
    mesh.pcs.trouble("list", Some(PcsTrouble::Answers(503, String::new())));
    mesh.pcs.trouble("get", Some(PcsTrouble::Answers(503, String::new())));
    for (id, component) in [("admin1", ""), ("", "x1")] {
        assert_eq!(mesh.abandon(id, component).await, Err(Code::Unavailable), "'{id}' of '{component}'");
    }
    assert!(mesh.transitions().await.is_empty(), "nothing is on record");
    mesh.until_waiting_for("x1", "admin1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_of_a_node_is_told_and_given_up_once() {
    let mesh = administrated().await;
    let foreign = mesh.holder("x1").await.unwrap().unwrap();
    let shown = (foreign.id.as_str(), foreign.upstream_id.as_str(), foreign.delivery());
    assert_eq!(shown, ("", "admin1", Delivery::Accepted));
    assert!(foreign.created_at.is_some() && foreign.abandoned_at.is_none());
    assert_eq!(mesh.holder("x3").await, Ok(None));

    let marked = mesh.abandon("", "x1").await.unwrap();
    mesh.pcs.set_power(&["x1"], "on", &later());
    assert_eq!(mesh.until_taken(3).await[2], "Soft-Off x1");
    let own = mesh.until_delivery(Delivery::Accepted).await;
    assert_eq!(mesh.holder("x1").await.unwrap().unwrap().id, own.id);
    assert_eq!(mesh.abandon("", "x1").await, Err(Code::FailedPrecondition), "a later one is not meant");
    mesh.pcs.set_status_of(&own.upstream_id, "completed");
    mesh.until_delivery(Delivery::Finished).await;

    // The upstream still has the one that was given up.
    assert_eq!(mesh.holder("x1").await.unwrap().unwrap().id, marked.id);
    assert_eq!(mesh.abandon("", "x1").await.unwrap().id, marked.id);
    mesh.pcs.trouble("list", Some(PcsTrouble::Answers(503, String::new())));
    assert_eq!(mesh.holder("x1").await, Err(Code::Unavailable));
}

#[tokio::test(flavor = "multi_thread")]
async fn transition_that_can_only_be_listed_is_given_up_for_good() {
    let mut mesh = ControllerMesh::new(Options::default()).await;
    mesh.pcs.add_transition(foreign("admin", "Soft-Off", "x1"));
    mesh.pcs.trouble("get", Some(PcsTrouble::Answers(500, "its record cannot be read".to_owned())));
    mesh.power_off(&["x1"]).await;
    mesh.start().await;
    let names = || async { mesh.state("x1").await.filter(|state| state.error.contains("transition admin")) };
    until("the transition that cannot be read", names).await;
    assert_eq!(mesh.abandon("", "x9").await, Err(Code::Unavailable), "it may hold any node");
    let marked = mesh.abandon("admin", "").await.unwrap();
    assert_eq!((marked.upstream_id.as_str(), marked.members.len()), ("admin", 0));
    assert_eq!(mesh.abandon("", "x9").await, Err(Code::NotFound));
    assert_eq!(mesh.until_taken(2).await[1], "Soft-Off x1");
    mesh.stop().await;
    mesh.start().await;
    mesh.until_called("GET /transitions/t-2", 1).await;
    assert_eq!(mesh.transitions().await.iter().filter(|one| one.upstream_id == "admin").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn overdue_transition_is_given_up_by_a_node() {
    let mesh = overdue_shutdown().await;
    let is_overdue = || async { mesh.transitions().await.pop().filter(|one| one.withdrawn_at.is_some()) };
    let open = until("a transition whose time is over", is_overdue).await;
    mesh.pcs.trouble("list", Some(PcsTrouble::Answers(503, String::new())));
    assert_eq!(mesh.abandon("", "x1").await.unwrap().id, open.id, "nobody has to be asked");
    assert_eq!(mesh.until_delivery(Delivery::Finished).await.error, "an operator gave it up");
}

#[tokio::test(flavor = "multi_thread")]
async fn transition_in_doubt_is_not_that_of_another_client() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::LosesAnswers));
    mesh.power_off(&["x1"]).await;
    mesh.until_taken(1).await;
    let own = mesh.transitions().await.pop().unwrap();
    assert_eq!(mesh.holder("x1").await.unwrap().unwrap().id, own.id);
    assert_eq!(mesh.abandon("", "x1").await, Err(Code::FailedPrecondition));
}
