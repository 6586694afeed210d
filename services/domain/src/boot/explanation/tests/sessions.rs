//! Explanations of sessions by those of their nodes.

use super::*;

fn session(progress: Progress, members: Vec<SessionMember>) -> SessionEvidence {
    SessionEvidence {
        name: "s".into(),
        progress,
        pause: None,
        rollout: String::new(),
        waiting_for: String::new(),
        error: String::new(),
        trouble_since: None,
        started_at: at(0),
        ended_at: (progress == Progress::Complete).then(|| at(600)),
        members,
        left_out: Some(Vec::new()),
        tools: SiteTools::Own,
    }
}

fn member(id: &str, node: Node) -> SessionMember {
    SessionMember::of(id.to_owned(), node.explained())
}

#[test]
fn sessions_name_the_causes_of_their_nodes_once() {
    let well = || node().switched_on(100, 1).booted().ended(300, Reason::Configured);
    let dead = || {
        node()
            .switched_on(100, 1)
            .failed_to_switch(220, Action::PoweringOn, 1, "")
            .ended(220, Reason::RetriesExhausted)
    };
    let locked = || node().with(|node| node.component.inventory.locked = true);
    let left_out = |id: &str, reason| LeftOutNode { id: id.to_owned(), reason: Some(reason) };
    let rows = [
        (
            "waits for the inventory",
            SessionEvidence {
                waiting_for: "HSM at hsm (failing since 10:02: 500)".into(),
                ..session(Progress::Pending, Vec::new())
            },
        ),
        ("is next", session(Progress::Pending, Vec::new())),
        (
            "paused",
            SessionEvidence {
                pause: Some(pause_mark()),
                ..session(Progress::Running, vec![member("x1", well())])
            },
        ),
        (
            "paused by its rollout",
            SessionEvidence {
                pause: Some(PauseMark::by("rollout", at(300))),
                rollout: "batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 failed".into(),
                ..session(Progress::Running, vec![member("x1", well())])
            },
        ),
        (
            "rolling out",
            SessionEvidence {
                rollout: "batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 under way".into(),
                ..session(Progress::Running, vec![member("x1", well())])
            },
        ),
        ("under way", session(Progress::Running, vec![member("x1", well()), member("x2", locked())])),
        (
            "under way, nobody is behind",
            SessionEvidence {
                left_out: Some(vec![left_out("x9", LeftOutReason::NotInLimit)]),
                ..session(Progress::Running, vec![member("x1", node())])
            },
        ),
        (
            "two failed",
            session(
                Progress::Complete,
                vec![member("x1", dead()), member("x2", well()), member("x3", dead())],
            ),
        ),
        ("all well", session(Progress::Complete, vec![member("x1", well())])),
        ("taken over", session(Progress::Complete, vec![SessionMember::taken_over("x1".into())])),
        (
            "nobody",
            SessionEvidence {
                left_out: Some(vec![
                    left_out("x1", LeftOutReason::Locked),
                    left_out("x2", LeftOutReason::Locked),
                    left_out("green", LeftOutReason::UnknownGroup),
                ]),
                ..session(Progress::Complete, Vec::new())
            },
        ),
        (
            "broken template",
            SessionEvidence {
                error: "the template has no boot sets".into(),
                ..session(Progress::Complete, Vec::new())
            },
        ),
    ];
    let told: String = rows
        .iter()
        .map(|(name, evidence)| format!("{name}\n  {}", shown(&explain_session(evidence))))
        .collect();
    expect![[r#"
        waits for the inventory
          waiting: upstream_unavailable [- > -]
            s is held up by a peer: HSM at hsm (failing since 10:02: 500).
            See to what the words name; the work then goes on by itself. | reveille status
        is next
          progressing: session_setup_due [- > -]
            Session s is about to select its nodes.
            Wait: it begins within seconds. | reveille explain session s
        paused
          held: session_paused [- > -]
            Nothing begins for s: it is paused by alice since 1970-01-12T13:51:40Z.
            Resume the session once its nodes may go on. | reveille session resume s
        paused by its rollout
          held: session_paused [- > -]
            Nothing begins for s: it is paused by rollout since 1970-01-12T13:51:40Z; batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 failed.
            Resume the session once its nodes may go on. | reveille session resume s
        rolling out
          progressing: session_under_way [- > -]
            Session s is under way since 1970-01-12T13:46:40Z: 1 of 1 nodes as wanted; batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 under way.
            Wait, or follow the causes of the nodes that are behind. | reveille explain session s
        under way
          progressing: session_under_way < node_locked [- > -]
            Session s is under way since 1970-01-12T13:46:40Z: 1 of 2 nodes as wanted, 1 held.
            Unlock the node if it may be switched. | reveille events x2
        under way, nobody is behind
          progressing: session_under_way < power_action_due < not_selected [- > -]
            Session s is under way since 1970-01-12T13:46:40Z: 0 of 1 nodes as wanted, 1 under way.
            Wait, or follow the causes of the nodes that are behind. | reveille explain session s
        two failed
          failed: members_failed < power_on_timed_out [- > -]
            Session s is over since 1970-01-12T13:56:40Z: 1 of 3 nodes as wanted, 2 failed.
            Check its BMC and the power of its slot, then have it tried again. | reveille events x1
        all well
          as_wanted: session_as_wanted [- > -]
            Session s is over since 1970-01-12T13:56:40Z and its nodes are as wanted.
            Nothing is to be done. | reveille session get s
        taken over
          held: session_superseded < superseded [- > -]
            Session s is over since 1970-01-12T13:56:40Z: others took over all of its nodes.
            Look at who took its nodes; nothing is to be done for this session. | reveille get sessions
        nobody
          failed: nothing_to_act_on < node_locked < group_unknown [- > -]
            Session s selected no node since 1970-01-12T13:56:40Z.
            Unlock the node if it may be switched. | reveille events x1
        broken template
          failed: session_failed [- > -]
            Session s could not do its work since 1970-01-12T13:56:40Z: the template has no boot sets.
            Correct what the words name, then create the session again. | reveille events --session s
    "#]]
    .assert_eq(&told);
}
