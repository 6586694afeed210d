//! Application of staged states.

use proto::{
    component::{
        ApplyStagedRequest, ApplyStagedResponse, AssignSessionRequest, Assignment, BootArtifacts, Component,
        OwnSession, PutComponentsRequest, SessionReference, StagedSession,
        report_service_client::ReportServiceClient, staged_session::Standing,
    },
    session::Operation,
};

use super::{Site, smd::Smd};

/// More than one transaction of small writes takes.
const MANY: usize = 12_000;

impl Site {
    async fn stage(&self, id: &str, name: &str, tenant: &str, ids: &[&str]) -> SessionReference {
        let text = |text: &str| Some(text.to_owned());
        let artifacts = BootArtifacts {
            kernel: text("k"),
            kernel_parameters: text("p"),
            initrd: text("i"),
            ..BootArtifacts::default()
        };
        let assignment = Assignment {
            ids: ids.iter().map(|&id| id.to_owned()).collect(),
            boot_artifacts: Some(artifacts),
            ..Assignment::default()
        };
        let request = AssignSessionRequest {
            assignment_id: id.to_owned(),
            session: name.to_owned(),
            tenant: tenant.to_owned(),
            assignments: vec![assignment],
            stage: true,
            ..Default::default()
        };
        ReportServiceClient::new(self.channel.clone()).assign_session(request).await.unwrap();
        SessionReference { name: name.to_owned(), tenant: text(tenant), id: id.to_owned() }
    }

    async fn apply(&self, ids: &[&str], sessions: &[StagedSession]) -> ApplyStagedResponse {
        let ids = ids.iter().map(|&id| id.to_owned()).collect();
        let request = ApplyStagedRequest { ids, tenant: String::new(), sessions: sessions.to_vec() };
        let mut client = ReportServiceClient::new(self.channel.clone())
            .max_encoding_message_size(chassis::mesh::channel::LARGEST_MESSAGE);
        client.apply_staged(request).await.unwrap().into_inner()
    }

    async fn create(&self, ids: &[&str]) {
        let components = ids.iter().map(|&id| Component {
            id: id.to_owned(),
            last_action: Some(proto::component::LastAction::default()),
            ..Component::default()
        });
        let request = PutComponentsRequest { components: components.collect(), ..Default::default() };
        self.components().put_components(request).await.unwrap();
    }
}

fn own(reference: &SessionReference) -> StagedSession {
    let own = OwnSession { assignment_id: reference.id.clone(), operation: Operation::Boot.into() };
    StagedSession { reference: Some(reference.clone()), standing: Some(Standing::Own(own)) }
}

#[tokio::test]
async fn nothing_is_applied_before_every_session_is_known() {
    let smd = Smd::start().await;
    let site = Site::with_smd(&smd, |_| {}).await;
    site.create(&["a", "b", "c", "d"]).await;
    let first = site.stage("id-1", "s", "", &["a", "b"]).await;
    let second = site.stage("id-2", "s", "blue", &["c"]).await;
    let ids = ["c", "d", "a", "strange", "b", "a"];

    let asked = site.apply(&ids, &[]).await;
    let mut unknown = asked.unknown.clone();
    unknown.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(unknown, [first.clone(), second.clone()]);
    assert_eq!(site.apply(&ids, &[own(&first)]).await.unknown, std::slice::from_ref(&second));
    assert!(asked.succeeded_ids.is_empty() && site.component("a").await.unwrap().enabled.is_none());

    let gone = StagedSession { reference: Some(second), standing: None };
    let done = site.apply(&ids, &[own(&first), gone]).await;
    assert_eq!(done.unknown, []);
    assert_eq!(done.succeeded_ids, ["a", "b", "a"]);
    assert_eq!(
        (done.failed_ids, done.ignored_ids),
        (vec!["c".to_owned()], vec!["d".into(), "strange".into()])
    );
    let applied = site.component("a").await.unwrap();
    assert_eq!((applied.enabled, applied.session.as_deref()), (Some(true), Some("s")));
    assert_eq!((applied.assignment.as_str(), applied.session_tenant.as_deref()), ("id-1", Some("")));
    assert_eq!(applied.desired_state.unwrap().boot_artifacts.unwrap().kernel.as_deref(), Some("k"));
    assert!(applied.staged_state.unwrap().applied);
    site.stop().await;
}

#[tokio::test]
async fn many_are_applied_in_one_transaction() {
    let smd = Smd::start().await;
    let site = Site::with_smd(&smd, |_| {}).await;
    let ids: Vec<_> = (0..MANY).map(|n| format!("n{n:05}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    site.create(&ids).await;
    let reference = site.stage("id-1", "s", "", &ids).await;
    let before = site.component(ids[MANY - 1]).await.unwrap().revision;
    let done = site.apply(&ids, &[own(&reference)]).await;
    assert_eq!((done.succeeded_ids.len(), done.revision), (MANY, before + MANY as u64));
    site.stop().await;
}
