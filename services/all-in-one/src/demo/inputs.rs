//! Inputs of the demo: a fleet and a template, from files or built in.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use chassis::{Settings, settings};
use domain::{boot::session::inventory::NODE, core::id::ComponentId};
use proto::inventory::{Group, Hardware};
use serde_json::{Map, Value};
use simulator::{FleetFaults, hsm, topology};

use super::flags::DemoFlags;

const INVENTORY: &str = include_str!("../../demo/inventory.json");
const GROUPS: &str = include_str!("../../demo/groups.json");
const TEMPLATE: &str = include_str!("../../demo/template.json");

/// Inputs of the demo.
#[derive(Debug)]
pub(crate) struct DemoInputs {
    pub(crate) fleet: DemoFleet,
    /// Template to boot.
    pub(crate) template: DemoTemplate,
}

/// Simulated fleet.
#[derive(Debug)]
pub(crate) struct DemoFleet {
    /// Nodes in no particular order.
    pub(crate) nodes: Vec<ComponentId>,
    /// Hardware of the inventory.
    pub(crate) hardware: Vec<Hardware>,
    pub(crate) groups: Vec<Group>,
    /// Whether the fleet is the built-in one.
    built_in: bool,
}

impl DemoFleet {
    fn read(simulator: &settings::SimulatorSettings) -> anyhow::Result<Self> {
        let default = Settings::default().simulator.nodes;
        let built_in = simulator.inventory.is_empty() && simulator.nodes == default;
        let hardware = match simulator.inventory.as_str() {
            _ if built_in => hsm::parse_inventory("the built-in inventory", INVENTORY)?,
            "" => topology::generate(simulator.nodes),
            file => hsm::read_inventory(file.as_ref()).context("inventory")?,
        };
        let nodes = hardware.iter().filter(|piece| piece.r#type == NODE);
        let nodes = nodes.map(|node| ComponentId::parse(&node.id)).collect::<Result<Vec<_>, _>>()?;
        if nodes.is_empty() {
            bail!("inventory: {} lists no nodes", simulator.inventory);
        }
        let groups = groups(simulator, &hardware, built_in)?;
        Ok(Self { nodes, hardware, groups, built_in })
    }
}

/// Reads groups from the file, if one is set. A fleet from a file has only the groups of a file.
fn groups(
    simulator: &settings::SimulatorSettings,
    hardware: &[Hardware],
    built_in: bool,
) -> anyhow::Result<Vec<Group>> {
    match simulator.groups.as_str() {
        "" if built_in => Ok(hsm::parse_groups("the built-in groups", GROUPS)?),
        "" if simulator.inventory.is_empty() => Ok(topology::groups(hardware)),
        "" => Ok(Vec::new()),
        file => hsm::read_groups(file.as_ref()).context("groups"),
    }
}

/// Session template in the form of a request.
#[derive(Debug, PartialEq)]
pub(crate) struct DemoTemplate {
    /// Body of the request.
    pub(crate) body: Map<String, Value>,
    /// Origin of the template, for errors.
    pub(crate) source: String,
}

impl DemoTemplate {
    /// Reads the template from that file, or the built-in one.
    fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(file) = file else { return Self::parse(TEMPLATE, "the built-in template") };
        let source = format!("template {}", file.display());
        let text = fs::read_to_string(file).with_context(|| source.clone())?;
        Self::parse(&text, &source)
    }

    /// Parses a template. Exports include name and tenant, which are no part of the body; the `cray` CLI drops them
    /// too.
    fn parse(text: &str, source: &str) -> anyhow::Result<Self> {
        let mut body: Map<String, Value> = serde_json::from_str(text).with_context(|| source.to_owned())?;
        body.remove("name");
        body.remove("tenant");
        Ok(Self { body, source: source.to_owned() })
    }
}

impl DemoInputs {
    /// Reads and checks every file. The gateway validates the template.
    ///
    /// # Errors
    /// Names the file and the place in it that cannot be used.
    pub(crate) fn read(flags: &DemoFlags, simulator: &settings::SimulatorSettings) -> anyhow::Result<Self> {
        let fleet = DemoFleet::read(simulator)?;
        let faults: FleetFaults = simulator.faults.parse().context("faults")?;
        faults.assign(fleet.nodes.len(), simulator.seed).context("faults")?;
        Ok(Self { fleet, template: DemoTemplate::read(flags.template.as_deref())? })
    }

    /// Creates the data directory and writes the built-in files there, as starting points for users.
    ///
    /// # Errors
    /// Names the directory that cannot be created or written.
    pub(crate) fn store(&self, settings: &mut Settings) -> anyhow::Result<()> {
        let directory = &settings.data_dir;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .with_context(|| format!("data_dir: cannot create {}", directory.display()))?;
        if self.fleet.built_in {
            let simulator = &mut settings.simulator;
            simulator.inventory = write(directory.join("inventory.json"), INVENTORY)?;
            if simulator.groups.is_empty() {
                simulator.groups = write(directory.join("groups.json"), GROUPS)?;
            }
        }
        let template = serde_json::to_string_pretty(&self.template.body).context("template")?;
        write(directory.join("template.json"), &template).map(drop)
    }
}

fn write(file: PathBuf, text: &str) -> anyhow::Result<String> {
    fs::write(&file, text).with_context(|| format!("data_dir: cannot write {}", file.display()))?;
    Ok(file.display().to_string())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_template_is_sent_without_what_exports_add() {
        let text = r#"{"name": "old", "tenant": null, "boot_sets": {"a": {"name": "a"}}}"#;
        let body = serde_json::json!({"boot_sets": {"a": {"name": "a"}}});
        assert_eq!(Value::Object(DemoTemplate::parse(text, "t").expect("well-formed").body), body);
    }

    #[test]
    fn a_bad_template_is_named_with_the_line() {
        let errors =
            ["{\n\"a\": }", "[]", ""].map(|text| match DemoTemplate::parse(text, "template t.json") {
                Ok(_) => "accepted\n".to_owned(),
                Err(error) => format!("{error:#}\n"),
            });
        expect![[r#"
            template t.json: expected value at line 2 column 6
            template t.json: invalid type: sequence, expected a map at line 1 column 0
            template t.json: EOF while parsing a value at line 1 column 0
        "#]]
        .assert_eq(&errors.concat());
    }

    #[test]
    fn a_size_generates_a_fleet_instead_of_the_default() {
        let fleet = |change: fn(&mut settings::SimulatorSettings)| {
            let mut simulator = Settings::default().simulator;
            change(&mut simulator);
            DemoFleet::read(&simulator).map(|fleet| (fleet.nodes.len(), fleet.built_in)).expect("usable")
        };
        assert_eq!(fleet(|_| ()), (96, true));
        assert_eq!(fleet(|simulator| simulator.nodes = 7), (7, false));
    }
}
