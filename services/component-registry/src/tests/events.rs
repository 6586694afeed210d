//! Events of components: who changed them, how and why.

use std::collections::BTreeMap;

use chassis::mesh::{
    call_class::{self, CallClass},
    request_id,
};
use proto::{
    component::{
        AssignSessionRequest, Assignment, BootArtifacts, Component, DeleteComponentRequest, Phase,
        PutComponentsRequest, ReportStatusesRequest, StatusReport,
        report_service_client::ReportServiceClient,
    },
    event::{EventFilter, ListEventsRequest, WatchEventsRequest, event_service_client::EventServiceClient},
};

use super::{N0, Site, smd::Smd};

impl Site {
    /// The events of the component in lines.
    async fn story(&self, id: &str) -> Vec<String> {
        let filter = EventFilter { keys: vec![id.to_owned()], ..EventFilter::default() };
        let request = ListEventsRequest { filter: Some(filter), ..ListEventsRequest::default() };
        let mut events = EventServiceClient::new(self.channel.clone());
        let events = events.list_events(request).await.unwrap().into_inner().events;
        let lines = events.into_iter().map(|event| {
            let body = event.body.unwrap_or_default();
            let mut details: BTreeMap<_, _> =
                body.details.into_iter().map(|one| (one.name, one.value)).collect();
            details.entry("since".to_owned()).and_modify(|since| "TIME".clone_into(since));
            let details: String = details.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            let words = [&event.actor, &event.request_id, &body.kind, &body.reason, &body.text];
            let words: Vec<&str> =
                words.into_iter().map(|word| &**word).filter(|word| !word.is_empty()).collect();
            words.join(" ") + &details
        });
        lines.collect()
    }

    async fn assign_to(&self, id: &str, session: &str) {
        let artifacts = BootArtifacts { kernel: Some("k".to_owned()), ..BootArtifacts::default() };
        let assignment =
            Assignment { ids: vec![id.to_owned()], boot_artifacts: Some(artifacts), ..Assignment::default() };
        let request = AssignSessionRequest {
            assignment_id: format!("{session}-id"),
            session: session.to_owned(),
            assignments: vec![assignment],
            ..AssignSessionRequest::default()
        };
        ReportServiceClient::new(self.channel.clone()).assign_session(request).await.unwrap();
    }

    /// Reports a decision, again if the inventory has changed the component meanwhile.
    async fn decide(&self, id: &str, phase: Phase, error: &str, reason: &str) {
        loop {
            let report = StatusReport {
                id: id.to_owned(),
                revision: self.component(id).await.unwrap().revision,
                phase: phase.into(),
                error: Some(error.to_owned()),
                reason: reason.to_owned(),
                ..StatusReport::default()
            };
            let request = ReportStatusesRequest { reports: vec![report] };
            let answer = ReportServiceClient::new(self.channel.clone()).report_statuses(request).await;
            if answer.unwrap().into_inner().stale_ids.is_empty() {
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_name_author_request_and_reason() {
    for database in test_databases::every_kind().await {
        let smd = Smd::start().await;
        let site = Site::with_smd(&smd, |settings| {
            settings.component_registry.database_url.clone_from(&database.url);
        })
        .await;
        let created = Component { id: N0.to_owned(), ..Component::default() };
        let request = PutComponentsRequest { components: vec![created], ..PutComponentsRequest::default() };
        site.components().put_components(request).await.unwrap();
        request_id::scope("by-session".to_owned(), site.assign_to(N0, "s")).await;
        site.decide(N0, Phase::PoweringOn, "", "power_on_needed").await;
        site.decide(N0, Phase::PoweringOn, "no permission", "power_on_needed").await;
        let by_hand = call_class::scope(CallClass::Operator, site.enable(N0, false));
        request_id::scope("by-hand".to_owned(), by_hand).await;
        let delete = DeleteComponentRequest { id: N0.to_owned(), scope: None };
        let before = site.story(N0).await;
        site.components().delete_component(delete).await.unwrap();
        let expected = [
            "session-manager by-session desired_state_set session_setup kernel=k session=s",
            "session-manager by-session enabled",
            "status-evaluator decided power_on_needed phase=powering_on",
            "status-evaluator trouble_began failed no permission since=TIME",
        ];
        let story: Vec<&str> =
            before.iter().map(String::as_str).filter(|line| !is_of_inventory(line)).collect();
        let kind = database.kind;
        assert!(story[0].ends_with(" created"), "{kind}: {story:?}");
        assert_eq!(story[1..5], expected, "{kind}");
        assert_eq!(story[5..], ["client by-hand disabled"], "{kind}");
        let after = site.story(N0).await;
        assert_eq!(after[..before.len()], before, "{kind}");
        assert!(after.last().is_some_and(|last| last.ends_with(" deleted")), "{kind}: {after:?}");
        site.stop().await;
    }
}

fn is_of_inventory(line: &str) -> bool {
    ["locked", "unlocked", "not_listed"].iter().any(|kind| line.ends_with(kind))
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_watched() {
    let smd = Smd::start().await;
    let site = Site::with_smd(&smd, |_| {}).await;
    let mut events = EventServiceClient::new(site.channel.clone());
    let mut watch = events.watch_events(WatchEventsRequest::default()).await.unwrap().into_inner();
    let first = watch.message().await.unwrap().unwrap();
    assert!(first.events.is_empty());
    let created = Component { id: "x9".to_owned(), ..Component::default() };
    let request = PutComponentsRequest { components: vec![created], ..PutComponentsRequest::default() };
    site.components().put_components(request).await.unwrap();
    let mut keys = Vec::new();
    while !keys.contains(&"x9".to_owned()) {
        let next = watch.message().await.unwrap().unwrap();
        keys.extend(next.events.into_iter().map(|event| event.key));
    }
    site.stop().await;
}
