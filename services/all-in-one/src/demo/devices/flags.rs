//! Flags of the demo of devices, and their settings.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::super::flags::speed;

/// Longest time of a step without delays, on a slow disk and in a debug build.
const PATIENCE: Duration = Duration::from_secs(90);

/// Seconds that the slowest device needs at real speed for a step: it is cut off, or its update fails first.
const SLOWEST_DEVICE: f64 = 600.0;

/// Most devices: a page of the list shows all of them.
const MOST_DEVICES: u16 = 500;

/// Address of the port of agents.
const PORT: &str = "127.0.0.1:7713";

/// Flags of the demo of devices.
#[derive(Debug, Args)]
pub(crate) struct DeviceDemoFlags {
    /// Devices that enrol
    #[arg(long, value_name = "N", default_value_t = 24)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_DEVICES)))]
    pub(super) devices: u16,
    /// How long the work of a device takes compared with real ones: 1 is real time, 0 is no delay [default: 0.02]
    #[arg(long, value_name = "F", value_parser = speed, allow_negative_numbers = true)]
    speed: Option<f64>,
    /// Leave when every device runs the second template; the exit code is 1 if one does not
    #[arg(long)]
    pub(crate) exit: bool,
    #[command(flatten, next_help_heading = "Common options")]
    command: chassis::CommandFlags,
}

impl DeviceDemoFlags {
    /// Returns the common flags, with the defaults of the demo below them and its own flags above them.
    pub(crate) fn command(&self, data_dir: PathBuf) -> chassis::CommandFlags {
        let mut command = self.command.clone();
        command.defaults.data_dir = data_dir;
        // The terminal is reserved for the progress.
        command.defaults.log.filter = "warn".into();
        command.defaults.gateway.agents.listen = PORT.to_owned();
        // The devices are all that there is.
        command.set.push(("simulator.nodes".to_owned(), "1".to_owned()));
        command.set.extend(self.speed.map(|speed| ("simulator.speed".to_owned(), speed.to_string())));
        command
    }

    /// Returns the longest time of a step if the demo is to leave; `None`: there is no limit.
    pub(super) fn patience(&self, speed: f64) -> Option<Duration> {
        self.exit.then(|| PATIENCE + Duration::from_secs_f64(SLOWEST_DEVICE * speed))
    }
}
