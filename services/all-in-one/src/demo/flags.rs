//! Flags of the demo, and their settings.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use simulator::{FleetFaults, topology};

/// Largest time factor of the simulated hardware.
const SLOWEST: f64 = 1000.0;

/// Flags of the demo.
#[derive(Debug, Args)]
pub(crate) struct DemoFlags {
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
    /// Operation on the nodes
    #[arg(long, value_enum, default_value_t = DemoOperation::Boot)]
    pub(crate) operation: DemoOperation,
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
    /// Boot with this session template
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
    /// Leave when the session has ended; see below for the exit code
    #[arg(long)]
    pub(crate) exit: bool,
    #[command(flatten, next_help_heading = "Common options")]
    command: chassis::CommandFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoOperation {
    /// Nodes that are off are to run the template's image
    Boot,
    /// Nodes that are on are to run the template's image from a fresh start
    Reboot,
    /// Nodes that are on are to be off
    Shutdown,
}

impl DemoOperation {
    /// Word in the REST contract.
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

pub(super) fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| (0.0..=SLOWEST).contains(speed));
    speed.ok_or_else(|| format!("must be a number from 0 (no delay) to {SLOWEST}"))
}

fn faults(text: &str) -> Result<String, String> {
    text.parse::<FleetFaults>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl DemoFlags {
    /// Returns the common flags, with the defaults of the demo below them and its own flags above them.
    pub(crate) fn command(&self, data_dir: PathBuf) -> chassis::CommandFlags {
        let mut command = self.command.clone();
        command.defaults.data_dir = data_dir;
        // The terminal is reserved for the progress display.
        command.defaults.log.filter = "warn".into();
        let mut set = |key: &str, value: Option<String>| {
            command.set.extend(value.map(|value| (format!("simulator.{key}"), value)));
        };
        set("initial_power", Some(self.operation.initial_power().into()));
        set("seed", self.seed.map(|seed| seed.to_string()));
        set("speed", self.speed.map(|speed| speed.to_string()));
        set("faults", self.faults.clone());
        set("nodes", self.nodes.map(|nodes| nodes.to_string()));
        // A fleet is generated unless a file describes it; the settings may name the file.
        set("inventory", self.nodes.map(|_| String::new()));
        set("inventory", self.inventory.as_ref().map(|file| file.display().to_string()));
        set("groups", self.groups.as_ref().map(|file| file.display().to_string()));
        command
    }
}

#[cfg(test)]
mod tests {
    use chassis::settings;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: DemoFlags,
    }

    fn command(line: &str) -> chassis::CommandFlags {
        let words = std::iter::once("demo").chain(line.split_whitespace());
        Line::parse_from(words).flags.command("fresh".into())
    }

    fn simulator(line: &str) -> settings::SimulatorSettings {
        command(line).settings().expect("usable").simulator
    }

    #[test]
    fn flags_become_settings_and_win_over_set_keys() {
        let default = simulator("");
        assert_eq!((default.nodes, &*default.initial_power), (96, "off"));
        assert_eq!(simulator("--operation shutdown").initial_power, "on");
        let given = simulator("--nodes 7 --seed 9 --speed 0 --faults 0.5 --set simulator.nodes=3");
        assert_eq!((given.nodes, given.seed, given.speed, &*given.faults), (7, 9, 0.0, "0.5"));
        let files = simulator("--inventory a.json --groups b.json");
        assert_eq!((&*files.inventory, &*files.groups), ("a.json", "b.json"));
        assert_eq!(simulator("--nodes 7 --set simulator.inventory=a.json").inventory, "");
    }

    #[test]
    fn defaults_of_the_demo_give_way_to_what_is_said() {
        for (line, filter, data_dir) in [
            ("", "warn", "fresh"),
            ("--log info", "info", "fresh"),
            ("--set log.filter=debug --data-dir kept", "debug", "kept"),
        ] {
            let settings = command(line).settings().expect("usable");
            assert_eq!((&*settings.log.filter, settings.data_dir), (filter, data_dir.into()), "{line}");
        }
    }
}
