//! Answers of the driver, from the result of a call.

use std::time::Duration;

use domain::host::record::call::{DoneFacts, DriverAnswer, DriverTrouble};
use http::StatusCode;
use upstream::{Failure, FailureKind};

/// Time until a node is looked at again whose state passes soon.
pub const SOON: Duration = Duration::from_secs(2);

/// Time until a node is looked at again that Ironic works on for minutes. The listing answers meanwhile.
pub const LATER: Duration = Duration::from_secs(5);

/// Most characters of a failure in the words of Ironic, which may show a whole traceback.
const LONGEST_TEXT: usize = 500;

/// Result of a step that may end the operation for now.
pub type Step<T> = Result<T, DriverAnswer>;

/// Returns the answer after a failed read, which has no effect.
pub fn after_read(failure: Failure) -> DriverAnswer {
    unreachable(&failure.text)
}

/// Returns the answer after a failed change. A change that may have had its effect is looked for later.
pub fn after_change(failure: Failure) -> DriverAnswer {
    match (failure.kind, failure.status) {
        (FailureKind::Ambiguous, _) => running(SOON, false),
        (FailureKind::Refused, Some(StatusCode::CONFLICT)) => busy(&failure.text),
        (FailureKind::Refused, Some(StatusCode::NOT_FOUND)) => DriverAnswer::NotRegistered,
        (FailureKind::Refused, _) => failed(&failure.text),
        (FailureKind::Denied | FailureKind::Unreachable, _) => unreachable(&failure.text),
    }
}

/// Returns the answer that an operation is over.
pub fn done() -> DriverAnswer {
    DriverAnswer::Done(DoneFacts { started: true, ..DoneFacts::default() })
}

/// Returns the answer that an operation is under way.
pub fn running(again_in: Duration, started: bool) -> DriverAnswer {
    DriverAnswer::InProgress { again_in, started }
}

/// Returns the answer that an operation has failed.
pub fn failed(text: &str) -> DriverAnswer {
    DriverAnswer::Failed { text: tidy(text).into() }
}

/// Returns the answer that Ironic is busy with the node.
pub fn busy(text: &str) -> DriverAnswer {
    DriverAnswer::Trouble { kind: DriverTrouble::Busy, text: tidy(text).into() }
}

/// Returns the answer that Ironic could not be asked.
pub fn unreachable(text: &str) -> DriverAnswer {
    DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text: tidy(text).into() }
}

/// Returns a text in one line of bounded length.
fn tidy(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|one| !one.is_control()).take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn refused_changes_are_told_apart_by_status() {
        let mut table = String::new();
        for (kind, status) in [
            (FailureKind::Ambiguous, Some(503)),
            (FailureKind::Refused, Some(409)),
            (FailureKind::Refused, Some(404)),
            (FailureKind::Refused, Some(400)),
            (FailureKind::Denied, Some(401)),
            (FailureKind::Unreachable, None),
        ] {
            let status = status.map(|status| StatusCode::from_u16(status).unwrap());
            let answer = after_change(Failure { kind, status, text: "a\nb".to_owned() });
            writeln!(table, "{} {status:?}: {answer:?}", kind.word()).unwrap();
        }
        expect![[r#"
            ambiguous Some(503): InProgress { again_in: 2s, started: false }
            refused Some(409): Trouble { kind: Busy, text: "a b" }
            refused Some(404): NotRegistered
            refused Some(400): Failed { text: "a b" }
            denied Some(401): Trouble { kind: Unreachable, text: "a b" }
            unreachable None: Trouble { kind: Unreachable, text: "a b" }
        "#]]
        .assert_eq(&table);
        assert_eq!(tidy(&"é ".repeat(600)).chars().count(), LONGEST_TEXT);
    }
}
