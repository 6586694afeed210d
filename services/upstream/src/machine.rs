//! The machine file: nodes and their BMCs in one TOML document, for sites that have no service for them.

use serde::Deserialize;

mod check;
mod file;

pub use check::mac;
pub use file::MachineFile;

/// Content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The nodes, `[[node]]`.
    #[serde(default, rename = "node")]
    pub nodes: Vec<Node>,
    /// The BMCs, `[[bmc]]`.
    #[serde(default, rename = "bmc")]
    pub bmcs: Vec<Bmc>,
}

/// A node that can be booted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Location name, such as `x1000c0s0b0n0`.
    pub id: String,
    /// Role of the node, such as `Compute`.
    #[serde(default = "compute")]
    pub role: String,
    /// Refinement of the role; empty: none.
    #[serde(default)]
    pub sub_role: String,
    /// `X86`, `ARM`, `Other` or `UNKNOWN`.
    #[serde(default = "x86")]
    pub arch: String,
    /// Numeric node id; 0: none.
    #[serde(default)]
    pub nid: u32,
    /// Whether sessions may use the node.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether the node is locked against power operations.
    #[serde(default)]
    pub locked: bool,
    /// MAC addresses from which the node may boot; they identify the node when it requests its boot script.
    #[serde(default)]
    pub macs: Vec<String>,
    /// Groups of the node.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Partition of the node; empty: none.
    #[serde(default)]
    pub partition: String,
    /// Name of the node's BMC; empty: the node has none, and its power cannot be switched.
    #[serde(default)]
    pub bmc: String,
    /// Redfish path of the node at the BMC, such as `/redfish/v1/Systems/Self`; empty: the only system.
    #[serde(default)]
    pub system: String,
}

/// A baseboard management controller.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bmc {
    /// Name to which nodes refer.
    pub name: String,
    /// Address, such as `https://10.1.0.17`.
    pub url: String,
    /// Place of the credentials, as `file:PATH` or `env:NAME`; empty: the credentials of `power.redfish`.
    #[serde(default)]
    pub credentials: String,
}

/// A machine file that cannot be used: the file and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct MachineError {
    /// Path of the file.
    pub path: String,
    /// Reason, with line and column if they are known.
    pub reason: String,
}

impl Machine {
    /// Reads and checks a document: every node has a valid id of its own and names a BMC that is listed and a
    /// system that is no other node's, no MAC address belongs to two nodes, and every BMC can be called. MAC
    /// addresses get their usual form, `a4:bf:01:2e:7c:10`. The error names the place and the reason.
    fn parse(text: &str) -> Result<Self, String> {
        let machine = toml::from_str(text).map_err(|error| located(&error, text))?;
        check::checked(machine)
    }

    /// The node that boots from the network card with the address `mac`, in any of its usual forms.
    pub fn node_by_mac(&self, mac: &str) -> Option<&Node> {
        let mac = check::mac(mac)?;
        self.nodes.iter().find(|node| node.macs.contains(&mac))
    }

    /// The node called `id`.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

/// Returns the parser's error in one line, with its position.
fn located(error: &toml::de::Error, text: &str) -> String {
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return error.message().to_owned();
    };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", error.message())
}

fn compute() -> String {
    "Compute".into()
}

fn x86() -> String {
    "X86".into()
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests;
