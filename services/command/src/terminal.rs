//! Terminal of the user, if there is one, and standard error.

use std::io::{IsTerminal, Write as _};

use crate::table::TableForm;

/// Writes a line to standard error. A line that nobody reads is no failure.
pub(crate) fn note(line: &str) {
    write_error(&format!("{line}\n"));
}

/// Writes a text to standard error. A text that nobody reads is no failure.
pub(crate) fn write_error(text: &str) {
    let mut errors = std::io::stderr().lock();
    drop(errors.write_all(text.as_bytes()).and_then(|()| errors.flush()));
}

/// Returns how tables are shown on this standard output: within the width of a terminal, and with colours unless the
/// user or the terminal wants none.
pub(crate) fn terminal_form() -> TableForm {
    let output = std::io::stdout();
    if !output.is_terminal() {
        return TableForm { width: None, colours: false };
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    TableForm { width: columns(output), colours: !is_set("NO_COLOR") && !is_dumb }
}

/// Returns the width of standard error if it is a terminal.
pub(crate) fn error_columns() -> Option<usize> {
    let errors = std::io::stderr();
    errors.is_terminal().then(|| columns(errors).unwrap_or(80))
}

/// Returns the width of a terminal; `None`: it has none.
fn columns(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
