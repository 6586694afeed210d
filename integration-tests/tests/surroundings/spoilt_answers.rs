//! Systems that answer slowly, without end, or with garbage. Each delays only work that needs it, costs little memory,
//! is named with its trouble, and is used again when it recovers.

use std::fs;

use integration_tests::{bos::Bos, eventually};
use reqwest::Method;
use serde_json::json;
use upstreams::{
    MachinePlan,
    Service::{self, Bss, Cfs, Hsm, Ims, Pcs, S3, Tapms},
    ServiceTrouble, TroubleEffect,
};

use crate::scene::{MeshScene, TEMPLATE, brisk, every_role};

/// Nodes of the session, which are the tenant's too.
const MEMBERS: usize = 2;

const TENANT: &str = "blue";

/// Most memory, in KiB, that the process may grow by at any time.
const MOST_GROWTH: u64 = 200 << 10;

/// Most memory that the process had at any time, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Effect of a system's trouble on a session.
#[derive(Debug, PartialEq)]
enum TroubleOutcome {
    /// The session waits and names the trouble.
    Awaited(String),
    /// No session is taken, for this reason.
    Refused(String),
    /// The session has ended with this error; empty: without.
    Ended(String),
}

async fn scene() -> MeshScene {
    let plan = MachinePlan::quick(200);
    let tenants =
        [(TENANT.to_owned(), plan.hardware.iter().take(MEMBERS).map(|node| node.id.clone()).collect())];
    let scene = MeshScene::of(MachinePlan { tenants: tenants.into(), ..plan }, brisk).await;
    scene.mesh.bos.of_tenant(TENANT).template_with(TEMPLATE, every_role).await;
    scene
}

/// Reboots some nodes while a system is in trouble, and returns the effect. Afterwards the session continues.
async fn suffers(scene: &MeshScene, service: Service, effect: &TroubleEffect) -> TroubleOutcome {
    let ids = scene.first(MEMBERS);
    scene.upstreams.trouble(ServiceTrouble::new(service, effect.clone()));
    let bos = match service {
        Tapms => scene.mesh.bos.of_tenant(TENANT),
        _ => scene.mesh.bos.clone(),
    };
    let wish = json!({"template_name": TEMPLATE, "operation": "reboot", "limit": ids.join(",")});
    let answer = bos.send(Method::POST, "/v2/sessions", Some(&wish)).await;
    let Some(session) = answer.body["name"].as_str() else {
        scene.upstreams.clear_troubles(None);
        return TroubleOutcome::Refused(answer.body["detail"].as_str().unwrap().to_owned());
    };
    let what = format!("{} to be named or borne: {effect:?}", service.word());
    let outcome = eventually(&what, async || shown(scene, &bos, session, &ids, service).await).await;
    scene.upstreams.clear_troubles(None);
    if let TroubleOutcome::Awaited(_) = outcome {
        let complete = bos.complete(session).await;
        assert!(complete["status"]["error"].is_null(), "{what}: {complete}");
        scene.are(&ids, "stable").await;
        scene.until("no errors", &ids, |component| component["error"] == "").await;
    }
    outcome
}

/// Repeats [`suffers`] until the trouble shows: cached answers hide it for a few seconds.
async fn notices(scene: &MeshScene, service: Service, effect: &TroubleEffect) -> TroubleOutcome {
    eventually(&format!("the trouble of {} to be noticed", service.word()), async || {
        let outcome = suffers(scene, service, effect).await;
        (outcome != TroubleOutcome::Ended(String::new())).then_some(outcome)
    })
    .await
}

async fn shown(
    scene: &MeshScene,
    bos: &Bos,
    session: &str,
    ids: &[String],
    service: Service,
) -> Option<TroubleOutcome> {
    let session = bos.get(&format!("/v2/sessions/{session}")).await;
    let status = &session["status"];
    let mut texts = vec![status["waiting_for"].clone()];
    for id in ids {
        texts.push(scene.mesh.bos.component(id).await["error"].clone());
    }
    let name = service.word().to_uppercase();
    let named = texts.iter().filter_map(|text| text.as_str()).find(|text| text.contains(&name));
    let ended = status["status"] == "complete";
    named.map(|text| TroubleOutcome::Awaited(text.to_owned())).or_else(|| {
        ended.then(|| TroubleOutcome::Ended(status["error"].as_str().unwrap_or_default().to_owned()))
    })
}

/// System, and words of its error; `None`: no reboot reads the spoilt part, so the session succeeds.
type Row = (Service, Option<&'static str>);

/// Puts each of these systems in trouble, one after the other.
async fn are_contained(effect: TroubleEffect, rows: &[Row]) {
    let scene = scene().await;
    let before = peak();
    for (service, words) in rows {
        let outcome = match words {
            Some(_) => notices(&scene, *service, &effect).await,
            None => suffers(&scene, *service, &effect).await,
        };
        let as_expected = match (&outcome, words) {
            (TroubleOutcome::Awaited(text), Some(words)) => {
                text.contains(words) && text.contains(" since 20") && text.contains(" at 127.0.0.1:")
            }
            (TroubleOutcome::Ended(error) | TroubleOutcome::Refused(error), Some(words)) => {
                error.contains(words)
            }
            (TroubleOutcome::Ended(error), None) => error.is_empty(),
            (TroubleOutcome::Awaited(_) | TroubleOutcome::Refused(_), None) => false,
        };
        assert!(as_expected, "{} {effect:?}: {outcome:?}", service.word());
    }
    // The system counts the peak only roughly: it may even be lower than before.
    let growth = peak().saturating_sub(before);
    assert!(growth < MOST_GROWTH, "{growth} KiB");
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_systems_are_named_at_their_timeout() {
    let late = Some("no whole answer within 1s");
    let rows = [(Hsm, late), (Tapms, late), (S3, late), (Ims, late), (Bss, late), (Cfs, late)];
    are_contained(TroubleEffect::Hang, &rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trickling_systems_are_named_at_their_timeout() {
    let late = Some("no whole answer within 1s");
    let rows = [(Hsm, late), (S3, late), (Bss, None), (Cfs, late)];
    are_contained(TroubleEffect::Slow { bytes_per_second: 1 }, &rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_answers_take_little_memory() {
    let large = Some("larger than ");
    let rows = [(Hsm, large), (Tapms, large), (S3, large), (Ims, large), (Bss, large), (Cfs, large)];
    are_contained(TroubleEffect::Oversized { megabytes: 500 }, &rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn systems_that_send_broken_json_are_quoted() {
    let broken = Some("EOF while parsing");
    let rows = [(Hsm, broken), (Tapms, broken), (S3, broken), (Ims, None), (Bss, None), (Cfs, broken)];
    are_contained(TroubleEffect::MalformedJson, &rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn non_text_answers_are_quoted() {
    let odd = Some("not the JSON that was expected");
    // The odd part of the tenants' answer is in a member that the mesh does not read.
    let rows = [(Hsm, odd), (Tapms, None), (S3, Some("not UTF-8")), (Ims, None), (Bss, None), (Cfs, odd)];
    are_contained(TroubleEffect::InvalidUtf8, &rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_power_service_is_named_at_its_timeout() {
    are_contained(TroubleEffect::Hang, &[(Pcs, Some("no whole answer within 1s"))]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_answers_of_power_service_take_little_memory() {
    are_contained(TroubleEffect::Oversized { megabytes: 500 }, &[(Pcs, Some("larger than "))]).await;
}
