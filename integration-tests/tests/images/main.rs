//! Images in a real S3-compatible store, moto, which integration-tests/run installs: nodes boot from it, and sessions
//! that need a store in trouble are refused by its name.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod store;

use expect_test::expect;
use integration_tests::{bos::Bos, eventually, mesh::Mesh};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::store::{BUCKET, ObjectStore, SECRET_KEY, s3};

const NODE: &str = "x1000c0s0b0n0";
const PASSTHROUGH: &str = "sbps:v1:iqn.2023-06.example:_sbps._tcp.example.org:300";

/// A mesh with the images of `store`.
async fn mesh(store: &ObjectStore) -> Mesh {
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

/// Returns why a session of a template is refused.
async fn refusal(bos: &Bos, template: &str) -> String {
    let wish = json!({"template_name": template, "operation": "boot"});
    let answer = bos.send(Method::POST, "/v2/sessions", Some(&wish)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{answer:?}");
    let detail = answer.body["detail"].as_str().unwrap();
    let begin = format!("Session template fails check: Session template: '{template}' boot set: 'compute': ");
    detail.strip_prefix(&begin).unwrap_or_else(|| panic!("{detail}")).to_owned()
}

/// Boots a template.
async fn boots(bos: &Bos, template: &str) {
    // A store that was in trouble is asked again after a pause only.
    let session = eventually("a session that is taken", async || {
        let wish = json!({"template_name": template, "operation": "boot"});
        let answer = bos.send(Method::POST, "/v2/sessions", Some(&wish)).await;
        answer.body["name"].as_str().map(str::to_owned)
    })
    .await;
    let complete = bos.complete(&session).await;
    assert_eq!(complete["status"]["error"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_boot_what_the_manifest_lists() {
    // A name whose parts need different kinds of escaping.
    let image = "images of today/a+b=c~ä";
    let Some(store) = ObjectStore::start(&store::image(image, "console=ttyS0,115200 ip=dhcp\n")).await else {
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
async fn session_with_an_unusable_image_is_refused() {
    let objects = [
        ("large/manifest.json".to_owned(), " ".repeat(1_048_577)),
        ("odd/manifest.json".to_owned(), "no manifest".to_owned()),
        ("empty/manifest.json".to_owned(), String::new()),
    ];
    let Some(store) = ObjectStore::start(&objects).await else { return };
    let mesh = mesh(&store).await;
    let mut refusals = String::new();
    for path in [
        s3("nothing", "manifest.json"),
        format!("s3://{BUCKET}-of-yesterday/nothing/manifest.json"),
        s3("large", "manifest.json"),
        s3("odd", "manifest.json"),
        s3("empty", "manifest.json"),
    ] {
        template(&mesh.bos, "bad", &path).await;
        refusals += &format!("{}\n", refusal(&mesh.bos, "bad").await);
    }
    mesh.stop().await;
    expect![[r#"
        Can't find boot artifacts. Error: Unable to read manifest file 's3://boot-images/nothing/manifest.json'. Error: the image manifest s3://boot-images/nothing/manifest.json does not exist
        Can't find boot artifacts. Error: Unable to read manifest file 's3://boot-images-of-yesterday/nothing/manifest.json'. Error: the image manifest s3://boot-images-of-yesterday/nothing/manifest.json does not exist
        Can't find boot artifacts. Error: Unable to read manifest file 's3://boot-images/large/manifest.json'. Error: the image manifest s3://boot-images/large/manifest.json is larger than 1048576 bytes
        Can't find boot artifacts. Error: s3://boot-images/odd/manifest.json: it is not JSON: expected ident at line 1 column 2
        Can't find boot artifacts. Error: s3://boot-images/empty/manifest.json: it is not JSON: EOF while parsing a value at line 1 column 0
    "#]]
    .assert_eq(&refusals);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_is_refused_while_the_store_rejects_the_key() {
    let Some(store) = ObjectStore::start(&store::image("image", "quiet")).await else { return };
    store.tell_key("s3cret-of-yesterday");
    let mesh = mesh(&store).await;
    template(&mesh.bos, "locked", &s3("image", "manifest.json")).await;
    let refusal = refusal(&mesh.bos, "locked").await;
    assert!(refusal.contains("S3 at 127.0.0.1:"), "{refusal}");
    let refused = "(refused GET /boot-images/image/manifest.json since ";
    assert!(refusal.contains(refused), "{refusal}");
    let words = "403 Forbidden: SignatureDoesNotMatch: The signature we calculated does not match the one you provided.)";
    assert!(refusal.contains(words), "{refusal}");
    assert!(!refusal.contains("s3cret"), "{refusal}");

    store.tell_key(SECRET_KEY);
    boots(&mesh.bos, "locked").await;
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_is_refused_while_the_store_is_away() {
    let Some(mut store) = ObjectStore::start(&store::image("image", "quiet")).await else { return };
    let mesh = mesh(&store).await;
    template(&mesh.bos, "away", &s3("image", "manifest.json")).await;
    store.stop().await;
    let refusal = refusal(&mesh.bos, "away").await;
    // The reason depends on whether a connection was being made when the store stopped.
    assert!(refusal.contains("S3 at 127.0.0.1:") && refusal.contains("(failing since "), "{refusal}");

    store.start_again().await;
    boots(&mesh.bos, "away").await;
    mesh.stop().await;
}
