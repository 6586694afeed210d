//! Peers that do not answer.

use chassis::{
    Fault,
    settings::{ImagesDriver, Settings},
};
use proto::{
    option::Options,
    session::{CreateSessionRequest, Operation, Progress, Session},
    template::StringList,
};

use crate::{
    site::{Answer, Site, peer},
    store::manifest,
    world::{World, once, template, wish},
};

const COMPUTE: &str = "/images/compute";
const MANIFEST: &str = "/images/compute/manifest.json";

impl Site {
    /// Serves the image below that path, such as `/images/compute`.
    fn has_image(&self, image: &str) {
        self.says(&format!("{image}/manifest.json"), 200, &manifest(&format!("s3:/{image}"), None));
        self.says(&format!("{image}/kernel"), 200, "");
        self.says(&format!("{image}/initrd"), 200, "");
    }
}

/// Returns a world whose image store is the site, which has the image and may take `seconds` for an answer. Sessions
/// are set up as soon as the inventory is released.
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
    site.has_image(COMPUTE);
    world.fleet.hold_inventory(true);
    (world, site)
}

#[tokio::test]
async fn sessions_with_a_silent_store_delay_no_others() {
    let (world, site) = world(3600.0).await;
    let mut silent = template("", "silent", &["n2"]);
    for n in 0..40 {
        let image = format!("/images/silent-{n}");
        site.has_image(&image);
        silent.boot_sets.values_mut().for_each(|set| set.path = format!("s3:/{image}/manifest.json"));
        silent.name = format!("silent-{n}");
        world.put_template(silent.clone()).await.unwrap();
        world.boot(&silent.name, &silent.name).await.unwrap();
        site.answers(&format!("{image}/manifest.json"), Answer::Hangs);
    }
    let before = site.calls().len();
    world.fleet.hold_inventory(false);
    // The number is that of concurrent calls to the store.
    site.called(before + 16).await;
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
    let nodes: Vec<_> = (0..10).map(|n| format!("n{n}")).collect();
    world.template("t", &nodes.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for (n, node) in nodes.iter().enumerate() {
        let limit = node.clone();
        let session = CreateSessionRequest { limit, ..wish(Operation::Boot, &format!("s{n}"), "t") };
        world.create(session).await.unwrap();
    }
    let before = site.calls().len();
    site.answers(MANIFEST, Answer::Hangs);
    world.fleet.hold_inventory(false);
    site.called(before + 1).await;
    // All ten sessions share the outage that the first call meets.
    for n in 0..10 {
        let waiting = world.waiting(&format!("s{n}")).await.waiting_for;
        assert!(waiting.contains(": no whole answer within 2s) (waiting since "), "{waiting}");
    }
    assert!(site.calls().len() <= before + 2, "{:?}", site.calls());
    site.has_image(COMPUTE);
    for (n, node) in nodes.iter().enumerate() {
        assert_eq!(world.running(&format!("s{n}")).await.components, [node.as_str()]);
    }
}

#[tokio::test]
async fn a_session_reports_its_wait_once() {
    let (world, site) = world(60.0).await;
    let created = world.boot("s", "t").await.unwrap();
    let before = site.calls().len();
    site.says(MANIFEST, 503, "try later");
    world.fleet.hold_inventory(false);
    let waiting = world.waiting("s").await;
    assert!(waiting.waiting_for.starts_with("image store: S3 at 127.0.0.1:"), "{}", waiting.waiting_for);
    assert!(waiting.waiting_for.contains("Z: 503 Service Unavailable: try later) (waiting since "));
    site.called(before + 4).await;
    let later = world.session_when("s", |_| true).await;
    assert_eq!(later, waiting, "the record changes though nothing has changed");
    assert_eq!((later.id, later.progress), (created.id, Progress::Pending.into()));
    site.has_image(COMPUTE);
    assert_eq!(world.running("s").await.waiting_for, "");
}

#[tokio::test]
async fn an_outage_ends_a_session_in_strict_mode() {
    let world = World::start_with(|settings| settings.compat.strict_bos = true).await;
    world.template("t", &["n1"]).await;
    world.fleet.hold_inventory(true);
    world.boot("s", "t").await.unwrap();
    world.fleet.images_answer(false);
    world.fleet.hold_inventory(false);
    let error = world.complete("s").await.error.unwrap();
    assert!(error.starts_with("image store: "), "{error}");
}

/// Creates sessions that select their nodes in every way: by list, group, and a role in the limit.
async fn sessions_in_every_way(world: &World) -> [&'static str; 3] {
    world.template("list", &["n1"]).await;
    let mut painted = template("", "group", &[]);
    let groups = StringList { values: vec!["blue".to_owned()] };
    for set in painted.boot_sets.values_mut() {
        set.node_list = None;
        set.node_groups = Some(groups.clone());
    }
    world.put_template(painted).await.unwrap();
    for (name, template, limit) in
        [("by-list", "list", ""), ("by-group", "group", ""), ("by-role", "list", "Compute")]
    {
        let limit = limit.to_owned();
        let session = CreateSessionRequest { limit, ..wish(Operation::Shutdown, name, template) };
        world.create(session).await.unwrap();
    }
    ["by-list", "by-group", "by-role"]
}

#[tokio::test]
async fn empty_inventory_is_confirmed_before_a_session_ends() {
    let world = World::start().await;
    world.fleet.inventory_is_empty(true);
    let names = sessions_in_every_way(&world).await;
    for name in names {
        let shown = |session: &Session| session.end_time.is_some() || !session.waiting_for.is_empty();
        let session = world.session_when(name, shown).await;
        let wanted = "content of the inventory: it lists no hardware at all; it is read once more after ten seconds \
                      (waiting since ";
        assert!(session.waiting_for.starts_with(wanted), "{session:?}");
    }
    world.fleet.inventory_is_empty(false);
    for name in names {
        let session = world.session_when(name, |session| !session.components.is_empty()).await;
        assert_eq!((session.waiting_for.as_str(), session.error), ("", None), "{name}");
    }
}

#[tokio::test]
async fn lone_answer_that_lacks_names_takes_no_node_away() {
    for (unlisted, lacks_groups, lacking) in [(&["n1"][..], false, "n1"), (&[], true, "blue")] {
        let world = World::start().await;
        world.fleet.paint_blue(&["n1", "n2"]);
        let mut painted = template("", "t", &["n3"]);
        let groups = StringList { values: vec!["blue".to_owned()] };
        painted.boot_sets.values_mut().for_each(|set| set.node_groups = Some(groups.clone()));
        world.put_template(painted).await.unwrap();
        world.fleet.inventory_lacks(unlisted, lacks_groups);
        world.create(wish(Operation::Shutdown, "s", "t")).await.unwrap();
        let waiting = world.waiting("s").await.waiting_for;
        let wanted = format!("content of the inventory: it has no {lacking}; it is read once more");
        assert!(waiting.starts_with(&wanted), "{waiting}");
        world.fleet.inventory_lacks(&[], false);
        assert_eq!(world.running("s").await.components, ["n1", "n2", "n3"]);
        assert_eq!(world.registry.proxy.count("ListInventory"), 2, "a doubt costs one more list");
    }
}

#[tokio::test]
async fn confirmed_empty_inventory_ends_a_session_as_in_bos() {
    for strict in [false, true] {
        let world = World::start_with(|settings| settings.compat.strict_bos = strict).await;
        world.fleet.inventory_is_empty(true);
        let began = std::time::Instant::now();
        for name in sessions_in_every_way(&world).await {
            let error = world.complete(name).await.error;
            assert_eq!(error.as_deref(), Some("No nodes were found to act upon."), "{name}");
            assert!(began.elapsed().as_secs() >= 9, "{name}");
        }
    }
}

#[tokio::test]
async fn short_outage_ends_no_session_in_strict_mode() {
    let world = World::start_with(|settings| settings.compat.strict_bos = true).await;
    world.template("t", &["n1"]).await;
    world.fleet.inventory_answers(false);
    world.boot("s", "t").await.unwrap();
    world.waiting("s").await;
    world.fleet.inventory_answers(true);
    assert_eq!(world.running("s").await.components, ["n1"]);
}

#[tokio::test]
async fn a_silent_store_gets_the_deadline_of_the_options() {
    let (world, site) = world(60.0).await;
    let options =
        Options { ims_read_timeout: Some(10), session_limit_required: Some(true), ..Options::default() };
    world.registry.set_options(options).await;
    // The template is looked up after the limit was checked.
    let seen = |refused: &Fault| matches!(refused, Fault::Invalid(_));
    once(async || world.boot("unlimited", "missing").await.unwrap_err(), seen).await;
    let limited = CreateSessionRequest { limit: "n1".to_owned(), ..wish(Operation::Boot, "s", "t") };
    world.create(limited).await.unwrap();
    site.answers(MANIFEST, Answer::Hangs);
    world.fleet.hold_inventory(false);
    let waiting = world.waiting("s").await.waiting_for;
    assert!(waiting.contains("Z: no answer within 10s) (waiting since "), "{waiting}");
}

#[tokio::test]
async fn absence_of_an_image_is_believed_only_of_the_store() {
    let (world, site) = world(60.0).await;
    world.boot("s", "t").await.unwrap();
    site.says(MANIFEST, 404, "");
    world.fleet.hold_inventory(false);
    let waiting = world.waiting("s").await.waiting_for;
    assert!(waiting.contains("404 Not Found, which is no statement of the store"), "{waiting}");
    site.says(MANIFEST, 404, r#"{"message": "no Route matched with those values"}"#);
    site.called(site.calls().len() + 2).await;
    assert_eq!(world.session_when("s", |_| true).await.progress(), Progress::Pending);
    site.has_image(COMPUTE);
    assert_eq!(world.running("s").await.components, ["n1"]);
}

#[tokio::test]
async fn a_refusal_of_the_store_ends_the_session() {
    let (world, site) = world(60.0).await;
    world.boot("s", "t").await.unwrap();
    let before = site.calls().len();
    site.says(MANIFEST, 404, "<Error><Code>NoSuchKey</Code></Error>");
    world.fleet.hold_inventory(false);
    let error = world.complete("s").await.error.unwrap();
    assert_eq!(error, "the image manifest s3://images/compute/manifest.json does not exist");
    assert_eq!(site.calls()[before..], [MANIFEST]);
}
