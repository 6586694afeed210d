use expect_test::expect;

use super::{super::progress::tests::tally, *};

const STUCK: &str = "the retry limit was reached";

fn session() -> SessionTally {
    let mut tally = tally(&[
        ("n0", 1, Phase::PoweringOn, "", "", true),
        ("n1", 1, Phase::PoweringOn, "", "", true),
        ("n2", 1, Phase::PoweringOn, "", "", true),
        ("n3", 1, Phase::PoweringOff, "", "", true),
        ("n1", 4, Phase::Configuring, "", "", true),
        ("n0", 5, Phase::Configuring, "", "", true),
        ("n3", 6, Phase::PoweringOn, "", "", true),
        ("n0", 8, Phase::None, "", "", false),
        ("n1", 9, Phase::None, "", "", false),
        ("n2", 20, Phase::PoweringOn, "failed", STUCK, false),
        ("n3", 21, Phase::PoweringOn, "failed", STUCK, false),
    ]);
    tally.session(Some(4), "");
    tally
}

fn faults(ids: &[&str]) -> BTreeMap<String, String> {
    ids.iter().map(|id| (id.to_string(), "stuck-off".to_owned())).collect()
}

fn outcome<'a>(
    tally: &'a SessionTally,
    faults: &'a BTreeMap<String, String>,
    error: &'a str,
) -> DemoSummary<'a> {
    DemoSummary {
        session: "s",
        operation: "boot",
        error,
        elapsed: Duration::from_millis(21_340),
        tally,
        faults,
    }
}

#[test]
fn tells_how_the_nodes_fared() {
    expect![[r#"
        session s: boot of 4 nodes complete after 21.3 s

        final status                  nodes
        stable                            2
        failed                            2

        time per phase                nodes    median   slowest
        powering off                      1     5.0 s     5.0 s  n3
        powering on                       4     4.0 s    19.0 s  n2
        configuring                       2     3.0 s     5.0 s  n1

        slowest nodes
        n3                                     21.0 s  failed
        n2                                     20.0 s  failed
        n1                                      9.0 s  stable
        n0                                      8.0 s  stable

        what failed and why
        1 node failed: the retry limit was reached (no fault was injected)
            n3
        1 node failed: the retry limit was reached (injected: stuck-off)
            n2
    "#]]
    .assert_eq(&render(&outcome(&session(), &faults(&["n2"]), "")));
}

#[test]
fn tells_of_a_session_without_nodes() {
    expect![[r#"
        session s: boot of 0 nodes complete after 21.3 s
        session error: no nodes were found
    "#]]
    .assert_eq(&render(&outcome(&SessionTally::default(), &faults(&[]), "no nodes were found")));
}

#[test]
fn judges_by_the_nodes_without_a_fault() {
    let (session, empty) = (session(), SessionTally::default());
    let mut taken = tally(&[("n0", 1, Phase::None, "", "", false)]);
    taken.session(Some(3), "");
    let rows = [
        (&session, faults(&["n2", "n3"]), ""),
        (&session, faults(&["n0", "n2"]), ""),
        (&session, faults(&[]), ""),
        (&session, faults(&["n2", "n3"]), "went wrong"),
        (&taken, faults(&[]), ""),
        (&empty, faults(&[]), ""),
    ];
    let mut verdicts = String::new();
    for (tally, faults, error) in &rows {
        let verdict = outcome(tally, faults, error).verdict();
        verdicts += &verdict.map_or_else(|error| format!("{error}\n"), |()| "good\n".to_owned());
    }
    expect![[r#"
        good
        a node without an injected fault is not stable: n3
        2 nodes without an injected fault are not stable: n2, n3
        session s: went wrong
        2 of 3 members were taken out of the session
        good
    "#]]
    .assert_eq(&verdicts);
}

#[test]
fn long_lists_are_cut() {
    let ids: Vec<_> = (0..8).map(|n| ComponentId::parse(&format!("n{n}")).expect("valid")).collect();
    let ids: Vec<_> = ids.iter().collect();
    assert_eq!(named(&ids[..2]), "n0, n1");
    assert_eq!(named(&ids), "n0, n1, n2, n3, n4 and 3 more");
}
