//! Choosing what to measure and printing what came out.

use std::time::Duration;

/// Which measurements are wanted, and how they are printed.
pub struct Figures {
    wanted: Vec<String>,
}

impl Figures {
    /// Measurements whose name contains one of `wanted`; all when there is none.
    pub fn new(wanted: Vec<String>) -> Self {
        Self { wanted }
    }

    /// Whether a measurement should be made.
    pub fn wants(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|word| name.contains(word.as_str()))
    }

    /// Says where the figures come from.
    pub fn print_machine(&self) {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpus = std::thread::available_parallelism().map_or(0, usize::from);
        let cpu_info = read("/proc/cpuinfo");
        let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        println!(
            "machine: {cpus} x {}, load {}",
            model.map_or("?", |(_, name)| name),
            read("/proc/loadavg").trim()
        );
    }

    /// Prints how long something took.
    pub fn times(&self, name: &str, mut runs: Vec<Duration>) {
        runs.sort_unstable();
        let (Some(least), Some(most)) = (runs.first(), runs.last()) else { return };
        let median = runs[runs.len() / 2];
        println!("{name}: min {least:.1?}, median {median:.1?}, max {most:.1?} ({} runs)", runs.len());
    }

    /// Prints the distribution of many times.
    pub fn distribution(&self, name: &str, mut times: Vec<Duration>) {
        times.sort_unstable();
        let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
        let (Some(half), Some(nearly_all), Some(last)) = (at(50), at(99), times.last()) else { return };
        println!("{name}: p50 {half:.1?}, p99 {nearly_all:.1?}, max {last:.1?} ({} times)", times.len());
    }

    /// Prints how much was done in a second.
    pub fn rate(&self, name: &str, count: usize, took: Duration) {
        println!("{name}: {:.2} million/s", count as f64 / took.as_secs_f64() / 1e6);
    }
}
