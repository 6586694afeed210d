//! Settings of a deployment: the image, the disk, and the procedure (host reference 1.13, 3.3).

use domain::host::record::spec::{BootMode, HostImage, RootDeviceHints};
use serde_json::{Map, Value, json};

use upstream::SecretText;

use crate::driver::{DeployDocuments, HostTarget};

/// Format of images that a host boots instead of having them installed.
const LIVE_ISO: &str = "live-iso";

/// Word for a kind of checksum that Ironic is to find out.
const AUTO: &str = "auto";

/// Priority of the step of a custom procedure, the one at which the usual step writes the image.
const PROCEDURE_PRIORITY: u32 = 80;

/// Returns the interface for a deployment; `None`: Ironic's choice.
pub(super) fn deploy_interface(image: Option<&HostImage>, has_procedure: bool) -> Option<&'static str> {
    match image {
        Some(image) if is_live(image) => Some("ramdisk"),
        Some(_) | None => has_procedure.then_some("custom-agent"),
    }
}

/// Returns whether the host boots the image, so that nothing is installed.
pub(super) fn is_live(image: &HostImage) -> bool {
    &*image.format == LIVE_ISO
}

/// Returns the `instance_info` of a node.
pub(super) fn instance_info(
    image: Option<&HostImage>,
    mode: BootMode,
    hints: Option<&RootDeviceHints>,
) -> Value {
    let mut info = image.map(image_members).unwrap_or_default();
    if mode == BootMode::UefiSecureBoot {
        info.insert("capabilities".to_owned(), json!({"secure_boot": "true"}));
    }
    if let Some(hints) = hints.map(hint_members).filter(|hints| !hints.is_empty()) {
        info.insert("root_device".to_owned(), hints.into());
    }
    info.into()
}

fn image_members(image: &HostImage) -> Map<String, Value> {
    let mut info = Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            info.insert(name.to_owned(), value.into());
        }
    };
    if is_live(image) {
        put("boot_iso", &image.url);
        return info;
    }
    put("image_source", &image.url);
    put("image_disk_format", &image.format);
    if matches!(&*image.checksum_type, "" | AUTO) {
        put("image_checksum", &image.checksum);
    } else {
        put("image_os_hash_algo", &image.checksum_type);
        put("image_os_hash_value", &image.checksum);
    }
    info
}

/// Returns hints in the words and operators of Ironic.
pub(super) fn hint_members(hints: &RootDeviceHints) -> Map<String, Value> {
    let mut members = Map::new();
    let mut put = |name: &str, text: String| members.insert(name.to_owned(), text.into());
    if let Some(device) = &hints.device_name {
        let name = if device.starts_with("/dev/disk/by-path/") { "by_path" } else { "name" };
        put(name, format!("s== {device}"));
    }
    if let Some(hctl) = &hints.hctl {
        put("hctl", format!("s== {hctl}"));
    }
    for (hint, value) in &hints.others {
        match &**hint {
            "model" | "vendor" => put(hint, format!("<in> {value}")),
            "serialNumber" => put("serial", format!("s== {value}")),
            "wwn" => put("wwn", format!("s== {value}")),
            "wwnWithExtension" => put("wwn_with_extension", format!("s== {value}")),
            "wwnVendorExtension" => put("wwn_vendor_extension", format!("s== {value}")),
            "minSizeGigabytes" => put("size", format!(">= {value}")),
            "rotational" => put("rotational", value.to_string()),
            _ => None,
        };
    }
    members
}

/// Returns the step of a custom procedure.
pub(super) fn procedure_steps(procedure: &str) -> Value {
    json!([{"interface": "deploy", "step": procedure, "args": {}, "priority": PROCEDURE_PRIORITY}])
}

/// Returns the config drive of a host; `None`: the host boots an image that reads none.
///
/// # Errors
/// A document has a form that Ironic does not take, for people.
pub(super) fn config_drive(
    host: &HostTarget,
    image: Option<&HostImage>,
    documents: &DeployDocuments,
) -> Result<Option<Value>, String> {
    if image.is_some_and(is_live) {
        return Ok(None);
    }
    let mut facts = usual_facts(host);
    if let Some(meta_data) = &documents.meta_data {
        let own = members(meta_data).or_else(|| lines(meta_data));
        facts.extend(own.ok_or("the metadata are neither a JSON object nor lines such as 'name: value'")?);
    }
    let mut drive = json!({ "meta_data": facts });
    if let Some(user_data) = &documents.user_data {
        drive["user_data"] = user_data.reveal().into();
    }
    if let Some(network_data) = &documents.network_data {
        drive["network_data"] = members(network_data).ok_or("the network data are no JSON object")?.into();
    }
    Ok(Some(drive))
}

fn usual_facts(host: &HostTarget) -> Map<String, Value> {
    let (name, namespace) = (&*host.key.name, &*host.key.namespace);
    let facts = [
        ("uuid", &*host.uid),
        ("metal3-namespace", namespace),
        ("metal3-name", name),
        ("local-hostname", name),
        ("local_hostname", name),
        ("name", name),
    ];
    facts.map(|(fact, value)| (fact.to_owned(), value.into())).into_iter().collect()
}

fn members(document: &SecretText) -> Option<Map<String, Value>> {
    serde_json::from_str(document.reveal()).ok()
}

/// Reads lines of names and texts, the simple form of YAML that most metadata have.
fn lines(document: &SecretText) -> Option<Map<String, Value>> {
    let lines = document.reveal().lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#') && *line != "---");
    lines
        .map(|line| {
            let (name, value) = line.split_once(':')?;
            let value = value.trim().trim_matches(['"', '\'']);
            let is_simple =
                !name.starts_with([' ', '-']) && !value.is_empty() && !value.starts_with(['{', '[', '|']);
            is_simple.then(|| (name.trim().to_owned(), value.into()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use domain::host::record::HostKey;
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_config_drive_has_the_documents_of_the_host() {
        let host = HostTarget {
            key: HostKey { namespace: "m".into(), name: "h".into() },
            uid: "u".into(),
            driver_id: "".into(),
            address: "".into(),
            takes_any_certificate: false,
            boot_mac: None,
            disable_power_off: false,
            login: None,
        };
        let documents = |meta: &str, network: &str| DeployDocuments {
            user_data: Some(SecretText::new("#cloud-config")),
            network_data: Some(SecretText::new(network)),
            meta_data: Some(SecretText::new(meta)),
        };
        let mut table = String::new();
        for documents in [
            DeployDocuments::default(),
            documents(r#"{"rack": 7}"#, r#"{"links": []}"#),
            documents("---\nrack: \"7\"\nname: other\n", "{}"),
            documents("rack:\n  - 7", "{}"),
            documents("{}", "links: []"),
        ] {
            match config_drive(&host, None, &documents) {
                Ok(drive) => writeln!(table, "{}", drive.unwrap()).unwrap(),
                Err(reason) => writeln!(table, "{reason}").unwrap(),
            }
        }
        expect![[r##"
            {"meta_data":{"local-hostname":"h","local_hostname":"h","metal3-name":"h","metal3-namespace":"m","name":"h","uuid":"u"}}
            {"meta_data":{"local-hostname":"h","local_hostname":"h","metal3-name":"h","metal3-namespace":"m","name":"h","rack":7,"uuid":"u"},"network_data":{"links":[]},"user_data":"#cloud-config"}
            {"meta_data":{"local-hostname":"h","local_hostname":"h","metal3-name":"h","metal3-namespace":"m","name":"other","rack":"7","uuid":"u"},"network_data":{},"user_data":"#cloud-config"}
            the metadata are neither a JSON object nor lines such as 'name: value'
            the network data are no JSON object
        "##]].assert_eq(&table);
        let live = HostImage { format: LIVE_ISO.into(), ..HostImage::default() };
        assert_eq!(config_drive(&host, Some(&live), &documents("{}", "{}")), Ok(None));
    }

    #[test]
    fn images_and_disks_are_named_in_the_words_of_ironic() {
        let image = |format: &str, kind: &str| HostImage {
            url: "http://i/os".into(),
            checksum: "abc".into(),
            checksum_type: kind.into(),
            format: format.into(),
            ..HostImage::default()
        };
        let by_path = RootDeviceHints {
            device_name: Some("/dev/disk/by-path/p".into()),
            hctl: Some("0:0:0:0".into()),
            others: [
                ("minSizeGigabytes", "40"),
                ("model", "M"),
                ("rotational", "false"),
                ("serialNumber", "S"),
            ]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        };
        let by_name = RootDeviceHints { device_name: Some("/dev/sda".into()), ..RootDeviceHints::default() };
        let rows = [
            (Some(image("raw", "sha256")), BootMode::Uefi, Some(&by_path)),
            (Some(image("", "auto")), BootMode::UefiSecureBoot, Some(&by_name)),
            (Some(image("live-iso", "")), BootMode::Legacy, None),
            (None, BootMode::Uefi, Some(&RootDeviceHints::default())),
        ];
        let mut table = String::new();
        for (image, mode, hints) in rows {
            let interface = deploy_interface(image.as_ref(), image.is_none());
            writeln!(table, "{interface:?} {}", instance_info(image.as_ref(), mode, hints)).unwrap();
        }
        expect![[r#"
            None {"image_disk_format":"raw","image_os_hash_algo":"sha256","image_os_hash_value":"abc","image_source":"http://i/os","root_device":{"by_path":"s== /dev/disk/by-path/p","hctl":"s== 0:0:0:0","model":"<in> M","rotational":"false","serial":"s== S","size":">= 40"}}
            None {"capabilities":{"secure_boot":"true"},"image_checksum":"abc","image_source":"http://i/os","root_device":{"name":"s== /dev/sda"}}
            Some("ramdisk") {"boot_iso":"http://i/os"}
            Some("custom-agent") {}
        "#]].assert_eq(&table);
    }
}
