//! Standard output: tables for people, documents for programs.

use std::io::Write as _;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::{
    error::CommandError,
    table::{Table, TableForm},
    terminal::{note, terminal_form},
};

/// Form of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Table that fits the terminal
    #[default]
    Table,
    /// Table with more columns, of which nothing is cut
    Wide,
    /// JSON, as the gateway answers
    Json,
    /// YAML of the same content
    Yaml,
    /// Names alone, one a line
    Name,
}

/// Flag of the form.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct OutputFlags {
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    pub output: OutputFormat,
}

impl OutputFlags {
    /// Returns whether people read the result, so that more than the records may be said.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self.output, OutputFormat::Table | OutputFormat::Wide)
    }

    pub(crate) fn is_wide(self) -> bool {
        self.output == OutputFormat::Wide
    }

    /// Returns how tables are shown on this standard output.
    pub(crate) fn form(self) -> TableForm {
        let form = terminal_form();
        TableForm { width: form.width.filter(|_| !self.is_wide()), ..form }
    }
}

/// Shows a result in the wanted form. The table is made only if it is wanted; its argument says whether it is wide.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn show(
    flags: &OutputFlags,
    document: &Value,
    names: Vec<String>,
    table: impl FnOnce(bool) -> Table,
) -> Result<(), CommandError> {
    match flags.output {
        OutputFormat::Table | OutputFormat::Wide => {
            let table = table(flags.is_wide());
            if table.is_empty() {
                note("nothing found");
                return Ok(());
            }
            print(&table.render(flags.form()))
        }
        OutputFormat::Json | OutputFormat::Yaml | OutputFormat::Name => {
            show_to_programs(flags.output, document, &names)
        }
    }
}

/// Shows a result to programs: its document, or its names.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn show_to_programs(
    format: OutputFormat,
    document: &Value,
    names: &[String],
) -> Result<(), CommandError> {
    match format {
        OutputFormat::Name => print(&names.iter().map(|name| format!("{name}\n")).collect::<String>()),
        OutputFormat::Json | OutputFormat::Yaml | OutputFormat::Table | OutputFormat::Wide => {
            show_document(format, document)
        }
    }
}

fn show_document(format: OutputFormat, document: &Value) -> Result<(), CommandError> {
    let unwritable = |reason: String| CommandError::Unreadable { asked: "result".to_owned(), reason };
    let text = match format {
        OutputFormat::Yaml => {
            serde_saphyr::to_string(document).map_err(|error| unwritable(error.to_string()))?
        }
        OutputFormat::Json | OutputFormat::Table | OutputFormat::Wide | OutputFormat::Name => {
            serde_json::to_string_pretty(document).map_err(|error| unwritable(error.to_string()))?
        }
    };
    print(&format!("{}\n", text.trim_end()))
}

/// Writes a text to standard output.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}
