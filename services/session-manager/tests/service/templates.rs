//! Images of templates: their effect on writes, sessions and validation.

use std::fs;

use chassis::{
    Fault,
    settings::{CatalogueDriver, ImagesDriver, Settings},
};
use expect_test::expect;
use proto::{option::Options, session::Operation, template::*};

use crate::{
    site::{Answer, Site, peer},
    store::manifest,
    world::{World, asked, once, template, wish},
};

/// Path of an image that does not exist.
const NO_IMAGE: &str = "/images/00000000-0000-0000-0000-000000000000";

/// Returns a world whose images are listed at the site, and kept by the simulated fleet.
async fn listed() -> (World, Site) {
    let ims = Site::start().await;
    let url = ims.url.clone();
    let world = World::start_with(|settings| {
        settings.images.catalogue = CatalogueDriver::Ims;
        settings.images.ims = peer(&url, settings.images.ims.clone());
    });
    ims.says(NO_IMAGE, 404, r#"{"title": "Image not found"}"#);
    ims.says("/images/x86", 200, r#"{"arch": "x86_64"}"#);
    ims.says("/images/arm", 200, r#"{"arch": "aarch64"}"#);
    let world = world.await;
    ims.called(1).await;
    assert_eq!(ims.calls(), [NO_IMAGE], "the catalogue is asked at the start");
    ims.forget_calls();
    (world, ims)
}

fn boot_set(image: &str) -> BootSet {
    let mut template = template("", "t", &["n1"]);
    let boot_set = template.boot_sets.remove("compute").unwrap();
    BootSet { path: format!("s3://images/{image}/manifest.json"), ..boot_set }
}

fn of(boot_sets: impl IntoIterator<Item = (&'static str, BootSet)>) -> SessionTemplate {
    let boot_sets = boot_sets.into_iter().map(|(name, set)| (name.to_owned(), set));
    SessionTemplate { boot_sets: boot_sets.collect(), ..template("", "t", &[]) }
}

/// A boot set with the required members of a change.
fn bare(image: &str) -> BootSet {
    BootSet { node_list: None, ..boot_set(image) }
}

impl World {
    async fn change_template(&self, change: SessionTemplate) -> Result<SessionTemplate, Fault> {
        let request = UpdateSessionTemplateRequest { session_template: Some(change) };
        let answer = asked(self.templates.clone().update_session_template(request)).await?;
        Ok(answer.session_template.unwrap())
    }

    async fn verdict(&self, name: &str) -> String {
        let request = ValidateSessionTemplateRequest { name: name.to_owned(), tenant: String::new() };
        asked(self.templates.clone().validate_session_template(request)).await.unwrap().findings
    }

    /// Sets options, and waits until they are in force.
    async fn options(&self, options: Options) {
        self.registry.set_options(Options { session_limit_required: Some(true), ..options.clone() }).await;
        let refused = |fault: &Fault| matches!(fault, Fault::Invalid(_));
        once(async || self.boot("unlimited", "missing").await.unwrap_err(), refused).await;
        self.registry.set_options(options).await;
        let not_found = |fault: &Fault| matches!(fault, Fault::NotFound { .. });
        once(async || self.boot("unlimited", "missing").await.unwrap_err(), not_found).await;
    }
}

fn outcome_text<T>(outcome: Result<T, Fault>) -> String {
    outcome.map_or_else(|fault| fault.to_string(), |_| "taken".to_owned())
}

/// The text without the address and the time in it.
fn tidy(text: &str) -> String {
    let mut tidy = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" at 127.0.0.1:") {
        let error = after.split_once("Z: ").map_or(after, |(_, error)| error);
        tidy += &format!("{before} at HOST (failing since WHEN: ");
        rest = error;
    }
    tidy + rest
}

#[tokio::test]
async fn the_catalogue_decides_whether_a_template_is_stored() {
    let (world, ims) = listed().await;
    ims.says("/images/odd", 500, "the database is gone");
    let arm = |image: &str| BootSet { arch: Some("ARM".to_owned()), ..boot_set(image) };
    let misnamed = |image: &str| BootSet { name: Some("other".to_owned()), ..arm(image) };
    let homeless = |image: &str| BootSet { arch: Some("ARM".to_owned()), ..bare(image) };
    let mut rows = String::new();
    for (what, options) in [
        ("lax", Options::default()),
        (
            "severe",
            Options { ims_errors_fatal: Some(true), ims_images_must_exist: Some(true), ..Options::default() },
        ),
    ] {
        world.options(options).await;
        for (name, boot_set) in [
            ("x86", boot_set("x86")),
            ("arm", arm("arm")),
            ("other arch", arm("x86")),
            ("absent", boot_set("gone")),
            ("silent", boot_set("odd")),
            ("not listed", BootSet { path: "s3://images/manifest.json".to_owned(), ..boot_set("") }),
            ("not stored", BootSet { path: "s3://images/x86/deep/manifest.json".to_owned(), ..boot_set("") }),
            // Names are checked before images, and nodes after them.
            ("misnamed", misnamed("x86")),
            ("homeless", homeless("x86")),
            ("homeless arm", homeless("arm")),
        ] {
            let put = world.put_template(of([("b", boot_set.clone())])).await;
            rows += &format!("{what}, {name}: {}\n", tidy(&outcome_text(put)));
        }
    }
    expect![[r#"
        lax, x86: taken
        lax, arm: taken
        lax, other arch: boot_sets.b.arch: Boot set arch 'ARM' means IMS image arch should be 'aarch64', but actual IMS image arch is 'x86_64'
        lax, absent: taken
        lax, silent: taken
        lax, not listed: taken
        lax, not stored: taken
        lax, misnamed: boot_sets.b.name: 'other' is not the key of the boot set
        lax, homeless: boot_sets.b.arch: Boot set arch 'ARM' means IMS image arch should be 'aarch64', but actual IMS image arch is 'x86_64'
        lax, homeless arm: boot_sets.b: needs node_list, node_roles_groups or node_groups with an entry
        severe, x86: taken
        severe, arm: taken
        severe, other arch: boot_sets.b.arch: Boot set arch 'ARM' means IMS image arch should be 'aarch64', but actual IMS image arch is 'x86_64'
        severe, absent: boot_sets.b.path: IMS image id 'gone' does not exist in IMS
        severe, silent: boot_sets.b.path: Can't validate boot image arch: IMS at HOST (failing since WHEN: 500 Internal Server Error: the database is gone)
        severe, not listed: taken
        severe, not stored: taken
        severe, misnamed: boot_sets.b.name: 'other' is not the key of the boot set
        severe, homeless: boot_sets.b.arch: Boot set arch 'ARM' means IMS image arch should be 'aarch64', but actual IMS image arch is 'x86_64'
        severe, homeless arm: boot_sets.b: needs node_list, node_roles_groups or node_groups with an entry
    "#]].assert_eq(&rows);
}

#[tokio::test]
async fn each_image_is_read_once_and_only_if_changed() {
    let (world, ims) = listed().await;
    world.put_template(of([("a", boot_set("x86")), ("b", boot_set("x86"))])).await.unwrap();
    assert_eq!(ims.calls(), ["/images/x86"]);
    let description = Some("changed".to_owned());
    let mut quiet = bare("x86");
    quiet.kernel_parameters = Some("quiet".to_owned());
    world.change_template(SessionTemplate { description, ..of([("a", quiet)]) }).await.unwrap();
    assert_eq!(ims.calls().len(), 1, "{:?}", ims.calls());
    let refused = world.change_template(of([("b", bare("arm"))])).await;
    expect![[r#"
        boot_sets.b.arch: Boot set arch 'X86' means IMS image arch should be 'x86_64', but actual IMS image arch is 'aarch64'
    "#]].assert_eq(&(outcome_text(refused) + "\n"));
    assert_eq!(ims.calls()[1..], ["/images/arm"]);
    let changed = world.change_template(of([("c", boot_set("x86"))])).await.unwrap();
    assert_eq!(changed.boot_sets.len(), 3);
    assert_eq!(ims.calls()[2..], ["/images/x86"]);
}

#[tokio::test]
async fn the_first_boot_set_is_validated_first() {
    let (world, _ims) = listed().await;
    for order in [["a", "b"], ["b", "a"]] {
        let given = |image: &str| SessionTemplate {
            boot_set_order: order.map(str::to_owned).to_vec(),
            ..of(["a", "b"].map(|name| (name, boot_set(image))))
        };
        let refused = outcome_text(world.put_template(given("arm")).await);
        assert!(refused.starts_with(&format!("boot_sets.{}.arch: ", order[0])), "{refused}");
        assert_eq!(world.put_template(given("x86")).await.unwrap().boot_set_order, order);
        let more = world.change_template(of([("0", boot_set("x86"))])).await.unwrap();
        assert_eq!(more.boot_set_order, [&order[..], &["0"]].concat());
    }
}

#[tokio::test]
async fn a_template_that_is_only_validated_is_not_stored() {
    let (world, ims) = listed().await;
    for (image, good) in [("x86", true), ("arm", false)] {
        let template = of([("a", boot_set(image))]);
        let request = PutSessionTemplateRequest { session_template: Some(template), validate_only: true };
        let answer = asked(world.templates.clone().put_session_template(request)).await;
        assert_eq!(answer.is_ok(), good, "{answer:?}");
    }
    assert_eq!(ims.calls(), ["/images/x86", "/images/arm"]);
    let request = GetSessionTemplateRequest { name: "t".to_owned(), ..Default::default() };
    let stored = asked(world.templates.clone().get_session_template(request)).await;
    assert_eq!(stored.err(), Some(Fault::not_found("session_template", "t")));
}

#[tokio::test]
async fn slow_images_delay_no_other_change_and_lose_none() {
    let (world, ims) = listed().await;
    world.put_template(of([("a", boot_set("x86"))])).await.unwrap();
    ims.answers("/images/silent", Answer::Hangs);
    let slow = {
        let (templates, change) = (world.templates.clone(), of([("b", boot_set("silent"))]));
        let request = UpdateSessionTemplateRequest { session_template: Some(change) };
        tokio::spawn(async move { asked(templates.clone().update_session_template(request)).await })
    };
    ims.called(2).await;
    let described = SessionTemplate { description: Some("meanwhile".to_owned()), ..of([]) };
    world.change_template(described).await.unwrap();
    assert!(!slow.is_finished());
    let stored = slow.await.unwrap().unwrap().session_template.unwrap();
    assert_eq!(stored.description.as_deref(), Some("meanwhile"));
    assert_eq!(stored.boot_sets.len(), 2);
}

#[tokio::test]
async fn a_template_is_stored_without_waiting_for_the_store() {
    let world = World::start().await;
    world.fleet.hold_images(true);
    for n in 0..40 {
        world.template(&format!("t{n}"), &["n1"]).await;
    }
    world.fleet.images_asked().await;
    world.fleet.hold_images(false);
    assert_eq!(world.verdict("t0").await, "Valid");
}

#[tokio::test]
async fn a_session_needs_the_image_unless_it_shuts_nodes_down() {
    let world = World::start().await;
    let nowhere = BootSet { path: "s3://images/nothing".to_owned(), ..boot_set("") };
    world.put_template(of([("a", boot_set("x86")), ("b", nowhere)])).await.unwrap();
    let mut rows = String::new();
    for operation in [Operation::Boot, Operation::Reboot, Operation::Shutdown] {
        let created = world.create(wish(operation, &format!("{operation:?}"), "t")).await;
        rows += &format!("{operation:?}: {}\n", outcome_text(created));
    }
    world.template("good", &["n1"]).await;
    world.fleet.images_answer(false);
    rows += &format!("store down: {}\n", outcome_text(world.boot("down", "good").await));
    world.fleet.images_answer(true);
    world.fleet.hold_images(true);
    rows += &format!("store silent: {}\n", outcome_text(world.boot("silent", "good").await));
    world.fleet.hold_images(false);
    rows += &format!("store well: {}\n", outcome_text(world.boot("well", "good").await));
    // A name in use is detected last.
    rows += &format!("twice: {}\n", outcome_text(world.boot("well", "t").await));
    rows += &format!("twice: {}\n", outcome_text(world.boot("well", "good").await));
    rows += &format!("no template: {}\n", outcome_text(world.boot("well", "missing").await));
    expect![[r#"
        Boot: : Session template fails check: Session template: 't' boot set: 'b': Can't find boot artifacts. Error: Unable to read manifest file 's3://images/nothing'. Error: the image manifest s3://images/nothing does not exist
        Reboot: : Session template fails check: Session template: 't' boot set: 'b': Can't find boot artifacts. Error: Unable to read manifest file 's3://images/nothing'. Error: the image manifest s3://images/nothing does not exist
        Shutdown: taken
        store down: : Session template fails check: Session template: 'good' boot set: 'compute': Can't find boot artifacts. Error: Unable to read manifest file 's3://images/compute/manifest.json'. Error: image store: the store is full
        store silent: : Session template fails check: Session template: 'good' boot set: 'compute': Can't find boot artifacts. Error: Unable to read manifest file 's3://images/compute/manifest.json'. Error: image store: no answer within 3 s
        store well: taken
        twice: : Session template fails check: Session template: 't' boot set: 'b': Can't find boot artifacts. Error: Unable to read manifest file 's3://images/nothing'. Error: the image manifest s3://images/nothing does not exist
        twice: session 'well' already exists
        no template: session_template 'missing' does not exist
    "#]].assert_eq(&rows);
}

#[tokio::test]
async fn images_in_a_directory_are_validated_too() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = directory.path().join("images");
    let add = |image: &str, boot_parameters: Option<&str>, objects: &[&str]| {
        let folder = bucket.join(image);
        fs::create_dir_all(&folder).unwrap();
        let manifest = manifest(&format!("s3://images/{image}"), boot_parameters);
        fs::write(folder.join("manifest.json"), manifest).unwrap();
        objects.iter().for_each(|object| fs::write(folder.join(object), "quiet").unwrap());
    };
    add("all", Some("s3://images/all/parameters"), &["kernel", "initrd", "parameters"]);
    add("kernel-gone", None, &["initrd"]);
    add("initrd-gone", None, &["kernel"]);
    add("parameters-gone", Some("s3://images/all/nothing"), &["kernel", "initrd"]);
    add("folder", None, &["initrd"]);
    fs::create_dir(bucket.join("folder/kernel")).unwrap();
    let world = World::start_with(|settings: &mut Settings| {
        settings.images.driver = ImagesDriver::File;
        settings.images.directory = directory.path().to_owned();
    });
    let world = world.await;
    let mut rows = String::new();
    for image in ["all", "kernel-gone", "initrd-gone", "parameters-gone", "folder", "missing"] {
        world.put_template(of([("b", boot_set(image))])).await.unwrap();
        rows += &format!("{image}: {}\n", world.verdict("t").await);
    }
    drop(directory);
    rows += &format!("unmounted: {}\n", world.verdict("t").await);
    let rows = rows.replace("Session template: 't' boot set: 'b': ", "").replace("s3://images/", "");
    let rows = rows.replace(bucket.parent().unwrap().to_str().unwrap(), "DIRECTORY");
    expect![[r#"
        all: Valid
        kernel-gone: Can't find kernel in kernel-gone/manifest.json. Error: the kernel kernel-gone/kernel does not exist
        initrd-gone: Unable to check initrd in initrd-gone/manifest.json. Warning: the initrd initrd-gone/initrd does not exist
        parameters-gone: Unable to check boot parameters in parameters-gone/manifest.json. Warning: the file of boot parameters all/nothing does not exist
        folder: Can't find kernel in folder/manifest.json. Error: the kernel folder/kernel is no file but a directory
        missing: Can't find boot artifacts. Error: Unable to read manifest file 'missing/manifest.json'. Error: the image manifest missing/manifest.json does not exist
        unmounted: Can't find boot artifacts. Error: Unable to read manifest file 'missing/manifest.json'. Error: DIRECTORY: No such file or directory (os error 2)
    "#]].assert_eq(&rows);
}

#[tokio::test]
async fn more_findings_than_bos_except_in_strict_mode() {
    for strict_bos in [false, true] {
        let world = World::start_with(|settings| settings.compat.strict_bos = strict_bos).await;
        let long = BootSet { kernel_parameters: Some("k".repeat(4096)), ..boot_set("x86") };
        let sbps = BootSet { rootfs_provider: Some("sbps".to_owned()), ..boot_set("x86") };
        world.put_template(of([("a", long), ("b", sbps)])).await.unwrap();
        let verdict = world.verdict("t").await;
        if strict_bos {
            assert_eq!(verdict, "Valid");
        } else {
            expect![[r#"
                Session template: 't' boot set: 'a': kernel_parameters have 4120 characters together with those of the image but may have at most 4096: boot/reboot sessions will fail;
                Session template: 't' boot set: 'b': the image has no rootfs, which rootfs_provider 'sbps' needs: boot/reboot sessions will fail;
                Session template: 't' boot set: 'b': takes 'n1', and perhaps more nodes, from boot set 'a', which names it too
            "#]].assert_eq(&(verdict.replace("; ", ";\n") + "\n"));
        }
    }
}
