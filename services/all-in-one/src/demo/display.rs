//! Progress display: a bar on a terminal, plain lines otherwise.

use std::{
    convert::Infallible,
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::{sync::watch, time::sleep};

use super::{progress::SessionTally, summary::seconds};

/// Period of redraws; ten frames a second look like movement.
const FRAME: Duration = Duration::from_millis(100);

/// Period of lines, so as not to flood a log.
const LINE: Duration = Duration::from_secs(1);

/// Most failing nodes that are named.
const NAMED: usize = 3;

/// Longest error text of a node, in characters: it has to fit into a line of a terminal.
const LONGEST_TEXT: usize = 60;

/// Destination of the progress.
pub(crate) enum ProgressDisplay {
    /// A bar that is redrawn.
    Bar(ProgressBar),
    /// Lines; the last line is kept so that none is repeated.
    Lines(String),
}

impl ProgressDisplay {
    /// Creates a bar if standard output is a terminal, else lines.
    pub(crate) fn new() -> Self {
        if !std::io::stdout().is_terminal() {
            return Self::Lines(String::new());
        }
        let style = ProgressStyle::with_template("[{bar:40}] {pos}/{len}  {msg}");
        let style = style.expect("the template names only known keys").progress_chars("=> ");
        Self::Bar(ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stdout()).with_style(style))
    }

    /// Shows every change of the tally, as long as the future is polled.
    pub(crate) async fn follow(&mut self, tally: watch::Receiver<SessionTally>) -> Infallible {
        loop {
            let shown = self.show(&tally.borrow());
            sleep(if shown { LINE } else { FRAME }).await;
        }
    }

    /// Shows the final state and releases the terminal.
    pub(crate) fn finish(mut self, tally: &SessionTally) {
        self.show(tally);
        if let Self::Bar(bar) = self {
            bar.abandon();
        }
    }

    /// Shows the tally and returns whether a line was printed.
    fn show(&mut self, tally: &SessionTally) -> bool {
        let elapsed = seconds(tally.elapsed(Instant::now()));
        match self {
            Self::Bar(bar) => {
                bar.set_length(tally.members().unwrap_or(0) as u64);
                bar.set_position(tally.settled() as u64);
                let trouble: String = trouble(tally).map(|line| format!("\n  {line}")).collect();
                bar.set_message(format!("{elapsed}  {}{trouble}", counts(tally)));
                false
            }
            Self::Lines(last) => {
                let members = tally.members().map_or("?".to_owned(), |members| members.to_string());
                let trouble = Some(tally.trouble().len()).filter(|count| *count > 0);
                let trouble = trouble.map(|count| format!("  in trouble {count}")).unwrap_or_default();
                let line = format!("{}/{members} settled  {}{trouble}", tally.settled(), counts(tally));
                if *last == line {
                    return false;
                }
                println!("{elapsed:>9}  {}", line.trim_end());
                *last = line;
                true
            }
        }
    }
}

/// Formats the counts, such as `configuring 3  stable 40`, or the reason of a wait.
fn counts(tally: &SessionTally) -> String {
    if !tally.waiting_for().is_empty() {
        return format!("pending: {}", tally.waiting_for());
    }
    if tally.members().is_none() {
        return "pending".to_owned();
    }
    let words: Vec<_> = tally.counts().into_iter().map(|(word, count)| format!("{word} {count}")).collect();
    words.join("  ")
}

/// Formats a line per failing node, and the number of further ones.
fn trouble(tally: &SessionTally) -> impl Iterator<Item = String> {
    let trouble = tally.trouble();
    let more = trouble.len().saturating_sub(NAMED);
    let lines = trouble.into_iter().take(NAMED).map(|(id, node)| {
        let text: String = node.error.chars().take(LONGEST_TEXT).collect();
        format!("{id} {}: {text}", node.status.word())
    });
    lines.collect::<Vec<_>>().into_iter().chain((more > 0).then(|| format!("and {more} more in trouble")))
}
