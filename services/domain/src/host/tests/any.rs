use std::collections::BTreeSet;

use proptest::{prelude::*, sample::subsequence};

use super::scene::{MOMENT, Scene, scene};
use crate::{
    core::{backoff::Jitter, explanation::RecordReason, time::Timestamp},
    host::{
        evidence::{CallReports, HostMoment},
        explanation::explain_host,
        record::reason::WaitReason,
        step,
    },
};

const STATES: [&str; 14] = [
    "new",
    "in:unmanaged",
    "in:registering",
    "in:inspecting",
    "in:match-profile",
    "in:preparing",
    "in:available",
    "in:ready",
    "in:provisioning",
    "in:provisioned",
    "in:externally-provisioned",
    "in:deprovisioning",
    "in:powering-off-before-delete",
    "in:deleting",
];

#[rustfmt::skip]
const WORDS: [&str; 60] = [
    "del", "del:forced", "detached", "detached:force", "detached:delay", "op:detached", "op:delayed", "op:servicing",
    "error:registration", "error:inspection", "error:preparation", "error:provisioning", "error:detach",
    "error:power-management", "error:servicing", "error:provisioned-registration", "count:4", "fails:5", "attempted:a",
    "online", "image:a", "image:b:sum", "custom:m", "has:a", "had:n", "external", "never-off", "no-inspection",
    "hints:sdb", "raid", "raid:none", "raided", "no-address", "no-secret-name", "reboot", "reboot:force", "hold:me",
    "inspect", "details:bad", "on", "power:unknown", "unlisted", "absent", "not-ready", "needs-adoption", "busy",
    "virtual-media", "wants-ramdisk", "unregistered", "secret:missing", "secret:unreadable", "secret:2", "no-slot",
    "waiting-for-slot", "holding-slot", "settings:changed", "versions:unread", "on-reboot", "data-image", "rest",
];

const OPERATIONS: [&str; 12] = [
    "register",
    "inspect",
    "prepare",
    "service",
    "provision",
    "adopt",
    "deprovision",
    "power-on",
    "power-off",
    "detach",
    "delete",
    "attach",
];

const ANSWERS: [&str; 12] = [
    "?",
    "done",
    "done-empty",
    "running",
    "started",
    "poll",
    "failed",
    "not-registered",
    "needs-slot",
    "needs-ramdisk",
    "unreachable",
    "busy",
];

fn config() -> ProptestConfig {
    ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() }
}

fn words() -> impl Strategy<Value = String> {
    let call = prop::option::of((prop::sample::select(&OPERATIONS[..]), prop::sample::select(&ANSWERS[..])));
    let state = prop::sample::select(&STATES[..]);
    (state, subsequence(&WORDS[..], 0..12), call).prop_map(|(state, words, call)| {
        let call = call.map_or(String::new(), |(operation, answer)| format!("{operation}={answer}"));
        format!("{state} {} {call}", words.join(" "))
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_host_is_decided_about(words in words(), now: i64, jitter: u32) {
        let Scene { host, seen, policy } = scene(&words);
        let moment = HostMoment { now: Timestamp(now), jitter: Jitter(jitter) };
        let decision = step(&host, &seen, &policy, moment);
        prop_assert!(decision.look.is_none_or(|look| look.0 >= now), "{}", words);
        let awaited = seen.reports == CallReports::default() && host.progress.work.is_some();
        prop_assert!(!awaited || decision.call.is_none(), "a second call: {}", words);
        if decision.reason != WaitReason::Continuing && !decision.is_gone() {
            let again = step(&decision.host, &seen, &policy, moment);
            prop_assert_eq!(again.call, None, "{}", words);
        }
    }

    #[test]
    fn every_host_is_explained(words in words()) {
        let Scene { host, seen, policy } = scene(&words);
        let explanation = explain_host(&step(&host, &seen, &policy, MOMENT).host);
        let causes: Vec<_> = explanation.causes().map(|cause| cause.reason).collect();
        let distinct: BTreeSet<_> = causes.iter().map(|reason| reason.row().word).collect();
        prop_assert_eq!(causes.len(), distinct.len(), "{:?}: {}", causes, words);
        prop_assert!(!explanation.next_step().text.is_empty(), "{}", words);
    }
}

#[test]
fn a_registration_that_goes_on_is_waited_for() {
    let Scene { host, seen, policy } = scene("in:deprovisioning error:registration register=running");
    let moment = HostMoment { now: Timestamp(0), jitter: Jitter(0) };
    let first = step(&host, &seen, &policy, moment);
    let second = step(&first.host, &seen, &policy, moment);
    assert_eq!((first.reason, first.call), (WaitReason::DriverWorking, None));
    assert_eq!((second.reason, second.call), (WaitReason::DriverWorking, None));
}
