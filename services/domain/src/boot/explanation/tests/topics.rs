//! Nodes by topic, and the explanation of each.

use super::*;

/// Nodes by topic. The number is that of the topic; rows of a topic with several causes share it.
fn topics() -> Vec<(&'static str, Node)> {
    let staged =
        StagedState { session: Some("later".into()), last_updated: Some(at(10)), ..StagedState::default() };
    let lost = |node: &mut Node, trouble: Trouble| node.evaluated.power_trouble = Some(trouble);
    let held_up = |holder: Option<HolderSight>| {
        node().with(|node| {
            let to_end = "transition t-1 of the power upstream to end";
            node.evaluated.power_trouble = Some(waiting(to_end));
            node.holder = holder;
        })
    };
    let own = |withdrawn| HolderClient::Own { withdrawn_at: withdrawn };
    vec![
        (
            "1 inventory away",
            node().with(|node| {
                let trouble = "HSM at hsm (failing since 10:02: 500)".into();
                node.component.inventory.presence = InventoryPresence::Unknown { trouble };
            }),
        ),
        (
            "1 not in the inventory",
            node().with(|node| {
                node.component.inventory.presence = InventoryPresence::Absent { since: at(60) };
            }),
        ),
        (
            "5 staged",
            node().ended(5, Reason::Booted).with(|node| {
                node.component.wish.staged_state = Some(Arc::new(staged));
            }),
        ),
        (
            "7 configuration service refuses the question",
            node().with(|node| {
                node.evaluated.power = PowerObservation::On;
                node.evaluated.configuration = ConfigurationObservation::Unknown;
                node.evaluated.configuration_trouble = Some(waiting("CFS at cfs (400 response size)"));
            }),
        ),
        (
            "9 power unknown",
            node().with(|node| {
                node.evaluated.power = PowerObservation::Undefined { error: "no BMC data".into() };
            }),
        ),
        (
            "10 left out by the power service",
            node().with(|node| node.evaluated.power = PowerObservation::Missing),
        ),
        (
            "13 image refused",
            node()
                .then(80, HistoryChange::PreparationFailed { attempt: 1, words: "rootfs has no etag".into() })
                .ended(90, Reason::RetriesExhausted),
        ),
        (
            "18 silent image",
            node()
                .switched_on(100, 1)
                .requested(150, 150, 1)
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        ("paused", node().with(|node| node.component.wish.pause = Some(pause_mark().into()))),
        (
            "paused while its boot is awaited",
            node()
                .switched_on(500, 1)
                .on()
                .with(|node| node.component.wish.pause = Some(pause_mark().into())),
        ),
        (
            "in a later batch",
            node().with(|node| {
                node.component.wish.pause = Some(PauseMark::of_rollout(at(300)).into());
                let rollout = "batch 2 of 5 is open, 1 of 2 nodes as wanted".to_owned();
                node.batch = Some(BatchSight { batch: BatchNumber { number: 3, of: 5 }, rollout });
            }),
        ),
        (
            "in a later batch, and the session is not read",
            node().with(|node| node.component.wish.pause = Some(PauseMark::of_rollout(at(300)).into())),
        ),
        (
            "19 locked",
            node().then(70, HistoryChange::Locked).with(|node| node.component.inventory.locked = true),
        ),
        (
            "19 refused for a lock",
            node()
                .switched_on(100, 1)
                .failed_to_switch(101, Action::PoweringOn, 1, "Unable to reserve component")
                .with(|node| {
                    node.transitions = vec![refused(TaskOutcome::Refused, "Unable to reserve component")]
                })
                .ended(102, Reason::RetriesExhausted),
        ),
        ("held by a transition, and the power service is not asked", held_up(None)),
        ("held by a transition of before", held_up(held(580, own(None)))),
        ("held by one that was withdrawn just now", held_up(held(100, own(Some(at(541)))))),
        ("held by one that does not end", held_up(held(100, own(Some(at(540)))))),
        ("held by another client", held_up(held(-299, HolderClient::Another))),
        ("held by another client for long", held_up(held(-300, HolderClient::Another))),
        ("held by one that was given up", held_up(held(100, HolderClient::GivenUp))),
        (
            "22 never came on",
            node()
                .switched_on(100, 1)
                .failed_to_switch(220, Action::PoweringOn, 1, "")
                .with(|node| {
                    node.transitions = vec![refused(TaskOutcome::Failed, "Timeout waiting for transition")]
                })
                .ended(220, Reason::RetriesExhausted),
        ),
        (
            "22 never came on, no words",
            node()
                .switched_on(100, 1)
                .failed_to_switch(220, Action::PoweringOn, 1, "")
                .ended(220, Reason::RetriesExhausted),
        ),
        (
            "23 three causes",
            node()
                .switched_on(100, 1)
                .failed_to_switch(120, Action::PoweringOn, 1, "BMC busy")
                .switched_on(130, 2)
                .switched_off(300, Action::PoweringOffGracefully)
                .switched_on(320, 3)
                .then(380, HistoryChange::BootReported { as_desired: false })
                .switched_off(390, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        ("24 boot takes long", node().switched_on(100, 1).on()),
        ("25-27 no request yet", node().switched_on(100, 1).not_requested().on()),
        (
            "25-27 never asked",
            node()
                .switched_on(100, 1)
                .not_requested()
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        (
            "28 booted from other data",
            node()
                .switched_on(100, 1)
                .then(200, HistoryChange::BootReported { as_desired: false })
                .ended(500, Reason::RetriesExhausted),
        ),
        (
            "28 never restarted",
            node()
                .switched_on(100, 1)
                .then(130, HistoryChange::EarlierBootReported)
                .ended(500, Reason::RetriesExhausted),
        ),
        (
            "29 power service away",
            node().with(|node| {
                node.evaluated.power = PowerObservation::Unknown;
                lost(node, waiting("PCS at pcs (failing since 10:02: timeout)"));
            }),
        ),
        (
            "31 asks again and again",
            node()
                .switched_on(100, 1)
                .requested(150, 380, 9)
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        ("31 asks again and again, in time", node().switched_on(100, 1).requested(150, 380, 9).on()),
        ("35 between report and script", node().switched_on(100, 1).requested(150, 150, 1).on()),
        (
            "35 no source of scripts",
            node()
                .switched_on(100, 1)
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted),
        ),
        ("36 as wanted", node().switched_on(100, 1).booted().ended(300, Reason::Configured)),
        (
            "36 switched off outside",
            node().switched_on(100, 1).booted().ended(300, Reason::Configured).with(|node| {
                node.power = Some(PowerSight {
                    reading: PowerReading::Off,
                    observed_at: Some(at(590)),
                    is_current: true,
                });
            }),
        ),
        (
            "36 never enabled",
            node().with(|node| {
                node.component.wish.enabled = Some(false);
                node.history = Some(Vec::new());
            }),
        ),
        (
            "36 never wanted",
            node().with(|node| {
                node.component = bare();
                node.history = Some(Vec::new());
            }),
        ),
        (
            "19 locked and not enabled",
            node().with(|node| {
                node.component.wish.enabled = Some(false);
                node.component.inventory.locked = true;
            }),
        ),
        (
            "21 enabled without attempts left",
            node()
                .switched_on(100, 1)
                .switched_off(400, Action::PoweringOffGracefully)
                .ended(500, Reason::RetriesExhausted)
                .then(550, HistoryChange::Enabled)
                .ended(551, Reason::RetriesExhausted)
                .with(|node| node.component.inventory.locked = true),
        ),
        (
            "37 history lost",
            node().ended(300, Reason::RetriesExhausted).with(|node| {
                node.history = None;
                node.component.evaluation.error = Some("the retry limit was reached".into());
            }),
        ),
        ("configuration under way", node().switched_on(100, 1).booted().configured_as("pending")),
        ("configuration not begun", node().switched_on(100, 1).booted().configured_as("")),
        ("configuration failed", node().switched_on(100, 1).booted().ended(300, Reason::ConfigurationFailed)),
        (
            "configuration refused",
            node().switched_on(100, 1).booted().with(|node| {
                node.evaluated.configuration = ConfigurationObservation::Known {
                    desired: Some("old".into()),
                    status: "configured".into(),
                };
                node.evaluated.configuration_trouble =
                    Some(Trouble::own(TroubleKind::ConfigurationRefused, "no such configuration"));
            }),
        ),
        (
            "cannot be switched off",
            node()
                .on()
                .switched_off(100, Action::PoweringOffGracefully)
                .switched_off(200, Action::PoweringOffForcefully)
                .failed_to_switch(300, Action::PoweringOffForcefully, 1, "")
                .ended(300, Reason::RetriesExhausted),
        ),
        (
            "off before its last report",
            node().with(|node| {
                node.evaluated.power = PowerObservation::OffInDoubt;
                node.component.reported.running_report = Some(at(580));
            }),
        ),
        (
            "turned too often by an evaluator of another version",
            node().on().with(|node| {
                let turns = PowerTurns { count: 99, last: Some(Action::PoweringOn) };
                node.component.power.turns = turns;
                node.component.evaluation.status =
                    Some(Status { phase: Some(Phase::PoweringOff), status_override: Some(Arc::default()) });
                node.component.reported.actual_state =
                    Some(ActualState { boot_artifacts: Some(artifacts("k p i")), ..ActualState::default() });
            }),
        ),
        (
            "second attempt waits for a peer",
            node().switched_on(100, 1).failed_to_switch(220, Action::PoweringOn, 1, "").with(|node| {
                node.component.power.last_action.iter_mut().for_each(|last| last.failed = Some(true));
                node.evaluated.configuration_trouble = Some(waiting("BSS at bss (503)"));
            }),
        ),
        (
            "first attempt failed, second is due",
            node().switched_on(100, 1).failed_to_switch(220, Action::PoweringOn, 1, "").with(|node| {
                node.component.power.last_action.iter_mut().for_each(|last| last.failed = Some(true));
                node.component.preparation.outcome =
                    Some(BootPreparation { generation: 1, attempt: 2, trouble: None });
            }),
        ),
    ]
}

#[test]
fn topics_are_named_by_their_evidence() {
    let told: String =
        topics().iter().map(|(name, node)| format!("{name}\n  {}", shown(&node.explained()))).collect();
    expect![[r#"
        1 inventory away
          waiting: upstream_unavailable [- > prepared]
            x1 is held up by the inventory: HSM at hsm (failing since 10:02: 500).
            See to what the words name; the work then goes on by itself. | reveille status
        1 not in the inventory
          held: unknown_to_inventory [prepared > power_accepted]
            x1 is not listed by the inventory since 1970-01-12T13:47:40Z, so its power is left alone.
            Have the inventory discover the node, or remove it from the template. | cray hsm state components describe x1
        5 staged
          waiting: stage_waiting [- > prepared]
            x1 waits since 1970-01-12T13:46:50Z for the state that session later staged to be applied.
            Apply the staged state. | curl -X POST "${REVEILLE_URL:-http://127.0.0.1:7700}/v2/applystaged" -H 'Content-Type: application/json' -d '{"xnames": ["x1"]}'
        7 configuration service refuses the question
          waiting: upstream_unavailable [- > prepared]
            x1 is held up by the configuration service: waiting for CFS at cfs (400 response size).
            See to what the words name; the work then goes on by itself. | reveille status
        9 power unknown
          waiting: power_state_unknown [prepared > power_accepted]
            x1 has no known power: no BMC data.
            See what the words name; without words, check the BMC of the node. | cray power status list --xnames x1
        10 left out by the power service
          held: unknown_to_power [prepared > power_accepted]
            x1 is left out by the power service, so it is held.
            Have the power service learn of the node: discover its BMC again. | cray power status list --xnames x1
        13 image refused
          failed: boot_data_refused [- > prepared]
            x1 was not prepared for its boot, seen at 1970-01-12T13:48:00Z (attempt 1 of 3): rootfs has no etag.
            Correct what the words name, in the image or at the service, then have it tried again. | reveille enable x1
        18 silent image
          failed: report_missing [script_requested > reported]
            x1 fetched its boot script and never reported its boot after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Look at its console: kernel, root file system, identity or the reporter of the image fails. | cray console interact x1
        paused
          held: session_paused [- > -]
            Nothing begins for x1: session s is paused by alice since 1970-01-12T13:51:40Z.
            Resume the session once its nodes may go on. | reveille session resume s
        paused while its boot is awaited
          progressing: boot_awaited [power_on > reported]
            x1 is on and has not reported its boot yet after it was switched on at 1970-01-12T13:55:00Z (attempt 1 of 3).
            Wait until the time of the attempt is over. | reveille explain x1
        in a later batch
          waiting: batch_awaited [- > -]
            x1 waits for batch 3 of 5 of session s: batch 2 of 5 is open, 1 of 2 nodes as wanted.
            Nothing is to be done: a batch opens once the one before it has proved itself. | reveille explain session s
        in a later batch, and the session is not read
          waiting: batch_awaited [- > -]
            x1 waits for its batch of session s.
            Nothing is to be done: a batch opens once the one before it has proved itself. | reveille explain session s
        19 locked
          held: node_locked [prepared > power_accepted]
            x1 is locked in the inventory since 1970-01-12T13:47:50Z, so its power is left alone.
            Unlock the node if it may be switched. | cray hsm locks unlock create --component-ids x1
        19 refused for a lock
          failed: power_on_refused [prepared > power_accepted]
            x1 was not switched on: the power service refused, seen at 1970-01-12T13:48:21Z (attempt 1 of 3): Unable to reserve component.
            Remove the obstacle that the words name, then have it tried again. | reveille enable x1
        held by a transition, and the power service is not asked
          waiting: upstream_unavailable [prepared > power_accepted]
            x1 is held up by the power service: waiting for transition t-1 of the power upstream to end.
            See to what the words name; the work then goes on by itself. | reveille status
        held by a transition of before
          waiting: transition_awaited [prepared > power_accepted]
            x1 is held since 1970-01-12T13:56:20Z by a power transition that is under way: t-1.
            Wait: a transition ends with its action, or is withdrawn once its time is over. | reveille get transitions --node x1
        held by one that was withdrawn just now
          waiting: transition_awaited [prepared > power_accepted]
            x1 is held since 1970-01-12T13:48:20Z by a power transition that is under way: t-1.
            Wait: a transition ends with its action, or is withdrawn once its time is over. | reveille get transitions --node x1
        held by one that does not end
          waiting: transition_overdue [prepared > power_accepted]
            x1 is held since 1970-01-12T13:48:20Z by a power transition that does not end: t-1.
            End it at the power service. If that fails, make sure that it has no further effect, then give it up here. | reveille transition abandon --node x1
        held by another client
          waiting: transition_awaited [prepared > power_accepted]
            x1 is held since 1970-01-12T13:41:41Z by a power transition that is under way: t-1.
            Wait: a transition ends with its action, or is withdrawn once its time is over. | reveille get transitions --node x1
        held by another client for long
          waiting: transition_overdue [prepared > power_accepted]
            x1 is held since 1970-01-12T13:41:40Z by a power transition that does not end: t-1.
            End it at the power service. If that fails, make sure that it has no further effect, then give it up here. | reveille transition abandon --node x1
        held by one that was given up
          waiting: reservation_kept [prepared > power_accepted]
            x1 is held since 1970-01-12T13:48:20Z by a power transition that was given up here: t-1.
            End it at the power service: it may refuse the node to every other transition until then. | reveille get transitions --node x1
        22 never came on
          failed: power_on_timed_out [power_accepted > power_on]
            x1 never came on after it was switched on, seen at 1970-01-12T13:50:20Z (attempt 1 of 3): Timeout waiting for transition.
            Check its BMC and the power of its slot, then have it tried again. | cray power status list --xnames x1
        22 never came on, no words
          failed: power_on_timed_out [power_accepted > power_on]
            x1 never came on after it was switched on, seen at 1970-01-12T13:50:20Z (attempt 1 of 3).
            Check its BMC and the power of its slot, then have it tried again. | cray power status list --xnames x1
        23 three causes
          failed: other_boot_reported < boot_unreported < power_on_refused [power_on > reported]
            x1 reported another boot than the wanted one, seen at 1970-01-12T13:53:00Z (attempt 3 of 3).
            Compare what it booted with what the boot script service holds for it. | cray bss bootparameters list --name x1
        24 boot takes long
          progressing: boot_awaited [power_on > reported]
            x1 is on and has not reported its boot yet after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Wait until the time of the attempt is over. | reveille explain x1
        25-27 no request yet
          progressing: boot_script_awaited [power_on > script_requested]
            x1 is on and has not asked for its boot script yet after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Wait: its firmware may still be at work. Its console shows how far it is. | cray console interact x1
        25-27 never asked
          failed: boot_script_not_requested [power_on > script_requested]
            x1 was on and never asked for its boot script after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Look at its console: DHCP, the boot program, the boot order or the cable of its boot interface fails. | cray console interact x1
        28 booted from other data
          failed: other_boot_reported [power_on > reported]
            x1 reported another boot than the wanted one, seen at 1970-01-12T13:50:00Z (attempt 1 of 3).
            Compare what it booted with what the boot script service holds for it. | cray bss bootparameters list --name x1
        28 never restarted
          failed: earlier_boot_reported [power_on > reported]
            x1 reported an earlier boot, seen at 1970-01-12T13:48:50Z (attempt 1 of 3).
            Check that it was restarted, and that the boot script service holds the new data. | cray bss bootparameters list --name x1
        29 power service away
          waiting: upstream_unavailable [prepared > power_accepted]
            x1 is held up by the power service: waiting for PCS at pcs (failing since 10:02: timeout).
            See to what the words name; the work then goes on by itself. | reveille status
        31 asks again and again
          failed: artifact_fetch_failing [script_requested > reported]
            x1 asked for its boot script again and again and reported nothing after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Check that kernel and initrd of the image exist and that the node can fetch them. | reveille get components x1 -o wide
        31 asks again and again, in time
          progressing: artifact_fetch_failing [script_requested > reported]
            x1 asked for its boot script again and again and reported nothing after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Check that kernel and initrd of the image exist and that the node can fetch them. | reveille get components x1 -o wide
        35 between report and script
          progressing: boot_report_awaited [script_requested > reported]
            x1 fetched its boot script and has not reported its boot yet (attempt 1 of 3).
            Wait: the kernel is starting. | reveille explain x1
        35 no source of scripts
          failed: boot_unreported [power_on > reported]
            x1 was on and never reported its boot after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Look at its console for the last stage that it reached. | cray console interact x1
        36 as wanted
          as_wanted: as_wanted [configured > -]
            x1 is as wanted since 1970-01-12T13:51:40Z.
            Nothing is to be done. | reveille get components x1 -o wide
        36 switched off outside
          held: power_changed_outside [power_accepted > power_on]
            x1 was as wanted and is off since 1970-01-12T13:56:30Z, and Reveille did not switch it.
            Find who switched it off, then begin a session with it, or enable it again. | cray power status list --xnames x1
        36 never enabled
          held: not_enabled [- > prepared]
            x1 is not enabled, so nothing is done about it.
            Enable it, or begin a session with it. | reveille enable x1
        36 never wanted
          held: nothing_wanted [- > -]
            x1 is not enabled, and no session has set a state for it.
            Begin a session with a template that has it. | reveille get templates
        19 locked and not enabled
          held: node_locked < not_enabled [prepared > power_accepted]
            x1 is locked in the inventory, so its power is left alone.
            Unlock the node if it may be switched. | cray hsm locks unlock create --component-ids x1
        21 enabled without attempts left
          failed: boot_unreported < node_locked [power_on > reported]
            x1 was on and never reported its boot after it was switched on at 1970-01-12T13:48:20Z (attempt 1 of 3).
            Look at its console for the last stage that it reached. | cray console interact x1
        37 history lost
          failed: retries_exhausted [- > -]
            x1 was given up: the retry limit was reached.
            Read its events, then have it tried again. | reveille events x1
        configuration under way
          progressing: configuration_pending [reported > configured]
            x1 has booted and is being configured since 1970-01-12T13:50:00Z.
            Wait: the configuration service is at work, which has no time limit. | cray cfs v3 components describe x1
        configuration not begun
          waiting: configuration_not_started [reported > configured]
            x1 has booted and its configuration has not begun since 1970-01-12T13:50:00Z.
            Check that the configuration service runs its batches and that the node asked for its configuration. | cray cfs v3 components describe x1
        configuration failed
          failed: configuration_failed [reported > configured]
            x1 has booted and its configuration failed, seen at 1970-01-12T13:51:40Z.
            Read the log of its last configuration session, correct the layer, then have it tried again. | cray cfs v3 components describe x1
        configuration refused
          held: configuration_refused [reported > configured]
            x1 has booted and its configuration is refused: no such configuration.
            Create that configuration, or correct its name in the template. | cray cfs v3 configurations list
        cannot be switched off
          failed: power_off_timed_out < power_off_timed_out [prepared > power_accepted]
            x1 stayed on after it was switched off, seen at 1970-01-12T13:51:40Z (attempt 1 of 3).
            Check its BMC, cut its power there, then have it tried again. | cray power status list --xnames x1
        off before its last report
          waiting: power_state_mismatch [power_accepted > power_on]
            x1 has just reported its boot and is shown as off.
            Wait: the next sample of the power decides. | cray power status list --xnames x1
        turned too often by an evaluator of another version
          held: power_contested [prepared > power_accepted]
            x1 was switched off and on in turn too often since 1970-01-12T13:46:40Z, so it is held.
            Find who else switches the node, then begin a session with it. | reveille events x1 --kind power_action_began,power_action_failed
        second attempt waits for a peer
          waiting: upstream_unavailable < power_on_timed_out [- > prepared]
            x1 is held up by a service that prepares its boot: waiting for BSS at bss (503).
            See to what the words name; the work then goes on by itself. | reveille status
        first attempt failed, second is due
          progressing: power_on_timed_out < power_action_due [power_accepted > power_on]
            x1 never came on after it was switched on, seen at 1970-01-12T13:50:20Z (attempt 1 of 3).
            Check its BMC and the power of its slot, then have it tried again. | cray power status list --xnames x1
    "#]].assert_eq(&told);
}
