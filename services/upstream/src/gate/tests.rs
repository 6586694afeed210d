//! What a gate does, told second by second.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

/// Plays `script`, with chance at its middle: `250` lets the clock go on by milliseconds, `+` is a call of a
/// peer that works and `-` of one that does not, `-7` of one that asks to be left alone for 7 s, `?` one that
/// is dropped. `(a` begins a call named `a`, and `a)+` ends it. Each step shows what became of it.
fn check(script: &str, expected: Expect) {
    let start = Instant::now();
    let (mut now, mut gate) = (start, Gate::new(start));
    let mut under_way = std::collections::HashMap::new();
    let mut told = String::new();
    for step in script.split_whitespace() {
        if let Ok(milliseconds) = step.parse::<u64>()
            && !step.starts_with(['+', '-'])
        {
            now += Duration::from_millis(milliseconds);
            continue;
        }
        let passed = match step.strip_prefix('(') {
            Some(name) => {
                let pass = gate.enter(now);
                pass.map(|pass| under_way.insert(name.to_owned(), pass)).is_some()
            }
            None => {
                let (pass, verdict) = match step.split_once(')') {
                    Some((name, verdict)) => (under_way.remove(name), verdict),
                    None => (gate.enter(now), step),
                };
                pass.inspect(|pass| gate.leave(*pass, read(verdict), now, 0.5)).is_some()
            }
        };
        let state = match gate.state {
            State::Open => "open".to_owned(),
            State::Shut { until } => format!("shut until {:?}", until.duration_since(start)),
            State::Probation => "probation".to_owned(),
        };
        let passed = if passed { "passes" } else { "stays out" };
        writeln!(told, "{:<7?} {step:<4} {passed:<9} {state}", now.duration_since(start)).unwrap();
    }
    expected.assert_eq(&told);
}

fn read(verdict: &str) -> Verdict {
    match verdict {
        "+" => Verdict::Works,
        "?" => Verdict::Unknown,
        _ => {
            let seconds = verdict.trim_start_matches('-').parse().ok();
            Verdict::Fails { retry_after: seconds.map(Duration::from_secs) }
        }
    }
}

#[test]
fn failures_in_a_row_shut_it() {
    check(
        "- - + - - - +",
        expect![[r#"
            0ns     -    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     -    passes    open
            0ns     -    passes    shut until 375ms
            0ns     +    stays out shut until 375ms
        "#]],
    );
}

#[test]
fn a_share_of_failures_shuts_it_once_there_are_enough_calls() {
    check(
        "+ - + - + - + - + - +",
        expect![[r#"
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     -    passes    shut until 375ms
            0ns     +    stays out shut until 375ms
        "#]],
    );
    check(
        "+ + + - + + - + + - + + - + + -",
        expect![[r#"
            0ns     +    passes    open
            0ns     +    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
        "#]],
    );
}

#[test]
fn old_failures_are_forgotten() {
    check(
        "+ - + - + - + - 12000 + - + - +",
        expect![[r#"
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            12s     +    passes    open
            12s     -    passes    open
            12s     +    passes    open
            12s     -    passes    open
            12s     +    passes    open
        "#]],
    );
    check(
        "+ - + - 6000 + - + - 6000 + - + - + -",
        expect![[r#"
            0ns     +    passes    open
            0ns     -    passes    open
            0ns     +    passes    open
            0ns     -    passes    open
            6s      +    passes    open
            6s      -    passes    open
            6s      +    passes    open
            6s      -    passes    open
            12s     +    passes    open
            12s     -    passes    open
            12s     +    passes    open
            12s     -    passes    open
            12s     +    passes    open
            12s     -    passes    shut until 12.375s
        "#]],
    );
}

#[test]
fn one_probe_decides() {
    check(
        "- - - 300 + 200 (a + a)+ + - - +",
        expect![[r#"
            0ns     -    passes    open
            0ns     -    passes    open
            0ns     -    passes    shut until 375ms
            300ms   +    stays out shut until 375ms
            500ms   (a   passes    probation
            500ms   +    stays out probation
            500ms   a)+  passes    open
            500ms   +    passes    open
            500ms   -    passes    open
            500ms   -    passes    open
            500ms   +    passes    open
        "#]],
    );
}

#[test]
fn pauses_grow_to_a_limit_and_begin_anew_after_success() {
    check(
        "- - - 500 - 1000 - 2000 - 4000 - 8000 - 10000 - 10000 - 10000 + - - - 500 -",
        expect![[r#"
            0ns     -    passes    open
            0ns     -    passes    open
            0ns     -    passes    shut until 375ms
            500ms   -    passes    shut until 1.25s
            1.5s    -    passes    shut until 3s
            3.5s    -    passes    shut until 6.5s
            7.5s    -    passes    shut until 13.5s
            15.5s   -    passes    shut until 23s
            25.5s   -    passes    shut until 33s
            35.5s   -    passes    shut until 43s
            45.5s   +    passes    open
            45.5s   -    passes    open
            45.5s   -    passes    open
            45.5s   -    passes    shut until 45.875s
            46s     -    passes    shut until 46.75s
        "#]],
    );
}

#[test]
fn a_peer_that_asks_for_time_gets_it() {
    check(
        "-7 6000 + 3000 +",
        expect![[r#"
            0ns     -7   passes    shut until 7.875s
            6s      +    stays out shut until 7.875s
            9s      +    passes    open
        "#]],
    );
    check(
        "- - -0 400 +",
        expect![[r#"
            0ns     -    passes    open
            0ns     -    passes    open
            0ns     -0   passes    shut until 375ms
            400ms   +    passes    open
        "#]],
    );
}

#[test]
fn a_probe_that_nobody_waits_for_decides_nothing() {
    check(
        "- - - 500 (a + a)? +",
        expect![[r#"
            0ns     -    passes    open
            0ns     -    passes    open
            0ns     -    passes    shut until 375ms
            500ms   (a   passes    probation
            500ms   +    stays out probation
            500ms   a)?  passes    shut until 500ms
            500ms   +    passes    open
        "#]],
    );
}

#[test]
fn calls_from_before_the_last_turn_decide_nothing() {
    check(
        "(a (b (c - - - a)+ 500 + b)- c)-5 +",
        expect![[r#"
            0ns     (a   passes    open
            0ns     (b   passes    open
            0ns     (c   passes    open
            0ns     -    passes    open
            0ns     -    passes    open
            0ns     -    passes    shut until 375ms
            0ns     a)+  passes    shut until 375ms
            500ms   +    passes    open
            500ms   b)-  passes    open
            500ms   c)-5 passes    shut until 6.125s
            500ms   +    stays out shut until 6.125s
        "#]],
    );
    check(
        "(a - - - a)-5 500 + 6000 +",
        expect![[r#"
            0ns     (a   passes    open
            0ns     -    passes    open
            0ns     -    passes    open
            0ns     -    passes    shut until 375ms
            0ns     a)-5 passes    shut until 5.625s
            500ms   +    stays out shut until 5.625s
            6.5s    +    passes    open
        "#]],
    );
}
