//! Errors that a decision shows, and when they pass.

use super::*;

#[test]
fn a_peer_that_is_waited_for_is_named_until_it_answers() {
    check(
        &[
            "silent:PCS",
            "silent:PCS over:on_hold error:old",
            "waited:PCS",
            "on want match cfs-silent:CFS",
            "on want match cfs::x waited:CFS",
            "off want waited:PCS",
            "disabled waited:PCS",
            "disabled error:old",
            "on want match cfg:b cfs:a:configured cfs-silent:CFS",
            "on want match cfg:b cfs:b:pending waited:CFS",
            "off want cfs-silent:CFS",
            "off want cfs-silent:CFS prepared:1:",
            "off want cfs-silent:CFS tries:1/0/0 prepared:1:busy",
        ],
        expect![[r#"
            silent:PCS
                awaiting_power: '' error 'waiting for PCS'
            silent:PCS over:on_hold error:old
                awaiting_power: '' on_hold error 'waiting for PCS'
            waited:PCS
                awaiting_power: ''
            on want match cfs-silent:CFS
                awaiting_configuration: '' error 'waiting for CFS'
            on want match cfs::x waited:CFS
                booted: '' settled error ''
            off want waited:PCS
                power_on_needed: 'powering_on' error ''
            disabled waited:PCS
                not_enabled: '' error ''
            disabled error:old
                not_enabled: ''
            on want match cfg:b cfs:a:configured cfs-silent:CFS
                configuration_differs: 'configuring' error 'waiting for CFS'
            on want match cfg:b cfs:b:pending waited:CFS
                configuration_pending: 'configuring' error ''
            off want cfs-silent:CFS
                power_on_needed: 'powering_on' error 'waiting for CFS'
            off want cfs-silent:CFS prepared:1:
                power_on_needed: 'powering_on'
            off want cfs-silent:CFS tries:1/0/0 prepared:1:busy
                power_on_needed: 'powering_on' error 'waiting for CFS'
        "#]],
    );
}

#[test]
fn an_action_that_waits_spends_nothing() {
    check(
        &[
            "off want last:powering_on:999999 unsent:PCS tries:3/0/0",
            "off want last:powering_on:999999 tries:3/0/0",
            "off want last:powering_on:999999 failed unsent:PCS tries:1/0/0",
            "on last:powering_off_forcefully:999999 unsent:PCS tries:0/1/3 cfs:-:",
            "on last:powering_off_forcefully:999999 tries:0/1/3 cfs:-:",
            "on want last:powering_on:999999 unsent:PCS tries:1/0/0",
        ],
        expect![[r#"
            off want last:powering_on:999999 unsent:PCS tries:3/0/0
                power_on_awaited: 'powering_on' error 'waiting for PCS'
            off want last:powering_on:999999 tries:3/0/0
                retries_exhausted: 'powering_on' failed settled action-failed error 'the retry limit was reached: the node is off (power-ons: 3), and no service reported a failure'
            off want last:powering_on:999999 failed unsent:PCS tries:1/0/0
                power_on_without_effect: 'powering_on' action-failed error 'waiting for PCS'
            on last:powering_off_forcefully:999999 unsent:PCS tries:0/1/3 cfs:-:
                power_off_needed: 'powering_off' error 'waiting for PCS'
            on last:powering_off_forcefully:999999 tries:0/1/3 cfs:-:
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (forced power-offs: 3), and no service reported a failure'
            on want last:powering_on:999999 unsent:PCS tries:1/0/0
                boot_awaited: 'powering_on' error 'waiting for PCS' until +200002
        "#]],
    );
}

#[test]
fn an_unlisted_node_says_so_until_it_is_listed_or_settled() {
    check(
        &[
            "off want absent",
            "off want doubtful",
            "off want unasked",
            "off want unasked:waiting-for-HSM",
            "on absent cfs:-:",
            "on want last:powering_on:5 absent",
            "on want match cfs::x cfg:y absent",
            "on want match cfs::x absent",
            "off want was-absent",
            "disabled was-absent",
        ],
        expect![[r#"
            off want absent
                power_on_needed: 'powering_on' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed'
            off want doubtful
                power_on_needed: 'powering_on' error 'the newest answer of the inventory lacks the node, so its power is left alone until the inventory has been asked again'
            off want unasked
                power_on_needed: 'powering_on'
            off want unasked:waiting-for-HSM
                power_on_needed: 'powering_on' error 'waiting-for-HSM'
            on absent cfs:-:
                power_off_needed: 'powering_off' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed'
            on want last:powering_on:5 absent
                boot_awaited: 'powering_on' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed' until +1199996
            on want match cfs::x cfg:y absent
                configuration_differs: 'configuring' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed'
            on want match cfs::x absent
                booted: '' settled
            off want was-absent
                power_on_needed: 'powering_on' error ''
            disabled was-absent
                not_enabled: '' error ''
        "#]],
    );
}

#[test]
fn spent_turns_are_shown_while_the_last_action_is_awaited() {
    check(
        &[
            "off want last:powering_on:5 phase:powering_on turns:11:powering_on",
            "off want last:powering_on:5 phase:powering_on turns:12:powering_on",
            "on want last:powering_on:5 phase:powering_on turns:12:powering_on",
            "last:powering_on:5 phase:powering_on turns:12:powering_on",
            "silent:pcs last:powering_on:5 phase:powering_on turns:12:powering_on",
            "off want last:powering_on:5 phase:powering_on turns:12:powering_on absent",
            "on last:powering_off_gracefully:5 phase:powering_off turns:12:powering_off_gracefully cfs:-:",
            "on want match cfs::x phase:powering_on last:powering_on:5 turns:12:powering_on",
            "disabled off want last:powering_on:5 phase:powering_on turns:12:powering_on",
        ],
        expect![[r#"
            off want last:powering_on:5 phase:powering_on turns:11:powering_on
                power_on_awaited: 'powering_on' error '' until +119996
            off want last:powering_on:5 phase:powering_on turns:12:powering_on
                power_on_awaited: 'powering_on' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until something else is wanted of it or it is given to a session again' until +119996
            on want last:powering_on:5 phase:powering_on turns:12:powering_on
                boot_awaited: 'powering_on' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until something else is wanted of it or it is given to a session again' until +1199996
            last:powering_on:5 phase:powering_on turns:12:powering_on
                awaiting_power: 'powering_on' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until something else is wanted of it or it is given to a session again'
            silent:pcs last:powering_on:5 phase:powering_on turns:12:powering_on
                awaiting_power: 'powering_on' error 'waiting for pcs'
            off want last:powering_on:5 phase:powering_on turns:12:powering_on absent
                power_on_awaited: 'powering_on' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed' until +119996
            on last:powering_off_gracefully:5 phase:powering_off turns:12:powering_off_gracefully cfs:-:
                power_off_needed: 'powering_off' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until something else is wanted of it or it is given to a session again'
            on want match cfs::x phase:powering_on last:powering_on:5 turns:12:powering_on
                booted: '' settled
            disabled off want last:powering_on:5 phase:powering_on turns:12:powering_on
                not_enabled: 'powering_on'
        "#]],
    );
}

#[test]
fn a_node_turned_too_often_is_held_until_a_new_wish() {
    check(
        &[
            "off want turns:11:powering_off_gracefully",
            "off want turns:12:powering_off_gracefully",
            "off want turns:12:powering_on",
            "off want turns:12:powering_off_gracefully limit:4",
            "on turns:12:powering_on cfs:-:",
            "on turns:12:powering_off_gracefully cfs:-:",
            "on want match cfs::x turns:99:powering_on over:on_hold",
            "on last:powering_on:5 turns:12:powering_on over:failed cfs:-:",
        ],
        expect![[r#"
            off want turns:11:powering_off_gracefully
                power_on_needed: 'powering_on'
            off want turns:12:powering_off_gracefully
                turned_too_often: '' on_hold error 'the node was switched off and on in turn too often although nothing else was wanted of it; it is held until something else is wanted of it or it is given to a session again'
            off want turns:12:powering_on
                power_on_needed: 'powering_on' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until something else is wanted of it or it is given to a session again'
            off want turns:12:powering_off_gracefully limit:4
                power_on_needed: 'powering_on'
            on turns:12:powering_on cfs:-:
                turned_too_often: '' on_hold error 'the node was switched off and on in turn too often although nothing else was wanted of it; it is held until something else is wanted of it or it is given to a session again'
            on turns:12:powering_off_gracefully cfs:-:
                power_off_needed: 'powering_off' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until something else is wanted of it or it is given to a session again'
            on want match cfs::x turns:99:powering_on over:on_hold
                booted: '' settled
            on last:powering_on:5 turns:12:powering_on over:failed cfs:-:
                already_failed: 'powering_off' failed settled
        "#]],
    );
}

#[test]
fn a_locked_node_says_so_while_its_power_is_to_be_changed() {
    check(
        &[
            "off want locked",
            "on locked cfs:-:",
            "off want error:the-inventory",
            "off want last:powering_on:5 locked",
            "off want last:powering_on:5 unsent:PCS locked",
            "on last:powering_off_gracefully:5 unsent:PCS locked phase:powering_off cfs:-:",
            "on want match cfs::x locked",
        ],
        expect![[r#"
            off want locked
                power_on_needed: 'powering_on' error 'the inventory locks the node against power operations; it goes on once the node is unlocked'
            on locked cfs:-:
                power_off_needed: 'powering_off' error 'the inventory locks the node against power operations; it goes on once the node is unlocked'
            off want error:the-inventory
                power_on_needed: 'powering_on'
            off want last:powering_on:5 locked
                power_on_awaited: 'powering_on' error '' until +119996
            off want last:powering_on:5 unsent:PCS locked
                power_on_awaited: 'powering_on' error 'the inventory locks the node against power operations; it goes on once the node is unlocked'
            on last:powering_off_gracefully:5 unsent:PCS locked phase:powering_off cfs:-:
                power_off_needed: 'powering_off' error 'the inventory locks the node against power operations; it goes on once the node is unlocked'
            on want match cfs::x locked
                booted: '' settled
        "#]],
    );
}

#[test]
fn errors_show_what_is_in_the_way_and_go_when_an_action_begins() {
    check(
        &[
            "off want prepared:1:no-boot-data",
            "off want prepared:1:no-boot-data tries:1/0/0",
            "off want prepared:2:no-boot-data tries:1/0/0 refused:no-power",
            "off want refused:no-power tries:1/0/0",
            "off want last:powering_on:5 refused:no-power phase:powering_on error:old",
            "off want last:powering_on:5 phase:powering_on error:old",
            "off want error:old",
            "on last:powering_off_gracefully:5 phase:powering_off error:old cfs:-:",
            "on last:session_setup:5 error:old refused:no-power cfs:-:",
            "on want match cfs::x error:old refused:no-power",
            "off want silent:t-1",
            "off want silent:t-1 prepared:1:no-boot-data",
            "on silent:t-1 cfs:-:",
            "on want match cfs::x silent:t-1",
        ],
        expect![[r#"
            off want prepared:1:no-boot-data
                power_on_needed: 'powering_on' error 'no-boot-data'
            off want prepared:1:no-boot-data tries:1/0/0
                power_on_needed: 'powering_on' error 'no-boot-data'
            off want prepared:2:no-boot-data tries:1/0/0 refused:no-power
                power_on_needed: 'powering_on' error 'no-boot-data'
            off want refused:no-power tries:1/0/0
                power_on_needed: 'powering_on' error 'no-power'
            off want last:powering_on:5 refused:no-power phase:powering_on error:old
                power_on_awaited: 'powering_on' error 'no-power' until +119996
            off want last:powering_on:5 phase:powering_on error:old
                power_on_awaited: 'powering_on' error '' until +119996
            off want error:old
                power_on_needed: 'powering_on'
            on last:powering_off_gracefully:5 phase:powering_off error:old cfs:-:
                power_off_needed: 'powering_off' error ''
            on last:session_setup:5 error:old refused:no-power cfs:-:
                power_off_needed: 'powering_off' error 'no-power'
            on want match cfs::x error:old refused:no-power
                booted: '' settled
            off want silent:t-1
                power_on_needed: 'powering_on' error 'waiting for t-1'
            off want silent:t-1 prepared:1:no-boot-data
                power_on_needed: 'powering_on' error 'no-boot-data'
            on silent:t-1 cfs:-:
                power_off_needed: 'powering_off' error 'waiting for t-1'
            on want match cfs::x silent:t-1
                booted: '' settled
        "#]],
    );
}

/// Returns the decision without the words that it shows.
fn without_words(decision: &Decision) -> Decision {
    Decision { error: ErrorChange::Keep, ..decision.clone() }
}

#[test]
fn words_of_a_peer_decide_nothing() {
    let scenes = [
        "off want last:powering_on:5 tries:1/0/0",
        "off want last:powering_on:5 tries:1/0/0 failed",
        "off want last:powering_on:200000 tries:3/0/0",
        "off want last:powering_on:200000 tries:3/0/0 locked",
        "on cfs:a:b last:powering_off_gracefully:300001 tries:0/1/0 phase:powering_off",
        "on cfs:a:b last:powering_off_forcefully:300001 tries:0/1/3 phase:powering_off",
    ];
    for words in scenes {
        let decided = |refusal: &str| {
            let (mut component, evidence) = scene(words);
            component.power.trouble = Trouble::failed(refusal).map(Into::into);
            show_error(&mut component, Trouble::own(TroubleKind::Failed, refusal));
            evaluate(&component, &evidence, &Options::default(), NOW)
        };
        let usual = decided("no such node");
        for refusal in ["waiting for the BMC", "no results from the BMC", ERROR_ABSENT, ERROR_LOCKED] {
            let decision = decided(refusal);
            assert_eq!(without_words(&decision), without_words(&usual), "{words}: {refusal}");
            let cleared = [&decision, &usual].map(|one| one.error == ErrorChange::Clear);
            assert_eq!(cleared[0], cleared[1], "{words}: {refusal}");
        }
    }
}

#[test]
fn an_error_passes_by_its_kind_alone() {
    let kinds = [
        TroubleKind::Failed,
        TroubleKind::Exhausted,
        TroubleKind::ConfigurationRefused,
        TroubleKind::Held,
        TroubleKind::NotListed,
        TroubleKind::Waiting,
        TroubleKind::NoResults,
        TroubleKind::Paused,
    ];
    let mut rows = String::new();
    for kind in kinds {
        let shown = ["on want match cfg:a cfs:a:pending", "disabled"].map(|words| {
            let (mut component, evidence) = scene(words);
            show_error(&mut component, Trouble::own(kind, "waiting for a peer"));
            evaluate(&component, &evidence, &Options::default(), NOW).error == ErrorChange::Clear
        });
        writeln!(rows, "{kind:?}: acted on {}, left alone {}", shown[0], shown[1]).expect("a string");
    }
    expect![[r#"
        Failed: acted on false, left alone false
        Exhausted: acted on false, left alone false
        ConfigurationRefused: acted on true, left alone false
        Held: acted on true, left alone false
        NotListed: acted on true, left alone true
        Waiting: acted on true, left alone true
        NoResults: acted on true, left alone true
        Paused: acted on true, left alone true
    "#]]
    .assert_eq(&rows);
}
