//! Following a session to its end.

use std::time::{Duration, Instant};

use chrono::Utc;
use clap::Args;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    client::{GatewayClient, named, parsed, segment},
    error::{CommandError, ExitReason},
    outcome::{SessionOutcome, progress, summary},
    output::{OutputFlags, print, show},
    record::{SessionEnd, SessionRecord, SessionStatus, span},
    session_table::table,
    table::cut,
    terminal::{error_columns, note, write_error},
};

/// Flags of a command that waits.
#[derive(Debug, Clone, Copy, Args)]
pub struct WaitFlags {
    /// Longest time to wait, such as 90s, 30m or 2h [default: without end]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Time between two looks at the session
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    interval: Duration,
}

/// Session with the status of its nodes.
struct SessionView {
    document: Value,
    session: SessionRecord,
    nodes: SessionStatus,
    end: SessionEnd,
}

/// Reads a time such as `90s`, `30m` or `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => Duration::from_millis(1),
        "" | "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        "d" => Duration::from_secs(86_400),
        _ => return Err("a time ends with ms, s, m, h or d".to_owned()),
    };
    let number: u32 = digits.parse().map_err(|_| "a time is such as 90s, 30m or 2h".to_owned())?;
    unit.checked_mul(number)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "the time is out of bounds".to_owned())
}

/// Follows a session to its end, shows its progress on standard error, and its result on standard output.
///
/// # Errors
/// The session does not exist, or a request is refused. While the gateway does not answer, the session is still waited
/// for.
pub(crate) async fn follow(
    client: &GatewayClient,
    name: &str,
    wait: WaitFlags,
    output: &OutputFlags,
) -> Result<ExitReason, CommandError> {
    let mut display = ProgressDisplay::new();
    let result = tokio::select! {
        result = follow_to_end(client, name, wait, &mut display) => result,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            Ok(Err(ExitReason::Interrupted))
        }
    };
    display.clear();
    match result? {
        Ok((view, outcome)) => {
            show_end(&view, outcome, output)?;
            Ok(outcome.reason())
        }
        Err(reason) => {
            note(&format!("session {name} goes on; `reveille watch session {name}` follows it"));
            Ok(reason)
        }
    }
}

/// Waits until the session has a result, or for the reason to wait no longer.
async fn follow_to_end(
    client: &GatewayClient,
    name: &str,
    wait: WaitFlags,
    display: &mut ProgressDisplay,
) -> Result<Result<(SessionView, SessionOutcome), ExitReason>, CommandError> {
    let began = Instant::now();
    loop {
        match SessionView::read(client, name).await {
            Ok(view) => {
                if let Some(outcome) = SessionOutcome::of(&view.session, &view.nodes, &view.end) {
                    return Ok(Ok((view, outcome)));
                }
                let expectation = view.end.estimate.as_ref().map(|one| one.text(Utc::now()));
                let text = progress(&view.session, &view.nodes, &view.end);
                display.show(began.elapsed(), &text, &expectation.unwrap_or_default());
            }
            Err(error) if error.is_passing() => display.show(began.elapsed(), &error.to_string(), ""),
            Err(error) => return Err(error),
        }
        if wait.timeout.is_some_and(|timeout| began.elapsed() + wait.interval > timeout) {
            return Ok(Err(ExitReason::StillRunning));
        }
        sleep(wait.interval).await;
    }
}

fn show_end(view: &SessionView, outcome: SessionOutcome, output: &OutputFlags) -> Result<(), CommandError> {
    if output.is_for_people() {
        return print(&summary(outcome, &view.session, &view.nodes, view.seconds()));
    }
    let mut document = view.document.clone();
    let result = view.end.result.as_str();
    document["result"] = json!(if result.is_empty() { outcome.word() } else { result });
    show(output, &document, vec![view.session.name.clone()], |wide| {
        table(std::slice::from_ref(&view.session), wide)
    })
}

impl SessionView {
    async fn read(client: &GatewayClient, name: &str) -> Result<Self, CommandError> {
        let path = format!("/sessions/{}", segment(name));
        let document = client.get(&path, &[]).await.map_err(named("session", name))?;
        let session: SessionRecord = parsed(&path, document.clone())?;
        // A pending session has no nodes yet.
        let nodes = match session.status.status.as_str() {
            "pending" => SessionStatus::default(),
            _ => parsed(
                &path,
                client.get(&format!("{path}/status"), &[]).await.map_err(named("session", name))?,
            )?,
        };
        let end = match session.status.status.as_str() {
            "pending" => SessionEnd::default(),
            _ => end(client, name).await?,
        };
        Ok(Self { document, session, nodes, end })
    }

    /// Returns the duration of a session that has ended.
    fn seconds(&self) -> Option<i64> {
        let time = |text: &str| {
            chrono::NaiveDateTime::parse_from_str(text.trim_end_matches('Z'), "%Y-%m-%dT%H:%M:%S%.f").ok()
        };
        let (begin, end) = (&self.session.status.start_time, &self.session.status.end_time);
        Some((time(end)? - time(begin)?).num_seconds())
    }
}

/// Returns the end of a session in the words of the service, or how far its rollout is.
async fn end(client: &GatewayClient, name: &str) -> Result<SessionEnd, CommandError> {
    let path = format!("/reveille/v1/sessions/{}", segment(name));
    match client.get_own(&path, &[]).await {
        Ok(document) => parsed(&path, document),
        // The gateway knows no results.
        Err(CommandError::Refused { status: 404 | 405, .. }) => Ok(SessionEnd::default()),
        Err(error) => Err(error),
    }
}

/// Progress on standard error: one line that changes on a terminal, otherwise a line for each change.
struct ProgressDisplay {
    /// Width of the terminal; none: it is no terminal.
    columns: Option<usize>,
    last: String,
}

impl ProgressDisplay {
    fn new() -> Self {
        Self { columns: error_columns(), last: String::new() }
    }

    /// Shows a progress, and on a terminal an `expectation` too: it changes all the time.
    fn show(&mut self, elapsed: Duration, text: &str, expectation: &str) {
        let text = text.replace(char::is_control, " ");
        let elapsed = span(i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX));
        match self.columns {
            Some(columns) => {
                let expectation = [if expectation.is_empty() { "" } else { "; " }, expectation].concat();
                let line = cut(&format!("{elapsed:>5}  {text}{expectation}"), columns.saturating_sub(1));
                write_error(&format!("\r\u{1b}[2K{line}"));
            }
            None if text != self.last => note(&format!("{elapsed:>5}  {text}")),
            None => {}
        }
        self.last = text;
    }

    /// Removes the line that changes.
    fn clear(&self) {
        if self.columns.is_some() && !self.last.is_empty() {
            write_error("\r\u{1b}[2K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("90s", 90), ("5", 5), ("30m", 1_800), ("2h", 7_200), ("1d", 86_400)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        for text in ["", "s", "0s", "-1s", "1w", "1.5h", "99999999999s", "ä"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
