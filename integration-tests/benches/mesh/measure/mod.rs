//! The measurements, one module for each group of rows.

mod attempt;
mod calls;
mod devices;
mod footprint;
mod hosts;
mod latency;
mod lists;
mod million;
mod original;
mod overload;
mod recovery;
mod rules;
mod sessions;
mod site;
mod watches;
mod writes;

use std::time::Duration;

use crate::{
    command::{BenchCommand, BenchScale, DatabaseChoice},
    report::BenchReport,
    stage::{Database, Stage},
    targets::target,
};

/// Time for which callers call.
const LASTING: Duration = Duration::from_secs(2);

/// Reason why a row has a value on one of two databases alone.
const ONE_DATABASE: &str = "takes long, and so is measured on one database only";

/// Context of a measurement.
pub struct BenchRun<'a> {
    /// The command line.
    pub command: &'a BenchCommand,
    /// Stage of the measurement.
    pub stage: &'a Stage,
    /// Report for the results.
    pub report: &'a mut BenchReport,
}

/// Measures everything that does not depend on a database.
pub fn without_database(command: &BenchCommand, report: &mut BenchReport) {
    rules::measure(command, report);
}

/// Measures everything else.
pub async fn on(mut bench: BenchRun<'_>) {
    let bench = &mut bench;
    writes::measure(bench).await;
    original::measure(bench).await;
    calls::measure(bench).await;
    watches::measure(bench).await;
    latency::measure(bench).await;
    sessions::measure(bench).await;
    site::measure(bench).await;
    footprint::measure(bench).await;
    hosts::measure(bench).await;
    devices::measure(bench).await;
    recovery::measure(bench).await;
    overload::measure(bench).await;
    million::measure(bench).await;
}

impl BenchRun<'_> {
    /// Returns whether any of these rows was requested.
    pub fn wants(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| target(id).is_picked(&self.command.only))
    }

    /// Returns whether any of these rows was requested, at a scale that allows it. Notes the rows for which it does
    /// not.
    pub fn wants_full(&mut self, ids: &[&str]) -> bool {
        if self.command.scale == BenchScale::Full {
            return self.wants(ids);
        }
        self.leave(ids, "takes --scale full");
        false
    }

    /// Returns the number of measurements of a figure.
    pub fn runs(&self) -> u32 {
        self.command.runs
    }

    /// Returns the number of measurements of a figure that takes a minute or more.
    pub fn few_runs(&self) -> u32 {
        self.runs().min(self.command.scale.of(1, 3))
    }

    /// Returns whether another database follows, for rows that take too long to be measured on both.
    pub fn is_first_of_two(&self) -> bool {
        self.command.database == DatabaseChoice::Both && matches!(self.stage.database, Database::Sqlite)
    }

    /// Notes a value of a row.
    pub fn note(&mut self, id: &str, count: usize, value: f64) {
        self.report.note(id, Some(&self.stage.database), count, value);
    }

    /// Notes why rows have no values, or not more.
    pub fn leave(&mut self, ids: &[&str], why: &str) {
        for id in ids {
            self.report.leave(id, Some(&self.stage.database), why);
        }
    }

    /// Returns the number of committed transactions so far; `None` where the database does not count them.
    pub async fn commits(&self) -> Option<u64> {
        Database::commits(&self.stage.database).await
    }
}
