//! Checks of a template's images when the template is stored, when it is validated, and when a session uses it.

use expect_test::expect;
use integration_tests::{bos::Bos, eventually, eventually_shown, mesh::Mesh};
use reqwest::Method;
use serde_json::{Value, json};
use upstreams::{
    MachinePlan,
    Service::{Ims, S3},
    ServiceTrouble, StoredImage, TroubleEffect,
};

use crate::scene::{MeshScene, TEMPLATE};

const GET: &str = "GET /{bucket}/{*key}";
const HEAD: &str = "HEAD /{bucket}/{*key}";

/// A default image after `change` has edited it.
fn image(change: impl FnOnce(&mut StoredImage)) -> StoredImage {
    let mut image = StoredImage::default();
    change(&mut image);
    image
}

fn without(objects: &[String], name: &str) -> Vec<String> {
    objects.iter().filter(|object| *object != name).cloned().collect()
}

/// The template's validation, and the fate of a session without nodes.
async fn judged(bos: &Bos) -> String {
    let verdict = bos.get(&format!("/v2/sessiontemplatesvalid/{TEMPLATE}")).await;
    let verdict = verdict.as_str().unwrap();
    let wish = json!({"template_name": TEMPLATE, "operation": "boot", "limit": "nobody"});
    let answer = bos.send(Method::POST, "/v2/sessions", Some(&wish)).await;
    let session = match answer.status.as_u16() {
        201 => "a session".to_owned(),
        status => {
            let detail = tidy(answer.body["detail"].as_str().unwrap());
            assert_eq!(detail, format!("Session template fails check: {}", tidy(verdict)));
            status.to_string()
        }
    };
    format!("{session}: {}", tidy(verdict))
}

/// The text without the name of the template, and without addresses and times.
fn tidy(text: &str) -> String {
    let own = format!("Session template: '{TEMPLATE}' boot set: 'compute': ");
    let text = text.replace(&own, "").replace("s3://boot-images/", "");
    let mut tidy = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(" at 127.0.0.1:") {
        let error = after.split_once("Z: ").map_or(after, |(_, error)| error);
        tidy += &format!("{before} at HOST (failing since WHEN: ");
        rest = error;
    }
    tidy + rest
}

/// Waits until the systems that were in trouble are called again.
async fn is_well_again(scene: &MeshScene) {
    scene.upstreams.clear_troubles(None);
    eventually("a valid template", async || {
        let verdict = scene.mesh.bos.get(&format!("/v2/sessiontemplatesvalid/{TEMPLATE}")).await;
        (verdict == "Valid").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_judged_by_the_store_s_content() {
    let scene = MeshScene::new(2).await;
    let usual = StoredImage::default();
    let kernel =
        json!({"type": "application/vnd.cray.image.kernel", "link": {"path": "s3://b/k", "etag": "e"}});
    let twice = json!({"artifacts": [kernel, kernel]}).to_string();
    let mut rows = String::new();
    for (what, image) in [
        ("usual", usual.clone()),
        ("no manifest", image(|image| image.stored = without(&usual.stored, "manifest.json"))),
        ("too large", image(|image| image.manifest = Some(" ".repeat((1 << 20) + 1)))),
        ("not JSON", image(|image| image.manifest = Some("{nope".into()))),
        ("a list", image(|image| image.manifest = Some("[]".into()))),
        ("two kernels", image(|image| image.manifest = Some(twice))),
        ("no kernel", image(|image| image.listed = without(&usual.listed, "kernel"))),
        ("no initrd", image(|image| image.listed = without(&usual.listed, "initrd"))),
        ("no rootfs", image(|image| image.listed = without(&usual.listed, "rootfs"))),
        ("no parameters", image(|image| image.listed = without(&usual.listed, "boot_parameters"))),
        ("kernel gone", image(|image| image.stored = without(&usual.stored, "kernel"))),
        ("initrd gone", image(|image| image.stored = without(&usual.stored, "initrd"))),
        ("parameters gone", image(|image| image.stored = without(&usual.stored, "boot_parameters"))),
        ("rootfs without etag", image(|image| image.without_etag = vec!["rootfs".into()])),
        ("parameters without etag", image(|image| image.without_etag = vec!["boot_parameters".into()])),
        ("long parameters", image(|image| image.boot_parameters = "p".repeat(4096))),
        ("not listed", image(|image| image.in_catalogue = false)),
        ("no arch", image(|image| image.arch = None)),
        ("another arch", image(|image| image.arch = Some("aarch64".into()))),
    ] {
        scene.upstreams.set_image(TEMPLATE, Some(image));
        rows += &format!("{what}: {}\n", judged(&scene.mesh.bos).await);
    }
    expect![[r#"
        usual: a session: Valid
        no manifest: 400: Can't find boot artifacts. Error: Unable to read manifest file 'image-1/manifest.json'. Error: the image manifest image-1/manifest.json does not exist
        too large: 400: Can't find boot artifacts. Error: Unable to read manifest file 'image-1/manifest.json'. Error: the image manifest image-1/manifest.json is larger than 1048576 bytes
        not JSON: 400: Can't find boot artifacts. Error: image-1/manifest.json: it is not JSON: key must be a string at line 1 column 2
        a list: 400: Can't find boot artifacts. Error: Manifest should be dict. Invalid data type: list
        two kernels: 400: Can't find boot artifacts. Error: image-1/manifest.json: it lists more than one artifact of type 'application/vnd.cray.image.kernel'
        no kernel: 400: Can't find kernel in image-1/manifest.json. Error: the manifest lists none
        no initrd: a session: image-1/manifest.json doesn't contain a initrd
        no rootfs: a session: the image has no rootfs, which rootfs_provider 'sbps' needs: boot/reboot sessions will fail
        no parameters: a session: Valid
        kernel gone: 400: Can't find kernel in image-1/manifest.json. Error: the kernel image-1/kernel does not exist
        initrd gone: a session: Unable to check initrd in image-1/manifest.json. Warning: the initrd image-1/initrd does not exist
        parameters gone: a session: Unable to check boot parameters in image-1/manifest.json. Warning: the file of boot parameters image-1/boot_parameters does not exist
        rootfs without etag: 400: Can't find boot artifacts. Error: image-1/manifest.json: its artifact of type 'application/vnd.cray.image.rootfs.squashfs' has no link.etag
        parameters without etag: 400: Can't find boot artifacts. Error: image-1/manifest.json: its artifact of type 'application/vnd.cray.image.parameters.boot' has no link.etag
        long parameters: a session: kernel_parameters have 4336 characters together with those of the image but may have at most 4096: boot/reboot sessions will fail
        not listed: a session: IMS image id 'image-1' does not exist in IMS
        no arch: a session: Valid
        another arch: 400: Boot set arch 'X86' means IMS image arch should be 'x86_64', but actual IMS image arch is 'aarch64'
    "#]].assert_eq(&rows);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_image_is_checked_once() {
    let scene = MeshScene::new(2).await;
    let looks = async |times: u64| {
        let requests = [(S3, GET), (S3, HEAD), (Ims, "GET /images/{id}")];
        // IMS is asked once at the start, too.
        let expected = [2 * times, 3 * times, times + 1];
        eventually_shown("looks at one image", async || {
            let seen = requests.map(|(service, operation)| scene.upstreams.requests(service, operation));
            if seen == expected { Ok(()) } else { Err(format!("{seen:?} instead of {expected:?}")) }
        })
        .await;
    };
    // The template that every scene has.
    looks(1).await;
    scene.mesh.bos.template_with("shared", share_image).await;
    looks(2).await;
    assert_eq!(scene.mesh.bos.get("/v2/sessiontemplatesvalid/shared").await, "Valid");
    looks(3).await;
    let path = "/v2/sessiontemplates/shared";
    let described = json!({"description": "has nothing to do with images"});
    scene.mesh.bos.expect(Method::PATCH, path, Some(&described)).await;
    scene.mesh.bos.template("unlike").await;
    looks(4).await;
    scene.end().await;
}

fn share_image(template: &mut Value) {
    let mut another = template["boot_sets"]["compute"].clone();
    another["node_roles_groups"] = json!(["Application"]);
    template["boot_sets"]["another"] = another;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_trouble_is_named() {
    let scene = MeshScene::new(2).await;
    let mut rows = String::new();
    for (what, trouble) in [
        ("no objects", ServiceTrouble::status(S3, 500).only(HEAD)),
        ("forbidden", ServiceTrouble::status(S3, 403)),
        ("down", ServiceTrouble::status(S3, 503)),
        ("cut", ServiceTrouble::new(S3, TroubleEffect::Drop)),
        ("silent", ServiceTrouble::new(S3, TroubleEffect::Hang)),
    ] {
        scene.upstreams.trouble(trouble);
        rows += &format!("{what}: {}\n", judged(&scene.mesh.bos).await);
        is_well_again(&scene).await;
    }
    // A template is stored all the same.
    scene.upstreams.trouble(ServiceTrouble::new(S3, TroubleEffect::Hang));
    scene.mesh.bos.template("another").await;
    expect![[r#"
        no objects: 400: Can't find kernel in image-1/manifest.json. Error: S3 at HOST (failing since WHEN: 500 Internal Server Error)
        forbidden: 400: Can't find boot artifacts. Error: Unable to read manifest file 'image-1/manifest.json'. Error: S3 at HOST (failing since WHEN: 403 Forbidden)
        down: 400: Can't find boot artifacts. Error: Unable to read manifest file 'image-1/manifest.json'. Error: S3 at HOST (failing since WHEN: 503 Service Unavailable)
        cut: 400: Can't find boot artifacts. Error: Unable to read manifest file 'image-1/manifest.json'. Error: S3 at HOST (failing since WHEN: connection closed before message completed)
        silent: 400: Can't find boot artifacts. Error: Unable to read manifest file 'image-1/manifest.json'. Error: S3 at HOST (failing since WHEN: no answer within 3s)
    "#]].assert_eq(&rows);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_decide_how_bad_a_catalogue_in_trouble_is() {
    let scene = MeshScene::new(2).await;
    let bos = &scene.mesh.bos;
    let mut rows = String::new();
    for severe in [false, true] {
        bos.options(&json!({"ims_errors_fatal": severe, "ims_images_must_exist": severe})).await;
        scene.upstreams.set_image(TEMPLATE, Some(image(|image| image.in_catalogue = false)));
        rows += &format!("absent, {severe}: {}\n", judged(bos).await);
        rows += &format!("absent, {severe}: {}\n", written(bos).await);
        scene.upstreams.set_image(TEMPLATE, None);
        for trouble in [ServiceTrouble::status(Ims, 500), ServiceTrouble::new(Ims, TroubleEffect::Hang)] {
            let what = if trouble.effect == TroubleEffect::Hang { "silent" } else { "down" };
            scene.upstreams.trouble(trouble);
            rows += &format!("{what}, {severe}: {}\n", judged(bos).await);
            rows += &format!("{what}, {severe}: {}\n", written(bos).await);
            is_well_again(&scene).await;
        }
    }
    // A known mismatch is refused under any options.
    scene.upstreams.set_image(TEMPLATE, Some(image(|image| image.arch = Some("aarch64".into()))));
    rows += &format!("another arch: {}\n", written(bos).await);
    let path = format!("/v2/sessiontemplates/{TEMPLATE}");
    let described = json!({"description": "its image is another matter"});
    bos.expect(Method::PATCH, &path, Some(&described)).await;
    bos.template_with("other", |template| {
        template["boot_sets"]["compute"]["arch"] = json!("Other");
    })
    .await;
    let verdict = bos.get("/v2/sessiontemplatesvalid/other").await;
    rows += &format!("Other: {}\n", verdict.as_str().unwrap());
    expect![[r#"
        absent, false: a session: IMS image id 'image-1' does not exist in IMS
        absent, false: stored
        down, false: a session: Can't validate boot image arch: IMS at HOST (failing since WHEN: 500 Internal Server Error)
        down, false: stored
        silent, false: a session: Can't validate boot image arch: IMS at HOST (failing since WHEN: no answer within 3s)
        silent, false: stored
        absent, true: 400: IMS image id 'image-1' does not exist in IMS
        absent, true: 400 The session template could not be created: IMS image id 'image-1' does not exist in IMS - 'boot_sets.compute.path'
        down, true: 400: Can't validate boot image arch: IMS at HOST (failing since WHEN: 500 Internal Server Error)
        down, true: 400 The session template could not be created: Can't validate boot image arch: IMS at HOST (failing since WHEN: 500 Internal Server Error) - 'boot_sets.compute.path'
        silent, true: 400: Can't validate boot image arch: IMS at HOST (failing since WHEN: no answer within 3s)
        silent, true: 400 The session template could not be created: Can't validate boot image arch: IMS at HOST (failing since WHEN: no answer within 3s) - 'boot_sets.compute.path'
        another arch: 400 The session template could not be created: Boot set arch 'X86' means IMS image arch should be 'x86_64', but actual IMS image arch is 'aarch64' - 'boot_sets.compute.arch'
        Other: Session template: 'other' boot set: 'compute': Can't validate boot image arch: Boot set arch set to 'Other'
    "#]].assert_eq(&rows);
    scene.end().await;
}

/// Result of storing the template again.
async fn written(bos: &Bos) -> String {
    let path = format!("/v2/sessiontemplates/{TEMPLATE}");
    let mut template = bos.get(&path).await;
    // Members that only the service writes must not be sent back.
    template.as_object_mut().unwrap().retain(|member, _| !["name", "tenant"].contains(&member.as_str()));
    let answer = bos.send(Method::PUT, &path, Some(&template)).await;
    match answer.status.as_u16() {
        200 => "stored".to_owned(),
        status => format!("{status} {}", tidy(answer.body["detail"].as_str().unwrap())),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_mode_accepts_images_as_bos_does() {
    let plan = MachinePlan::quick(2);
    let scene = MeshScene::of(plan, |settings| settings.compat.strict_bos = true).await;
    let long = image(|image| image.boot_parameters = "p".repeat(4096));
    scene.upstreams.set_image(TEMPLATE, Some(long));
    scene.upstreams.reset_counts();
    assert_eq!(judged(&scene.mesh.bos).await, "a session: Valid");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_the_simulated_fleet_are_judged_like_others() {
    let mesh = Mesh::start(async |_| {}).await;
    mesh.bos.template(TEMPLATE).await;
    let mut rows = format!("usual: {}\n", judged(&mesh.bos).await);
    for (what, change) in [
        ("path", json!({"path": "s3://boot-images/manifest.yaml"})),
        ("type", json!({"type": "ims"})),
        ("provider", json!({"rootfs_provider": "nfs"})),
        ("parameters", json!({"kernel_parameters": "p".repeat(4096)})),
    ] {
        let set = |template: &mut Value| {
            let members = change.as_object().unwrap().clone();
            template["boot_sets"]["compute"].as_object_mut().unwrap().extend(members);
        };
        mesh.bos.template_with(TEMPLATE, set).await;
        rows += &format!("{what}: {}\n", judged(&mesh.bos).await);
    }
    expect![[r#"
        usual: a session: Valid
        path: 400: Can't find boot artifacts. Error: Unable to read manifest file 'manifest.yaml'. Error: the image manifest manifest.yaml does not exist
        type: 400: Can't find boot artifacts. Error: No BootImageMetadata class for type ims
        provider: a session: Unsupported rootfs_provider ('nfs') will cause boot/reboot sessions to fail
        parameters: a session: kernel_parameters have 4319 characters together with those of the image but may have at most 4096: boot/reboot sessions will fail
    "#]].assert_eq(&rows);
    mesh.stop().await;
}
