//! Checks of a machine file as a whole.

use std::collections::{HashMap, HashSet};

use domain::core::id::ComponentId;

use super::{Bmc, Machine, Node};
use crate::{base::BaseUrl, keyring};

/// Names of architectures in HSM (BOS reference 6.2).
const ARCHITECTURES: [&str; 4] = ["X86", "ARM", "Other", "UNKNOWN"];

/// Returns the machine with MAC addresses in their usual form, if the whole file is consistent.
pub(super) fn checked(mut machine: Machine) -> Result<Machine, String> {
    let mut bmcs = HashSet::new();
    for bmc in &machine.bmcs {
        check_bmc(bmc).map_err(|reason| format!("BMC '{}': {reason}", bmc.name))?;
        if !bmcs.insert(bmc.name.as_str()) {
            return Err(format!("BMC '{}' is listed twice", bmc.name));
        }
    }
    let mut seen = UniqueValues::default();
    for node in &mut machine.nodes {
        check_node(node, &bmcs).map_err(|reason| format!("node '{}': {reason}", node.id))?;
        seen.add(node)?;
    }
    Ok(machine)
}

fn check_bmc(bmc: &Bmc) -> Result<(), String> {
    if bmc.name.is_empty() {
        return Err("name: is empty".into());
    }
    // The settings decide for all BMCs whether TLS is required.
    BaseUrl::parse(&bmc.url, true).map_err(|error| error.to_string())?;
    keyring::check_place(&bmc.credentials).map_err(|error| error.to_string())
}

fn check_node(node: &mut Node, bmcs: &HashSet<&str>) -> Result<(), String> {
    ComponentId::parse(&node.id).map_err(|error| error.to_string())?;
    if !ARCHITECTURES.contains(&node.arch.as_str()) {
        return Err(format!("arch: '{}' is none of {}", node.arch, ARCHITECTURES.join(", ")));
    }
    if !node.bmc.is_empty() && !bmcs.contains(node.bmc.as_str()) {
        return Err(format!("bmc: '{}' is not listed", node.bmc));
    }
    if !node.system.is_empty() && !node.system.starts_with('/') {
        return Err(format!("system: '{}' has to be a path, such as /redfish/v1/Systems/1", node.system));
    }
    for address in &mut node.macs {
        *address = mac(address).ok_or_else(|| format!("macs: '{address}' is not a MAC address"))?;
    }
    Ok(())
}

/// Values that may belong to one node only.
#[derive(Default)]
struct UniqueValues {
    ids: HashSet<String>,
    macs: HashMap<String, String>,
    systems: HashMap<(String, String), String>,
}

impl UniqueValues {
    fn add(&mut self, node: &Node) -> Result<(), String> {
        let id = &node.id;
        if !self.ids.insert(id.clone()) {
            return Err(format!("node '{id}' is listed twice"));
        }
        for mac in &node.macs {
            if let Some(other) = self.macs.insert(mac.clone(), id.clone()) {
                return Err(format!("node '{id}': macs: {mac} belongs to node '{other}' already"));
            }
        }
        if node.bmc.is_empty() {
            return Ok(());
        }
        match self.systems.insert((node.bmc.clone(), node.system.clone()), id.clone()) {
            Some(other) => Err(format!("node '{id}': system: is that of node '{other}' at the same BMC")),
            None => Ok(()),
        }
    }
}

/// Returns a MAC address as `a4:bf:01:2e:7c:10`. People and tools also write `-` or `.` between its parts, or
/// nothing.
pub fn mac(text: &str) -> Option<String> {
    let digits =
        text.chars().filter(|c| !matches!(c, ':' | '-' | '.')).collect::<String>().to_ascii_lowercase();
    let parts = text.split([':', '-', '.']).map(str::len).collect::<Vec<_>>();
    let even = matches!(parts[..], [2, 2, 2, 2, 2, 2] | [4, 4, 4] | [12]);
    if !even || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).into_owned());
    Some(pairs.collect::<Vec<_>>().join(":"))
}
