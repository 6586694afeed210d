//! Sentences, steps and commands of explanations.

use super::*;

#[test]
fn explanations_always_have_a_sentence_and_a_step() {
    for reason in CauseReason::ALL {
        let cause = ExplainedCause::new(reason);
        let sentence = wording::sentence(&cause, "x1");
        let step = wording::next_step(&cause, "x1", SiteTools::Csm);
        for text in [&sentence, &step.text, &step.command] {
            assert!(!text.is_empty(), "{reason:?}");
            assert!(!text.contains("{since}") && !text.contains("{node}"), "{text}");
        }
    }
}

#[test]
fn sites_without_the_tools_get_commands_of_reveille() {
    let cause = ExplainedCause::new(CauseReason::NodeLocked);
    let command = |tools| wording::next_step(&cause, "x1", tools).command;
    assert_eq!(command(SiteTools::Csm), "cray hsm locks unlock create --component-ids x1");
    assert!(command(SiteTools::Own).starts_with("reveille "), "{}", command(SiteTools::Own));
}

#[test]
fn commands_never_carry_what_a_shell_would_read() {
    let cause = ExplainedCause::new(CauseReason::NotEnabled);
    assert_eq!(wording::next_step(&cause, "x1'; rm -rf /", SiteTools::Csm).command, "");
    let words = cause.saying("{node} {since}");
    assert_eq!(
        wording::sentence(&words, "x1"),
        "x1 is not enabled, so nothing is done about it: {node} {since}.",
        "values are not filled in again"
    );
}

#[test]
fn missing_answers_are_no_negative_ones() {
    let silent = node().switched_on(100, 1).switched_off(400, Action::PoweringOffGracefully);
    let silent = silent.ended(500, Reason::RetriesExhausted);
    let since = |seconds| ScriptEvidence::Known { recorded_since: at(seconds), requests: None };
    for (name, script, expected) in [
        ("no source", ScriptEvidence::NotOffered, CauseReason::BootUnreported),
        ("no answer", ScriptEvidence::Unknown, CauseReason::BootUnreported),
        ("on record only since the attempt", since(200), CauseReason::BootUnreported),
        ("on record before the attempt", since(99), CauseReason::BootScriptNotRequested),
    ] {
        let explained = silent.clone().with(|node| node.script = script).explained();
        assert_eq!(explained.causes[0].reason, expected, "{name}");
    }
}
