//! Images in an S3-compatible store.

use std::time::Duration;

use chassis::settings;
use domain::boot::template::image::LARGEST_MANIFEST;
use expect_test::expect;
use session_manager::{
    DependencyError,
    images::{ImageDriver, S3Images},
};

use crate::{
    site::words,
    store::{ACCESS_KEY, SECRET_KEY, Store, keys, manifest},
};

const LONG: Duration = Duration::from_secs(20);

/// Describes the result of reading the image at `path`.
async fn shown(settings: &settings::Images, path: &str) -> String {
    let told = match ImageDriver::S3(S3Images::new(settings).unwrap()).image("s3", path, LONG).await {
        Ok(image) => format!("{:?}", (image.kernel.unwrap_or_default(), image.boot_parameters)),
        Err(DependencyError::Fatal(error) | DependencyError::Idle { error, .. }) => format!("fails: {error}"),
        Err(DependencyError::Retryable(outage)) => {
            format!("waits for {}: {}", outage.what, words(&outage.error))
        }
    };
    assert!(!told.contains(SECRET_KEY), "{told}");
    told
}

#[tokio::test]
async fn images_come_from_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::start(true).await;
    let settings = store.settings(directory.path(), ACCESS_KEY, SECRET_KEY);
    let large = format!("{{{}\"artifacts\": []}}", " ".repeat(LARGEST_MANIFEST));
    let full = format!("{{{}\"artifacts\": []}}", " ".repeat(LARGEST_MANIFEST - 17));
    for (name, content) in [
        ("b/i/manifest.json", manifest("s3://b/i", Some("s3://b/i/ä b+c%2F?x=1"))),
        ("b/i/ä b+c%2F?x=1", "a=1\tquiet\n".to_owned()),
        ("b/plain/manifest.json", manifest("s3://b/plain", None)),
        ("b/gone/manifest.json", manifest("s3://b/gone", Some("s3://b/gone/nothing"))),
        ("b/odd/manifest.json", manifest("s3://b/odd", Some("https://b/parameters"))),
        ("b/page/manifest.json", "<html>".to_owned()),
        ("b/nothing/manifest.json", String::new()),
        ("b/large/manifest.json", large),
        ("b/full/manifest.json", full),
    ] {
        store.put(name, content);
    }
    store.put("b/binary/manifest.json", b"{\"artifacts\": \"\xff\"}");
    let mut rows = String::new();
    for path in ["i", "plain", "gone", "odd", "page", "nothing", "large", "full", "binary", "missing", "../i"]
    {
        let path = format!("s3://b/{path}/manifest.json");
        rows += &format!("{path}: {}\n", shown(&settings, &path).await);
    }
    rows += &format!("elsewhere: {}\n", shown(&settings, "http://evil/manifest.json").await);
    expect![[r#"
        s3://b/i/manifest.json: ("s3://b/i/kernel", Some("a=1\tquiet\n"))
        s3://b/plain/manifest.json: ("s3://b/plain/kernel", None)
        s3://b/gone/manifest.json: fails: the file of boot parameters s3://b/gone/nothing does not exist
        s3://b/odd/manifest.json: fails: the path of the file of boot parameters, https://b/parameters, is not of the form s3://BUCKET/KEY
        s3://b/page/manifest.json: fails: the image manifest s3://b/page/manifest.json: it is not JSON: expected value at line 1 column 1
        s3://b/nothing/manifest.json: fails: the image manifest s3://b/nothing/manifest.json: it is not JSON: EOF while parsing a value at line 1 column 0
        s3://b/large/manifest.json: fails: the image manifest s3://b/large/manifest.json is larger than 1048576 bytes
        s3://b/full/manifest.json: ("", None)
        s3://b/binary/manifest.json: fails: the image manifest s3://b/binary/manifest.json: it is not UTF-8
        s3://b/missing/manifest.json: fails: the image manifest s3://b/missing/manifest.json does not exist
        s3://b/../i/manifest.json: fails: the path of the image manifest, s3://b/../i/manifest.json, has a part '..', which stands for another place
        elsewhere: fails: the path of the image manifest, http://evil/manifest.json, is not of the form s3://BUCKET/KEY
    "#]].assert_eq(&rows);
    assert!(store.calls().iter().all(|call| call.starts_with("GET /s3/b/")), "{:?}", store.calls());
}

#[tokio::test]
async fn a_store_without_ranges_is_read_within_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::start(false).await;
    let settings = store.settings(directory.path(), ACCESS_KEY, SECRET_KEY);
    store.put("b/large", vec![b' '; LARGEST_MANIFEST + 1]);
    store.put("b/good", manifest("s3://b/i", None));
    let mut rows = String::new();
    for path in ["s3://b/large", "s3://b/good"] {
        rows += &format!("{path}: {}\n", shown(&settings, path).await);
    }
    expect![[r#"
        s3://b/large: fails: the image manifest s3://b/large is larger than 1048576 bytes
        s3://b/good: ("s3://b/i/kernel", None)
    "#]]
    .assert_eq(&rows);
    assert_eq!(store.calls(), ["GET /s3/b/large", "HEAD /s3/b/large", "GET /s3/b/good"]);
}

#[tokio::test]
async fn a_refused_key_is_an_outage_of_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::start(true).await;
    store.put("b/good", manifest("s3://b/i", None));
    let mut settings = store.settings(directory.path(), "stranger", SECRET_KEY);
    let mut rows = format!("wrong key: {}\n", shown(&settings, "s3://b/good").await);
    let file = directory.path().join("keys");
    std::fs::write(&file, keys(ACCESS_KEY, "wr0ng")).unwrap();
    rows += &format!("wrong secret: {}\n", shown(&settings, "s3://b/good").await);
    std::fs::write(&file, "token = 't0ken'").unwrap();
    rows += &format!("no key: {}\n", shown(&settings, "s3://b/good").await);
    settings.s3.credentials = String::new();
    rows += &format!("not signed: {}\n", shown(&settings, "s3://b/good").await);
    assert!(store.signatures().iter().all(|signature| signature.is_empty() || !rows.contains(signature)));
    expect![[r#"
        wrong key: waits for image store: 403 Forbidden: SignatureDoesNotMatch
        wrong secret: waits for image store: 403 Forbidden: SignatureDoesNotMatch
        no key: waits for image store: its credentials have to be access_key and secret_key
        not signed: waits for image store: 403 Forbidden: SignatureDoesNotMatch
    "#]]
    .assert_eq(&rows);
}

#[tokio::test]
async fn a_key_is_read_again_when_its_file_changes() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::start(true).await;
    store.put("b/good", manifest("s3://b/i", None));
    let settings = store.settings(directory.path(), ACCESS_KEY, "wr0ng");
    let driver = ImageDriver::S3(S3Images::new(&settings).unwrap());
    assert!(matches!(driver.image("s3", "s3://b/good", LONG).await, Err(DependencyError::Retryable(_))));
    std::fs::write(directory.path().join("keys"), keys(ACCESS_KEY, SECRET_KEY)).unwrap();
    assert!(driver.image("s3", "s3://b/good", LONG).await.is_ok());
}
