//! Runs seeds of the simulation: one with a printed trace, or many with a summary.

use std::{process::ExitCode, time::Instant};

use chassis::simulation::{PlantedDefect, plant};
use clap::{Parser, ValueEnum};
use simulation::{seed, table, weather::Fault};

/// The whole mesh in virtual time
#[derive(Parser)]
struct Arguments {
    /// Run this seed and print all its events
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run so many seeds, or those from A to B as A..B
    #[arg(long, value_parser = range, default_value = "0..100")]
    seeds: std::ops::Range<u64>,
    /// Inject only this fault, whatever the seed; may be repeated
    #[arg(long = "fault", value_enum)]
    faults: Vec<Fault>,
    /// Break something on purpose, to see that it is found
    #[arg(long, value_parser = defect)]
    plant: Option<(&'static str, PlantedDefect)>,
    /// Begin no further seed after one that breaks this invariant, such as I5
    #[arg(long, value_name = "INVARIANT")]
    until: Option<String>,
    /// Print only the outcome of the seed
    #[arg(long)]
    quiet: bool,
    /// Number of concurrent seeds [default: one for each core]
    #[arg(long)]
    jobs: Option<usize>,
}

fn range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("'{text}': {error}"));
    match text.split_once("..") {
        Some((from, to)) => Ok(number(from)?..number(to)?),
        None => Ok(0..number(text)?),
    }
}

fn defect(text: &str) -> Result<(&'static str, PlantedDefect), String> {
    let named = PlantedDefect::ALL.into_iter().find(|(name, _)| *name == text);
    named.ok_or_else(|| format!("one of {}", PlantedDefect::ALL.map(|(name, _)| name).join(", ")))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.seed {
        Some(seed) => {
            plant(arguments.plant.map(|(_, defect)| defect));
            one(seed, arguments.faults, !arguments.quiet)
        }
        None => {
            let flags = flags(&arguments.faults, arguments.plant.map(|(name, _)| name));
            many(arguments.seeds, &flags, arguments.jobs, arguments.until.as_deref())
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn one(seed: u64, faults: Vec<Fault>, shown: bool) -> anyhow::Result<ExitCode> {
    let outcome = seed::run(seed, faults, shown)?;
    table::print(&outcome);
    Ok(if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn many(
    seeds: std::ops::Range<u64>,
    flags: &[String],
    jobs: Option<usize>,
    until: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let sum = table::run(seeds, flags, jobs, until)?;
    sum.show(began);
    Ok(if sum.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the flags for the process of a seed.
fn flags(faults: &[Fault], defect: Option<&str>) -> Vec<String> {
    let names = faults.iter().filter_map(ValueEnum::to_possible_value);
    let faults = names.map(|value| format!("--fault={}", value.get_name()));
    faults.chain(defect.map(|name| format!("--plant={name}"))).collect()
}
