//! Showing how far a session is: a bar on a terminal, plain lines otherwise.

use std::{
    convert::Infallible,
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::{sync::watch, time::sleep};

use super::{progress::Tally, summary::seconds};

/// People see ten pictures a second as movement.
const FRAME: Duration = Duration::from_millis(100);

/// A log takes a line a second without being flooded.
const LINE: Duration = Duration::from_secs(1);

/// Nodes in trouble that are named.
const NAMED: usize = 3;

/// Longest text about one of them, in characters: it has to fit into a line of a terminal.
const LONGEST_TEXT: usize = 60;

/// Where progress is shown.
pub(crate) enum Display {
    /// A bar that is redrawn.
    Bar(ProgressBar),
    /// Lines; the last one is kept so that none is repeated.
    Lines(String),
}

impl Display {
    /// A bar when standard output is a terminal, else lines.
    pub(crate) fn new() -> Self {
        if !std::io::stdout().is_terminal() {
            return Self::Lines(String::new());
        }
        let style = ProgressStyle::with_template("[{bar:40}] {pos}/{len}  {msg}");
        let style = style.expect("the template names only known keys").progress_chars("=> ");
        Self::Bar(ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stdout()).with_style(style))
    }

    /// Shows the tally as it changes, for as long as this is polled.
    pub(crate) async fn follow(&mut self, tally: watch::Receiver<Tally>) -> Infallible {
        loop {
            let shown = self.show(&tally.borrow());
            sleep(if shown { LINE } else { FRAME }).await;
        }
    }

    /// Shows the last state and leaves the terminal to others.
    pub(crate) fn finish(mut self, tally: &Tally) {
        self.show(tally);
        if let Self::Bar(bar) = self {
            bar.abandon();
        }
    }

    /// Says whether a line was printed.
    fn show(&mut self, tally: &Tally) -> bool {
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

/// Such as `configuring 3  stable 40`, or what the session waits for.
fn counts(tally: &Tally) -> String {
    if !tally.waiting_for().is_empty() {
        return format!("pending: {}", tally.waiting_for());
    }
    if tally.members().is_none() {
        return "pending".to_owned();
    }
    let words: Vec<_> = tally.counts().into_iter().map(|(word, count)| format!("{word} {count}")).collect();
    words.join("  ")
}

/// A line per node in trouble, and how many more there are.
fn trouble(tally: &Tally) -> impl Iterator<Item = String> {
    let trouble = tally.trouble();
    let more = trouble.len().saturating_sub(NAMED);
    let lines = trouble.into_iter().take(NAMED).map(|(id, node)| {
        let text: String = node.error.chars().take(LONGEST_TEXT).collect();
        format!("{id} {}: {text}", node.status.word())
    });
    lines.collect::<Vec<_>>().into_iter().chain((more > 0).then(|| format!("and {more} more in trouble")))
}
