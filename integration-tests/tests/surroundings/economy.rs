//! Load of a large reboot on the systems around the mesh.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;
use upstreams::{CallCount, MachinePlan, NodePace, Service};

use crate::scene::{MeshScene, every_role};

const NODES: u32 = 1000;

/// Accepted factor above the necessary number of calls.
const MARGIN: f64 = 1.5;

/// Duration of every step of the hardware.
const STEP: Duration = Duration::from_millis(300);

/// A pause in all calls of this length means that no call will follow.
const QUIET: Duration = Duration::from_secs(1);

/// Polls, each with the name of its period in the settings.
const POLLS: [(Service, &str); 6] = [
    (Service::Hsm, "GET /locks/status"),
    (Service::Hsm, "POST /State/Components/Query"),
    (Service::Pcs, "GET /transitions/{id}"),
    (Service::Pcs, "POST /power-status"),
    (Service::Cfs, "GET /components"),
    (Service::Cfs, "GET /components/{id}"),
];

/// Nodes that PCS takes at a time.
const PCS_BATCH: u32 = 2500;

/// Nodes that CFS takes at a time.
const CFS_BATCH: u32 = 1000;

fn is_poll(count: &CallCount) -> bool {
    POLLS.contains(&(count.service, count.operation))
}

/// Calls that a reboot needs besides polls.
fn necessary() -> BTreeMap<Service, u32> {
    BTreeMap::from([
        // Components, groups and partitions; locks are counted as polls.
        (Service::Hsm, 3),
        // A power-off and a power-on.
        (Service::Pcs, 2 * NODES.div_ceil(PCS_BATCH)),
        // All nodes have the same boot data.
        (Service::Bss, 1),
        (Service::Cfs, NODES.div_ceil(CFS_BATCH)),
        // There is one check of the image before the session is accepted, and one projection of its root file system.
        (Service::Ims, 2),
        // Manifest and boot parameters, both times; before the session is taken also whether three objects are there.
        (Service::S3, 7),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_of_a_thousand_nodes_takes_few_calls() {
    let pace = NodePace { soft_off: STEP, force_off: STEP, power_on: STEP, boot: STEP, configuration: STEP };
    let scene =
        MeshScene::of(MachinePlan { up: true, pace: Some(pace), ..MachinePlan::quick(NODES) }, |_| {}).await;
    let bos = &scene.mesh.bos;
    bos.template_with("image-1", every_role).await;
    no_more_looks_at_images(&scene).await;
    scene.upstreams.reset_counts();
    let (metrics_before, began) = (metrics(&scene).await, Instant::now());
    let name = bos.session("image-1", "reboot").await;
    bos.complete(&name).await;
    let took = began.elapsed();
    let counts = scene.upstreams.counts();
    let calls = |service: Service| {
        let own = counts.iter().filter(|count| count.service == service && !is_poll(count));
        own.map(|count| count.requests).sum::<u64>()
    };
    let necessary = necessary();
    let most = MARGIN * f64::from(necessary.values().sum::<u32>());
    let made: u64 = necessary.keys().map(|service| calls(*service)).sum();
    assert!(made as f64 <= most, "{made} calls instead of {most}: {counts:#?}");
    polls_keep_their_distance(&scene, &counts, took);

    let summary = scene.upstreams.summary();
    assert_eq!((summary.up, summary.power.on, summary.power.soft_off), (1000, NODES, NODES));
    scene.was_orderly();
    metrics_agree(&scene, &metrics_before).await;
    scene.end().await;
}

/// Waits until the checks of a stored template have ended, which nothing else waits for.
async fn no_more_looks_at_images(scene: &MeshScene) {
    let looks = || {
        let counts = scene.upstreams.counts().into_iter();
        let looks = counts.filter(|count| matches!(count.service, Service::S3 | Service::Ims));
        looks.map(|count| count.requests).sum::<u64>()
    };
    let mut before = None;
    while before != Some(looks()) {
        before = Some(looks());
        tokio::time::sleep(QUIET).await;
    }
}

/// Checks that no poll is more frequent than its setting, but for two kinds of transitions, and the odd poll after a
/// change.
fn polls_keep_their_distance(scene: &MeshScene, counts: &[CallCount], took: Duration) {
    let settings = &scene.mesh.settings;
    for (service, period, kinds) in [
        (Service::Hsm, settings.inventory.lock_poll_seconds, 1.0),
        (Service::Pcs, settings.power.follow_seconds.min(settings.power.poll_seconds), 2.0),
        (Service::Cfs, settings.configuration.poll_seconds, 1.0),
    ] {
        let most = took.as_secs_f64() / period * kinds + 10.0;
        for poll in counts.iter().filter(|count| count.service == service && is_poll(count)) {
            assert!(poll.requests as f64 <= most, "{poll:?} in {took:?}: {counts:#?}");
        }
    }
}

/// Calls by peer as the gateway's metrics count them.
async fn metrics(scene: &MeshScene) -> BTreeMap<String, u64> {
    let text = scene.mesh.bos.get("/metrics").await;
    let mut calls = BTreeMap::new();
    let lines = text.as_str().unwrap().lines();
    for line in lines.filter(|line| line.starts_with("reveille_upstream_calls_total{")) {
        if line.contains("outcome=\"held\"") {
            continue;
        }
        let peer = line.split("peer=\"").nth(1).unwrap().split('"').next().unwrap();
        let count: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        *calls.entry(peer.to_lowercase()).or_default() += count;
    }
    calls
}

/// Checks that the metrics count exactly the calls that the systems saw.
async fn metrics_agree(scene: &MeshScene, before: &BTreeMap<String, u64>) {
    let seen = |scene: &MeshScene, service: Service| {
        let counts = scene.upstreams.counts().into_iter();
        counts.filter(|count| count.service == service).map(|count| count.requests).sum::<u64>()
    };
    for service in necessary().into_keys() {
        let least = seen(scene, service);
        let calls =
            |metrics: &BTreeMap<String, u64>| metrics.get(service.word()).copied().unwrap_or_default();
        let counted = calls(&metrics(scene).await) - calls(before);
        let most = seen(scene, service);
        assert!((least..=most).contains(&counted), "{}: {least} <= {counted} <= {most}", service.word());
    }
}
