//! View of the table: redrawn on a terminal, a line for each change otherwise.

use std::{io::IsTerminal, time::Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::table::RackTable;

/// View of the table.
pub(super) enum TableView {
    /// The whole table, redrawn.
    Redrawn(ProgressBar),
    /// A line for each change of a host; with the last lines that were printed.
    Lines(Vec<String>),
}

impl TableView {
    /// Creates a view that is redrawn if standard output is a terminal, else one of lines.
    pub(super) fn new() -> Self {
        if !std::io::stdout().is_terminal() {
            return Self::Lines(Vec::new());
        }
        let style = ProgressStyle::with_template("{msg}").expect("the template names only known keys");
        Self::Redrawn(ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout()).with_style(style))
    }

    /// Shows the table as it is now.
    pub(super) fn show(&mut self, table: &RackTable, now: Instant) {
        match self {
            Self::Redrawn(bar) => bar.set_message(table.text(now)),
            Self::Lines(printed) => {
                printed.resize(table.rows().len(), String::new());
                for (row, printed) in table.rows().iter().zip(printed) {
                    let text = row.to_string();
                    if text != *printed {
                        println!("{}", text.trim_end());
                        *printed = text;
                    }
                }
            }
        }
    }

    /// Leaves the last table on the terminal.
    pub(super) fn finish(self) {
        if let Self::Redrawn(bar) = self {
            bar.abandon();
        }
    }
}
