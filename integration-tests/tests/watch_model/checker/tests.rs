//! Histories made by hand: one for each way to break a rule, and those that look odd but are in order.
//!
//! Each line stands for one moment:
//!
//! - `begin put|patch|report|assign|delete KEY...`: a write begins. The first one is w0, and w0 is also the text that it
//!   sets: `put` and `patch` as error, `report` as report, `assign` as session;
//! - `ack N [REVISION]`, `refuse N`: outcome of the write;
//! - `WATCHER open FROM`, `WATCHER told BOOKMARK [synced] EVENT...`, `WATCHER list REVISION EVENT...`,
//!   `WATCHER expired|broke|stuck`;
//! - `last REVISION`: revision that every watcher has to reach.
//!
//! An event is `KEY@REVISION=ERROR/REPORT/SESSION`, where the end may be left out, or `-KEY@REVISION` for a deletion.

use std::{fmt::Write as _, sync::Arc};

use expect_test::{Expect, expect};

use super::{WatchContract, check};
use crate::history::{
    ComponentEvent, Key, LANES, Lanes, Moment, RunHistory, WatcherEntry, WriteChange, WriteOutcome,
    WriteRecord,
};

const CONTRACT: WatchContract = WatchContract { remembered: 10 };

fn read(text: &str) -> RunHistory {
    let mut history = RunHistory::default();
    for (line, at) in text.lines().filter(|line| !line.trim().is_empty()).zip(1..) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["begin", change, ref keys @ ..] => begin(&mut history, at, change, keys),
            ["ack", index, ref revision @ ..] => {
                let revision = revision.first().map(|revision| revision.parse().unwrap());
                outcome(&mut history, index, WriteOutcome::Acknowledged { at, revision });
            }
            ["refuse", index] => outcome(&mut history, index, WriteOutcome::Refused),
            ["last", revision] => history.last = revision.parse().unwrap(),
            [who, ref happened @ ..] => {
                let entry = entry(at, happened);
                match history.watchers.iter_mut().find(|(name, _)| name == who) {
                    Some((_, entries)) => entries.push(entry),
                    None => history.watchers.push((who.to_owned(), vec![entry])),
                }
            }
            [] => {}
        }
    }
    history
}

fn begin(history: &mut RunHistory, invoked: Moment, change: &str, keys: &[&str]) {
    let text: Arc<str> = format!("w{}", history.writes.len()).into();
    let set = |lane: usize| {
        let mut lanes = [const { None }; LANES];
        lanes[lane] = Some(Arc::clone(&text));
        lanes
    };
    let change = match change {
        "put" => WriteChange::Replace([text, "".into(), "".into()]),
        "patch" => WriteChange::Merge(set(0)),
        "report" => WriteChange::Merge(set(1)),
        "assign" => {
            let mut lanes = set(2);
            lanes[0] = Some("".into());
            WriteChange::Merge(lanes)
        }
        "delete" => WriteChange::Delete,
        _ => panic!("{change}"),
    };
    let keys = keys.iter().map(|key| Key::from(*key)).collect();
    history.writes.push(WriteRecord { keys, change, invoked, outcome: WriteOutcome::Unknown });
}

fn outcome(history: &mut RunHistory, index: &str, outcome: WriteOutcome) {
    history.writes[index.parse::<usize>().unwrap()].outcome = outcome;
}

fn entry(at: Moment, words: &[&str]) -> WatcherEntry {
    match words {
        ["open", from] => WatcherEntry::Opened { at, from: from.parse().unwrap() },
        ["told", revision, rest @ ..] => {
            let synced = rest.first() == Some(&"synced");
            let events = rest.iter().skip(usize::from(synced)).map(|word| event(word));
            let (changed, deleted) = events.partition(|event: &ComponentEvent| event.lanes.is_some());
            WatcherEntry::Told { at, changed, deleted, revision: revision.parse().unwrap(), synced }
        }
        ["list", revision, rest @ ..] => WatcherEntry::Listed {
            asked: at,
            at,
            events: rest.iter().map(|word| event(word)).collect(),
            revision: revision.parse().unwrap(),
        },
        ["expired"] => WatcherEntry::Expired,
        ["broke", why] => WatcherEntry::Broke { why: (*why).to_owned() },
        ["stuck"] => WatcherEntry::Stuck,
        _ => panic!("{words:?}"),
    }
}

fn event(word: &str) -> ComponentEvent {
    let (key, rest) = word.trim_start_matches('-').split_once('@').unwrap();
    let (revision, lanes) = rest.split_once('=').unwrap_or((rest, ""));
    let mut texts = lanes.split('/').map(Arc::from);
    let lanes: Lanes = std::array::from_fn(|_| texts.next().unwrap_or_default());
    let lanes = (!word.starts_with('-')).then_some(lanes);
    ComponentEvent { key: key.into(), revision: revision.parse().unwrap(), lanes }
}

/// Returns the violations found in each of the histories.
fn found(rows: &[(&str, &str)]) -> String {
    let mut told = String::new();
    for (what, history) in rows {
        let findings = check(&read(history), CONTRACT);
        writeln!(told, "{what}").unwrap();
        findings.iter().for_each(|finding| writeln!(told, "  {:?}, {}", finding.rule, finding.who).unwrap());
    }
    told
}

/// Two components that were created, and A has both.
const MADE: &str = "
    begin put a
    ack 0
    begin put b
    ack 1
    A open 0
    A told 2 synced a@1=w0 b@2=w1
";

fn after_made(rest: &str) -> String {
    format!("{MADE}{rest}")
}

/// Checks what is found in each history, which begins with the two components that were made.
fn check_rows(rows: &[(&str, &str)], expected: Expect) {
    let rows: Vec<_> = rows.iter().map(|(what, rest)| (*what, after_made(rest))).collect();
    let rows: Vec<_> = rows.iter().map(|(what, history)| (*what, history.as_str())).collect();
    expected.assert_eq(&found(&rows));
}

#[test]
fn steps_and_merged_changes_pass() {
    let rows = [
        ("nothing happened", ""),
        (
            "a step at a time",
            "
            begin patch a b
            A told 3 a@3=w2
            ack 2
            A told 4 b@4=w2
            last 4",
        ),
        (
            "a slow one is told the newest",
            "
            begin patch a
            ack 2
            begin report a
            ack 3
            B open 0
            B told 4 synced b@2=w1 a@4=w2/w3
            A told 4 a@4=w2/w3
            last 4",
        ),
        (
            "a slow one learns later what was overwritten meanwhile",
            "
            begin patch a
            begin report a
            B list 2 a@1=w0 b@2=w1
            B open 2
            B told 3
            B told 4 synced a@4=w2/w3
            A told 3 a@3=w2
            A told 4 a@4=w2/w3
            ack 2
            ack 3
            last 4",
        ),
        (
            "what was answered was overwritten before anybody was told",
            "
            begin patch a b
            begin report a
            ack 2 3
            ack 3 4
            A told 4 b@3=w2 a@4=w2/w3
            last 4",
        ),
        (
            "two writes in one transaction show as one",
            "
            begin patch a
            begin patch a
            ack 2
            ack 3
            A told 3 a@3=w3
            last 3",
        ),
    ];
    check_rows(
        &rows,
        expect![[r#"
            nothing happened
            a step at a time
            a slow one is told the newest
            a slow one learns later what was overwritten meanwhile
            what was answered was overwritten before anybody was told
            two writes in one transaction show as one
        "#]],
    );
}

#[test]
fn resumed_and_late_changes_pass() {
    let rows = [
        (
            "who resumes is told the rest, whatever was told before",
            "
            begin patch a
            ack 2
            A told 3 a@3=w2
            A broke Unavailable
            A open 2
            A told 3 synced a@3=w2
            last 3",
        ),
        (
            "deleted and made anew in one batch",
            "
            begin delete a
            ack 2
            begin put a
            ack 3
            A told 4 -a@3 a@4=w3
            last 4",
        ),
        (
            "a write of unknown outcome may be seen late",
            "
            begin patch a
            begin patch a
            ack 3
            A told 3 a@3=w3
            A told 4 a@4=w2
            last 4",
        ),
        (
            "refused, and never seen",
            "
            begin patch c
            refuse 2
            last 2",
        ),
        (
            "a list may be ahead of its revision",
            "
            begin patch a
            B list 2 a@3=w2 b@2=w1
            B open 2
            B told 3 synced a@3=w2
            A told 3 a@3=w2
            last 3",
        ),
        (
            "whoever waited too long starts over",
            "
            begin delete a b c d e f g h i j
            begin delete a b c d e f g h i j
            begin delete a b c d e f g h i j
            begin delete a b c d e f g h i j
            begin delete a b c d e f g h i j
            begin delete a b c d e f g h i j
            begin delete a b c d e f g h i j
            begin delete a b c d e f g h i j
            begin delete a b c d e f g h i j
            begin delete a b c d e f g h i j
            A expired
            A open 0
            A told 22 synced
            last 22",
        ),
    ];
    check_rows(
        &rows,
        expect![[r#"
            who resumes is told the rest, whatever was told before
            deleted and made anew in one batch
            a write of unknown outcome may be seen late
            refused, and never seen
            a list may be ahead of its revision
            whoever waited too long starts over
        "#]],
    );
}

#[test]
fn skipped_and_repeated_changes_are_found() {
    let rows = [
        (
            "a change is skipped",
            "
            begin patch a
            ack 2
            begin patch b
            ack 3
            B list 4 a@3=w2 b@4=w3
            A told 4 b@4=w3
            last 4",
        ),
        (
            "a change that others saw is skipped for good",
            "
            begin patch a
            ack 2
            B list 3 a@3=w2 b@2=w1
            A told 3
            last 3",
        ),
        (
            "a deletion is skipped",
            "
            begin delete a
            ack 2
            B list 3 b@2=w1
            A told 3
            last 3",
        ),
        (
            "a change is told twice",
            "
            begin patch a
            ack 2
            A told 3 a@3=w2
            A told 4 a@3=w2
            last 3",
        ),
    ];
    check_rows(
        &rows,
        expect![[r#"
            a change is skipped
              NoGap, A
              Fresh, A
            a change that others saw is skipped for good
              NoGap, A
              Fresh, A
            a deletion is skipped
              Seen, w2
              Gone, A
            a change is told twice
              NoDuplicate, A
        "#]],
    );
}

#[test]
fn misplaced_changes_are_found() {
    let rows = [
        (
            "a change is told late",
            "
            begin patch a b
            ack 2
            A told 4 b@4=w2
            A told 5 a@3=w2
            last 4",
        ),
        (
            "a batch is out of order",
            "
            begin patch a b
            ack 2
            A told 4 b@4=w2 a@3=w2
            last 4",
        ),
        (
            "a bookmark goes back",
            "
            begin patch a
            ack 2
            A told 3 a@3=w2
            A told 2
            last 2",
        ),
        (
            "a change beyond its bookmark",
            "
            begin patch a
            ack 2
            A told 2 a@3=w2
            A told 3
            last 3",
        ),
        (
            "a bookmark that was a lie",
            "
            A told 5
            begin patch a
            ack 2
            B list 3 a@3=w2 b@2=w1
            A told 6
            last 3",
        ),
    ];
    check_rows(
        &rows,
        expect![[r#"
            a change is told late
              NoGap, A
              NoTimeTravel, A
            a batch is out of order
              NoTimeTravel, A
            a bookmark goes back
              NoTimeTravel, A
            a change beyond its bookmark
              WithinBookmark, A
            a bookmark that was a lie
              InOrder, A
              NoGap, A
              NoGap, A
              Fresh, A
              Fresh, B
        "#]],
    );
}

#[test]
fn states_that_nobody_wrote_are_found() {
    let rows = [
        (
            "what nobody wrote",
            "
            A told 3 a@3=w7
            last 3",
        ),
        (
            "what was refused",
            "
            begin patch a
            refuse 2
            A told 3 a@3=w2
            last 3",
        ),
        (
            "deleted by nobody",
            "
            A told 3 -a@3
            last 3",
        ),
        (
            "two see different things",
            "
            begin patch a
            begin patch b
            ack 2
            ack 3
            A told 3 a@3=w2
            B open 0
            B told 4 synced a@1=w0 b@3=w3 a@4=w2
            last 4",
        ),
    ];
    check_rows(
        &rows,
        expect![[r#"
            what nobody wrote
              Written, A
            what was refused
              Written, A
            deleted by nobody
              Fresh, A
            two see different things
              OneTruth, B
              Seen, w3
              Arrives, A
              Fresh, A
        "#]],
    );
}

#[test]
fn lost_writes_are_found() {
    let rows = [
        (
            "an acknowledged write was never seen",
            "
            begin patch a
            ack 2
            last 2",
        ),
        (
            "an answer with a revision that is too early",
            "
            begin assign a
            ack 2 2
            A told 3 a@3=//w2
            last 3",
        ),
        (
            "a report is lost to a patch",
            "
            begin report a
            ack 2
            A told 3 a@3=w0/w2
            begin patch a
            ack 3
            A told 4 a@4=w3
            last 4",
        ),
        (
            "a report is lost that nobody saw",
            "
            begin report a
            ack 2
            begin patch a
            ack 3
            A told 3 a@3=w3
            last 3",
        ),
        (
            "a text comes back",
            "
            begin patch a
            ack 2
            A told 3 a@3=w2
            begin report a
            A told 4 a@4=w0/w3
            last 4",
        ),
    ];
    check_rows(
        &rows,
        expect![[r#"
            an acknowledged write was never seen
              Seen, w2
              Fresh, A
            an answer with a revision that is too early
              InOrder, an answer
            a report is lost to a patch
              NothingLost, A
              Fresh, A
            a report is lost that nobody saw
              NothingLost, A
              Seen, w2
              Fresh, A
            a text comes back
              NothingLost, A
              NothingLost, A
              Fresh, A
        "#]],
    );
}

#[test]
fn faults_of_resumed_watches_are_found() {
    let rows = [
        (
            "an update is lost after a resume",
            "
            begin patch a
            ack 2
            A open 2
            A told 3 synced
            last 3",
        ),
        (
            "deletions are forgotten in silence",
            "
            begin delete a
            ack 2
            A broke Unavailable
            A open 2
            A told 3 synced
            last 3",
        ),
        (
            "a revision is refused without need",
            "
            A open 2
            A expired
            A open 0
            A told 2 synced a@1=w0 b@2=w1
            last 2",
        ),
        (
            "after starting over it is earlier",
            "
            begin patch a
            A told 3 a@3=w2
            A open 0
            A told 2 synced a@1=w0 b@2=w1
            A told 3 a@3=w2
            last 3",
        ),
        (
            "a watch is behind what somebody else has seen",
            "
            begin patch a
            A told 3 a@3=w2
            B open 0
            B told 2 synced a@1=w0 b@2=w1
            B told 3 a@3=w2
            last 3",
        ),
    ];
    check_rows(
        &rows,
        expect![[r#"
            an update is lost after a resume
              Seen, w2
              Fresh, A
              Fresh, A
            deletions are forgotten in silence
              Seen, w2
              Gone, A
              Gone, A
            a revision is refused without need
              Remembered, A
            after starting over it is earlier
              NoTimeTravel, A
              Fresh, A
            a watch is behind what somebody else has seen
              Fresh, B
        "#]],
    );
}

#[test]
fn faults_at_the_end_of_a_watch_are_found() {
    let rows = [
        (
            "synced twice",
            "
            A told 2 synced
            last 2",
        ),
        (
            "ends with an error that nothing explains",
            "
            A broke InvalidArgument
            last 2",
        ),
        (
            "never arrives",
            "
            begin patch a
            B list 3 a@3=w2 b@2=w1
            A stuck
            last 3",
        ),
        (
            "left behind",
            "
            begin patch a
            B list 3 a@3=w2 b@2=w1
            last 3",
        ),
    ];
    check_rows(
        &rows,
        expect![[r#"
            synced twice
              SyncedOnce, A
            ends with an error that nothing explains
              EndsInOrder, A
            never arrives
              Arrives, A
            left behind
              Arrives, A
        "#]],
    );
}
