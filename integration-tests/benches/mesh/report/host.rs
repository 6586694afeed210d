//! Date, commit and machine of a measurement.

use std::{fmt, fs, process::Command, time::SystemTime};

use prost_types::Timestamp;

/// Date, commit and machine of a measurement.
#[derive(Clone, Debug)]
pub struct BenchHost {
    /// Beginning of the run, in UTC.
    pub date: String,
    /// The commit, with `+` where something but results was changed since; `unknown` without a repository.
    pub commit: String,
    /// Build profile of the measured program.
    pub profile: &'static str,
    /// Cores that may be used.
    pub cores: usize,
    /// Name of the processor.
    pub processor: String,
    /// Size of the memory in GiB.
    pub memory: f64,
    /// The average load of the minute before.
    pub load_before: f64,
    /// The average load of the last minute of it.
    pub load_after: f64,
}

impl BenchHost {
    /// Describes this machine.
    pub fn look() -> Self {
        let cpu_info = read("/proc/cpuinfo");
        let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let memory_info = read("/proc/meminfo");
        let total =
            memory_info.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().split(' ').next());
        let kibibytes: f64 = total.and_then(|text| text.parse().ok()).unwrap_or_default();
        Self {
            date: now(),
            commit: commit().unwrap_or_else(|| "unknown".to_owned()),
            profile: if cfg!(debug_assertions) { "dev" } else { "release" },
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: model.map_or("unknown", |(_, name)| name).to_owned(),
            memory: kibibytes / (1 << 20) as f64,
            load_before: load(),
            load_after: 0.0,
        }
    }
}

impl fmt::Display for BenchHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, commit, profile, cores, processor, memory, load_before, .. } = self;
        write!(
            f,
            "{date}, commit {commit}, {profile} build, {cores} x {processor}, {memory:.0} GiB, load {load_before}"
        )
    }
}

/// The time, in UTC.
pub fn now() -> String {
    Timestamp { nanos: 0, ..SystemTime::now().into() }.to_string()
}

/// The average load of the last minute.
pub fn load() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let but_results = ["status", "--porcelain", "--", ":/", ":!benches/RESULTS.md", ":!benches/targets.svg"];
    let changed = if git(&but_results)?.is_empty() { "" } else { "+" };
    Some(git(&["rev-parse", "--short", "HEAD"])? + changed)
}
