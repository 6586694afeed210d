//! Credentials come from files, are read again after a change, and are never disclosed.

use futures_util::TryStreamExt;
use integration_tests::eventually;
use proto::{
    component::{ListComponentsRequest, component_service_client::ComponentServiceClient},
    power::{ListPowerStatesRequest, ListTransitionsRequest, power_service_client::PowerServiceClient},
    session::{ListSessionsRequest, session_service_client::SessionServiceClient},
};
use reqwest::Method;
use serde_json::json;
use upstreams::{
    MachinePlan,
    Service::{self, Bss, Cfs, Hsm, Ims, Pcs, S3, Tapms},
    ServiceTrouble, TroubleEffect,
};

use crate::served::MeshProcess;

const FIRST: &str = "f1rst-t0ken-that-nobody-is-to-see";

const SECOND: &str = "s3cond-t0ken-that-nobody-is-to-see";

const KEY: &str = "k3y-that-nobody-is-to-see";

/// Systems that want to be shown a token.
const GUARDED: [Service; 6] = [Hsm, Pcs, Bss, Cfs, Ims, Tapms];

/// Makes every system require its credentials from now on: S3 a signature, all others this token.
fn require(mesh: &MeshProcess, token: &str) {
    mesh.upstreams.clear_troubles(None);
    for service in GUARDED {
        mesh.upstreams
            .trouble(ServiceTrouble::new(service, TroubleEffect::RequireBearer { token: token.into() }));
    }
    mesh.upstreams.trouble(ServiceTrouble::new(S3, TroubleEffect::RequireSignature));
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_token_takes_effect_and_none_leaks() {
    let mut mesh = MeshProcess::prepare(MachinePlan::quick(8), FIRST, KEY).await;
    require(&mesh, FIRST);
    mesh.start().await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "boot").await;
    succeeds(&mesh, &name).await;

    // The systems know of the new token before the mesh does.
    require(&mesh, SECOND);
    let waiting = mesh.bos.session("image-1", "reboot").await;
    let told = eventually("a session that says who refuses it", async || {
        let session = mesh.bos.get(&format!("/v2/sessions/{waiting}")).await;
        session["status"]["waiting_for"].as_str().map(str::to_owned)
    })
    .await;
    assert!(told.contains("HSM") && told.contains("401"), "{told}");
    let mut seen = everything(&mesh).await;
    mesh.write_token(SECOND);
    succeeds(&mesh, &waiting).await;
    assert_eq!(mesh.upstreams.summary().power.on, 16);

    seen += &everything(&mesh).await;
    seen += &mesh.log();
    for secret in [FIRST, SECOND, KEY] {
        let place = seen.find(secret).map(|at| &seen[at.saturating_sub(200)..at]);
        assert_eq!(place, None, "a secret is shown");
    }
    assert!(seen.contains("POST") && seen.contains("reveille_upstream_calls_total"), "nothing was looked at");
    mesh.kill().await;
}

async fn succeeds(mesh: &MeshProcess, session: &str) {
    mesh.bos.complete(session).await;
    let status = mesh.bos.get(&format!("/v2/sessions/{session}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
}

/// All output of the mesh that a client can read.
async fn everything(mesh: &MeshProcess) -> String {
    let mut all = String::new();
    for path in
        ["/v2/components", "/v2/sessions", "/v2/sessiontemplates", "/v2/options", "/metrics", "/readyz"]
    {
        let answer = mesh.bos.send(Method::GET, path, None).await;
        all += &format!("{answer:?}");
    }
    let channel = |part| chassis::plain_channel(&mesh.url(part)).unwrap();
    let mut power = PowerServiceClient::new(channel("power_controller"));
    let states = power.list_power_states(ListPowerStatesRequest::default()).await.unwrap().into_inner();
    all += &format!("{:?}", states.try_collect::<Vec<_>>().await.unwrap());
    let transitions = power.list_transitions(ListTransitionsRequest::default()).await.unwrap().into_inner();
    all += &format!("{:?}", transitions.try_collect::<Vec<_>>().await.unwrap());
    let mut sessions = SessionServiceClient::new(channel("session_manager"));
    let sessions = sessions.list_sessions(ListSessionsRequest::default()).await.unwrap().into_inner();
    all += &format!("{:?}", sessions.try_collect::<Vec<_>>().await.unwrap());
    let mut components = ComponentServiceClient::new(channel("component_registry"));
    let components = components.list_components(ListComponentsRequest::default()).await.unwrap().into_inner();
    all + &format!("{:?}", components.try_collect::<Vec<_>>().await.unwrap())
}
