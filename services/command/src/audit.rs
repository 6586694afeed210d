//! `reveille audit`: whether somebody changed the lines of an audit log.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use domain::core::audit::AuditEnd;

use crate::{
    error::{CommandError, ExitReason},
    output::print,
};

/// Command about audit logs.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check that no line was changed, removed or added
    #[command(
        after_help = "Compare number and seal of the last line with those that you keep on another machine: whoever can write the \
                      file can also remove its end, or seal it anew."
    )]
    Check(CheckFlags),
}

/// Flags of `reveille audit check`.
#[derive(Debug, Args)]
pub struct CheckFlags {
    /// Files of one part, the oldest first
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Lines that were checked.
#[derive(Debug, Default)]
struct CheckedLines {
    /// Number of the first line.
    first: u64,
    /// Last line; `None`: there is none.
    end: Option<AuditEnd>,
}

/// Carries a command out.
///
/// # Errors
/// A file that cannot be read, or a line that somebody changed.
pub(crate) fn run(command: &AuditCommand) -> Result<ExitReason, CommandError> {
    let AuditCommand::Check(CheckFlags { files }) = command;
    let mut checked = CheckedLines::default();
    for file in files {
        checked.add(file)?;
    }
    print(&checked.shown())?;
    Ok(ExitReason::Done)
}

impl CheckedLines {
    fn add(&mut self, path: &Path) -> Result<(), CommandError> {
        let unusable = |reason: String| CommandError::File { path: path.to_owned(), reason };
        let file = File::open(path).map_err(|error| unusable(error.to_string()))?;
        for (line, number) in BufReader::new(file).lines().zip(1..) {
            let line = line.map_err(|error| unusable(error.to_string()))?;
            let end = AuditEnd::check(self.end.as_ref(), &line);
            let end = end.map_err(|fault| unusable(format!("line {number} {fault}")))?;
            if self.end.is_none() {
                self.first = end.number;
            }
            self.end = Some(end);
        }
        Ok(())
    }

    fn shown(&self) -> String {
        match &self.end {
            None => "there is no line\n".to_owned(),
            Some(AuditEnd { number, seal }) => {
                let whole = format!("to {number} are as they were written; the last seal is {seal}\n");
                match self.first {
                    1 => format!("lines 1 {whole}"),
                    first if first == *number => {
                        format!("line {first} is alone, and cannot be checked; its seal is {seal}\n")
                    }
                    first => format!(
                        "lines {} {whole}line {first} itself cannot be checked: check it with the file that has line {}\n",
                        first + 1,
                        first - 1
                    ),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// Checks files with these texts.
    fn checked(texts: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let mut checked = CheckedLines::default();
        for (number, text) in texts.iter().enumerate() {
            let path = directory.path().join(format!("{number}"));
            std::fs::write(&path, text).unwrap();
            if let Err(CommandError::File { path, reason }) = checked.add(&path) {
                return format!("{}: {reason}\n", path.file_name().unwrap().display());
            }
        }
        checked.shown()
    }

    #[test]
    fn files_of_one_chain_are_checked_together() {
        let mut end = AuditEnd::default();
        let mut line = |path: &str| end.seal(&format!("\"path\":\"{path}\"")) + "\n";
        let (first, second, third) = (line("/a"), line("/b"), line("/c"));
        let told = [
            checked(&[""]),
            checked(&[&format!("{first}{second}"), &third]),
            checked(&[&second, &third]),
            checked(&[&third]),
            checked(&[&first, &third]),
            checked(&[&first, &second.replace("/b", "/x")]),
            checked(&["hello\n"]),
        ];
        expect![[r#"
            there is no line
            lines 1 to 3 are as they were written; the last seal is 1b80ef0d47e43bd6fba082a54ea19fc5dbbcc26c793082494cd72786596f3248
            lines 3 to 3 are as they were written; the last seal is 1b80ef0d47e43bd6fba082a54ea19fc5dbbcc26c793082494cd72786596f3248
            line 2 itself cannot be checked: check it with the file that has line 1
            line 3 is alone, and cannot be checked; its seal is 1b80ef0d47e43bd6fba082a54ea19fc5dbbcc26c793082494cd72786596f3248
            1: line 1 has the number 3, where 2 is next: lines were removed, added or moved
            1: line 1 was changed, or the line before it was: its seal does not fit
            0: line 1 is no line of an audit log
        "#]].assert_eq(&told.concat());
    }
}
