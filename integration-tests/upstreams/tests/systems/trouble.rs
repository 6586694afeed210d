use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::json;
use upstreams::{
    MachinePlan,
    Service::{self, Cfs, Hsm, Pcs},
    ServiceTrouble, TroubleEffect,
};

use crate::stage::{Stage, each, stage, until};

const ON: &str = r#"{"operation": "On", "location": [{"xname": "x1000c0s0b0n0"}]}"#;

async fn spoilt(effect: TroubleEffect) -> Stage {
    let stage = stage(MachinePlan::quick(8)).await;
    stage.upstreams.trouble(ServiceTrouble::new(Pcs, effect));
    stage
}

/// Requests a transition under a deadline. Returns the status, or nothing.
async fn transition(stage: &Stage) -> Option<u16> {
    let body = serde_json::from_str(ON).expect("JSON");
    let call = stage.send(Pcs, Method::POST, "/transitions", Some(&body));
    let answer = tokio::time::timeout(Duration::from_millis(300), call).await.ok()?.ok()?;
    let status = answer.status().as_u16();
    answer.bytes().await.ok().map(|_| status)
}

fn asked(stage: &Stage) -> u32 {
    stage.upstreams.summary().power.on
}

#[tokio::test]
async fn request_can_be_lost_before_or_after_its_effect() {
    for (effect, effects) in [
        (TroubleEffect::Hang, 0),
        (TroubleEffect::Drop, 0),
        (TroubleEffect::HangAfter, 1),
        (TroubleEffect::DropAfter, 1),
    ] {
        let stage = spoilt(effect.clone()).await;
        assert_eq!((transition(&stage).await, asked(&stage)), (None, effects), "{effect:?}");
        stage.upstreams.clear_troubles(Some(Pcs));
        assert_eq!(transition(&stage).await, Some(200), "{effect:?}");
        stage.upstreams.stop().await;
    }
}

#[tokio::test]
async fn late_request_takes_effect_after_its_client_left() {
    let stage = spoilt(TroubleEffect::Delay { seconds: 0.5 }).await;
    assert_eq!((transition(&stage).await, asked(&stage)), (None, 0));
    until("accepted", || asked(&stage) == 1).await;
}

#[tokio::test]
async fn a_refusal_can_ask_for_patience() {
    let stage =
        spoilt(TroubleEffect::Status { code: 429, body: "too many".into(), retry_after: Some(7) }).await;
    let answer = stage.send(Pcs, Method::GET, "/transitions", None).await.expect("an answer");
    assert_eq!(
        (answer.status(), answer.headers()["retry-after"].as_bytes()),
        (StatusCode::TOO_MANY_REQUESTS, &b"7"[..])
    );
    assert_eq!(answer.text().await.expect("a text"), "too many");
    assert_eq!(stage.get(Hsm, "/groups").await.0, StatusCode::OK);
}

#[tokio::test]
async fn trouble_ends_when_it_is_used_up() {
    let stage = stage(MachinePlan::quick(8)).await;
    stage.upstreams.trouble(ServiceTrouble::status(Pcs, 503).only("POST /transitions").times(2));
    assert_eq!(stage.get(Pcs, "/transitions").await.0, StatusCode::OK);
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(transition(&stage).await);
    }
    assert_eq!((seen, asked(&stage)), (vec![Some(503), Some(503), Some(200)], 1));
}

#[tokio::test]
async fn answers_can_be_late_slow_large_or_broken() {
    let stage = stage(MachinePlan::quick(8)).await;
    let spoil = |effect| {
        stage.upstreams.clear_troubles(None);
        stage.upstreams.trouble(ServiceTrouble::new(Hsm, effect));
    };
    let body = async |stage: &Stage| {
        let answer = stage.send(Hsm, Method::GET, "/service/ready", None).await.expect("an answer");
        answer.bytes().await.expect("a body")
    };
    let whole = body(&stage).await;

    let started = Instant::now();
    spoil(TroubleEffect::Delay { seconds: 0.2 });
    assert_eq!(body(&stage).await, whole);
    spoil(TroubleEffect::Slow { bytes_per_second: 200 });
    assert_eq!(body(&stage).await, whole);
    assert!(started.elapsed() > Duration::from_millis(300), "{:?}", started.elapsed());

    spoil(TroubleEffect::Oversized { megabytes: 3 });
    let large = body(&stage).await;
    assert_eq!(large.len(), (3 << 20) + whole.len());
    assert!(serde_json::from_slice::<serde_json::Value>(&large).is_ok());

    spoil(TroubleEffect::MalformedJson);
    assert_eq!(body(&stage).await, whole[..whole.len() / 2]);
    spoil(TroubleEffect::InvalidUtf8);
    assert!(std::str::from_utf8(&body(&stage).await).is_err());
}

#[tokio::test]
async fn hung_and_trickling_answers_do_not_delay_shutdown() {
    let stage = spoilt(TroubleEffect::Hang).await;
    stage.upstreams.trouble(ServiceTrouble::new(Hsm, TroubleEffect::Slow { bytes_per_second: 1 }));
    let trickling = stage.send(Hsm, Method::GET, "/groups", None).await.expect("it begins");
    assert_eq!(transition(&stage).await, None);
    let stopped = tokio::time::timeout(Duration::from_secs(10), stage.upstreams.stop()).await;
    assert!(stopped.is_ok());
    drop(trickling);
}

#[tokio::test]
async fn lists_can_leave_out_always_the_same_ones() {
    let stage = stage(MachinePlan::quick(1000)).await;
    let lists: [(Service, &str, &str, &str); 3] = [
        (Hsm, "/State/Components", "Components", "ID"),
        (Pcs, "/power-status", "status", "xname"),
        (Cfs, "/components", "components", "id"),
    ];
    for (service, path, list, id) in lists {
        stage.upstreams.trouble(ServiceTrouble::new(service, TroubleEffect::Omit { fraction: 0.3 }));
        let (_, first) = stage.get(service, path).await;
        let (_, again) = stage.get(service, path).await;
        let ids = each(&first[list], id);
        assert_eq!(ids, each(&again[list], id));
        assert!((650..750).contains(&ids.len()), "{path}: {}", ids.len());
    }
}

#[tokio::test]
async fn credentials_can_be_required() {
    let stage = spoilt(TroubleEffect::RequireBearer { token: "secret".into() }).await;
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = format!("{}/transitions", stage.upstreams.url_of(Pcs));
    let with =
        async |token: &str| client.get(&url).bearer_auth(token).send().await.expect("an answer").status();
    assert_eq!((with("guess").await, with("secret").await), (StatusCode::UNAUTHORIZED, StatusCode::OK));
    assert_eq!(stage.get(Pcs, "/transitions").await.0, StatusCode::UNAUTHORIZED);

    stage.upstreams.clear_troubles(None);
    stage.upstreams.trouble(ServiceTrouble::new(
        Pcs,
        TroubleEffect::RequireAuthorization { value: "Basic dTpw".into() },
    ));
    let basic = client.get(&url).basic_auth("u", Some("p")).send().await.expect("an answer").status();
    assert_eq!((basic, with("secret").await), (StatusCode::OK, StatusCode::UNAUTHORIZED));
}

#[tokio::test]
async fn requests_are_counted_with_any_outcome() {
    let stage = stage(MachinePlan::quick(8)).await;
    stage.post(Pcs, "/power-status", json!({"xname": ["x1000c0s0b0n0", "x1000c0s0b0n1"]})).await;
    stage.post(Pcs, "/power-status", json!({"xname": ["nid1"]})).await;
    stage.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::DropAfter));
    transition(&stage).await;
    stage.get(Hsm, "/nothing").await;
    let counts = stage.upstreams.counts().into_iter();
    let counts: Vec<_> =
        counts.map(|count| (count.operation, count.requests, count.failed, count.items)).collect();
    assert_eq!(
        counts,
        [("unknown", 1, 1, 0), ("POST /power-status", 2, 1, 2), ("POST /transitions", 1, 1, 1)]
    );
    assert_eq!(stage.upstreams.requests(Pcs, "POST /power-status"), 2);
    let targets: Vec<_> = stage.upstreams.log().into_iter().map(|seen| seen.status).collect();
    assert_eq!(targets, [200, 400, 0, 404]);
    stage.upstreams.reset_counts();
    assert!(stage.upstreams.counts().is_empty());
}
