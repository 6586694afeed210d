//! Flags of the demo of hosts, and their settings.

use std::{path::PathBuf, time::Duration};

use chassis::settings::InventoryDriver;
use clap::Args;

use super::{super::flags::speed, rack::MOST_HOSTS};

/// Longest time until a rack without delays is available, on a slow disk and in a debug build.
const PATIENCE: Duration = Duration::from_secs(60);

/// Seconds that the slowest host needs at real speed until it is available.
const SLOWEST_HOST: f64 = 600.0;

/// Flags of the demo of hosts.
#[derive(Debug, Args)]
pub(crate) struct HostDemoFlags {
    /// Hosts on the rack
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_HOSTS)))]
    pub(super) hosts: u8,
    /// How long hardware takes compared with real machines: 1 is real time, 0 is no delay [default: 0.02]
    #[arg(long, value_name = "F", value_parser = speed, allow_negative_numbers = true)]
    speed: Option<f64>,
    /// Leave when the hosts have booted; the exit code is 1 if one does not
    #[arg(long)]
    pub(crate) exit: bool,
    #[command(flatten, next_help_heading = "Common options")]
    command: chassis::CommandFlags,
}

impl HostDemoFlags {
    /// Returns the common flags, with the defaults of the demo below them and its own flags above them.
    pub(crate) fn command(&self, data_dir: PathBuf) -> chassis::CommandFlags {
        let mut command = self.command.clone();
        command.defaults.data_dir = data_dir;
        // The terminal is reserved for the table.
        command.defaults.log.filter = "warn".into();
        command.defaults.inventory.driver = InventoryDriver::Hosts;
        // The hosts are all that there is.
        command.set.push(("simulator.nodes".to_owned(), self.hosts.to_string()));
        command.set.extend(self.speed.map(|speed| ("simulator.speed".to_owned(), speed.to_string())));
        command
    }

    /// Returns the longest time until the hosts are available if the demo is to leave; `None`: there is no limit.
    pub(super) fn patience(&self, speed: f64) -> Option<Duration> {
        self.exit.then(|| PATIENCE + Duration::from_secs_f64(SLOWEST_HOST * speed))
    }
}
