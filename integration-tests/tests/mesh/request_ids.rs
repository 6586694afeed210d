//! Ids that follow a request from the gateway to the services.

use integration_tests::{eventually, mesh::Mesh, processes::Processes};

const HEADER: &str = "x-request-id";

#[tokio::test(flavor = "multi_thread")]
async fn answer_carries_the_request_s_id_or_a_new_one() {
    let mesh = Mesh::start(async |settings| settings.simulator.nodes = 0).await;
    let long = "a".repeat(129);
    for (given, path, taken) in [
        ("mine-1", "/v2/options", true),
        ("mine-2", "/v2/components/nope", true),
        ("mine-3", "/nope", true),
        ("two words", "/v2/options", false),
        (&long, "/v2/options", false),
        ("", "/v2/options", false),
    ] {
        let answered = answered_id(mesh.bos.url(), path, given).await;
        assert_eq!(answered == given, taken, "{given} at {path} was answered as {answered}");
        assert!(!answered.is_empty(), "{given} at {path}");
    }
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn request_id_reaches_the_log_of_the_called_service() {
    let mesh = Processes::start(1, 0.0).await;
    for (path, part) in [("/v2/options", "component_registry"), ("/v2/sessions/nope", "session_manager")] {
        let id = format!("follow-me-to-{part}");
        assert_eq!(answered_id(mesh.bos.url(), path, &id).await, id);
        for part in ["gateway", part] {
            let logged = async || mesh.log(part).lines().any(|line| line.contains(&id)).then_some(());
            eventually(&format!("{id} in the log of {part}"), logged).await;
        }
    }
}

/// The id under which a request with the id `given` is answered.
async fn answered_id(gateway: &str, path: &str, given: &str) -> String {
    let request = reqwest::Client::new().get(format!("{gateway}{path}")).header(HEADER, given);
    let response = request.send().await.unwrap();
    response.headers()[HEADER].to_str().unwrap().to_owned()
}
