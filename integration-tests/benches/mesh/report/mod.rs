//! What was measured: collected row by row, then printed, written as JSON, and drawn.

mod document;
mod host;
mod page;
mod plot;
mod table;

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;

pub use host::Host;

use crate::{
    command::Command,
    samples::{median, percentile},
    stage::Database,
    targets::{TARGETS, Target, target},
};

/// What came of one row on one database, or where no database matters.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was measured.
    Measured(Figure),
    /// It was not, and why.
    Left(String),
}

/// The measured values of one row.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it was measured on: components, nodes, streams or decisions.
    pub count: usize,
    /// One for each run.
    pub values: Vec<f64>,
    /// The average load of the last minute when it was measured.
    pub load: f64,
}

impl Figure {
    /// The smallest value, the one in the middle, and the largest.
    pub fn spread(&self) -> (f64, f64, f64) {
        let mut values = self.values.clone();
        (percentile(&mut values, 0.0), median(&self.values), percentile(&mut values, 100.0))
    }
}

/// Everything that was measured.
pub struct Report {
    command: Command,
    host: Host,
    outcomes: BTreeMap<(&'static str, &'static str), Outcome>,
}

/// Stands for the database where none matters.
const NO_DATABASE: &str = "any";

impl Report {
    /// An empty report of measurements on this machine.
    pub fn new(command: Command) -> Self {
        let host = Host::look();
        println!("{host}");
        Self { command, host, outcomes: BTreeMap::new() }
    }

    /// Notes the values of a row, unless nobody asked for it.
    pub fn note(&mut self, id: &str, database: Option<&Database>, count: usize, values: Vec<f64>) {
        let target = target(id);
        if !target.is_picked(&self.command.only) || values.is_empty() {
            return;
        }
        let figure = Figure { count, values, load: host::load() };
        println!("{}", table::line(target, name(database), &figure));
        self.outcomes.insert((target.id, name(database)), Outcome::Measured(figure));
    }

    /// Notes why a row has no values.
    pub fn leave(&mut self, id: &str, database: Option<&Database>, why: impl Into<String>) {
        let target = target(id);
        if target.is_picked(&self.command.only) {
            self.outcomes.insert((target.id, name(database)), Outcome::Left(why.into()));
        }
    }

    /// The rows that were asked for, each with what came of it.
    fn rows(&self) -> impl Iterator<Item = (&'static Target, Vec<(&'static str, &Outcome)>)> {
        let picked = TARGETS.iter().filter(|target| target.is_picked(&self.command.only));
        picked.map(|target| {
            let of_row = self.outcomes.iter().filter(|((id, _), _)| *id == target.id);
            (target, of_row.map(|((_, database), outcome)| (*database, outcome)).collect())
        })
    }

    /// Prints the table and writes the files.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.host.load_after = host::load();
        print!("\n{}", table::table(&self));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let out = root.join(&self.command.out);
        let plot = plot::plot(&self);
        write(&out.join("targets.json"), &serde_json::to_string_pretty(&document::document(&self))?)?;
        write(&out.join("targets.svg"), &plot)?;
        if self.command.publish {
            let published = root.join("integration-tests/benches");
            write(&published.join("RESULTS.md"), &page::page(&self))?;
            write(&published.join("targets.svg"), &plot)?;
        }
        Ok(())
    }
}

fn name(database: Option<&Database>) -> &'static str {
    database.map_or(NO_DATABASE, Database::name)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().context("a file in no folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}
