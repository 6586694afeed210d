//! Runs of many seeds, each in a process of its own, so that none inherits any state, and the sum of their outcomes.

use std::{
    collections::BTreeMap,
    ops::Range,
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use anyhow::Context as _;
use parking_lot::Mutex;

use crate::seed::Outcome;

/// Outcomes of many seeds.
#[derive(Debug, Default)]
pub struct Sum {
    /// Number of seeds.
    pub seeds: u64,
    /// Seeds with violations, each with their text.
    pub failed: Vec<(u64, String)>,
    /// Number of injections of each fault.
    pub faults: BTreeMap<String, u64>,
    /// Seconds of virtual time.
    pub virtual_seconds: f64,
    /// Number of events.
    pub steps: u64,
}

/// Prints the outcome of a seed in a form that [`run`] reads.
pub fn print(outcome: &Outcome) {
    println!("digest {:016x} steps {} took {}", outcome.digest, outcome.steps, outcome.took);
    for (fault, times) in &outcome.faults {
        println!("fault {times} {fault}");
    }
    for violation in &outcome.violations {
        println!(
            "violation {} at {:.3}: {}",
            violation.invariant,
            violation.at as f64 / 1e3,
            violation.what.replace('\n', " ")
        );
    }
}

/// Runs `seeds` with these `flags`, `at_a_time` at once, and prints each that fails. No further one begins after one that
/// breaks the invariant `until`.
///
/// # Errors
/// When no process can be started.
pub fn run(
    seeds: Range<u64>,
    flags: &[String],
    at_a_time: usize,
    until: Option<&str>,
) -> anyhow::Result<Sum> {
    let next = AtomicU64::new(seeds.start);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time.max(1))
            .map(|_| scope.spawn(|| work(&next, seeds.end, flags, until, &sum)))
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))?)
    })?;
    Ok(sum.into_inner())
}

fn work(
    next: &AtomicU64,
    end: u64,
    flags: &[String],
    until: Option<&str>,
    sum: &Mutex<Sum>,
) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("this program")?;
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return Ok(());
        }
        let output = Command::new(&program)
            .args(["--seed", &seed.to_string(), "--quiet"])
            .args(flags)
            .stdin(Stdio::null())
            .output()
            .context("a process for a seed")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut sum = sum.lock();
        sum.take(&text);
        if !output.status.success() {
            let told = text.lines().find_map(|line| line.strip_prefix("violation "));
            let errors = String::from_utf8_lossy(&output.stderr);
            let told = told.unwrap_or_else(|| errors.lines().last().unwrap_or("it ended without a word"));
            let told: String = told.chars().take(300).collect();
            println!("seed {seed} FAILED: {told}");
            if until.is_some_and(|invariant| told.split(' ').next() == Some(invariant)) {
                next.store(end, Ordering::Relaxed);
            }
            sum.failed.push((seed, told));
        }
    }
}

impl Sum {
    fn take(&mut self, text: &str) {
        self.seeds += 1;
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            match (words.next(), words.next(), words.next()) {
                (Some("digest"), Some(_), Some(rest)) => {
                    let numbers: Vec<u64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
                    self.steps += numbers.first().copied().unwrap_or(0);
                    self.virtual_seconds += numbers.get(1).copied().unwrap_or(0) as f64 / 1e3;
                }
                (Some("fault"), Some(times), Some(fault)) => {
                    *self.faults.entry(fault.to_owned()).or_insert(0) += times.parse::<u64>().unwrap_or(0);
                }
                _ => {}
            }
        }
    }

    /// Prints the faults and the speed.
    pub fn show(&self, began: Instant) {
        println!("{:<60} {:>10}", "fault", "injected");
        for (fault, times) in &self.faults {
            println!("{fault:<60} {times:>10}");
        }
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "{} seeds in {seconds:.1} s ({:.1} a second), {:.1} virtual hours, {} steps, {} failed",
            self.seeds,
            self.seeds as f64 / seconds,
            self.virtual_seconds / 3600.0,
            self.steps,
            self.failed.len()
        );
        for (seed, told) in &self.failed {
            println!("cargo run -p simulation -- --seed {seed}    # {told}");
        }
    }
}
