//! What the mesh does on the machine this runs on, and how that compares with its targets.
//!
//! `cargo bench -p integration-tests` measures what some minutes allow on SQLite; what follows `--` chooses more:
//! `--database both --scale full` everything there is, `--only T5,T7` single rows, and with `--merge` what earlier runs
//! left beside them. `--help` says the rest. Most is measured on the program `reveille` as a process of its own, which
//! shares the machine with its database, with the systems around it and with this program.
//!
//! - `targets`: the table of what is measured and how good it has to be
//! - `measure`: the measurements; `stage`: what they are made on; `records`, `load`, `watching`: what they do with it
//! - `report`: what came of it

mod command;
mod load;
mod measure;
mod records;
mod report;
mod samples;
mod stage;
mod targets;
mod watching;

use clap::Parser;

use command::{Command, Databases};
use measure::Bench;
use report::Report;
use stage::{Database, Postgres, Stage};

fn main() -> anyhow::Result<()> {
    let command = Command::parse();
    let mut report = Report::new(command.clone())?;
    measure::without_database(&command, &mut report);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(on_databases(&command, &mut report));
    report.finish()
}

async fn on_databases(command: &Command, report: &mut Report) {
    let program = command.program.clone().unwrap_or_else(stage::build);
    let mut stage = Stage { database: Database::Sqlite, program };
    if command.database != Databases::Postgresql {
        measure::on(Bench { command, stage: &stage, report }).await;
    }
    if command.database != Databases::Sqlite {
        stage.database = Database::Postgresql(Box::new(Postgres::start().await));
        measure::on(Bench { command, stage: &stage, report }).await;
    }
}
