//! Settings of a node: how Ironic reaches the BMC, and how the host boots (host reference 1.20, 3.3).

use domain::host::{
    address::{BmcAddress, BmcFamily},
    record::{call::RegisterCall, spec::BootMode},
};
use serde_json::{Map, Value, json};

use ironic::node_name;

use super::deployment::{deploy_interface, instance_info};
use crate::driver::{BmcLogin, HostTarget};

/// API version from which a node can be kept from being off.
const DISABLE_POWER_OFF: u32 = 95;

/// Port of IPMI.
const IPMI_PORT: u16 = 623;

/// Settings of the site for every node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SiteSettings {
    /// Hardware type of every node; `None`: by the BMC.
    pub(super) hardware: Option<String>,
    /// Members of `driver_info` about the agent.
    pub(super) agent: Vec<(&'static str, String)>,
}

/// Settings of a node, as they are sent for a new one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeSettings {
    /// Members that a node takes in every state in which it takes any.
    always: Map<String, Value>,
    /// Members that a node takes only before it is deployed.
    early: Map<String, Value>,
    capabilities: BootMode,
    architecture: String,
}

/// Returns the settings of a node.
///
/// # Errors
/// The host cannot be registered at an Ironic of that API version, for people.
pub(super) fn node_settings(
    host: &HostTarget,
    address: &BmcAddress,
    call: &RegisterCall,
    site: &SiteSettings,
    version: u32,
) -> Result<NodeSettings, String> {
    let login = host.login.as_ref().ok_or("the login of the BMC cannot be read")?;
    let facts = &call.registration;
    let mut always = Map::new();
    always.insert("name".to_owned(), node_name(host).into());
    always.insert("driver_info".to_owned(), driver_info(host, address, login, site));
    always.insert("automated_clean".to_owned(), (!facts.cleaning_disabled).into());
    if version >= DISABLE_POWER_OFF {
        always.insert("disable_power_off".to_owned(), facts.disable_power_off.into());
    } else if facts.disable_power_off {
        return Err("this Ironic is too old for hosts that may never be off".to_owned());
    }
    let mut early = interfaces(address.family, site);
    let image = facts.image.as_ref().filter(|image| !image.url.is_empty());
    if let Some(image) = image {
        early.insert("instance_info".to_owned(), instance_info(Some(image), facts.boot_mode, None));
    }
    if site.hardware.is_none() {
        let interface = deploy_interface(image, facts.has_procedure);
        early.extend(interface.map(|interface| ("deploy_interface".to_owned(), interface.into())));
    }
    let architecture = call.architecture.to_string();
    Ok(NodeSettings { always, early, capabilities: facts.boot_mode, architecture })
}

impl NodeSettings {
    /// Returns a new node.
    pub(super) fn node(&self, extra: Value) -> Value {
        let mut node = self.always.clone();
        node.extend(self.early.clone());
        node.insert("extra".to_owned(), extra);
        let capabilities = capabilities("", self.capabilities);
        node.insert(
            "properties".to_owned(),
            json!({"capabilities": capabilities, "cpu_arch": self.architecture}),
        );
        node.into()
    }

    /// Returns the changes of a node that has `properties`. `is_early`: it was not deployed yet.
    pub(super) fn changes(&self, properties: &Value, is_early: bool) -> Vec<Value> {
        let early = self.early.iter().filter(|_| is_early);
        let members = self.always.iter().chain(early);
        let mut changes: Vec<_> = members.map(|(name, value)| set(name, value)).collect();
        changes.push(set_capabilities(properties, self.capabilities));
        changes.push(set("properties/cpu_arch", &json!(self.architecture)));
        changes
    }
}

/// Returns the change of a node that sets a member.
pub(super) fn set(path: &str, value: &Value) -> Value {
    json!({"op": "add", "path": format!("/{path}"), "value": value})
}

/// Returns the change of a node with `properties` that sets the boot mode. Other capabilities stay.
pub(super) fn set_capabilities(properties: &Value, mode: BootMode) -> Value {
    let known = properties["capabilities"].as_str().unwrap_or_default();
    set("properties/capabilities", &capabilities(known, mode).into())
}

fn capabilities(known: &str, mode: BootMode) -> String {
    let is_other = |entry: &&str| !entry.is_empty() && !matches!(name(entry), "boot_mode" | "secure_boot");
    let mut entries: Vec<_> = known.split(',').filter(is_other).collect();
    entries.push(match mode {
        BootMode::Uefi => "boot_mode:uefi",
        BootMode::UefiSecureBoot => "boot_mode:uefi,secure_boot:true",
        BootMode::Legacy => "boot_mode:bios",
    });
    entries.join(",")
}

fn name(entry: &str) -> &str {
    entry.split(':').next().unwrap_or_default()
}

/// Returns the interfaces of a new node; absent ones are Ironic's choice. A hardware type of the site has its own.
fn interfaces(family: BmcFamily, site: &SiteSettings) -> Map<String, Value> {
    let mut members = Map::new();
    if let Some(hardware) = &site.hardware {
        members.insert("driver".to_owned(), hardware.as_str().into());
        return members;
    }
    let mut put = |name: &str, value: &str| members.insert(name.to_owned(), value.into());
    let (driver, boot) = match family {
        BmcFamily::Ipmi | BmcFamily::Libvirt => ("ipmi", "ipxe"),
        BmcFamily::Redfish | BmcFamily::Ilo5 => ("redfish", "ipxe"),
        BmcFamily::Idrac => ("idrac", "ipxe"),
        BmcFamily::RedfishVirtualMedia | BmcFamily::Ilo5VirtualMedia => ("redfish", "redfish-virtual-media"),
        BmcFamily::IdracVirtualMedia => ("idrac", "idrac-redfish-virtual-media"),
        BmcFamily::RedfishUefiHttp => ("redfish", "redfish-https"),
    };
    put("driver", driver);
    put("boot_interface", boot);
    put("raid_interface", raid_interface(family));
    if driver == "idrac" {
        for interface in ["bios_interface", "management_interface", "power_interface", "vendor_interface"] {
            put(interface, "idrac-redfish");
        }
    }
    members
}

/// Returns the interface for RAID volumes of controllers.
pub(super) fn raid_interface(family: BmcFamily) -> &'static str {
    match family {
        BmcFamily::Ipmi | BmcFamily::Libvirt => "no-raid",
        BmcFamily::Idrac | BmcFamily::IdracVirtualMedia => "idrac-redfish",
        BmcFamily::Redfish
        | BmcFamily::Ilo5
        | BmcFamily::RedfishVirtualMedia
        | BmcFamily::Ilo5VirtualMedia
        | BmcFamily::RedfishUefiHttp => "redfish",
    }
}

fn driver_info(host: &HostTarget, address: &BmcAddress, login: &BmcLogin, site: &SiteSettings) -> Value {
    let BmcLogin { username, password } = login;
    let agent = site.agent.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into()));
    let mut info: Map<String, Value> = agent.collect();
    let mut put = |name: &str, value: Value| info.insert(name.to_owned(), value);
    if address.family.is_redfish() {
        put("redfish_address", address.base_url().into());
        put("redfish_username", username.as_str().into());
        put("redfish_password", password.reveal().into());
        if !matches!(&*address.path, "" | "/redfish/v1") || address.family == BmcFamily::RedfishUefiHttp {
            put("redfish_system_id", address.path.as_str().into());
        }
        if host.takes_any_certificate {
            put("redfish_verify_ca", false.into());
        }
        return info.into();
    }
    put("ipmi_address", address.host.as_str().into());
    put("ipmi_port", address.port.unwrap_or(IPMI_PORT).to_string().into());
    put("ipmi_username", username.as_str().into());
    put("ipmi_password", password.reveal().into());
    put("ipmi_priv_level", "ADMINISTRATOR".into());
    if host.takes_any_certificate {
        put("ipmi_verify_ca", false.into());
    }
    info.into()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use domain::host::record::{
        HostKey, call::Registration, spec::HostImage, state::HostState, status::OperationalStatus,
    };
    use expect_test::expect;
    use upstream::SecretText;

    use super::*;

    fn host(address: &str) -> HostTarget {
        HostTarget {
            key: HostKey { namespace: "m".into(), name: "h".into() },
            uid: "u".into(),
            driver_id: "".into(),
            address: address.into(),
            takes_any_certificate: true,
            boot_mac: None,
            disable_power_off: false,
            login: Some(BmcLogin { username: "admin".to_owned(), password: SecretText::new("pw") }),
        }
    }

    fn call(image: Option<HostImage>) -> RegisterCall {
        RegisterCall {
            registration: Registration { image, ..Registration::default() },
            state: HostState::Registering,
            operational: OperationalStatus::Ok,
            architecture: "x86_64".into(),
            credentials_changed: false,
            restart: false,
        }
    }

    #[test]
    fn a_node_follows_the_address_of_its_bmc() {
        let mut table = String::new();
        for text in [
            "10.0.0.1",
            "redfish+http://bmc:8000/redfish/v1/Systems/1",
            "idrac-virtualmedia://bmc/redfish/v1/",
            "redfish-uefihttp://bmc",
        ] {
            let (host, address) = (host(text), BmcAddress::parse(text).unwrap());
            let settings =
                node_settings(&host, &address, &call(None), &SiteSettings::default(), 110).unwrap();
            writeln!(table, "{text}\n{}", settings.node(json!({}))).unwrap();
        }
        expect![[r#"
            10.0.0.1
            {"automated_clean":true,"boot_interface":"ipxe","disable_power_off":false,"driver":"ipmi","driver_info":{"ipmi_address":"10.0.0.1","ipmi_password":"pw","ipmi_port":"623","ipmi_priv_level":"ADMINISTRATOR","ipmi_username":"admin","ipmi_verify_ca":false},"extra":{},"name":"m~h","properties":{"capabilities":"boot_mode:uefi","cpu_arch":"x86_64"},"raid_interface":"no-raid"}
            redfish+http://bmc:8000/redfish/v1/Systems/1
            {"automated_clean":true,"boot_interface":"ipxe","disable_power_off":false,"driver":"redfish","driver_info":{"redfish_address":"http://bmc:8000","redfish_password":"pw","redfish_system_id":"/redfish/v1/Systems/1","redfish_username":"admin","redfish_verify_ca":false},"extra":{},"name":"m~h","properties":{"capabilities":"boot_mode:uefi","cpu_arch":"x86_64"},"raid_interface":"redfish"}
            idrac-virtualmedia://bmc/redfish/v1/
            {"automated_clean":true,"bios_interface":"idrac-redfish","boot_interface":"idrac-redfish-virtual-media","disable_power_off":false,"driver":"idrac","driver_info":{"redfish_address":"https://bmc","redfish_password":"pw","redfish_username":"admin","redfish_verify_ca":false},"extra":{},"management_interface":"idrac-redfish","name":"m~h","power_interface":"idrac-redfish","properties":{"capabilities":"boot_mode:uefi","cpu_arch":"x86_64"},"raid_interface":"idrac-redfish","vendor_interface":"idrac-redfish"}
            redfish-uefihttp://bmc
            {"automated_clean":true,"boot_interface":"redfish-https","disable_power_off":false,"driver":"redfish","driver_info":{"redfish_address":"https://bmc","redfish_password":"pw","redfish_system_id":"","redfish_username":"admin","redfish_verify_ca":false},"extra":{},"name":"m~h","properties":{"capabilities":"boot_mode:uefi","cpu_arch":"x86_64"},"raid_interface":"redfish"}
        "#]].assert_eq(&table);
    }

    #[test]
    fn a_known_node_gets_what_it_can_take() {
        let text = "redfish-virtualmedia://bmc/redfish/v1/Systems/1";
        let (host, address) = (host(text), BmcAddress::parse(text).unwrap());
        let image =
            HostImage { url: "http://i/live.iso".into(), format: "live-iso".into(), ..Default::default() };
        let site = SiteSettings {
            agent: vec![("deploy_iso", "http://i/agent.iso".to_owned())],
            ..Default::default()
        };
        let settings = node_settings(&host, &address, &call(Some(image)), &site, 90).unwrap();
        let properties = json!({"capabilities": "a:b,boot_mode:bios,secure_boot:true"});
        let mut table = String::new();
        for is_early in [true, false] {
            for change in settings.changes(&properties, is_early) {
                writeln!(table, "{change}").unwrap();
            }
            table.push('\n');
        }
        expect![[r#"
            {"op":"add","path":"/automated_clean","value":true}
            {"op":"add","path":"/driver_info","value":{"deploy_iso":"http://i/agent.iso","redfish_address":"https://bmc","redfish_password":"pw","redfish_system_id":"/redfish/v1/Systems/1","redfish_username":"admin","redfish_verify_ca":false}}
            {"op":"add","path":"/name","value":"m~h"}
            {"op":"add","path":"/boot_interface","value":"redfish-virtual-media"}
            {"op":"add","path":"/deploy_interface","value":"ramdisk"}
            {"op":"add","path":"/driver","value":"redfish"}
            {"op":"add","path":"/instance_info","value":{"boot_iso":"http://i/live.iso"}}
            {"op":"add","path":"/raid_interface","value":"redfish"}
            {"op":"add","path":"/properties/capabilities","value":"a:b,boot_mode:uefi"}
            {"op":"add","path":"/properties/cpu_arch","value":"x86_64"}

            {"op":"add","path":"/automated_clean","value":true}
            {"op":"add","path":"/driver_info","value":{"deploy_iso":"http://i/agent.iso","redfish_address":"https://bmc","redfish_password":"pw","redfish_system_id":"/redfish/v1/Systems/1","redfish_username":"admin","redfish_verify_ca":false}}
            {"op":"add","path":"/name","value":"m~h"}
            {"op":"add","path":"/properties/capabilities","value":"a:b,boot_mode:uefi"}
            {"op":"add","path":"/properties/cpu_arch","value":"x86_64"}

        "#]].assert_eq(&table);
    }

    #[test]
    fn hosts_that_ironic_cannot_serve_are_refused() {
        let address = BmcAddress::parse("10.0.0.1").unwrap();
        let refused = |host: &HostTarget, call: &RegisterCall| {
            node_settings(host, &address, call, &SiteSettings::default(), 90).unwrap_err()
        };
        let stranger = HostTarget { login: None, ..host("10.0.0.1") };
        assert_eq!(refused(&stranger, &call(None)), "the login of the BMC cannot be read");
        let mut never_off = call(None);
        never_off.registration.disable_power_off = true;
        assert_eq!(
            refused(&host("10.0.0.1"), &never_off),
            "this Ironic is too old for hosts that may never be off"
        );
    }
}
