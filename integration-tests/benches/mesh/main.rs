//! Measures the mesh on this machine against its targets.
//!
//! `cargo bench -p integration-tests` measures for some minutes on SQLite; options after `--` choose more:
//! `--database both --scale full` everything, `--only T5,T7` single rows, and `--merge` adds the results of earlier
//! runs. `--help` lists all. Most rows measure the program `reveille` as a process of its own, which shares the machine with its
//! database, with the systems around it and with this program.
//!
//! - `targets`: the table of rows and their goals
//! - `measure`: the measurements; `stage`: the mesh under test; `records`, `load`, `watching`: its contents and clients
//! - `report`: the results

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

use command::{BenchCommand, DatabaseChoice};
use measure::BenchRun;
use report::BenchReport;
use stage::{Database, PostgresServer, Stage};

fn main() -> anyhow::Result<()> {
    let command = BenchCommand::parse();
    let mut report = BenchReport::new(command.clone())?;
    measure::without_database(&command, &mut report);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(on_databases(&command, &mut report));
    report.finish()
}

async fn on_databases(command: &BenchCommand, report: &mut BenchReport) {
    let program = command.program.clone().unwrap_or_else(stage::build);
    let mut stage = Stage { database: Database::Sqlite, program };
    if command.database != DatabaseChoice::Postgresql {
        measure::on(BenchRun { command, stage: &stage, report }).await;
    }
    if command.database != DatabaseChoice::Sqlite {
        stage.database = Database::Postgresql(Box::new(PostgresServer::start().await));
        measure::on(BenchRun { command, stage: &stage, report }).await;
    }
}
