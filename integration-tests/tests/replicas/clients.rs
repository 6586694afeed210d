//! Clients while replicas are replaced.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use integration_tests::{
    bos::Bos,
    replicas::{ACTING, Replicas},
};
use proto::simulation::TransitionOperation::{On, SoftOff};
use reqwest::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    fleet::Told,
    handover::{SPEED, no_postgres, whole},
};

/// Default number of nodes.
const NODES: u32 = 48;
const NODES_VARIABLE: &str = "REVEILLE_TEST_NODES";

/// Number of times that a client repeats a call that was refused for now.
const REPEATS: u32 = 10;

/// Results of a client's calls.
#[derive(Debug, Default)]
struct Fared {
    calls: AtomicU32,
    repeated: AtomicU32,
    failed: AtomicU32,
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_fails_while_every_replica_is_replaced_in_turn_during_a_reboot() {
    let nodes = std::env::var(NODES_VARIABLE).map_or(NODES, |text| text.parse().expect("a number"));
    let Some(mut mesh) = Replicas::start(2, 2, nodes, SPEED).await else { return no_postgres() };
    mesh.bos().template("image-1").await;
    let began = Instant::now();
    let session = mesh.bos().session("image-1", "boot").await;
    whole(&mesh, &session).await;
    let (booted, told) = (began.elapsed(), Told::until_now(&mesh).await);
    let began = Instant::now();
    let session = mesh.bos().session("image-1", "reboot").await;
    let (stop, reads, writes) = (Arc::new(AtomicBool::new(false)), Arc::default(), Arc::default());
    let node = mesh.bos().get("/v2/components").await[0]["id"].as_str().unwrap().to_owned();
    let reading = tokio::spawn(read(mesh.bos().clone(), Arc::clone(&stop), Arc::clone(&reads)));
    let writing = tokio::spawn(write(mesh.bos().clone(), node, Arc::clone(&stop), Arc::clone(&writes)));
    for part in ACTING {
        for index in 0..2 {
            mesh.stop(part, index).await;
            mesh.start_replica(part, index);
            mesh.holder(part).await;
            mesh.serves().await;
        }
    }
    for part in ["component_registry", "session_manager"] {
        mesh.kill(part, 0).await;
        sleep(Duration::from_millis(500)).await;
        mesh.start_replica(part, 0);
        mesh.holder(part).await;
    }
    let replaced = began.elapsed();
    let members = whole(&mesh, &session).await;
    println!(
        "{members} nodes: booted undisturbed in {booted:.1?}, rebooted in {:.1?} with everything replaced in {replaced:.1?}",
        began.elapsed()
    );
    stop.store(true, Ordering::Relaxed);
    reading.await.unwrap();
    writing.await.unwrap();
    println!("reads {reads:?}, writes {writes:?}");
    told.then_exactly(&mesh, members, &[SoftOff, On]).await;
    assert_eq!(reads.failed.load(Ordering::Relaxed) + writes.failed.load(Ordering::Relaxed), 0);
    assert!(reads.calls.load(Ordering::Relaxed) > 20 && writes.calls.load(Ordering::Relaxed) > 20);
}

async fn read(bos: Bos, stop: Arc<AtomicBool>, fared: Arc<Fared>) {
    while !stop.load(Ordering::Relaxed) {
        for path in ["/v2/components", "/v2/sessiontemplates", "/v2/options"] {
            call(&bos, Method::GET, path, None, &fared).await;
        }
    }
}

async fn write(bos: Bos, node: String, stop: Arc<AtomicBool>, fared: Arc<Fared>) {
    let mut policy = 1;
    while !stop.load(Ordering::Relaxed) {
        policy = policy % 5 + 1;
        let patch = json!({"retry_policy": policy});
        let path = format!("/v2/components/{node}");
        call(&bos, Method::PATCH, &path, Some(&patch), &fared).await;
        // An acknowledged write is read back from any replica.
        let read = call(&bos, Method::GET, &path, None, &fared).await;
        assert_eq!(read, Some(json!(policy)), "a write that was acknowledged is not there");
    }
}

/// Makes a call, and again while it is refused for now, as clients do. Gives the retry policy of a component, if the
/// answer has one.
async fn call(
    bos: &Bos,
    method: Method,
    path: &str,
    body: Option<&serde_json::Value>,
    fared: &Fared,
) -> Option<serde_json::Value> {
    fared.calls.fetch_add(1, Ordering::Relaxed);
    for _ in 0..REPEATS {
        match bos.try_send(method.clone(), path, body).await {
            Ok(answer) if answer.status == 200 => return answer.body.get("retry_policy").cloned(),
            Ok(answer) => {
                assert_eq!(answer.status, 503, "{method} {path}: {answer:?}");
                fared.repeated.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => drop(fared.repeated.fetch_add(1, Ordering::Relaxed)),
        }
        sleep(Duration::from_millis(200)).await;
    }
    fared.failed.fetch_add(1, Ordering::Relaxed);
    None
}
