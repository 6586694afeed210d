//! Boot scripts of our own, from preparation to firmware.

use chassis::settings::{BootParametersDriver, ConfigurationDriver};
use tonic::Code;

use super::*;

const MACHINE: &str = r#"
[[node]]
id = "x1"
nid = 17
macs = ["a4:bf:01:2e:7c:10"]

[[node]]
id = "x2"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_node_gets_the_script_of_its_newest_token() {
    let machine = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(machine.path(), MACHINE).unwrap();
    let site = CoordinatorSite::start(Options::default(), |settings| {
        settings.boot_parameters.driver = BootParametersDriver::BuiltIn;
        settings.boot_parameters.built_in.artifact_url = "http://store:9000".into();
        settings.boot_parameters.built_in.script_url = "http://gateway:7700".into();
        settings.configuration.driver = ConfigurationDriver::None;
        settings.machine_file = machine.path().to_owned();
    })
    .await;
    let mut scripts = Vec::new();
    for _ in 0..2 {
        site.pending(["x1"], "base").await;
        let is_prepared = |one: &Component| one.preparation_of(1).is_some_and(|done| done.trouble.is_none());
        site.registry.until("x1", "a token", is_prepared).await;
        let token = site.token("x1").await.unwrap();
        let by = [Node::Id("x1".into()), Node::Mac("A4-BF-01-2E-7C-10".into()), Node::Nid(17)];
        for node in by {
            scripts.push(site.script(node).await.unwrap().replace(&token, "TOKEN"));
        }
    }
    scripts.dedup();
    expect_test::expect![[r#"
        #!ipxe
        # Images of an attempt before must not be taken for these.
        imgfree
        kernel --name kernel http://store:9000/boot-images/i1/kernel initrd=initrd quiet xname=x1 nid=17 bss_referral_token=TOKEN || goto again
        initrd --name initrd http://store:9000/boot-images/i1/initrd || goto again
        boot || goto again
        :again
        sleep 10
        chain --replace --autofree http://gateway:7700/boot/v1/bootscript?name=x1 || goto again
    "#]].assert_eq(&scripts.concat());
    for node in
        [Node::Id("x2".into()), Node::Id("x3".into()), Node::Mac("00:00:00:00:00:00".into()), Node::Nid(0)]
    {
        let status = site.script(node.clone()).await.unwrap_err();
        assert_eq!(status.code(), Code::NotFound, "{node:?}");
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_script_can_be_made_of_is_refused_before_anybody_boots() {
    let site = CoordinatorSite::start(Options::default(), |settings| {
        settings.boot_parameters.driver = BootParametersDriver::BuiltIn;
        settings.configuration.driver = ConfigurationDriver::None;
    })
    .await;
    for (id, kernel, parameters) in [
        ("x1", "s3://boot-images/i1/kernel", ""),
        ("x2", "tftp://host/kernel", ""),
        ("x3", "https://host/kernel", "a\u{1b}b"),
        ("x4", "https://host/kernel", "quiet"),
    ] {
        let boot_artifacts = BootArtifacts { initrd: None, ..artifacts(kernel, parameters) };
        let wish = SessionWish { boot_artifacts, ..wish("base") };
        site.assign([id], &wish, Phase::PoweringOn).await;
    }
    let mut told = String::new();
    for id in ["x1", "x2", "x3", "x4"] {
        let shown = eventually("a preparation", async || {
            let shown = site.preparation(id).await;
            if shown.starts_with("none") { Err(shown) } else { Ok(shown) }
        })
        .await;
        let known = site.token(id).await.unwrap_or_default();
        told += &format!("{id}: {}\n", if known.is_empty() { shown } else { shown.replace(&known, "TOKEN") });
    }
    expect_test::expect![[r#"
        x1: 1 "waiting for the built-in boot scripts: boot_parameters.built_in.artifact_url is not set, and nodes cannot fetch 's3://boot-images/i1/kernel' without" token None, Some(0) spent
        x2: 1 "Error encountered setting BSS information: the built-in boot scripts: 'tftp://host/kernel' is not of the form s3://BUCKET/KEY" token None, Some(1) spent
        x3: 1 "Error encountered setting BSS information: the built-in boot scripts: the kernel parameters hold the control character U+001B" token None, Some(1) spent
        x4: 1 "" token Some("TOKEN"), Some(0) spent
    "#]].assert_eq(&told);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_another_service_serves_scripts_there_are_none() {
    let site = CoordinatorSite::start(Options::default(), |settings| {
        settings.boot_parameters.driver = BootParametersDriver::Bss;
        settings.configuration.driver = ConfigurationDriver::None;
    })
    .await;
    let status = site.script(Node::Id("x1".into())).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    site.stop().await;
}
