//! Report of an import for its user.

use std::{fmt::Write as _, process::ExitCode};

use super::record::RecordDefect;

/// Most record names in a line.
const SHOWN: usize = 10;

/// Counts of all kinds.
#[derive(Debug)]
pub(crate) struct ImportReport {
    dry_run: bool,
    tallies: Vec<KindCounts>,
}

/// Counts of one kind of records.
#[derive(Debug, Default)]
pub(crate) struct KindCounts {
    /// Name of the kind, such as `components`.
    kind: &'static str,
    created: NamedRecords,
    changed: NamedRecords,
    left: usize,
    skipped: usize,
}

/// Number of records, and the names of the first ones.
#[derive(Debug, Default)]
struct NamedRecords {
    count: usize,
    first: Vec<String>,
}

impl NamedRecords {
    fn add(&mut self, name: impl Into<String>) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(name.into());
        }
    }

    /// Formats a line such as `  create  x1, x2 and 94 more`, or nothing.
    fn line(&self, verb: &str) -> String {
        if self.count == 0 {
            return String::new();
        }
        let names = self.first.join(", ");
        match self.count - self.first.len() {
            0 => format!("  {verb}: {names}\n"),
            more => format!("  {verb}: {names} and {more} more\n"),
        }
    }
}

impl KindCounts {
    /// Creates an empty tally.
    pub(crate) fn new(kind: &'static str) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Counts a new record.
    pub(crate) fn created(&mut self, name: impl Into<String>) {
        self.created.add(name);
    }

    /// Counts a changed record.
    pub(crate) fn changed(&mut self, name: impl Into<String>) {
        self.changed.add(name);
    }

    /// Counts unchanged records.
    pub(crate) fn left(&mut self, count: usize) {
        self.left += count;
    }

    /// Counts a skipped record. The record is reported at once: there may be many.
    pub(crate) fn skipped(&mut self, at: &str, defect: &RecordDefect) {
        self.skipped += 1;
        eprintln!("skipped: {at}: {defect}");
    }
}

impl ImportReport {
    /// Creates the report of an import or of a dry run.
    pub(crate) fn new(dry_run: bool) -> Self {
        Self { dry_run, tallies: Vec::new() }
    }

    /// Whether the import is a dry run.
    pub(crate) fn dry_run(&self) -> bool {
        self.dry_run
    }

    /// Adds the counts of one kind.
    pub(crate) fn add(&mut self, tally: KindCounts) {
        self.tallies.push(tally);
    }

    /// Returns success if no record was skipped.
    pub(crate) fn verdict(&self) -> ExitCode {
        match self.tallies.iter().all(|tally| tally.skipped == 0) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }

    /// Formats the counts of all kinds.
    pub(crate) fn render(&self) -> String {
        let (create, change) = if self.dry_run { ("to create", "to change") } else { ("created", "changed") };
        let mut text = String::new();
        for tally in &self.tallies {
            let KindCounts { kind, created, changed, left, skipped } = tally;
            let counts = format!(
                "{} {create}, {} {change}, {left} left, {skipped} skipped",
                created.count, changed.count
            );
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{kind}: {counts}");
            text += &created.line(create);
            text += &changed.line(change);
        }
        let done = self.tallies.iter().all(|tally| tally.created.count + tally.changed.count == 0);
        text += match (done, self.dry_run) {
            (true, _) => "nothing to change\n",
            (false, true) => "dry run: nothing was written\n",
            (false, false) => "imported\n",
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn many_records_are_counted_and_few_are_named() {
        let render = |dry_run: bool, components: usize| {
            let mut report = ImportReport::new(dry_run);
            let mut tally = KindCounts::new("options");
            tally.left(20);
            report.add(tally);
            let mut tally = KindCounts::new("components");
            (0..components).for_each(|number| tally.created(format!("x{number}")));
            report.add(tally);
            report.render()
        };
        expect![[r#"
            options: 0 created, 0 changed, 20 left, 0 skipped
            components: 12 created, 0 changed, 0 left, 0 skipped
              created: x0, x1, x2, x3, x4, x5, x6, x7, x8, x9 and 2 more
            imported
        "#]]
        .assert_eq(&render(false, 12));
        expect![[r#"
            options: 0 to create, 0 to change, 20 left, 0 skipped
            components: 1 to create, 0 to change, 0 left, 0 skipped
              to create: x0
            dry run: nothing was written
        "#]]
        .assert_eq(&render(true, 1));
        expect![[r#"
            options: 0 created, 0 changed, 20 left, 0 skipped
            components: 0 created, 0 changed, 0 left, 0 skipped
            nothing to change
        "#]]
        .assert_eq(&render(false, 0));
    }
}
