//! Session templates.

use std::collections::HashMap;

use csm_rs::{
    Error,
    bos::{
        BootSet, BosSessionTemplate, Cfs,
        template::utils::{filter, get_image_id_cfs_configuration_target_tuple_vec},
    },
};
use serde_json::json;

use crate::gateway::{Refusal, TOKEN, client};

/// Id of the image that templates here boot.
const IMAGE: &str = "9e3c75e1-ac42-42c7-873c-e758048897d6";

/// A template that boots nodes of a list, without its name: that is in the path.
pub fn template(configuration: &str, nodes: &[&str]) -> BosSessionTemplate {
    let boot_set = BootSet {
        name: None,
        path: Some(format!("s3://boot-images/{IMAGE}/manifest.json")),
        cfs: None,
        r#type: Some("s3".into()),
        etag: Some("1cc4eef4f407bd8a62d7d66ee4b9e9c8".into()),
        kernel_parameters: Some("ip=dhcp quiet".into()),
        node_list: Some(nodes.iter().map(|node| (*node).to_owned()).collect()),
        node_roles_groups: None,
        node_groups: None,
        arch: None,
        rootfs_provider: Some("sbps".into()),
        rootfs_provider_passthrough: Some("sbps:v1:iqn.2023-06.example:_sbps._tcp.example.org:300".into()),
    };
    BosSessionTemplate {
        name: None,
        tenant: None,
        description: Some("nodes of a list".into()),
        enable_cfs: Some(true),
        cfs: Some(Cfs { configuration: Some(configuration.into()) }),
        boot_sets: Some(HashMap::from([("compute".into(), boot_set)])),
        links: None,
    }
}

#[tokio::test]
async fn a_stored_template_comes_back_whole() {
    let (client, name) = (client(), "stored-and-read");
    let written =
        client.bos_template_v2_put(TOKEN, &template("v1", &["X1000C0S0B0N00"]), name).await.unwrap();
    let written = serde_json::to_value(written).unwrap();
    let stored = json!({
        "name": name,
        "description": "nodes of a list",
        "enable_cfs": true,
        "cfs": {"configuration": "v1"},
        "boot_sets": {"compute": {
            "path": format!("s3://boot-images/{IMAGE}/manifest.json"),
            "type": "s3",
            "etag": "1cc4eef4f407bd8a62d7d66ee4b9e9c8",
            "kernel_parameters": "ip=dhcp quiet",
            // The spelling is that of the inventory, and the architecture the usual one.
            "node_list": ["x1000c0s0b0n0"],
            "arch": "X86",
            "rootfs_provider": "sbps",
            "rootfs_provider_passthrough": "sbps:v1:iqn.2023-06.example:_sbps._tcp.example.org:300",
        }},
    });
    assert_eq!(written, stored);

    let read = client.bos_template_v2_get(TOKEN, Some(name)).await.unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), json!([stored]));

    for listed in [
        client.bos_template_v2_get(TOKEN, None).await.unwrap(),
        client.bos_template_v2_get_all(TOKEN).await.unwrap(),
    ] {
        let listed: Vec<_> =
            listed.into_iter().filter(|template| template.name.as_deref() == Some(name)).collect();
        assert_eq!(serde_json::to_value(listed).unwrap(), json!([stored]));
    }
}

#[tokio::test]
async fn storing_again_replaces_everything() {
    let (client, name) = (client(), "replaced");
    client.bos_template_v2_put(TOKEN, &template("v1", &["x1000c0s0b0n0"]), name).await.unwrap();
    let bare = BosSessionTemplate { description: None, cfs: None, ..template("", &["x1000c0s0b0n1"]) };
    client.bos_template_v2_put(TOKEN, &bare, name).await.unwrap();

    let read = client.bos_template_v2_get(TOKEN, Some(name)).await.unwrap().remove(0);
    assert_eq!((&read.description, read.configuration_name()), (&None, None));
    assert_eq!(read.get_target_xname(), ["x1000c0s0b0n1"]);
}

#[tokio::test]
async fn lists_are_fit_for_the_clients_own_searches() {
    let (client, name) = (client(), "searched");
    let searched = template("searched-configuration", &["x1000c0s0b0n0"]);
    client.bos_template_v2_put(TOKEN, &searched, name).await.unwrap();
    let mut listed = client.bos_template_v2_get_all(TOKEN).await.unwrap();

    let found = filter(&mut listed, Some("searched-*"), &[], &[], None).unwrap();
    assert_eq!(found.iter().flat_map(|template| &template.name).collect::<Vec<_>>(), [name]);
    assert_eq!(found[0].images_id().collect::<Vec<_>>(), [IMAGE]);
    assert_eq!(
        get_image_id_cfs_configuration_target_tuple_vec(&found),
        [(IMAGE.into(), "searched-configuration".into(), vec!["x1000c0s0b0n0".into()])]
    );
}

#[tokio::test]
async fn impossible_template_is_refused_and_not_stored() {
    let (client, name) = (client(), "refused");
    let sets = |change: fn(&mut BootSet)| {
        let mut template = template("v1", &["x1000c0s0b0n0"]);
        template.boot_sets.iter_mut().flat_map(HashMap::values_mut).for_each(change);
        template
    };
    for (refused, told) in [
        (BosSessionTemplate { name: Some(name.into()), ..sets(|_| ()) }, "name"),
        (BosSessionTemplate { boot_sets: None, ..sets(|_| ()) }, "boot_sets"),
        (sets(|set| set.path = None), "path"),
        (sets(|set| set.node_list = None), "node_list"),
        (sets(|set| set.name = Some("uan".into())), "uan"),
        (sets(|set| set.arch = Some("Z80".into())), "arch"),
    ] {
        let refusal = Refusal::of(client.bos_template_v2_put(TOKEN, &refused, name).await);
        assert_eq!(refusal.status, 400, "{}", refusal.detail);
        assert!(refusal.detail.contains(told), "{told:?} is not in {:?}", refusal.detail);
    }
    assert_eq!(Refusal::of(client.bos_template_v2_get(TOKEN, Some(name)).await), unknown(name));
}

#[tokio::test]
async fn a_deleted_template_is_gone() {
    let (client, name) = (client(), "deleted");
    client.bos_template_v2_put(TOKEN, &template("v1", &["x1000c0s0b0n0"]), name).await.unwrap();
    client.bos_template_v2_delete(TOKEN, name).await.unwrap();
    assert_eq!(Refusal::of(client.bos_template_v2_get(TOKEN, Some(name)).await), unknown(name));
    let again = client.bos_template_v2_delete(TOKEN, name).await;
    let Err(Error::NetError(refusal)) = again else { panic!("deleted twice: {again:?}") };
    assert_eq!(refusal.status().map(|status| status.as_u16()), Some(404));
}

fn unknown(name: &str) -> Refusal {
    Refusal { status: 404, detail: format!("Session template '{name}' does not exist") }
}
