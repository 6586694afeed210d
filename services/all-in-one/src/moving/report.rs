//! What an import did, for the person who asked for it.

use std::{fmt::Write as _, process::ExitCode};

use super::record::Defect;

/// Names of records that are told one by one.
const SHOWN: usize = 10;

/// What was done, counted.
#[derive(Debug)]
pub(crate) struct Report {
    dry_run: bool,
    tallies: Vec<Tally>,
}

/// What was done with the records of one kind.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Such as `components`.
    kind: &'static str,
    created: Named,
    changed: Named,
    left: usize,
    skipped: usize,
}

/// How many records, and what the first of them are called.
#[derive(Debug, Default)]
struct Named {
    count: usize,
    first: Vec<String>,
}

impl Named {
    fn add(&mut self, name: impl Into<String>) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(name.into());
        }
    }

    /// Such as `  create  x1, x2 and 94 more`, or nothing.
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

impl Tally {
    /// Nothing done yet.
    pub(crate) fn new(kind: &'static str) -> Self {
        Self { kind, ..Self::default() }
    }

    /// A record that was not there.
    pub(crate) fn created(&mut self, name: impl Into<String>) {
        self.created.add(name);
    }

    /// A record that was there and differed.
    pub(crate) fn changed(&mut self, name: impl Into<String>) {
        self.changed.add(name);
    }

    /// Records that are there already.
    pub(crate) fn left(&mut self, count: usize) {
        self.left += count;
    }

    /// A record that is not imported. Told at once: there may be many.
    pub(crate) fn skipped(&mut self, at: &str, defect: &Defect) {
        self.skipped += 1;
        eprintln!("skipped: {at}: {defect}");
    }
}

impl Report {
    /// Of an import, or of what it would do.
    pub(crate) fn new(dry_run: bool) -> Self {
        Self { dry_run, tallies: Vec::new() }
    }

    /// Whether nothing is written.
    pub(crate) fn dry_run(&self) -> bool {
        self.dry_run
    }

    /// Adds what was done with one kind.
    pub(crate) fn add(&mut self, tally: Tally) {
        self.tallies.push(tally);
    }

    /// Success when nothing was skipped.
    pub(crate) fn verdict(&self) -> ExitCode {
        match self.tallies.iter().all(|tally| tally.skipped == 0) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }

    /// What was done, kind by kind.
    pub(crate) fn render(&self) -> String {
        let (create, change) = if self.dry_run { ("to create", "to change") } else { ("created", "changed") };
        let mut text = String::new();
        for tally in &self.tallies {
            let Tally { kind, created, changed, left, skipped } = tally;
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
            let mut report = Report::new(dry_run);
            let mut tally = Tally::new("options");
            tally.left(20);
            report.add(tally);
            let mut tally = Tally::new("components");
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
