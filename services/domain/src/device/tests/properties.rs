//! Properties of the status engine for every device.

use std::{collections::HashSet, sync::Arc};

use proptest::{prelude::*, sample::subsequence};

use super::scene::{NOW, Scene, apply, fleet_name, scene};
use crate::{
    core::{explanation::CauseOutcome, time::Timestamp},
    device::{
        evaluation::{DISCONNECT_TIMEOUT, StatusEvidence, evaluate},
        explanation::{DeviceEvidence, DeviceReason, explain_device},
        fleet::{
            record::{Fleet, FleetSpec},
            rollout::{RolloutDecision, roll_out},
        },
        record::{
            Device, DeviceLabels,
            annotations::SpecHash,
            status::{ApplicationsStatus, SummaryStatus, UpdatedStatus},
        },
        render::{RenderDecision, render},
        report::merge,
        restore::{reconnect, resume},
    },
};

/// Words of which any may hold at the same time, in any order.
#[rustfmt::skip]
const WORDS: [&str; 54] = [
    "awaiting", "paused", "unseen", "seen:1", "seen:300", "seen:301", "seen:-60", "owner:f", "owner:g", "fleet:f",
    "fleet:f@v1", "fleet:f@v2", "fleet:g@v2", "template:v2", "rendered-template:v1", "rendered-template:v2",
    "rollout-error:no_label", "rendered:1", "rendered:7", "runs:1", "runs:7", "runs:9", "runs:odd",
    "runs:18446744073709551615", "hash:h", "spec-valid", "spec-invalid:bad", "cpu:Critical", "cpu:Warning",
    "memory:Critical", "memory:Error", "disk:Warning", "healthy", "app:a:Running", "app:b:Error", "app:c:Starting",
    "app:d:Stopped", "verdict:Healthy", "verdict:Degraded:busy", "updating:Rebooting", "updating:ApplyingUpdate:x",
    "not-updating:Error:boom", "not-updating:Updated", "end:Started", "end:Error", "image:a", "item:c", "os:a",
    "mode:image", "mode:package", "summary:Online", "updated:UpToDate", "applications:Healthy", "lifecycle:Enrolled",
];

fn config() -> ProptestConfig {
    ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() }
}

fn any_words() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(&WORDS[..], 0..16)
}

fn evaluated(device: &Device, seen: &Scene) -> Device {
    Device { status: evaluate(device, &seen.evidence()).status, ..device.clone() }
}

/// Plays the rest of a story in which everybody works: the agent polls, a person resumes the device, the fleet rolls
/// its template out, the spec is rendered, and the agent reports that it runs the new version and is well.
fn recover(mut device: Device, fleet: &Fleet) -> Device {
    let running = Arc::clone(&device.reported.rendered_version);
    device = reconnect(&device, &running).unwrap_or(device);
    device = resume(&device).unwrap_or(device);
    device = match roll_out(fleet, &device) {
        RolloutDecision::RollOut(device) | RolloutDecision::Fail(device) => *device,
        RolloutDecision::Skip(_) => device,
    };
    device = match render(&device, Ok(SpecHash("h".into())), NOW) {
        RenderDecision::Rendered(rendered) | RenderDecision::Unchanged(rendered) => *rendered,
        RenderDecision::Suspended | RenderDecision::Failed(_) => device,
    };
    let mut document = scene("healthy not-updating:Updated app:a:Running verdict:Healthy").document();
    let version = device.meta.annotations.rendered_version.expect("a rendered spec");
    document.report.rendered_version = version.to_string().into();
    merge(&device, document)
}

fn fleet() -> Fleet {
    let spec = FleetSpec { template: scene("document:new").device.spec, ..FleetSpec::default() };
    Fleet::new(fleet_name("f"), DeviceLabels::new(), spec, NOW).expect("a fleet")
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn deciding_again_changes_nothing(words in any_words(), seen: Option<i64>, now: i64) {
        let scene = scene(&words.join(" "));
        let last_seen = seen.map(Timestamp);
        let evidence = StatusEvidence { last_seen, now: Timestamp(now), ..scene.evidence() };
        let first = evaluate(&scene.device, &evidence);
        let device = Device { status: first.status.clone(), ..scene.device.clone() };
        let again = evaluate(&device, &evidence);
        prop_assert_eq!(&again.status, &first.status);
        prop_assert_eq!(&again.events, &Vec::new());
        prop_assert!(first.until.is_none_or(|until| until.0 > now || until.0 == i64::MAX));
    }

    #[test]
    fn time_alone_changes_statuses_at_the_deadline(words in any_words(), early in 0.0..1.0) {
        let scene = scene(&words.join(" "));
        let first = scene.evaluate();
        let Some(until) = first.until else { return Ok(()) };
        let device = Device { status: first.status.clone(), ..scene.device.clone() };
        let wait = ((until.0 - 1 - NOW.0) as f64 * early) as i64;
        let before = StatusEvidence { now: Timestamp(NOW.0 + wait), ..scene.evidence() };
        prop_assert_eq!(&evaluate(&device, &before).status, &first.status);
        let after = StatusEvidence { now: until, ..scene.evidence() };
        prop_assert_eq!(evaluate(&device, &after).until, None);
    }

    #[test]
    fn order_of_reported_lists_does_not_count(words in any_words()) {
        let scene = scene(&words.join(" "));
        let mut turned = scene.clone();
        turned.device.reported.applications.reverse();
        turned.device.reported.conditions.reverse();
        turned.device.conditions.reverse();
        prop_assert_eq!(scene.evaluate(), turned.evaluate());
    }

    /// Evaluations between the changes leave no trace: the statuses follow from the last state alone. The stage of life
    /// and the statuses of a fleet that cannot be read are kept on purpose.
    #[test]
    fn evaluations_on_the_way_do_not_count(words in any_words()) {
        let mut once = scene("fleet:g@v9");
        let mut often = once.clone();
        for word in words.iter().filter(|word| !word.starts_with("end:")) {
            apply(&mut once, word);
            apply(&mut often, word);
            often.device = evaluated(&often.device, &often);
        }
        let (once, often) = (once.evaluate().status, often.evaluate().status);
        prop_assert_eq!(once.summary.status, often.summary.status);
        prop_assert_eq!(once.updated, often.updated);
        prop_assert_eq!(once.applications, often.applications);
        prop_assert_eq!(once.lifecycle, often.lifecycle);
    }

    /// A device that is explained as being as wanted has no trouble in its statuses, unless its life has ended.
    #[test]
    fn explanations_agree_with_the_statuses(words in any_words()) {
        let scene = scene(&words.join(" "));
        let status = scene.evaluate().status;
        let evidence =
            DeviceEvidence { device: &scene.device, evaluated: scene.evidence(), enrolment: None };
        let explanation = explain_device(&evidence);
        let reasons: Vec<_> = explanation.causes().map(|cause| cause.reason).collect();
        let has_ended = reasons.contains(&DeviceReason::Ended);
        if explanation.outcome() == CauseOutcome::AsWanted && !has_ended {
            prop_assert_eq!(status.summary.status, SummaryStatus::Online, "{:?}", reasons);
            prop_assert_eq!(status.updated.status, UpdatedStatus::UpToDate, "{:?}", reasons);
            prop_assert!(!matches!(
                status.applications.status,
                ApplicationsStatus::Error | ApplicationsStatus::Degraded
            ));
        }
        let distinct: HashSet<_> = reasons.iter().collect();
        prop_assert_eq!(distinct.len(), reasons.len(), "{:?}", reasons);
    }

    #[test]
    fn every_state_has_a_way_back(words in any_words(), is_managed: bool) {
        let mut scene = scene(&words.join(" "));
        scene.device = evaluated(&scene.device, &scene);
        scene.device.spec.os = None;
        scene.device.meta.owner = is_managed.then(|| fleet_name("f"));
        let fleet = fleet();
        let device = recover(scene.device, &fleet);
        let version = fleet.version();
        let last_seen = Some(NOW);
        let evidence =
            StatusEvidence { fleet: Some(&version), last_seen, timeout: DISCONNECT_TIMEOUT, now: NOW };
        let status = evaluate(&device, &evidence).status;
        prop_assert_eq!(status.summary.status, SummaryStatus::Online);
        prop_assert_eq!(status.updated.status, UpdatedStatus::UpToDate);
        prop_assert_eq!(status.applications.status, ApplicationsStatus::Healthy);
    }
}
