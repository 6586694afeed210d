//! Conversion of troubles: a text for people, and beside it the kind by which rules decide.

use std::sync::Arc;

use domain::{
    boot::{
        component::{ERROR_ABSENT, ERROR_DOUBTFUL, turns::ERROR_TURNED_TOO_OFTEN},
        evaluation::{
            ERROR_CONFIGURATION_MISSING, ERROR_CONFIGURATION_REFUSED, ERROR_LOCKED, ERROR_POWER_MISSING,
            ERROR_POWER_UNDEFINED, ERROR_REPORT_AWAITED, ERROR_RETRIES_EXHAUSTED,
        },
    },
    core::trouble::{NO_RESULTS_FROM, Trouble, TroubleKind, WAITING_FOR, recorded::TroubleBegin},
};
use proto::meta as wire;

use crate::mesh::time;

/// Returns the trouble of that kind and text; `None`: the text is empty.
pub fn from_wire(kind: i32, text: impl Into<Arc<str>>) -> Option<Trouble> {
    let text = text.into();
    Trouble::new(kind_from_wire(kind, &text), text)
}

/// Returns the kind of the trouble that `text` describes. A kind that only a later version knows is a failure here.
pub fn kind_from_wire(kind: i32, text: &str) -> TroubleKind {
    match wire::TroubleKind::try_from(kind) {
        Ok(wire::TroubleKind::Unspecified) => kind_of_untyped(text),
        Ok(wire::TroubleKind::Failed) | Err(_) => TroubleKind::Failed,
        Ok(wire::TroubleKind::Exhausted) => TroubleKind::Exhausted,
        Ok(wire::TroubleKind::ConfigurationRefused) => TroubleKind::ConfigurationRefused,
        Ok(wire::TroubleKind::Held) => TroubleKind::Held,
        Ok(wire::TroubleKind::NotListed) => TroubleKind::NotListed,
        Ok(wire::TroubleKind::Waiting) => TroubleKind::Waiting,
        Ok(wire::TroubleKind::NoResults) => TroubleKind::NoResults,
        Ok(wire::TroubleKind::Paused) => TroubleKind::Paused,
    }
}

/// Returns the kind of a trouble for the wire; unspecified: there is no trouble.
pub fn kind_to_wire(trouble: Option<&Trouble>) -> wire::TroubleKind {
    match trouble.map(Trouble::kind) {
        None => wire::TroubleKind::Unspecified,
        Some(TroubleKind::Failed) => wire::TroubleKind::Failed,
        Some(TroubleKind::Exhausted) => wire::TroubleKind::Exhausted,
        Some(TroubleKind::ConfigurationRefused) => wire::TroubleKind::ConfigurationRefused,
        Some(TroubleKind::Held) => wire::TroubleKind::Held,
        Some(TroubleKind::NotListed) => wire::TroubleKind::NotListed,
        Some(TroubleKind::Waiting) => wire::TroubleKind::Waiting,
        Some(TroubleKind::NoResults) => wire::TroubleKind::NoResults,
        Some(TroubleKind::Paused) => wire::TroubleKind::Paused,
    }
}

/// Returns the text of a trouble for the wire; empty: there is no trouble.
pub fn text_to_wire(trouble: Option<&Trouble>) -> String {
    trouble.map(|trouble| trouble.text().to_string()).unwrap_or_default()
}

/// Returns the begin of the trouble that a record shows with the text `shown`.
pub fn begin_from_wire(begin: wire::TroubleBegin, shown: &Arc<str>) -> TroubleBegin {
    let text = if begin.text.is_empty() { Arc::clone(shown) } else { begin.text.into() };
    TroubleBegin { since: begin.since.map(time::from_wire).unwrap_or_default(), text }
}

/// Returns the begin of a trouble for the wire, of a record that shows it with the text `shown`.
pub fn begin_to_wire(begin: &TroubleBegin, shown: &str) -> wire::TroubleBegin {
    let text = if *begin.text == *shown { String::new() } else { begin.text.to_string() };
    wire::TroubleBegin { since: Some(time::to_wire(begin.since)), text }
}

/// Returns the kind of a trouble that a version without kinds has stored or sent. That version decided by these texts,
/// so its records keep their meaning. No other place derives a kind from a text.
fn kind_of_untyped(text: &str) -> TroubleKind {
    const HELD: [&str; 5] = [
        ERROR_POWER_MISSING,
        ERROR_CONFIGURATION_MISSING,
        ERROR_POWER_UNDEFINED,
        ERROR_LOCKED,
        ERROR_TURNED_TOO_OFTEN,
    ];
    if text == ERROR_REPORT_AWAITED || text.starts_with(NO_RESULTS_FROM) {
        TroubleKind::NoResults
    } else if text.starts_with(WAITING_FOR) {
        TroubleKind::Waiting
    } else if text.starts_with(ERROR_CONFIGURATION_REFUSED) {
        TroubleKind::ConfigurationRefused
    } else if HELD.contains(&text) {
        TroubleKind::Held
    } else if [ERROR_ABSENT, ERROR_DOUBTFUL].contains(&text) {
        TroubleKind::NotListed
    } else if text.starts_with(ERROR_RETRIES_EXHAUSTED) {
        TroubleKind::Exhausted
    } else {
        TroubleKind::Failed
    }
}

#[cfg(test)]
mod tests {
    use domain::core::time::Timestamp;

    use super::*;

    const KINDS: [TroubleKind; 8] = [
        TroubleKind::Failed,
        TroubleKind::Exhausted,
        TroubleKind::ConfigurationRefused,
        TroubleKind::Held,
        TroubleKind::NotListed,
        TroubleKind::Waiting,
        TroubleKind::NoResults,
        TroubleKind::Paused,
    ];

    #[test]
    fn a_kind_survives_whatever_the_text_says() {
        for kind in KINDS {
            for text in ["waiting for PCS", "no results from PCS", ERROR_LOCKED, "no such node"] {
                let trouble = Trouble::new(kind, text.into());
                let sent = kind_to_wire(trouble.as_ref()).into();
                assert_eq!(from_wire(sent, text_to_wire(trouble.as_ref())), trouble);
            }
        }
        assert_eq!(from_wire(kind_to_wire(None).into(), text_to_wire(None)), None);
    }

    #[test]
    fn a_begin_keeps_its_own_text_only() {
        let begin = TroubleBegin { since: Timestamp(7), text: "waiting for PCS".into() };
        for (shown, sent) in [("waiting for PCS", ""), ("waiting for PCS (503)", "waiting for PCS")] {
            let wire = begin_to_wire(&begin, shown);
            assert_eq!(wire.text, sent);
            assert_eq!(begin_from_wire(wire, &shown.into()), begin);
        }
    }

    #[test]
    fn a_text_without_a_kind_is_read_as_before() {
        for (text, kind) in [
            ("waiting for PCS at pcs (failing since 2026-03-04T05:06:07Z: no answer)", TroubleKind::Waiting),
            ("no results from PCS at pcs (503)", TroubleKind::NoResults),
            (ERROR_REPORT_AWAITED, TroubleKind::NoResults),
            ("Error encountered setting CFS information: no", TroubleKind::ConfigurationRefused),
            ("Error encountered setting BSS information: no", TroubleKind::Failed),
            (ERROR_POWER_MISSING, TroubleKind::Held),
            (ERROR_CONFIGURATION_MISSING, TroubleKind::Held),
            (ERROR_POWER_UNDEFINED, TroubleKind::Held),
            (ERROR_LOCKED, TroubleKind::Held),
            (ERROR_TURNED_TOO_OFTEN, TroubleKind::Held),
            (ERROR_ABSENT, TroubleKind::NotListed),
            (ERROR_DOUBTFUL, TroubleKind::NotListed),
            (
                "the retry limit was reached and no service gave a reason for the failure",
                TroubleKind::Exhausted,
            ),
            ("no such node", TroubleKind::Failed),
        ] {
            assert_eq!(from_wire(0, text), Trouble::new(kind, text.into()), "{text}");
        }
        assert_eq!(from_wire(0, ""), None);
    }

    #[test]
    fn a_kind_of_a_later_version_is_a_failure() {
        assert_eq!(from_wire(99, "waiting for PCS"), Trouble::failed("waiting for PCS"));
    }
}
