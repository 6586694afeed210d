//! Results: collected row by row, then printed, written as JSON, and drawn.

mod document;
mod host;
mod outcome;
mod page;
mod plot;
mod table;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;

pub use host::BenchHost;
pub use outcome::RowOutcome;

use crate::{
    command::BenchCommand,
    stage::Database,
    targets::{RowTarget, TARGETS, target},
};

/// Outcomes by row and database.
type Outcomes = BTreeMap<(&'static str, &'static str), RowOutcome>;

/// Name in place of the database where the database does not matter.
const NO_DATABASE: &str = "any";

/// The names that a row's outcomes have.
const DATABASES: [&str; 3] = ["sqlite", "postgresql", NO_DATABASE];

/// Everything that was measured.
pub struct BenchReport {
    command: BenchCommand,
    host: BenchHost,
    /// Directory for the files.
    out: PathBuf,
    /// Results of earlier runs.
    earlier: Outcomes,
    outcomes: Outcomes,
    /// Names and seconds of the measurements.
    times: Vec<(String, f64)>,
}

impl BenchReport {
    /// An empty report for this machine.
    ///
    /// # Errors
    /// When the results of earlier runs are to be merged and cannot be read.
    pub fn new(command: BenchCommand) -> anyhow::Result<Self> {
        let host = BenchHost::look();
        println!("{host}");
        let out = root().join(&command.out);
        let earlier = if command.merge { earlier(&out.join(JSON))? } else { Outcomes::new() };
        Ok(Self { command, host, out, earlier, outcomes: Outcomes::new(), times: Vec::new() })
    }

    /// Adds a value to a row, if the row was picked.
    pub fn note(&mut self, id: &str, database: Option<&Database>, count: usize, value: f64) {
        let Some(outcome) = self.outcome(id, database) else { return };
        outcome.n = count;
        outcome.values.push(value);
        outcome.load = host::load();
    }

    /// Notes why a row has no values, or not more.
    pub fn leave(&mut self, id: &str, database: Option<&Database>, why: &str) {
        let Some(outcome) = self.outcome(id, database) else { return };
        outcome.trouble = Some(why.to_owned());
    }

    /// Notes how long it took to measure some rows, prints them, and writes everything so far for programs: a run that
    /// is ended early has not been for nothing.
    ///
    /// # Panics
    /// When that cannot be written.
    pub fn close(&mut self, what: &str, ids: &[&str], database: Option<&Database>, took: Duration) {
        let seconds = took.as_secs_f64();
        for (id, outcome) in self.outcomes.iter_mut().filter(|((_, of), _)| *of == name(database)) {
            if ids.contains(&id.0) {
                outcome.seconds = seconds;
                println!("{}", table::line(target(id.0), id.1, outcome));
            }
        }
        println!("    {what} on {} took {seconds:.1} s", name(database));
        self.times.push((format!("{what} ({})", name(database)), seconds));
        self.write_document().expect("a writable directory");
    }

    fn outcome(&mut self, id: &str, database: Option<&Database>) -> Option<&mut RowOutcome> {
        let target = target(id);
        let asked = target.is_picked(&self.command.only);
        let empty = || RowOutcome::new(&self.host, self.command.scale.word(), target);
        asked.then(|| self.outcomes.entry((target.id, name(database))).or_insert_with(empty))
    }

    /// The picked rows and all others with an outcome. An earlier outcome counts where this run has none.
    fn rows(&self) -> impl Iterator<Item = (&'static RowTarget, Vec<(&'static str, &RowOutcome)>)> {
        TARGETS.iter().filter_map(|target| {
            let of_row = |database| Some((database, self.of((target.id, database))?));
            let outcomes: Vec<_> = DATABASES.into_iter().filter_map(of_row).collect();
            let shown = target.is_picked(&self.command.only) || !outcomes.is_empty();
            shown.then_some((target, outcomes))
        })
    }

    fn of(&self, key: (&'static str, &'static str)) -> Option<&RowOutcome> {
        let (new, earlier) = (self.outcomes.get(&key), self.earlier.get(&key));
        new.filter(|new| new.was_tried())
            .or(earlier.filter(|earlier| earlier.is_measured()))
            .or(new)
            .or(earlier)
    }

    /// Prints the table and writes the files.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.host.load_after = host::load();
        print!("\n{}\n{}", table::table(&self), table::times(&self.times));
        let plot = plot::plot(&self);
        self.write_document()?;
        write(&self.out.join(SVG), &plot)?;
        if self.command.publish {
            let published = root().join("integration-tests/benches");
            write(&published.join("RESULTS.md"), &page::page(&self))?;
            write(&published.join(SVG), &plot)?;
        }
        println!("wrote {}", self.out.display());
        Ok(())
    }

    fn write_document(&self) -> anyhow::Result<()> {
        write(&self.out.join(JSON), &serde_json::to_string_pretty(&document::document(self))?)
    }
}

const JSON: &str = "targets.json";
const SVG: &str = "targets.svg";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Results of earlier runs from a file, if it exists.
fn earlier(file: &Path) -> anyhow::Result<Outcomes> {
    if !file.exists() {
        return Ok(Outcomes::new());
    }
    let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    document::outcomes(&text).with_context(|| format!("{} is no report", file.display()))
}

fn name(database: Option<&Database>) -> &'static str {
    database.map_or(NO_DATABASE, Database::name)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().context("a file in no folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("{} cannot be written", path.display()))
}
