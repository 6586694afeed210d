//! The measurements, one module for each group of rows.

mod calls;
mod footprint;
mod latency;
mod lists;
mod million;
mod overload;
mod recovery;
mod rules;
mod sessions;
mod site;
mod watches;
mod writes;

use crate::{
    command::{Command, Scale},
    report::Report,
    stage::{Database, Stage},
    targets::target,
};

/// What every measurement gets.
pub struct Bench<'a> {
    /// What was asked for.
    pub command: &'a Command,
    /// Where to measure.
    pub stage: &'a Stage,
    /// Where results go.
    pub report: &'a mut Report,
}

/// Measures everything that does not depend on a database.
pub fn without_database(command: &Command, report: &mut Report) {
    rules::measure(command, report);
}

/// Measures everything else.
pub async fn on(mut bench: Bench<'_>) {
    let bench = &mut bench;
    writes::measure(bench).await;
    lists::measure(bench).await;
    calls::measure(bench).await;
    watches::measure(bench).await;
    latency::measure(bench).await;
    sessions::measure(bench).await;
    site::measure(bench).await;
    footprint::measure(bench).await;
    recovery::measure(bench).await;
    overload::measure(bench).await;
    million::measure(bench).await;
}

impl Bench<'_> {
    /// Whether any of these rows was asked for.
    pub fn wants(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| target(id).is_picked(&self.command.only))
    }

    /// Whether any of these rows was asked for, at a scale that allows it. Notes where it does not.
    pub fn wants_full(&mut self, ids: &[&str]) -> bool {
        if self.command.scale == Scale::Full {
            return self.wants(ids);
        }
        self.leave(ids, "takes --scale full");
        false
    }

    /// How often to measure something.
    pub fn runs(&self) -> u32 {
        self.command.runs
    }

    /// How often to measure something that takes minutes.
    pub fn few_runs(&self) -> u32 {
        self.runs().min(self.command.scale.of(1, 3))
    }

    /// Notes the values of a row.
    pub fn note(&mut self, id: &str, count: usize, values: Vec<f64>) {
        self.report.note(id, Some(&self.stage.database), count, values);
    }

    /// Notes why rows have no values.
    pub fn leave(&mut self, ids: &[&str], why: &str) {
        for id in ids {
            self.report.leave(id, Some(&self.stage.database), why);
        }
    }

    /// Transactions so far.
    pub async fn commits(&self) -> Option<u64> {
        Database::commits(&self.stage.database).await
    }
}
