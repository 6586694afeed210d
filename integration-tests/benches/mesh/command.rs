//! Options: rows, databases and thoroughness.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::targets::TARGETS;

/// Measures the mesh on this machine and compares it with its targets.
///
/// Everything shares the machine: the mesh, its databases, the systems around it, and the callers.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo bench -p integration-tests --")]
pub struct BenchCommand {
    /// Place where the mesh keeps its data
    #[arg(long, value_enum, default_value = "sqlite")]
    pub database: DatabaseChoice,
    /// Rows to measure, such as T5,T7,O1; `none` measures nothing, for a page of earlier results
    #[arg(long, value_delimiter = ',', value_name = "IDS", value_parser = known)]
    pub only: Vec<String>,
    /// Quick: some minutes, at most 10,000 components. Full: everything, about 20 minutes for each database
    #[arg(long, value_enum, default_value = "quick")]
    pub scale: BenchScale,
    /// Number of measurements of each figure; fewer for the most expensive ones
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Measure this program, such as the one of an older commit, instead of the one built from here
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Also show the rows that earlier runs left in targets.json, each with its own time and commit
    #[arg(long)]
    pub merge: bool,
    /// Directory for targets.json and targets.svg
    #[arg(long, default_value = "target/bench", value_name = "DIRECTORY")]
    pub out: PathBuf,
    /// Also write the results that the repository shows: integration-tests/benches/RESULTS.md and its plot
    #[arg(long)]
    pub publish: bool,
    /// `cargo bench` passes this to every benchmark
    #[arg(long, hide = true)]
    pub bench: bool,
}

/// Name that picks no row.
const NONE: &str = "none";

fn known(word: &str) -> Result<String, String> {
    let words = [word.to_owned()];
    let is_known = word == NONE || TARGETS.iter().any(|target| target.is_picked(&words));
    if is_known { Ok(word.to_owned()) } else { Err("there is no such row".to_owned()) }
}

/// Which databases to measure on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DatabaseChoice {
    /// One file for each part
    Sqlite,
    /// A server of its own, which syncs to disk as a real one does
    Postgresql,
    /// Both in turn
    Both,
}

/// Thoroughness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchScale {
    /// For quick feedback
    Quick,
    /// For results that are published
    Full,
}

impl BenchScale {
    /// Either of two values.
    pub fn of<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }

    /// Returns the name of the scale.
    pub fn word(self) -> &'static str {
        self.of("quick", "full")
    }
}
