//! Transcripts of a circuit breaker, step by step.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

/// Plays `script` with a fixed chance of one half. `250` advances the clock by milliseconds, `+` is a call that
/// succeeds, `-` a call that fails, `-7` a call that fails with a `Retry-After` of 7 s, `?` a call that is dropped.
/// `(a` begins a call named `a`, and `a)+` ends it. The transcript shows the state after each step.
fn check(script: &str, expected: Expect) {
    let start = Instant::now();
    let mut now = start;
    let mut breaker = CircuitBreaker::new(start);
    let mut under_way = std::collections::HashMap::new();
    let mut transcript = String::new();
    for step in script.split_whitespace() {
        if let Ok(milliseconds) = step.parse::<u64>()
            && !step.starts_with(['+', '-'])
        {
            now += Duration::from_millis(milliseconds);
            continue;
        }
        let passed = match step.strip_prefix('(') {
            Some(name) => {
                let pass = breaker.acquire(now);
                pass.map(|pass| under_way.insert(name.to_owned(), pass)).is_some()
            }
            None => {
                let (pass, verdict) = match step.split_once(')') {
                    Some((name, verdict)) => (under_way.remove(name), verdict),
                    None => (breaker.acquire(now), step),
                };
                pass.inspect(|pass| breaker.release(*pass, read(verdict), now, 0.5)).is_some()
            }
        };
        let state = match breaker.state {
            CircuitState::Closed => "closed".to_owned(),
            CircuitState::Open { until } => format!("open until {:?}", until.duration_since(start)),
            CircuitState::HalfOpen => "half-open".to_owned(),
        };
        let passed = if passed { "passes" } else { "stays out" };
        writeln!(transcript, "{:<7?} {step:<4} {passed:<9} {state}", now.duration_since(start)).unwrap();
    }
    expected.assert_eq(&transcript);
}

fn read(verdict: &str) -> CallVerdict {
    match verdict {
        "+" => CallVerdict::Works,
        "?" => CallVerdict::Unknown,
        _ => {
            let seconds = verdict.trim_start_matches('-').parse().ok();
            CallVerdict::Fails { retry_after: seconds.map(Duration::from_secs) }
        }
    }
}

#[test]
fn failures_in_a_row_open_the_circuit() {
    check(
        "- - + - - - +",
        expect![[r#"
            0ns     -    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     -    passes    closed
            0ns     -    passes    open until 375ms
            0ns     +    stays out open until 375ms
        "#]],
    );
}

#[test]
fn a_share_of_failures_opens_a_busy_circuit() {
    check(
        "+ - + - + - + - + - +",
        expect![[r#"
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    open until 375ms
            0ns     +    stays out open until 375ms
        "#]],
    );
    check(
        "+ + + - + + - + + - + + - + + -",
        expect![[r#"
            0ns     +    passes    closed
            0ns     +    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
        "#]],
    );
}

#[test]
fn old_failures_are_forgotten() {
    check(
        "+ - + - + - + - 12000 + - + - +",
        expect![[r#"
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            12s     +    passes    closed
            12s     -    passes    closed
            12s     +    passes    closed
            12s     -    passes    closed
            12s     +    passes    closed
        "#]],
    );
    check(
        "+ - + - 6000 + - + - 6000 + - + - + -",
        expect![[r#"
            0ns     +    passes    closed
            0ns     -    passes    closed
            0ns     +    passes    closed
            0ns     -    passes    closed
            6s      +    passes    closed
            6s      -    passes    closed
            6s      +    passes    closed
            6s      -    passes    closed
            12s     +    passes    closed
            12s     -    passes    closed
            12s     +    passes    closed
            12s     -    passes    closed
            12s     +    passes    closed
            12s     -    passes    open until 12.375s
        "#]],
    );
}

#[test]
fn one_probe_decides() {
    check(
        "- - - 300 + 200 (a + a)+ + - - +",
        expect![[r#"
            0ns     -    passes    closed
            0ns     -    passes    closed
            0ns     -    passes    open until 375ms
            300ms   +    stays out open until 375ms
            500ms   (a   passes    half-open
            500ms   +    stays out half-open
            500ms   a)+  passes    closed
            500ms   +    passes    closed
            500ms   -    passes    closed
            500ms   -    passes    closed
            500ms   +    passes    closed
        "#]],
    );
}

#[test]
fn pauses_grow_to_a_limit_and_restart_after_success() {
    check(
        "- - - 500 - 1000 - 2000 - 4000 - 8000 - 10000 - 10000 - 10000 + - - - 500 -",
        expect![[r#"
            0ns     -    passes    closed
            0ns     -    passes    closed
            0ns     -    passes    open until 375ms
            500ms   -    passes    open until 1.25s
            1.5s    -    passes    open until 3s
            3.5s    -    passes    open until 6.5s
            7.5s    -    passes    open until 13.5s
            15.5s   -    passes    open until 23s
            25.5s   -    passes    open until 33s
            35.5s   -    passes    open until 43s
            45.5s   +    passes    closed
            45.5s   -    passes    closed
            45.5s   -    passes    closed
            45.5s   -    passes    open until 45.875s
            46s     -    passes    open until 46.75s
        "#]],
    );
}

#[test]
fn a_requested_pause_is_respected() {
    check(
        "-7 6000 + 3000 +",
        expect![[r#"
            0ns     -7   passes    open until 7.875s
            6s      +    stays out open until 7.875s
            9s      +    passes    closed
        "#]],
    );
    check(
        "- - -0 400 +",
        expect![[r#"
            0ns     -    passes    closed
            0ns     -    passes    closed
            0ns     -0   passes    open until 375ms
            400ms   +    passes    closed
        "#]],
    );
}

#[test]
fn a_dropped_probe_decides_nothing() {
    check(
        "- - - 500 (a + a)? +",
        expect![[r#"
            0ns     -    passes    closed
            0ns     -    passes    closed
            0ns     -    passes    open until 375ms
            500ms   (a   passes    half-open
            500ms   +    stays out half-open
            500ms   a)?  passes    open until 500ms
            500ms   +    passes    closed
        "#]],
    );
}

#[test]
fn calls_from_before_the_last_change_decide_nothing() {
    check(
        "(a (b (c - - - a)+ 500 + b)- c)-5 +",
        expect![[r#"
            0ns     (a   passes    closed
            0ns     (b   passes    closed
            0ns     (c   passes    closed
            0ns     -    passes    closed
            0ns     -    passes    closed
            0ns     -    passes    open until 375ms
            0ns     a)+  passes    open until 375ms
            500ms   +    passes    closed
            500ms   b)-  passes    closed
            500ms   c)-5 passes    open until 6.125s
            500ms   +    stays out open until 6.125s
        "#]],
    );
    check(
        "(a - - - a)-5 500 + 6000 +",
        expect![[r#"
            0ns     (a   passes    closed
            0ns     -    passes    closed
            0ns     -    passes    closed
            0ns     -    passes    open until 375ms
            0ns     a)-5 passes    open until 5.625s
            500ms   +    stays out open until 5.625s
            6.5s    +    passes    closed
        "#]],
    );
}
