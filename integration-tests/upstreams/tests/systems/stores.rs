//! IMS, S3 and TAPMS.

use expect_test::expect;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use upstreams::{
    IdCollection, MachinePlan,
    Service::{Ims, S3, Tapms},
    ServiceTrouble, StoredImage, TroubleEffect,
};

use crate::stage::stage;

#[tokio::test]
async fn a_manifest_leads_to_the_objects_of_its_image() {
    let stage = stage(MachinePlan::quick(1)).await;
    let (status, manifest) = stage.get(S3, "/boot-images/compute/manifest.json").await;
    assert_eq!(status, StatusCode::OK);
    let mut seen = String::new();
    for artifact in manifest["artifacts"].as_array().expect("a list") {
        let path =
            artifact["link"]["path"].as_str().and_then(|path| path.strip_prefix("s3:/")).expect("a path");
        let head = stage.send(S3, Method::HEAD, path, None).await.expect("an answer");
        let text = |name: &str| head.headers()[name].to_str().expect("text").to_owned();
        assert_eq!(text("etag"), format!("{}", artifact["link"]["etag"]));
        seen += &format!("{} {path} {} {}\n", artifact["type"], head.status(), text("content-length"));
        assert_eq!(head.text().await.expect("nothing"), "");
    }
    expect![[r#"
        "application/vnd.cray.image.kernel" /boot-images/compute/kernel 200 OK 17
        "application/vnd.cray.image.initrd" /boot-images/compute/initrd 200 OK 17
        "application/vnd.cray.image.rootfs.squashfs" /boot-images/compute/rootfs 200 OK 17
        "application/vnd.cray.image.parameters.boot" /boot-images/compute/boot_parameters 200 OK 28
    "#]]
    .assert_eq(&seen);
    let (_, parameters) = stage.get(S3, "/boot-images/compute/boot_parameters").await;
    assert_eq!(parameters, "console=ttyS0,115200 ip=dhcp");
}

#[tokio::test]
async fn images_can_be_incomplete() {
    let stage = stage(MachinePlan::quick(1)).await;
    let image = StoredImage {
        arch: Some("aarch64".into()),
        listed: vec!["kernel".into(), "rootfs".into()],
        stored: vec!["manifest.json".into()],
        without_etag: vec!["rootfs".into()],
        ..StoredImage::default()
    };
    stage.upstreams.set_image("broken", Some(image));
    let unknown =
        StoredImage { in_catalogue: false, manifest: Some("not JSON".into()), ..StoredImage::default() };
    stage.upstreams.set_image("gone", Some(unknown));
    let mut seen = String::new();
    for (service, path) in [
        (S3, "/b/broken/manifest.json"),
        (S3, "/b/broken/kernel"),
        (S3, "/b/gone/manifest.json"),
        (Ims, "/images/broken"),
        (Ims, "/images/gone"),
    ] {
        let (status, answer) = stage.get(service, path).await;
        seen += &format!("{path}: {} {answer}\n", status.as_u16());
    }
    expect![[r#"
        /b/broken/manifest.json: 200 {"artifacts":[{"link":{"etag":"e3b0c44298fc1c149afbf4c8996fb924","path":"s3://b/broken/kernel","type":"s3"},"md5":"e3b0c44298fc1c149afbf4c8996fb924","type":"application/vnd.cray.image.kernel"},{"link":{"path":"s3://b/broken/rootfs","type":"s3"},"md5":"e3b0c44298fc1c149afbf4c8996fb924","type":"application/vnd.cray.image.rootfs.squashfs"}],"created":"2026-01-01 00:00:00.000000","version":"1.0"}
        /b/broken/kernel: 404 "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>NoSuchKey</Code><Message>b/broken/kernel does not exist</Message></Error>"
        /b/gone/manifest.json: 200 "not JSON"
        /images/broken: 200 {"arch":"aarch64","created":"2026-01-01T00:00:00.000000+00:00","id":"broken","link":{"etag":"f60228c52f8cfdf4835b0a562c0289bd","path":"s3://boot-images/broken/manifest.json","type":"s3"},"metadata":{},"name":"broken"}
        /images/gone: 404 {"detail":"the image does not exist","status":404,"title":"Not Found","type":"about:blank"}
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn an_image_can_be_noted_for_projection() {
    let stage = stage(MachinePlan::quick(1)).await;
    let note = |operation: &str| json!({"metadata": {"operation": operation, "key": "sbps-project", "value": "true"}});
    let mut seen = Vec::new();
    for operation in ["set", "remove", "guess"] {
        let (status, image) = stage.ask(Ims, Method::PATCH, "/images/compute", Some(&note(operation))).await;
        seen.push((status.as_u16(), image["metadata"].clone()));
    }
    assert_eq!(seen, [(200, json!({"sbps-project": "true"})), (200, json!({})), (400, Value::Null)]);
    assert_eq!(stage.get(Ims, "/images/compute").await.1["arch"], "x86_64");
}

#[tokio::test]
async fn a_signature_can_be_required() {
    let stage = stage(MachinePlan::quick(1)).await;
    stage.upstreams.trouble(ServiceTrouble::new(S3, TroubleEffect::RequireSignature));
    let (status, body) = stage.get(S3, "/b/compute/kernel").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(body.as_str().expect("XML").contains("<Code>AccessDenied</Code>"));
    let presigned = stage.get(S3, "/b/compute/kernel?X-Amz-Signature=whatever").await.0;
    assert_eq!(presigned, StatusCode::OK);
}

#[tokio::test]
async fn tenants_have_nodes() {
    let stage = stage(MachinePlan::quick(1)).await;
    stage.upstreams.set_collection(IdCollection::Tenant, "blue", Some(vec!["x1000c0s0b0n0".into()]));
    let (_, blue) = stage.get(Tapms, "/tenants/blue").await;
    assert_eq!(blue["status"]["tenantresources"][0]["xnames"], json!(["x1000c0s0b0n0"]));
    let (_, all) = stage.get(Tapms, "/tenants").await;
    assert_eq!(all["items"], json!([blue]));
    assert_eq!(stage.get(Tapms, "/tenants/red").await.0, StatusCode::NOT_FOUND);
}
