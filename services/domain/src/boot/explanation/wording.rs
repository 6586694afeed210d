//! Fills the places of the texts of the table with the values of a cause.

use super::{
    ExplainedCause, NextStep, Peer, SiteTools,
    table::{CommandText, SHOW_EVENTS},
};
use crate::core::{bos_time, time::Timestamp};

/// Longest words of a peer in an explanation, in characters.
const LONGEST_WORDS: usize = 400;

/// Returns the sentence about `subject`.
pub(super) fn sentence(cause: &ExplainedCause, subject: &str) -> String {
    let mut sentence = fill(cause.reason.row().sentence, cause, subject);
    let others = cause.member_count.saturating_sub(1);
    if others > 0 {
        sentence.push_str(&format!(" ({others} more alike)"));
    }
    sentence + "."
}

/// Returns the next step about `subject`.
pub(super) fn next_step(cause: &ExplainedCause, subject: &str, tools: SiteTools) -> NextStep {
    let row = cause.reason.row();
    let text = match (row.command, tools) {
        (CommandText::Own(text), _) | (CommandText::Csm(text), SiteTools::Csm) => text,
        (CommandText::Csm(_), SiteTools::Own) => SHOW_EVENTS,
    };
    let node = cause.members.first().map_or(subject, String::as_str);
    let command =
        if is_plain(node) && is_plain(&cause.session) { fill(text, cause, subject) } else { String::new() };
    NextStep { text: fill(row.advice, cause, subject), command }
}

/// Returns whether a shell and an address take `id` as it is.
fn is_plain(id: &str) -> bool {
    id.chars().all(|one| one.is_ascii_alphanumeric() || "-._:".contains(one))
}

fn fill(text: &str, cause: &ExplainedCause, subject: &str) -> String {
    let node = cause.members.first().map_or(subject, String::as_str);
    let words: String = cause.words.chars().take(LONGEST_WORDS).collect();
    let attempt = cause.attempt.map(|one| match one.most {
        0 => format!(" (attempt {})", one.number),
        most => format!(" (attempt {} of {most})", one.number),
    });
    let values = [
        ("{node}", node.to_owned()),
        ("{since}", cause.since.map(|since| format!(" since {}", shown(since))).unwrap_or_default()),
        ("{at}", cause.since.map(|since| format!(", seen at {}", shown(since))).unwrap_or_default()),
        (
            "{on_at}",
            cause.since.map(|at| format!(" after it was switched on at {}", shown(at))).unwrap_or_default(),
        ),
        ("{attempt}", attempt.unwrap_or_default()),
        ("{peer}", cause.peer.map_or("a peer", Peer::name).to_owned()),
        ("{session}", cause.session.to_string()),
        (
            "{batch}",
            cause.batch.map_or("its batch".to_owned(), |one| format!("batch {} of {}", one.number, one.of)),
        ),
        ("{words}", if words.is_empty() { words } else { format!(": {words}") }),
    ];
    // Values are filled in from the left, so a place within a value stays as it is.
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        match values.iter().find(|(place, _)| rest.starts_with(place)) {
            Some((place, value)) => {
                filled.push_str(value);
                rest = &rest[place.len()..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled + rest
}

/// Returns a time as sentences show it.
pub(super) fn shown(time: Timestamp) -> String {
    bos_time::text(time) + "Z"
}
