//! Setup of pending sessions.

use expect_test::expect;
use proto::{
    component::AssignSessionRequest,
    session::{DeleteSessionRequest, Operation, Progress},
};

use crate::world::{World, template, wish};

#[tokio::test]
async fn members_get_their_target_states() {
    let world = World::start().await;
    world.template("t", &["n3", "n1", "stranger"]).await;
    let before = world.registry.get("n1").await.revision;
    let created = world.boot("s", "t").await.unwrap();
    assert_eq!((created.progress(), created.components.len()), (Progress::Pending, 0));
    let running = world.running("s").await;
    assert_eq!(running.components, ["n1", "n3"]);
    assert!(running.assigned_revision > before, "{running:?}");
    let mut assignments = world.registry.proxy.requests::<AssignSessionRequest>("AssignSession");
    assignments.iter_mut().for_each(|assignment| assignment.assignment_id = String::new());
    expect![[r#"
        [
            AssignSessionRequest {
                assignment_id: "",
                session: "s",
                assignments: [
                    Assignment {
                        ids: [
                            "n1",
                            "n3",
                            "stranger",
                        ],
                        boot_artifacts: Some(
                            BootArtifacts {
                                kernel: Some(
                                    "s3://images/compute/kernel",
                                ),
                                kernel_parameters: Some(
                                    "bos_update_frequency=4h",
                                ),
                                initrd: Some(
                                    "s3://images/compute/initrd",
                                ),
                                timestamp: None,
                            },
                        ),
                        configuration: "",
                        clear_actual_state: false,
                        clear_bss_token: false,
                    },
                ],
                stage: false,
                tenant: "",
                pause: None,
                trace_parent: "",
            },
        ]
    "#]]
    .assert_debug_eq(&assignments);
}

#[tokio::test]
async fn a_session_reports_its_wait_for_the_inventory() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.fleet.inventory_answers(false);
    world.boot("s", "t").await.unwrap();
    let waiting = world.waiting("s").await;
    let told = &waiting.waiting_for;
    assert!(told.starts_with("inventory: it is being serviced (waiting since 20"), "{told}");
    assert_eq!((waiting.progress(), waiting.error), (Progress::Pending, None));
    world.fleet.inventory_answers(true);
    let running = world.running("s").await;
    assert_eq!((running.components, running.waiting_for), (vec!["n1".to_owned()], String::new()));
}

#[tokio::test]
async fn a_session_that_waits_for_images_delays_no_others() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.fleet.hold_inventory(true);
    for n in 0..12 {
        world.boot(&format!("boot-{n}"), "t").await.unwrap();
    }
    world.fleet.images_answer(false);
    world.fleet.hold_inventory(false);
    world.template("other", &["n2"]).await;
    world.create(wish(Operation::Shutdown, "shutdown", "other")).await.unwrap();
    world.running("shutdown").await;
    let told = world.waiting("boot-11").await.waiting_for;
    assert!(told.starts_with("image store: the store is full (waiting since 20"), "{told}");
    world.fleet.images_answer(true);
    world.running("boot-11").await;
}

#[tokio::test]
async fn a_session_deleted_during_its_setup_touches_no_node() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.fleet.hold_inventory(true);
    world.boot("s", "t").await.unwrap();
    world.fleet.hold_images(true);
    world.fleet.hold_inventory(false);
    world.fleet.images_asked().await;
    let gone = DeleteSessionRequest { name: "s".to_owned(), tenant: String::new() };
    world.sessions.clone().delete_session(gone).await.unwrap();
    world.fleet.hold_images(false);
    world.create(wish(Operation::Shutdown, "another", "t")).await.unwrap();
    world.running("another").await;
    let sessions: Vec<_> = world
        .registry
        .proxy
        .requests::<AssignSessionRequest>("AssignSession")
        .into_iter()
        .map(|one| one.session)
        .collect();
    assert_eq!(sessions, ["another"]);
}

#[tokio::test]
async fn a_fatal_error_completes_the_session_with_a_reason() {
    let world = World::start().await;
    world.template("good", &["n1"]).await;
    world.template("strangers", &["stranger"]).await;
    let with = |name: &str, change: fn(&mut proto::template::BootSet)| {
        let mut template = template("", name, &["n1"]);
        template.boot_sets.values_mut().for_each(change);
        template
    };
    let odd = [
        with("no-rootfs", |set| set.rootfs_provider = Some("sbps".to_owned())),
        with("too-long", |set| set.kernel_parameters = Some("k".repeat(4096))),
    ];
    for template in odd {
        world.put_template(template).await.unwrap();
    }
    let mut reasons = String::new();
    for (template, limit) in [("good", "!n1"), ("strangers", ""), ("no-rootfs", ""), ("too-long", "")] {
        let name = format!("s-{template}");
        let limited = wish(Operation::Boot, &name, template);
        world
            .create(proto::session::CreateSessionRequest { limit: limit.to_owned(), ..limited })
            .await
            .unwrap();
        let complete = world.complete(&name).await;
        assert!(complete.end_time.is_some() && complete.components.is_empty(), "{complete:?}");
        reasons += &format!("{template}: {}\n", complete.error.unwrap());
        assert_eq!(world.status(&name).await.progress(), Progress::Complete);
    }
    expect![[r#"
        good: No nodes were found to act upon.
        strangers: All nodes found to act upon do not exist as BOS components
        no-rootfs: boot set 'compute': the image has no rootfs, which rootfs_provider 'sbps' needs
        too-long: boot set 'compute': kernel_parameters have 4120 characters together with those of the image but may have at most 4096
    "#]].assert_eq(&reasons);
}

#[tokio::test]
async fn a_missing_image_completes_the_session_with_a_reason() {
    let world = World::start().await;
    for (name, path, kind, expected) in [
        ("no-image", "s3://images/compute", "s3", "the image manifest s3://images/compute does not exist"),
        (
            "no-store",
            "s3://images/compute/manifest.json",
            "ims",
            "s3://images/compute/manifest.json: images of type 'ims' are not supported",
        ),
    ] {
        world.template(name, &["n1"]).await;
        world.fleet.inventory_answers(false);
        world.boot(name, name).await.unwrap();
        world.waiting(name).await;
        let mut odd = template("", name, &["n1"]);
        odd.boot_sets.values_mut().for_each(|set| {
            set.path = path.to_owned();
            set.r#type = kind.to_owned();
        });
        world.put_template(odd).await.unwrap();
        world.fleet.inventory_answers(true);
        assert_eq!(world.complete(name).await.error.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn the_template_is_read_when_the_session_is_set_up() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.fleet.inventory_answers(false);
    world.boot("s", "t").await.unwrap();
    world.waiting("s").await;
    let gone = proto::template::DeleteSessionTemplateRequest { name: "t".to_owned(), tenant: String::new() };
    world.templates.clone().delete_session_template(gone).await.unwrap();
    let error = world.complete("s").await.error;
    assert_eq!(error.as_deref(), Some("Session template 't' does not exist"));
}
