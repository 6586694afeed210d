//! Fills the places of the texts of the table with the values of a cause.

use super::{
    ExplainedCause, Peer, SiteTools,
    table::{CommandText, SHOW_EVENTS},
};
use crate::core::explanation::{NextStep, fill, is_plain, seen_text, shown, since_text, words_text};

/// Returns the sentence about `subject`.
pub(super) fn sentence(cause: &ExplainedCause, subject: &str) -> String {
    let mut sentence = filled(cause.reason.row().sentence, cause, subject);
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
        if is_plain(node) && is_plain(&cause.session) { filled(text, cause, subject) } else { String::new() };
    NextStep { text: filled(row.advice, cause, subject), command }
}

fn filled(text: &str, cause: &ExplainedCause, subject: &str) -> String {
    let node = cause.members.first().map_or(subject, String::as_str);
    let attempt = cause.attempt.map(|one| match one.most {
        0 => format!(" (attempt {})", one.number),
        most => format!(" (attempt {} of {most})", one.number),
    });
    let values = [
        ("{node}", node.to_owned()),
        ("{since}", since_text(cause.since)),
        ("{at}", seen_text(cause.since)),
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
        ("{words}", words_text(&cause.words)),
    ];
    fill(text, &values)
}
