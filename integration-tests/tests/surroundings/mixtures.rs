//! All kinds of trouble with all systems at once, while sessions follow one another.

use std::time::Duration;

use integration_tests::{eventually, eventually_shown};
use reqwest::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};
use upstreams::{
    MachinePlan, NodePace,
    Service::{self, Bss, Cfs, Hsm, Ims, Pcs, S3},
    ServiceTrouble, TroubleEffect,
};

use crate::scene::{MeshScene, TEMPLATE, brisk};

const NODES: u32 = 40;

/// Time for which troubles follow one another.
const LASTS: Duration = Duration::from_secs(3);

/// Time between one trouble and the next.
const PAUSE: Duration = Duration::from_millis(60);

/// Hardware that is busy while there is trouble.
const STEP: Duration = Duration::from_millis(300);

/// Nodes that are off, for which every step takes its time.
async fn scene() -> MeshScene {
    let pace =
        NodePace { soft_off: STEP, power_on: STEP, boot: STEP, configuration: STEP, ..NodePace::default() };
    MeshScene::of(MachinePlan { pace: Some(pace), ..MachinePlan::quick(NODES) }, brisk).await
}

/// A reproducible source of pseudo-random numbers.
struct SeededNumbers(u64);

impl SeededNumbers {
    fn new() -> Self {
        Self(20_261_120)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn trouble(&mut self, services: &[Service]) -> ServiceTrouble {
        let service = services[self.below(services.len())];
        let busy = TroubleEffect::Status { code: 429, body: String::new(), retry_after: Some(1) };
        let status = |code| TroubleEffect::Status { code, body: String::new(), retry_after: None };
        let effects = [
            status(500),
            status(503),
            busy,
            TroubleEffect::Hang,
            TroubleEffect::HangAfter,
            TroubleEffect::Drop,
            TroubleEffect::DropAfter,
            TroubleEffect::Delay { seconds: 0.4 },
            TroubleEffect::Slow { bytes_per_second: 100 },
        ];
        let effect = effects[self.below(effects.len())].clone();
        ServiceTrouble::new(service, effect).times(1 + self.below(2) as u32)
    }
}

/// Makes trouble with these for a while, a new one after each pause.
async fn trouble(scene: &MeshScene, services: &[Service], pause: Duration) {
    let (mut chance, began) = (SeededNumbers::new(), Instant::now());
    while began.elapsed() < LASTS {
        scene.upstreams.trouble(chance.trouble(services));
        sleep(pause).await;
    }
    scene.upstreams.clear_troubles(None);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_mixture_of_trouble_causes_no_needless_action() {
    let scene = scene().await;
    // No trouble of a system is the fault of a node.
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    let ids = scene.upstreams.ids();
    let sessions = async {
        for operation in ["boot", "reboot", "shutdown"] {
            let name = begin(&scene, operation, &ids).await;
            scene.succeeds(&name).await;
        }
    };
    let everybody = [Hsm, S3, Ims, Bss, Cfs, Cfs, Pcs, Pcs, Pcs];
    tokio::join!(sessions, trouble(&scene, &everybody, PAUSE));
    scene.were_asked(&ids, &["On", "Soft-Off", "On", "Soft-Off"]);
    scene.was_orderly();
    scene.end().await;
}

/// Creates a session for these nodes. The request is repeated while it is refused, as long as the store of images is in
/// trouble.
async fn begin(scene: &MeshScene, operation: &str, ids: &[String]) -> String {
    let wish = json!({"template_name": TEMPLATE, "operation": operation, "limit": ids.join(",")});
    eventually_shown("a session", async || {
        let answer = scene.mesh.bos.send(Method::POST, "/v2/sessions", Some(&wish)).await;
        let detail = answer.body["detail"].as_str().unwrap_or_default();
        assert!(answer.status.is_success() || detail.contains(" S3 at "), "{answer:?}");
        answer.body["name"].as_str().map(str::to_owned).ok_or(answer.body.to_string())
    })
    .await
}

/// Begins sessions at random on some of the nodes, each while those before it may be under way.
async fn take_nodes_from_one_another(scene: &MeshScene) {
    let (mut chance, began) = (SeededNumbers::new(), Instant::now());
    let ids = scene.upstreams.ids();
    while began.elapsed() < LASTS {
        let operation = ["boot", "reboot", "shutdown"][chance.below(3)];
        let some: Vec<_> = ids.iter().filter(|_| chance.below(3) > 0).cloned().collect();
        scene.mesh.bos.session_of(TEMPLATE, operation, &some).await;
        sleep(Duration::from_millis(chance.below(800) as u64)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn competing_sessions_request_one_action_at_a_time() {
    let scene = scene().await;
    tokio::join!(take_nodes_from_one_another(&scene), trouble(&scene, &[Pcs], 5 * PAUSE));
    eventually("no pending sessions", async || {
        let sessions = scene.mesh.bos.get("/v2/sessions?status=pending").await;
        sessions.as_array().unwrap().is_empty().then_some(())
    })
    .await;
    let name = scene.begin("shutdown", &scene.upstreams.ids()).await;
    scene.succeeds(&name).await;
    assert_eq!(scene.upstreams.summary().on, 0);
    scene.was_orderly();
    scene.end().await;
}
