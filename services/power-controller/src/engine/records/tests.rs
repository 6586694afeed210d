use domain::boot::power::transition::TransitionMember;

use super::*;

#[test]
fn what_is_shown_follows_the_last_error_now_and_then() {
    let (mut records, start) = (records(), Instant::now());
    for (after, error, news) in [
        (0, "refused", true),
        (1, "refused", false),
        (29, "no answer", false),
        (30, "no answer", true),
        (59, "refused", false),
        (90, "no answer", false),
    ] {
        let trouble = Trouble::failed(error).unwrap();
        let shown = records.show("t1", &trouble, start + Duration::from_secs(after));
        assert_eq!(shown, news, "{after}");
    }
    assert_eq!(records.shown("t1"), Trouble::failed("no answer"));
}

/// Returns records of some open transitions.
fn records() -> TransitionRecords {
    let mut records = TransitionRecords::default();
    ["t1", "all", "lone", "other", "next attempt"].iter().for_each(|id| records.put(transition(id, 0..0)));
    records
}

/// Returns a transition with nodes named by the numbers.
fn transition(id: &str, nodes: std::ops::Range<u32>) -> PowerTransition {
    let member = |node| TransitionMember { id: format!("x{node}"), ..TransitionMember::default() };
    PowerTransition { id: id.to_owned(), members: nodes.map(member).collect(), ..PowerTransition::default() }
}

#[test]
fn nodes_that_are_left_are_probed_again() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    for (name, takings, rows) in [
        (
            "nobody is taken",
            [].as_slice(),
            vec![(1, "wait"), (59, "wait"), (60, "probe"), (61, "wait"), (179, "wait"), (180, "probe")],
        ),
        ("others are taken twice", &[2, 5], vec![(1, "wait"), (4, "wait"), (6, "probe"), (7, "wait")]),
    ] {
        let mut records = records();
        assert_eq!(records.refused(&transition("all", 0..10), at(0)), RefusalStep::Probe(3), "{name}");
        records.hand_down("all", ["p1", "p2", "p3", "left"].map(|id| transition(id, 0..0)));
        let probe_all = |records: &mut TransitionRecords, first, second| {
            [("p1", first), ("p2", first + 1), ("p3", first + 2)]
                .map(|(id, node)| records.refused(&transition(id, node..node + 1), at(second)))
        };
        let mut probes = probe_all(&mut records, 0, 0);
        let mut before = 0;
        for (second, expected) in rows {
            for taken_at in takings.iter().filter(|taken_at| (before..second).contains(*taken_at)) {
                records.taken(&transition("other", 20..21), at(*taken_at));
            }
            before = second;
            let next = records.refused(&transition("left", 3..10), at(second));
            let expected = if expected == "probe" { RefusalStep::Probe(3) } else { RefusalStep::BackOff };
            assert_eq!(next, expected, "{name}, {second} s");
            if next == RefusalStep::Probe(3) {
                probes = probe_all(&mut records, 3, second);
            }
        }
        assert_eq!(probes, [RefusalStep::BackOff; 3], "{name}");
    }
}

#[test]
fn lone_node_waits_until_others_are_taken_and_is_blamed_from_then_on() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut records = records();
    let lone = |generation| {
        let mut lone = transition("lone", 0..1);
        lone.members[0].generation = generation;
        lone
    };
    records.taken(&transition("other", 1..2), at(0));
    for second in [1, 50, 100, 150, 200] {
        assert_eq!(records.refused(&lone(1), at(second)), RefusalStep::BackOff, "{second} s");
    }
    records.taken(&transition("other", 1..2), at(201));
    assert_eq!(records.refused(&lone(1), at(202)), RefusalStep::BackOff, "others were taken for a moment");
    records.taken(&transition("other", 1..2), at(203));
    for second in [204, 400, 900] {
        assert_eq!(records.refused(&lone(1), at(second)), RefusalStep::SetAside, "{second} s");
    }
    assert_eq!(records.refused(&lone(2), at(901)), RefusalStep::BackOff, "another generation");
}

#[test]
fn nodes_that_were_blamed_together_are_blamed_at_the_next_attempt() {
    let (mut records, now) = (records(), Instant::now());
    let recorded = PowerTransition { delivery: TransitionDelivery::Refused, ..transition("before", 0..2) };
    records.recall_refusals(&[Arc::new(recorded)]);
    assert_eq!(records.refused(&transition("next attempt", 0..2), now), RefusalStep::Probe(2));
    records.hand_down("next attempt", ["p1", "p2"].map(|id| transition(id, 0..0)));
    for (id, node) in [("p1", 0), ("p2", 1)] {
        let step = records.refused(&transition(id, node..node + 1), now);
        assert_eq!(step, RefusalStep::SetAside, "{id}");
    }
}

#[test]
fn blame_on_record_outlives_the_process() {
    let recorded = |generation, delivery| {
        let mut one = transition("before", 0..1);
        one.members[0].generation = generation;
        Arc::new(PowerTransition { delivery, ..one })
    };
    for (name, before, expected) in [
        ("blamed", recorded(0, TransitionDelivery::Refused), RefusalStep::SetAside),
        ("blamed in another generation", recorded(7, TransitionDelivery::Refused), RefusalStep::BackOff),
        ("not blamed", recorded(0, TransitionDelivery::Finished), RefusalStep::BackOff),
    ] {
        let mut records = records();
        records.recall_refusals(&[before]);
        assert_eq!(records.refused(&transition("lone", 0..1), Instant::now()), expected, "{name}");
    }
    let taken = Arc::new(PowerTransition {
        delivery: TransitionDelivery::Finished,
        accepted_at: Some(Timestamp(1)),
        ..transition("after", 0..1)
    });
    let mut records = records();
    records.recall_refusals(&[recorded(0, TransitionDelivery::Refused), taken]);
    let step = records.refused(&transition("lone", 0..1), Instant::now());
    assert_eq!(step, RefusalStep::BackOff, "taken since");
}

#[test]
fn trouble_has_one_beginning_and_one_end() {
    let mut streak = FailureStreak::default();
    assert_eq!(streak.ends(), None);
    assert_eq!([streak.begins(), streak.begins(), streak.begins()], [true, false, false]);
    assert_eq!((streak.ends(), streak.ends()), (Some(3), None));
    assert!(streak.begins());

    let mut records = records();
    assert_eq!((records.doubt_begins("t1"), records.doubt_recurs("t1")), (true, false));
    assert_eq!((records.doubt_begins("t1"), records.doubt_recurs("t1")), (false, true));
    records.begin_anew(transition("t1", 0..0));
    assert!(records.doubt_begins("t1"));
}

#[test]
fn a_doubt_keeps_its_beginning_until_it_is_over_or_comes_from_elsewhere() {
    let (mut records, start) = (records(), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(records.doubt("t1", at(1)), (at(1), Caller::Gone));
    assert_eq!(records.doubt("t1", at(2)), (at(1), Caller::Gone));
    records.inherit_doubt("t1", at(3));
    assert_eq!(records.doubt("t1", at(4)), (at(3), Caller::Elsewhere));
    records.look_failed("t1");
    assert_eq!(records.doubt("t1", at(4)), (at(3), Caller::Elsewhere));
    records.no_longer_in_doubt("t1");
    assert_eq!(records.doubt("t1", at(5)), (at(5), Caller::Gone));
    records.look_failed("t1");
    assert_eq!(records.doubt("t1", at(6)), (at(6), Caller::Gone));
    assert_eq!(records.doubt("t1", at(7)), (at(6), Caller::Gone));
}
