//! Use of the system by the process, under the names that every Prometheus client gives it.

use std::{fs, io};

use crate::process::capacity;

/// Ticks of the processor's clock in a second, as Linux counts them for processes on every architecture.
const TICKS: f64 = 100.0;

/// Fields between the end of the program's name in `/proc/self/stat` and the time of the processor.
const BEFORE_TIME: usize = 11;

/// Processor time, memory and file descriptors of the process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ProcessUsage {
    cpu_seconds: f64,
    resident_bytes: u64,
    open_descriptors: usize,
    descriptor_limit: Option<u64>,
}

impl ProcessUsage {
    /// Reads the present values.
    ///
    /// # Errors
    /// The system has no `/proc`, or not as Linux has it.
    pub(super) fn read() -> io::Result<Self> {
        let unknown = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not known"));
        let time = fs::read_to_string("/proc/self/stat")?;
        let status = fs::read_to_string("/proc/self/status")?;
        Ok(Self {
            cpu_seconds: cpu_seconds(&time).ok_or_else(|| unknown("processor time"))?,
            resident_bytes: resident_bytes(&status).ok_or_else(|| unknown("resident memory"))?,
            open_descriptors: fs::read_dir("/proc/self/fd")?.count(),
            descriptor_limit: capacity::descriptor_limit(),
        })
    }

    /// Returns the values in Prometheus' text format.
    pub(super) fn text(&self) -> String {
        let limit = self.descriptor_limit.map(|limit| {
            sample("process_max_fds", "gauge", "File descriptors that the process may open", limit as f64)
        });
        [
            sample("process_cpu_seconds_total", "counter", "Processor time", self.cpu_seconds),
            sample("process_resident_memory_bytes", "gauge", "Resident memory", self.resident_bytes as f64),
            sample("process_open_fds", "gauge", "Open file descriptors", self.open_descriptors as f64),
            limit.unwrap_or_default(),
        ]
        .concat()
    }
}

fn sample(name: &str, kind: &str, help: &str, value: f64) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n")
}

/// Returns the time in user and system mode. The name of the program, in parentheses, may have any letter.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(BEFORE_TIME).take(2);
    let ticks: Vec<f64> = times.map(str::parse).collect::<Result<_, _>>().ok()?;
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / TICKS)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_linux_writes_them() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 100 1 2";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(resident_bytes("VmPeak:\t 9 kB\nVmRSS:\t    12 kB\n"), Some(12 * 1024));
        assert_eq!((cpu_seconds("7 (a) S"), resident_bytes("VmRSS: many")), (None, None));
        let usage = ProcessUsage::read().unwrap();
        assert!(usage.resident_bytes > 0 && usage.open_descriptors > 0, "{usage:?}");
    }
}
