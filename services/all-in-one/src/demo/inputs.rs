//! What the demo works on: flags, and the files that they name or that are built in.

use std::{fs, os::unix::fs::DirBuilderExt, path::PathBuf};

use anyhow::{Context as _, bail};
use chassis::{Settings, settings};
use clap::{Args, ValueEnum};
use domain::{id::ComponentId, inventory::NODE, options::Options};
use serde_json::{Map, Value, json};
use simulator::{Faults, hsm, topology};

const INVENTORY: &str = include_str!("../../demo/inventory.json");
const GROUPS: &str = include_str!("../../demo/groups.json");
const TEMPLATE: &str = include_str!("../../demo/template.json");

/// Largest factor that the simulated hardware takes.
const SLOWEST: f64 = 1000.0;

/// Flags of the demo.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Size of a generated fleet [default: the 96 nodes of the built-in inventory]
    #[arg(long, value_name = "N", conflicts_with = "inventory")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(topology::MOST_NODES)))]
    nodes: Option<u32>,
    /// Seed of delays and faults: the same seed gives the same hardware [default: 1]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// How long hardware takes compared with real machines: 1 is real time, 0 is no delay [default: 0.02]
    #[arg(long, value_name = "F", value_parser = speed, allow_negative_numbers = true)]
    speed: Option<f64>,
    /// What to do with the nodes
    #[arg(long, value_enum, default_value_t = Operation::Boot)]
    pub(crate) operation: Operation,
    /// Injected faults: a fraction of the fleet such as 0.05, or a list such as
    /// stuck-off=2,ignores-graceful-off=1,never-reports=0.01,configuration-fails=1
    #[arg(long, value_name = "SPEC", value_parser = faults)]
    faults: Option<String>,
    /// Take the fleet from this file: HSM's answer to GET /hsm/v2/State/Components
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Take the groups from this file: HSM's answer to GET /hsm/v2/groups
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// Boot what this session template says
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Leave when the session has ended; see below for the exit code
    #[arg(long)]
    pub(crate) exit: bool,
    #[command(flatten, next_help_heading = "Common options")]
    command: chassis::Command,
}

/// What to do with the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operation {
    /// Nodes that are off are to run the template's image
    Boot,
    /// Nodes that are on are to run the template's image from a fresh start
    Reboot,
    /// Nodes that are on are to be off
    Shutdown,
}

impl Operation {
    /// The word for it in the REST contract.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Reboot => "reboot",
            Self::Shutdown => "shutdown",
        }
    }

    fn initial_power(self) -> &'static str {
        match self {
            Self::Boot => "off",
            Self::Reboot | Self::Shutdown => "on",
        }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| (0.0..=SLOWEST).contains(speed));
    speed.ok_or_else(|| format!("must be a number from 0 (no delay) to {SLOWEST}"))
}

fn faults(text: &str) -> Result<String, String> {
    text.parse::<Faults>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl Flags {
    /// The common flags, with the demo's own defaults below them and its own flags above them.
    pub(crate) fn command(&self, data_dir: PathBuf) -> chassis::Command {
        let mut command = self.command.clone();
        command.defaults.data_dir = data_dir;
        // The terminal belongs to the progress display.
        command.defaults.log.filter = "warn".into();
        let mut set = |key: &str, value: Option<String>| {
            command.set.extend(value.map(|value| (format!("simulator.{key}"), value)));
        };
        set("initial_power", Some(self.operation.initial_power().into()));
        set("seed", self.seed.map(|seed| seed.to_string()));
        set("speed", self.speed.map(|speed| speed.to_string()));
        set("faults", self.faults.clone());
        set("nodes", self.nodes.map(|nodes| nodes.to_string()));
        // A fleet is generated unless a file, perhaps one from the settings, says what it is.
        set("inventory", self.nodes.map(|_| String::new()));
        set("inventory", self.inventory.as_ref().map(|file| file.display().to_string()));
        set("groups", self.groups.as_ref().map(|file| file.display().to_string()));
        command
    }

    /// Reads and checks every file.
    ///
    /// # Errors
    /// Names the file and the place in it that cannot be used.
    pub(crate) fn inputs(&self, simulator: &settings::Simulator) -> anyhow::Result<Inputs> {
        let built_in =
            simulator.inventory.is_empty() && simulator.nodes == Settings::default().simulator.nodes;
        let hardware = match simulator.inventory.as_str() {
            _ if built_in => hsm::parse_inventory("inventory.json", INVENTORY)?,
            "" => topology::generate(simulator.nodes),
            file => hsm::read_inventory(file.as_ref()).context("inventory")?,
        };
        if !simulator.groups.is_empty() {
            hsm::read_groups(simulator.groups.as_ref()).context("groups")?;
        }
        let nodes = hardware.into_iter().filter(|piece| piece.r#type == NODE);
        let nodes = nodes.map(|node| ComponentId::parse(&node.id)).collect::<Result<Vec<_>, _>>()?;
        if nodes.is_empty() {
            bail!("inventory: {} lists no nodes", simulator.inventory);
        }
        let faults: Faults = simulator.faults.parse().context("faults")?;
        faults.assign(nodes.len(), simulator.seed).context("faults")?;
        Ok(Inputs { nodes, built_in, template: self.template()? })
    }

    /// What is in the file, which the gateway judges.
    fn template(&self) -> anyhow::Result<Template> {
        let Some(file) = &self.template else { return Template::parse(TEMPLATE, "the built-in template") };
        let source = format!("template {}", file.display());
        let text = fs::read_to_string(file).with_context(|| source.clone())?;
        Template::parse(&text, &source)
    }
}

/// What the demo works on.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// Every node of the fleet.
    pub(crate) nodes: Vec<ComponentId>,
    /// What to boot.
    pub(crate) template: Template,
    /// Whether the fleet is the built-in one.
    built_in: bool,
}

/// A session template as it is sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Template {
    /// The body of the request.
    pub(crate) body: Map<String, Value>,
    /// Where it came from, for errors.
    pub(crate) source: String,
}

impl Template {
    /// Takes the text of a template. What people export has a name and a tenant, which are no part of what is
    /// sent; the `cray` CLI drops them too.
    fn parse(text: &str, source: &str) -> anyhow::Result<Self> {
        let mut body: Map<String, Value> = serde_json::from_str(text).with_context(|| source.to_owned())?;
        body.remove("name");
        body.remove("tenant");
        Ok(Self { body, source: source.to_owned() })
    }
}

impl Inputs {
    /// Creates the data directory and puts the built-in files there, to look at and to start from.
    ///
    /// # Errors
    /// Names the directory that cannot be created or written.
    pub(crate) fn store(&self, settings: &mut Settings) -> anyhow::Result<()> {
        let directory = &settings.data_dir;
        // Only the directory itself is private; whatever is above it is not ours.
        if let Some(parent) = directory.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("data_dir: cannot create {}", parent.display()))?;
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .with_context(|| format!("data_dir: cannot create {}", directory.display()))?;
        if self.built_in {
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

/// How long to wait for hardware that takes `speed` times as long as real hardware: the default limits,
/// scaled alike. Fast hardware does not make the mesh faster, so a limit never falls below what a whole fleet
/// needs to get through it.
pub(crate) fn waits(speed: f64, nodes: usize) -> Value {
    const LARGEST: f64 = 1_048_576.0;
    let Options { max_power_on_wait_time, max_power_off_wait_time, max_boot_wait_time, .. } =
        Options::default();
    let least = (3 + nodes / 200) as f64;
    let scaled = |seconds: u32| (f64::from(seconds) * speed).ceil().clamp(least, LARGEST) as u32;
    json!({
        "max_power_on_wait_time": scaled(max_power_on_wait_time),
        "max_power_off_wait_time": scaled(max_power_off_wait_time),
        "max_boot_wait_time": scaled(max_boot_wait_time),
    })
}
