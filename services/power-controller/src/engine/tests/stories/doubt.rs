//! Stories of transitions in doubt, by a lost answer or a restart.

use super::*;

/// Searches for the transition and tells what was found.
fn search(scene: &mut EngineScene, accepted: Vec<UpstreamTransition>) {
    scene.due(1);
    let (ids, asked_at) = (vec![scene.id(1)], scene.now.instant);
    let clock = ClockOffset::measure(START, START, START, Duration::from_millis(1));
    let answer = Ok(FoundTransitions { accepted, clock });
    scene.tell("the search ends", EngineEvent::Searched { ids, asked_at, answer, finished: Vec::new() });
}

#[test]
fn doubt_ends_by_adoption_or_after_a_quiet_period() {
    let mut found = in_doubt();
    search(&mut found, vec![record("t-7", Action::PoweringOn, &[], false)]);
    search(&mut found, vec![record("t-6", Action::PoweringOn, &["x2"], true)]);
    search(&mut found, vec![record("t-7", Action::PoweringOn, &["x1"], true)]);
    let mut missing = in_doubt();
    search(&mut missing, Vec::new());
    missing.pass(2);
    search(&mut missing, Vec::new());
    expect![[r#"
        T1 is due:
            search for T1
        the search ends:
            step T1 after failure 1
        T1 is due:
            search for T1
        the search ends:
            step T1 in 2 s
        T1 is due:
            search for T1
        the search ends:
            write T1 Accepted [x1]
            report x1 attempt 1
            poll T1 in 1 s, failure 0

        T1 is due:
            search for T1
        the search ends:
            step T1 in 2 s
        T1 is due:
            search for T1
        the search ends:
            write T1 Prepared [x1]
            step T1 in 0 s
    "#]]
    .assert_eq(&format!("{}\n{}", found.log, missing.log));
}

#[test]
fn restart_puts_sent_transitions_in_doubt_and_continues_the_others() {
    let member =
        |id: &str| TransitionMember { id: id.into(), generation: 1, attempt: 1, ..Default::default() };
    let recorded = |id: &str, delivery: TransitionDelivery| {
        let prepared = convert::prepared(Action::PoweringOn, vec![member(id)], START);
        Arc::new(PowerTransition { id: id.to_owned(), delivery, ..prepared })
    };
    let mut scene = EngineScene::power_on(&["prepared", "sent", "accepted", "finished"]);
    let recorded = [
        recorded("prepared", TransitionDelivery::Prepared),
        recorded("sent", TransitionDelivery::Sent),
        recorded("accepted", TransitionDelivery::Accepted),
        recorded("finished", TransitionDelivery::Finished),
    ];
    let mut take_over = |name: &str, one: &Arc<PowerTransition>, is_told| {
        let polls = PollSchedule::new(Duration::from_secs(1), Duration::from_secs(5), None);
        scene.engine = PowerEngine::new(&[Arc::clone(one)], polls, scene.engine.upstream);
        scene.tell(name, EngineEvent::TookOver { follows_another: false, is_told, is_after_loss: false });
    };
    take_over("prepared, counts unknown", &recorded[0], false);
    recorded.iter().for_each(|one| take_over(&one.id, one, true));
    check(
        &scene,
        &expect![[r#"
            prepared, counts unknown:
                write T1 Unknown [prepared]
                step T1 in 0 s
                ask for foreign transitions in 0 s
            prepared:
                step T1 in 0 s
                ask for foreign transitions in 0 s
            sent:
                write T2 Unknown [sent]
                step T2 in 0 s
                ask for foreign transitions in 0 s
            accepted:
                poll T3 in 0 s, failure 0
                ask for foreign transitions in 0 s
            finished:
                ask for foreign transitions in 0 s
        "#]],
    );
}
