//! Images in a real S3-compatible store, moto, which integration-tests/run installs: what nodes boot comes from there,
//! and a store in trouble keeps sessions waiting and never makes them fail.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod store;

use expect_test::expect;
use integration_tests::{bos::Bos, eventually, mesh::Mesh};
use proto::session::{GetSessionRequest, Progress, session_service_client::SessionServiceClient};
use reqwest::Method;
use serde_json::{Value, json};

use crate::store::{BUCKET, SECRET_KEY, Store, s3};

const NODE: &str = "x1000c0s0b0n0";
const PASSTHROUGH: &str = "sbps:v1:iqn.2023-06.example:_sbps._tcp.example.org:300";

/// A mesh whose images are in `store`.
async fn mesh(store: &Store) -> Mesh {
    Mesh::start(async |settings| settings.images = store.settings()).await
}

/// Stores a template that boots a node from the manifest at `path`.
async fn template(bos: &Bos, name: &str, path: &str) {
    let template = json!({
        "enable_cfs": false,
        "boot_sets": {"compute": {
            "type": "s3",
            "path": path,
            "kernel_parameters": "of=the-template",
            "node_list": [NODE],
            "rootfs_provider": "sbps",
            "rootfs_provider_passthrough": PASSTHROUGH,
        }},
    });
    bos.expect(Method::PUT, &format!("/v2/sessiontemplates/{name}"), Some(&template)).await;
}

/// What a pending session waits for, once that has `text` in it.
async fn waits_for(mesh: &Mesh, session: &str, text: &str) -> String {
    let client = SessionServiceClient::new(chassis::channel(&mesh.settings.session_manager.url).unwrap());
    let look = async || {
        let request = GetSessionRequest { name: session.to_owned(), tenant: String::new() };
        let answer = client.clone().get_session(request).await.unwrap().into_inner().session.unwrap();
        let pending = answer.progress() == Progress::Pending;
        (pending && answer.waiting_for.contains(text)).then_some(answer.waiting_for)
    };
    eventually(&format!("session {session} to wait for {text}"), look).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_boot_what_the_manifest_lists() {
    // A name whose parts have to be escaped in different ways.
    let image = "images of today/a+b=c~ä";
    let Some(store) = Store::start(&store::image(image, "console=ttyS0,115200 ip=dhcp\n")).await else {
        return;
    };
    let mesh = mesh(&store).await;
    template(&mesh.bos, "good", &s3(image, "manifest.json")).await;
    let session = mesh.bos.session("good", "boot").await;
    let complete = mesh.bos.complete(&session).await;
    assert_eq!(complete["status"]["error"], Value::Null);
    let node = mesh.bos.get(&format!("/v2/components/{NODE}")).await;
    assert_eq!(node["status"]["status"], "stable");
    let rootfs = s3(image, "rootfs");
    let parameters = [
        "console=ttyS0,115200 ip=dhcp",
        "of=the-template",
        &format!("root=sbps-s3:{rootfs}:etag-of-rootfs:{PASSTHROUGH}"),
        &format!("nmd_data=url={rootfs},etag=etag-of-rootfs"),
        "bos_update_frequency=4h",
    ];
    assert_eq!(
        node["desired_state"]["boot_artifacts"],
        json!({
            "kernel": s3(image, "kernel"),
            "initrd": s3(image, "initrd"),
            "kernel_parameters": parameters.join(" "),
        })
    );
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_fails_whose_image_cannot_be() {
    let objects = [
        ("large/manifest.json".to_owned(), " ".repeat(1_048_577)),
        ("odd/manifest.json".to_owned(), "no manifest".to_owned()),
        ("empty/manifest.json".to_owned(), String::new()),
    ];
    let Some(store) = Store::start(&objects).await else { return };
    let mesh = mesh(&store).await;
    let mut errors = String::new();
    for path in [
        s3("nothing", "manifest.json"),
        format!("s3://{BUCKET}-of-yesterday/nothing/manifest.json"),
        s3("large", "manifest.json"),
        s3("odd", "manifest.json"),
        s3("empty", "manifest.json"),
    ] {
        template(&mesh.bos, "bad", &path).await;
        let session = mesh.bos.session("bad", "boot").await;
        let complete = mesh.bos.complete(&session).await;
        errors += &format!("{}\n", complete["status"]["error"].as_str().unwrap());
    }
    mesh.stop().await;
    expect![[r#"
        the image manifest s3://boot-images/nothing/manifest.json does not exist
        the image manifest s3://boot-images-of-yesterday/nothing/manifest.json does not exist
        the image manifest s3://boot-images/large/manifest.json is larger than 1048576 bytes
        the image manifest s3://boot-images/odd/manifest.json: it is not JSON: expected ident at line 1 column 2
        the image manifest s3://boot-images/empty/manifest.json: it is not JSON: EOF while parsing a value at line 1 column 0
    "#]].assert_eq(&errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_waits_for_the_key_of_the_store() {
    let Some(store) = Store::start(&store::image("image", "quiet")).await else { return };
    store.tell_key("s3cret-of-yesterday");
    let mesh = mesh(&store).await;
    template(&mesh.bos, "locked", &s3("image", "manifest.json")).await;
    let session = mesh.bos.session("locked", "boot").await;
    let waiting_for = waits_for(&mesh, &session, "SignatureDoesNotMatch").await;
    assert!(waiting_for.starts_with("image store: S3 at 127.0.0.1:"), "{waiting_for}");
    let refused = "(refused GET /boot-images/image/manifest.json since ";
    assert!(waiting_for.contains(refused), "{waiting_for}");
    let words = "403 Forbidden: SignatureDoesNotMatch: The signature we calculated does not match the one you provided.)";
    assert!(waiting_for.contains(words), "{waiting_for}");
    assert!(waiting_for.contains("waiting since "), "{waiting_for}");
    assert!(!waiting_for.contains("s3cret"), "{waiting_for}");

    store.tell_key(SECRET_KEY);
    let complete = mesh.bos.complete(&session).await;
    assert_eq!(complete["status"]["error"], Value::Null);
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_waits_for_a_store_that_is_away() {
    let Some(mut store) = Store::start(&store::image("image", "quiet")).await else { return };
    let mesh = mesh(&store).await;
    template(&mesh.bos, "away", &s3("image", "manifest.json")).await;
    store.stop().await;
    let session = mesh.bos.session("away", "boot").await;
    let waiting_for = waits_for(&mesh, &session, "Connection refused").await;
    assert!(waiting_for.starts_with("image store: S3 at 127.0.0.1:"), "{waiting_for}");
    assert!(waiting_for.contains("waiting since "), "{waiting_for}");

    store.start_again().await;
    let complete = mesh.bos.complete(&session).await;
    assert_eq!(complete["status"]["error"], Value::Null);
    mesh.stop().await;
}
