//! Records that go with others: dependents with their owners, and the content of a namespace.

use proto::host::{
    CreateHostDocumentRequest, CreateHostSecretRequest, DeleteHostDocumentRequest, DeleteHostSecretRequest,
    DocumentKind, DocumentName, GetHostDocumentRequest, GetHostSecretRequest, HostDocument, HostSecret,
    ObjectMeta, OwnerReference, Propagation, ReplaceHostSecretRequest, SecretName,
    host_document_service_client::HostDocumentServiceClient,
};
use tonic::Code;

use super::{
    Channel, Site, eventually,
    hosts::{FINALIZER, host, meta, site},
};

/// Finalizer of another program.
const OTHER: &str = "example.com/other";

fn secret_name(name: &str) -> Option<SecretName> {
    Some(SecretName { namespace: "m".to_owned(), name: name.to_owned() })
}

fn namespace_name() -> Option<DocumentName> {
    Some(DocumentName {
        kind: DocumentKind::Namespace.into(),
        namespace: String::new(),
        name: "m".to_owned(),
    })
}

fn settings_name() -> Option<DocumentName> {
    Some(DocumentName {
        kind: DocumentKind::FirmwareSettings.into(),
        namespace: "m".to_owned(),
        name: "h1".to_owned(),
    })
}

/// Returns a reference to a record, which blocks its deletion.
fn reference(api_version: &str, kind: &str, owner: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: None,
        block_owner_deletion: Some(true),
    }
}

impl Site {
    fn documents(&self) -> HostDocumentServiceClient<Channel> {
        HostDocumentServiceClient::new(self.channel.clone())
    }

    /// Makes a secret that the secrets `owners` own.
    async fn make_owned(&self, name: &str, owners: &[&ObjectMeta], finalizers: &[&str]) -> ObjectMeta {
        let owner_references = owners.iter().map(|owner| reference("v1", "Secret", owner)).collect();
        let finalizers = finalizers.iter().map(ToString::to_string).collect();
        let meta = ObjectMeta { owner_references, finalizers, ..meta(name) };
        let host_secret = Some(HostSecret { meta: Some(meta), ..HostSecret::default() });
        let request = CreateHostSecretRequest { host_secret, ..CreateHostSecretRequest::default() };
        let answer = self.secrets().create_host_secret(request).await.unwrap().into_inner();
        answer.host_secret.unwrap().meta.unwrap()
    }

    async fn secret(&self, name: &str) -> Option<ObjectMeta> {
        let request = GetHostSecretRequest { name: secret_name(name) };
        let answer = self.secrets().get_host_secret(request).await.ok()?;
        answer.into_inner().host_secret?.meta
    }

    /// Returns the names of the owners of a secret, and whether its deletion was requested.
    async fn facts(&self, name: &str) -> Option<(Vec<String>, bool)> {
        let meta = self.secret(name).await?;
        Some((meta.owner_references.into_iter().map(|owner| owner.name).collect(), meta.deleted_at.is_some()))
    }

    /// Removes every finalizer of a secret.
    async fn let_go(&self, name: &str) {
        let meta = ObjectMeta { finalizers: Vec::new(), ..self.secret(name).await.unwrap() };
        let host_secret = Some(HostSecret { meta: Some(meta), ..HostSecret::default() });
        let request = ReplaceHostSecretRequest { host_secret, ..ReplaceHostSecretRequest::default() };
        self.secrets().replace_host_secret(request).await.unwrap();
    }

    async fn delete_secret(&self, name: &str, propagation: Propagation) {
        let propagation = propagation.into();
        let request = DeleteHostSecretRequest {
            name: secret_name(name),
            propagation,
            ..DeleteHostSecretRequest::default()
        };
        self.secrets().delete_host_secret(request).await.unwrap();
    }

    async fn make_document(&self, name: Option<DocumentName>, owner_references: Vec<OwnerReference>) {
        let DocumentName { kind, namespace, name } = name.unwrap();
        let meta = Some(ObjectMeta { namespace, name, owner_references, ..ObjectMeta::default() });
        let host_document = Some(HostDocument { kind, meta, ..HostDocument::default() });
        let request = CreateHostDocumentRequest { host_document, validate_only: false };
        self.documents().create_host_document(request).await.unwrap();
    }

    async fn document(&self, name: Option<DocumentName>) -> Option<HostDocument> {
        let answer = self.documents().get_host_document(GetHostDocumentRequest { name }).await.ok()?;
        answer.into_inner().host_document
    }

    async fn delete_namespace(&self) {
        let request =
            DeleteHostDocumentRequest { name: namespace_name(), ..DeleteHostDocumentRequest::default() };
        let answer = self.documents().delete_host_document(request).await.unwrap().into_inner();
        assert!(!answer.gone, "content is looked for first");
    }
}

#[tokio::test]
async fn dependents_go_after_their_last_owner() {
    let site = site().await;
    let one = site.make_owned("one", &[], &[]).await;
    let two = site.make_owned("two", &[], &[]).await;
    site.make_owned("of-one", &[&one], &[]).await;
    site.make_owned("of-both", &[&one, &two], &[]).await;
    let elsewhere = ObjectMeta {
        owner_references: vec![reference("example.com/v1", "Machine", &one)],
        ..meta("of-another-system")
    };
    let host_secret = Some(HostSecret { meta: Some(elsewhere), ..HostSecret::default() });
    let request = CreateHostSecretRequest { host_secret, ..CreateHostSecretRequest::default() };
    site.secrets().create_host_secret(request).await.unwrap();
    site.delete_secret("one", Propagation::Background).await;
    eventually(async || site.secret("of-one").await.is_none()).await;
    eventually(async || site.facts("of-both").await == Some((vec!["two".to_owned()], false))).await;
    site.delete_secret("two", Propagation::Background).await;
    eventually(async || site.secret("of-both").await.is_none()).await;
    assert!(site.secret("of-another-system").await.is_some(), "its owner is kept by another system");
    site.stop().await;
}

#[tokio::test]
async fn dependent_of_an_earlier_record_of_the_name_goes() {
    let site = site().await;
    let one = site.make_owned("one", &[], &[]).await;
    let earlier = ObjectMeta { uid: "earlier".to_owned(), ..one };
    site.make_owned("late", &[&earlier], &[]).await;
    eventually(async || site.secret("late").await.is_none()).await;
    assert!(site.secret("one").await.is_some());
    site.stop().await;
}

#[tokio::test]
async fn owner_waits_for_dependents_in_the_foreground() {
    let site = site().await;
    let one = site.make_owned("one", &[], &[]).await;
    let two = site.make_owned("two", &[&one], &[]).await;
    site.make_owned("three", &[&two], &[OTHER]).await;
    site.delete_secret("one", Propagation::Foreground).await;
    eventually(async || site.facts("three").await.is_some_and(|(_, is_deleted)| is_deleted)).await;
    for name in ["one", "two"] {
        assert!(site.facts(name).await.is_some_and(|(_, is_deleted)| is_deleted), "{name} waits");
    }
    site.let_go("three").await;
    eventually(async || site.secret("one").await.is_none()).await;
    assert!(site.secret("two").await.is_none(), "it blocked its owner");
    site.stop().await;
}

#[tokio::test]
async fn orphans_stay_without_their_owner() {
    let site = site().await;
    let one = site.make_owned("one", &[], &[]).await;
    site.make_owned("orphan", &[&one], &[]).await;
    site.delete_secret("one", Propagation::Orphan).await;
    eventually(async || site.secret("one").await.is_none()).await;
    assert_eq!(site.facts("orphan").await, Some((Vec::new(), false)));
    site.stop().await;
}

#[tokio::test]
async fn namespace_goes_after_its_content() {
    let site = site().await;
    site.make_document(namespace_name(), Vec::new()).await;
    let mut wanted = host("h1", "");
    wanted.meta.as_mut().unwrap().finalizers = vec![FINALIZER.to_owned()];
    let made = site.make(wanted).await.meta.unwrap();
    site.make_document(settings_name(), vec![reference("metal3.io/v1alpha1", "BareMetalHost", &made)]).await;
    site.make_secret("s").await;
    site.delete_namespace().await;
    eventually(async || site.secret("s").await.is_none()).await;
    let is_deleted = |meta: Option<ObjectMeta>| meta.is_some_and(|meta| meta.deleted_at.is_some());
    eventually(async || is_deleted(site.host("h1").await.unwrap().meta)).await;
    assert!(site.document(settings_name()).await.is_some(), "its host still needs it");
    assert!(is_deleted(site.document(namespace_name()).await.unwrap().meta), "its content is not gone");
    let late = HostSecret { meta: Some(meta("late")), ..HostSecret::default() };
    let request = CreateHostSecretRequest { host_secret: Some(late), ..CreateHostSecretRequest::default() };
    let refused = site.secrets().create_host_secret(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    let mut ended = site.host("h1").await.unwrap();
    ended.meta.as_mut().unwrap().finalizers.clear();
    site.put(ended, 0).await.unwrap();
    eventually(async || site.document(namespace_name()).await.is_none()).await;
    assert!(site.document(settings_name()).await.is_none(), "it went with its host");
    site.stop().await;
}

#[tokio::test]
async fn namespace_says_which_content_stays() {
    let site = Box::pin(Site::start(|settings, _| settings.hosts.discards = 1)).await;
    site.make_document(namespace_name(), Vec::new()).await;
    for one in ["h1", "h2"] {
        site.install(one).await;
    }
    site.delete_namespace().await;
    let status = async || site.document(namespace_name()).await.unwrap().status_json;
    eventually(async || status().await.contains("m/h2: metadata.annotations[reveille.io/discard-until]"))
        .await;
    assert!(site.host("h2").await.unwrap().meta.unwrap().deleted_at.is_none());
    let mut confirmed = site.host("h2").await.unwrap();
    let until = ("reveille.io/discard-until".to_owned(), "9999-01-01T00:00:00Z".to_owned());
    confirmed.meta.as_mut().unwrap().annotations.extend([until]);
    site.put(confirmed, 0).await.unwrap();
    eventually(async || site.host("h2").await.unwrap().meta.unwrap().deleted_at.is_some()).await;
    eventually(async || !status().await.contains("h2")).await;
    site.stop().await;
}
