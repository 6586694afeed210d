//! Errors of commands: each says what is wrong and what to do next, and has an exit code.

use std::{io, path::PathBuf, process::ExitCode};

use domain::core::node_set::NodeSetError;

use crate::terminal::note;

/// Meaning of exit codes, for the help.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0  done; of a session: every node reached what it should
    1  refused, or the answer cannot be used
    2  wrong usage
    3  not found
    4  the gateway does not answer or is not ready
    5  the session ended, and some of its nodes failed
    6  the session failed, or all of its nodes
    7  the session ended without nodes: nothing to do, or other sessions took them
    8  the time to wait is over; the session goes on
    9  the session was cancelled
  130  interrupted; a session goes on";

/// Result of a command, as scripts see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitReason {
    Done,
    Refused,
    WrongUsage,
    NotFound,
    Unavailable,
    /// The session ended, and some of its nodes failed.
    PartlyFailed,
    SessionFailed,
    /// The session ended without nodes.
    NothingDone,
    /// The time to wait is over.
    StillRunning,
    /// An operator cancelled the session.
    Cancelled,
    Interrupted,
}

impl ExitReason {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::WrongUsage => 2,
            Self::NotFound => 3,
            Self::Unavailable => 4,
            Self::PartlyFailed => 5,
            Self::SessionFailed => 6,
            Self::NothingDone => 7,
            Self::StillRunning => 8,
            Self::Cancelled => 9,
            Self::Interrupted => 130,
        })
    }
}

/// Failure of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// No answer came.
    #[error("the gateway at {url} does not answer: {reason}")]
    Unreachable { url: String, reason: String },
    /// The answer is a refusal.
    #[error("{asked}: {status}: {detail}{}", request_note(request_id))]
    Refused { asked: String, status: u16, detail: String, request_id: String },
    /// The answer is a success in another form than expected.
    #[error("{asked}: the answer cannot be read: {reason}")]
    Unreadable { asked: String, reason: String },
    /// Records that were named do not exist.
    #[error("there is no {kind} {name}")]
    Missing { kind: &'static str, name: String },
    /// A text is no set of nodes.
    #[error("node set: {error}\n  {text}\n  {}^", " ".repeat(error.position.saturating_sub(1)))]
    NodeSet { text: String, error: NodeSetError },
    /// Flags or their values that cannot be used.
    #[error("{what}")]
    Usage { what: String, next: &'static str },
    /// A file that cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

fn request_note(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!(" (request {id})") }
}

impl CommandError {
    pub(crate) fn reason(&self) -> ExitReason {
        match self {
            Self::Unreachable { .. } => ExitReason::Unavailable,
            Self::Refused { status: 429 | 502..=504, .. } => ExitReason::Unavailable,
            Self::Refused { status: 404, .. } | Self::Missing { .. } => ExitReason::NotFound,
            Self::Refused { .. } | Self::Unreadable { .. } | Self::File { .. } => ExitReason::Refused,
            Self::NodeSet { .. } | Self::Usage { .. } => ExitReason::WrongUsage,
            // A reader that has seen enough, such as `head`, is no failure.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitReason::Done,
            Self::Output(_) => ExitReason::Refused,
        }
    }

    /// Returns the next step of the operator; empty: the error says enough.
    pub(crate) fn next_step(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => {
                "check the address: `reveille context list` shows those that are kept, --url names another"
            }
            Self::Refused { status: 401 | 403, .. } => {
                "check the token and the tenant of the context, or of REVEILLE_TOKEN and --tenant"
            }
            Self::Refused { status: 429 | 502..=504, .. } => {
                "try again; `reveille status` shows which part is not ready"
            }
            Self::Missing { kind: "component", .. } => "`reveille get components` lists them",
            Self::Missing { kind: "session", .. } => "`reveille get sessions` lists them",
            Self::Missing { kind: "template", .. } => "`reveille get templates` lists them",
            Self::Missing { kind: "option", .. } => "`reveille get options` lists them",
            Self::Missing { kind: "context", .. } => "`reveille context list` lists them",
            Self::NodeSet { .. } => "a node set is such as x1000c[0-3]s[0-7]b0n[0-1],!x1000c0s3b0n0",
            Self::Unreadable { .. } => "is this the address of a gateway of Reveille?",
            Self::Usage { next, .. } => next,
            Self::Refused { .. } | Self::Missing { .. } | Self::File { .. } | Self::Output(_) => "",
        }
    }

    /// Returns whether the same request may succeed a little later.
    pub(crate) fn is_passing(&self) -> bool {
        self.reason() == ExitReason::Unavailable
    }

    /// Writes the error to standard error, except that of a reader that has gone.
    pub(crate) fn report(&self) {
        if self.reason() == ExitReason::Done {
            return;
        }
        note(&format!("error: {self}"));
        if !self.next_step().is_empty() {
            note(&format!("next: {}", self.next_step()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use domain::core::node_set::NodeSet;
    use expect_test::expect;

    use super::*;

    fn refused(status: u16) -> CommandError {
        let (asked, detail) = ("GET /v2/sessions".to_owned(), "is wrong".to_owned());
        CommandError::Refused { asked, status, detail, request_id: "r1".to_owned() }
    }

    #[test]
    fn errors_say_what_and_what_next() {
        let text = "x1000c[3-0]";
        let node_set =
            CommandError::NodeSet { text: text.to_owned(), error: NodeSet::parse(text).unwrap_err() };
        let unreachable =
            CommandError::Unreachable { url: "http://a".to_owned(), reason: "connection refused".to_owned() };
        let missing = CommandError::Missing { kind: "session", name: "s".to_owned() };
        let broken = CommandError::Output(io::ErrorKind::BrokenPipe.into());
        let mut rows = String::new();
        for error in
            [refused(400), refused(403), refused(404), refused(503), unreachable, missing, node_set, broken]
        {
            writeln!(rows, "{:?}: {error}\n  -> {}", error.reason(), error.next_step()).unwrap();
        }
        expect![[r#"
            Refused: GET /v2/sessions: 400: is wrong (request r1)
              -> 
            Refused: GET /v2/sessions: 403: is wrong (request r1)
              -> check the token and the tenant of the context, or of REVEILLE_TOKEN and --tenant
            NotFound: GET /v2/sessions: 404: is wrong (request r1)
              -> 
            Unavailable: GET /v2/sessions: 503: is wrong (request r1)
              -> try again; `reveille status` shows which part is not ready
            Unavailable: the gateway at http://a does not answer: connection refused
              -> check the address: `reveille context list` shows those that are kept, --url names another
            NotFound: there is no session s
              -> `reveille get sessions` lists them
            WrongUsage: node set: the range ends below its beginning (character 8)
              x1000c[3-0]
                     ^
              -> a node set is such as x1000c[0-3]s[0-7]b0n[0-1],!x1000c0s3b0n0
            Done: standard output: broken pipe
              -> 
        "#]]
        .assert_eq(&rows);
    }
}
