//! Peers that do not answer.

use chassis::{
    Fault,
    settings::{ImagesDriver, Settings},
};
use proto::{
    option::Options,
    session::{CreateSessionRequest, Operation, Progress},
};

use crate::{
    site::{Answer, Site, peer},
    store::manifest,
    world::{World, once, template, wish},
};

const MANIFEST: &str = "/images/compute/manifest.json";

/// A world whose image store is the site, which may take `seconds` for an answer.
async fn world(seconds: f64) -> (World, Site) {
    let site = Site::start().await;
    let url = site.url.clone();
    let change = |settings: &mut Settings| {
        settings.images.driver = ImagesDriver::S3;
        settings.images.s3 = peer(&url, settings.images.s3.clone());
        settings.images.s3.total_seconds = seconds;
    };
    let world = World::start_with(change).await;
    world.template("t", &["n1"]).await;
    (world, site)
}

#[tokio::test]
async fn sessions_with_a_silent_store_hold_up_nobody() {
    let (world, site) = world(3600.0).await;
    site.says(MANIFEST, 200, &manifest("s3://images/compute", None));
    let mut silent = template("", "silent", &["n2"]);
    for n in 0..40 {
        let path = format!("/images/silent-{n}/manifest.json");
        site.answers(&path, Answer::Hangs);
        silent.boot_sets.values_mut().for_each(|set| set.path = format!("s3:/{path}"));
        silent.name = format!("silent-{n}");
        world.put_template(silent.clone()).await.unwrap();
        world.boot(&silent.name, &silent.name).await.unwrap();
    }
    // As many as may call the store at the same time.
    site.called(16).await;
    world.create(wish(Operation::Shutdown, "shutdown", "t")).await.unwrap();
    assert_eq!(world.running("shutdown").await.components, ["n1"]);
    for n in 0..40 {
        let pending = world.session_when(&format!("silent-{n}"), |_| true).await;
        assert_eq!((pending.progress(), pending.waiting_for.as_str()), (Progress::Pending, ""));
    }
}

#[tokio::test]
async fn sessions_that_want_the_same_image_read_it_together() {
    let (world, site) = world(2.0).await;
    site.answers(MANIFEST, Answer::Hangs);
    for n in 0..10 {
        world.boot(&format!("s{n}"), "t").await.unwrap();
    }
    site.called(1).await;
    // All ten learn from the first call that the store does not answer.
    for n in 0..10 {
        let waiting = world.waiting(&format!("s{n}")).await.waiting_for;
        assert!(waiting.contains(": no whole answer within 2s) (waiting since "), "{waiting}");
    }
    assert!(site.calls().len() <= 2, "{:?}", site.calls());
    site.says(MANIFEST, 200, &manifest("s3://images/compute", None));
    // Each takes the node from the one before.
    for n in 0..10 {
        world.session_when(&format!("s{n}"), |session| !session.components.is_empty()).await;
    }
}

#[tokio::test]
async fn a_session_says_once_what_it_waits_for() {
    let (world, site) = world(60.0).await;
    site.says(MANIFEST, 503, "try later");
    let created = world.boot("s", "t").await.unwrap();
    let waiting = world.waiting("s").await;
    assert!(waiting.waiting_for.starts_with("image store: S3 at 127.0.0.1:"), "{}", waiting.waiting_for);
    assert!(waiting.waiting_for.contains("Z: 503 Service Unavailable: try later) (waiting since "));
    site.called(4).await;
    let later = world.session_when("s", |_| true).await;
    assert_eq!(later, waiting, "the record changes though nothing has changed");
    assert_eq!((later.id, later.progress), (created.id, Progress::Pending.into()));
    site.says(MANIFEST, 200, &manifest("s3://images/compute", None));
    assert_eq!(world.running("s").await.waiting_for, "");
}

#[tokio::test]
async fn a_silent_store_is_given_as_long_as_the_options_say_now() {
    let (world, site) = world(60.0).await;
    site.answers(MANIFEST, Answer::Hangs);
    let options =
        Options { ims_read_timeout: Some(10), session_limit_required: Some(true), ..Options::default() };
    world.peers.set_options(options);
    // The template is looked for after the limit.
    let seen = |refused: &Fault| matches!(refused, Fault::Invalid(_));
    once(async || world.boot("unlimited", "missing").await.unwrap_err(), seen).await;
    let limited = CreateSessionRequest { limit: "n1".to_owned(), ..wish(Operation::Boot, "s", "t") };
    world.create(limited).await.unwrap();
    let waiting = world.waiting("s").await.waiting_for;
    assert!(waiting.contains("Z: no answer within 10s) (waiting since "), "{waiting}");
}

#[tokio::test]
async fn a_store_that_says_no_ends_the_session() {
    let (world, site) = world(60.0).await;
    site.says(MANIFEST, 404, "<Error><Code>NoSuchKey</Code></Error>");
    world.boot("s", "t").await.unwrap();
    let error = world.complete("s").await.error.unwrap();
    assert_eq!(error, "the image manifest s3://images/compute/manifest.json does not exist");
    assert_eq!(site.calls(), [MANIFEST]);
}
