//! Tables that fit the terminal.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};

/// Blanks between two columns.
const GAP: usize = 2;

/// Least width to which a column is narrowed.
const NARROWEST: usize = 10;

/// Meaning of a cell, which a terminal shows as a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// As it should be.
    Good,
    /// On the way.
    Busy,
    /// A person should look.
    Bad,
}

/// Text in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

/// Form in which tables are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableForm {
    /// Width of the terminal in characters; none: nothing is cut.
    pub width: Option<usize>,
    /// Whether tones are shown as colours.
    pub colours: bool,
}

/// Rows under a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Busy => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
        }
    }
}

impl Cell {
    /// Creates a cell. Texts of other systems may hold characters that steer a terminal; these become blanks.
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        let text = text.into();
        let text = if text.contains(char::is_control) { text.replace(char::is_control, " ") } else { text };
        Self { text, tone }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Plain)
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl Table {
    pub(crate) fn new(header: impl Into<Vec<&'static str>>) -> Self {
        Self { header: header.into(), rows: Vec::new() }
    }

    /// Adds a row with as many cells as the header has.
    pub(crate) fn push(&mut self, row: impl Into<Vec<Cell>>) {
        self.rows.push(row.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the table. The first column, by which records are named, is never cut.
    pub(crate) fn render(&self, form: TableForm) -> String {
        let widths = self.widths(form.width);
        let mut text = String::new();
        let header = self.header.iter().map(|title| Cell::plain(*title)).collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            let line = line(row, &widths, form.colours);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Returns the width of each column: that of its widest cell, and less where a line would be longer than `most`.
    fn widths(&self, most: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<_> = self.header.iter().map(|title| title.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        let Some(most) = most else { return widths };
        let total: usize = widths.iter().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP);
        let mut excess = total.saturating_sub(most);
        while excess > 0 {
            let widest = widths.iter_mut().skip(1).max_by_key(|width| **width);
            let Some(widest) = widest.filter(|width| **width > NARROWEST) else { break };
            *widest -= 1;
            excess -= 1;
        }
        widths
    }
}

fn line(row: &[Cell], widths: &[usize], colours: bool) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let text = cut(&cell.text, *width);
        let blanks = width - text.chars().count();
        let is_last = index + 1 == row.len();
        let style = if colours { cell.tone.style() } else { Style::new() };
        let written = write!(line, "{style}{text}{style:#}");
        written.expect("a text can always be written to");
        if !is_last {
            line.extend(std::iter::repeat_n(' ', blanks + GAP));
        }
    }
    line
}

/// Returns the beginning of a text that is too long, with a sign that it goes on.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["ID", "STATUS", "ERROR"]);
        let error = "waiting for PCS at https://pcs.example (failing since noon: no answer within 20s)";
        table.push([Cell::plain("x1000c0s0b0n0"), Cell::new("stable", Tone::Good), Cell::plain("")]);
        table.push([
            Cell::plain("x1000c0s10b0n1"),
            Cell::new("power_on_pending", Tone::Busy),
            Cell::new(error, Tone::Bad),
        ]);
        table.push([Cell::plain("ä"), Cell::plain("a\u{1b}[31m\nb"), Cell::plain("")]);
        table
    }

    #[test]
    fn tables_fit_the_terminal() {
        let shown = [None, Some(60), Some(30), Some(1)]
            .map(|width| format!("{width:?}\n{}", table().render(TableForm { width, colours: false })));
        expect![[r#"
            None
            ID              STATUS            ERROR
            x1000c0s0b0n0   stable
            x1000c0s10b0n1  power_on_pending  waiting for PCS at https://pcs.example (failing since noon: no answer within 20s)
            ä               a [31m b
            Some(60)
            ID              STATUS            ERROR
            x1000c0s0b0n0   stable
            x1000c0s10b0n1  power_on_pending  waiting for PCS at https:…
            ä               a [31m b
            Some(30)
            ID              STATUS      ERROR
            x1000c0s0b0n0   stable
            x1000c0s10b0n1  power_on_…  waiting f…
            ä               a [31m b
            Some(1)
            ID              STATUS      ERROR
            x1000c0s0b0n0   stable
            x1000c0s10b0n1  power_on_…  waiting f…
            ä               a [31m b
        "#]].assert_eq(&shown.concat());
    }

    #[test]
    fn colours_change_no_column() {
        let coloured = table().render(TableForm { width: Some(60), colours: true });
        assert!(coloured.contains("\u{1b}[32mstable\u{1b}[0m"), "{coloured:?}");
        let mut plain = String::new();
        let mut letters = coloured.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\u{1b}' => drop(letters.by_ref().find(|letter| *letter == 'm')),
                letter => plain.push(letter),
            }
        }
        assert_eq!(plain, table().render(TableForm { width: Some(60), colours: false }));
    }
}
