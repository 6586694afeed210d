//! Planted defects are found: the checks of the simulation can fail, in a whole run.

use std::process::Command;

/// Checks that one of `seeds` breaks `invariant` first if `defect` is planted.
fn finds(defect: &str, invariant: &str, seeds: &str, faults: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_simulation"))
        .args(["--seeds", seeds, "--plant", defect, "--until", invariant])
        .args(faults.iter().map(|fault| format!("--fault={fault}")))
        .output()
        .expect("the simulation");
    let told =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(told.contains(&format!(" FAILED: {invariant} at ")), "{defect}: {told}");
}

#[test]
fn what_upstreams_take_wrongly_is_found() {
    finds("own-initiative", "I0", "0..1", &[]);
    finds("late-calls", "I0", "0..1", &[]);
    finds("repeated-calls", "I1", "0..1", &[]);
    finds("lost-boot-data", "I4", "0..1", &[]);
    finds("lost-configurations", "I4", "0..1", &[]);
    finds("early-ends", "I2", "0..3", &["foreign"]);
    finds("unread-replies", "I1", "0..5", &["swapped-replies"]);
    finds("half-lists", "I15", "0..2", &["shrink"]);
    finds("early-ends", "I2", "1..3", &["late-workers"]);
}

/// The work of the power service lasts, so that another client holds nodes for long enough.
#[test]
fn wrong_beliefs_about_transitions_of_other_clients_are_found() {
    finds("hidden-transitions", "I5", "4..6", &["foreign", "late-workers"]);
    finds("forgotten-abandonments", "I2", "5..6", &["foreign", "late-workers"]);
    finds("forgotten-shutdowns", "I4", "11..12", &["crash", "foreign"]);
}

#[test]
fn what_never_ends_or_is_told_of_another_node_is_found() {
    finds("endless-configurations", "I14", "8..10", &["slow"]);
    finds("wrong-node", "I17", "0..5", &["oddity"]);
}

#[test]
fn what_was_not_known_is_found() {
    finds("old-readings", "I5", "0..1", &["crash"]);
    finds("old-configurations", "I4", "8..9", &["upstream"]);
    finds("guessed-power", "I5", "0..8", &["upstream"]);
    finds("inherited-readings", "I5", "1..2", &["crash", "upstream"]);
    finds("old-reports", "I5", "62..66", &["old-reports"]);
}

#[test]
fn commits_that_were_not_made_or_are_lost_are_found() {
    finds("false-promises", "I8", "0..3", &["commits"]);
    finds("continued-histories", "I1", "10..11", &["restore"]);
}

#[test]
fn decisions_of_older_rules_are_found() {
    finds("equal-rules", "I10", "0..4", &["old-rules"]);
}

/// The clients of watches read nothing for a while, and fall behind.
#[test]
fn changes_that_a_slow_client_never_gets_are_found() {
    finds("missed-changes", "I8", "9..10", &["stall"]);
}

/// A replica continues after a pause and writes its earlier decisions.
#[test]
fn writes_without_the_role_are_found() {
    finds("lost-role", "I10", "0..4", &["replicas"]);
    finds("unfenced-writes", "I10", "2000..2002", &["pause", "pause-at-commits"]);
    finds("same-epochs", "I10", "2000..2002", &["pause", "pause-at-commits"]);
}
