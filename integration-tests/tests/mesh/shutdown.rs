//! Parts that stop while clients watch them.

use chassis::Channel;
use futures_util::{StreamExt, stream::BoxStream};
use integration_tests::{PATIENCE, bos::Bos, eventually, processes::Processes};
use proto::{
    component::{WatchComponentsRequest, component_service_client::ComponentServiceClient},
    configuration::{
        WatchConfigurationStatesRequest, configuration_service_client::ConfigurationServiceClient,
    },
    evaluation::{WatchDecisionsRequest, evaluation_service_client::EvaluationServiceClient},
    option::{WatchOptionsRequest, options_service_client::OptionsServiceClient},
    power::{WatchPowerStatesRequest, power_service_client::PowerServiceClient},
    session::{WatchSessionsRequest, session_service_client::SessionServiceClient},
    simulation::{WatchConfigurationsRequest, WatchPowerRequest, fleet_service_client::FleetServiceClient},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::{Response, Status, Streaming};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// Components whose list exceeds the sockets and buffers on the way.
const LONG_LIST: usize = 400;

/// The longest error text of a component.
const LONG_TEXT: usize = 65_536;

#[tokio::test(flavor = "multi_thread")]
async fn open_watches_do_not_keep_a_part_from_ending() {
    let mut mesh = Processes::start(1, 0.0).await;
    // In an order in which each ends while the parts that watch it still do.
    for part in [
        "simulator",
        "component_registry",
        "power_controller",
        "config_coordinator",
        "session_manager",
        "status_evaluator",
    ] {
        let watches = watches(part, chassis::plain_channel(&mesh.url(part)).unwrap()).await;
        mesh.stop_part(part).await;
        for mut watch in watches {
            let ended = async { while watch.next().await.is_some() {} };
            timeout(PATIENCE, ended).await.unwrap_or_else(|_| panic!("a watch of {part} goes on"));
        }
    }
}

type Open = BoxStream<'static, Result<(), Status>>;

/// Every kind of endless call that a part answers.
async fn watches(part: &str, channel: Channel) -> Vec<Open> {
    let to = || channel.clone();
    let health = HealthClient::new(to()).watch(HealthCheckRequest::default()).await;
    let mut open = vec![opened(health)];
    match part {
        "component_registry" => {
            let all = WatchComponentsRequest::default();
            open.push(opened(ComponentServiceClient::new(to()).watch_components(all).await));
            let all = WatchOptionsRequest::default();
            open.push(opened(OptionsServiceClient::new(to()).watch_options(all).await));
        }
        "session_manager" => {
            let all = WatchSessionsRequest::default();
            open.push(opened(SessionServiceClient::new(to()).watch_sessions(all).await));
        }
        "status_evaluator" => {
            let all = WatchDecisionsRequest::default();
            open.push(opened(EvaluationServiceClient::new(to()).watch_decisions(all).await));
        }
        "power_controller" => {
            let all = WatchPowerStatesRequest::default();
            open.push(opened(PowerServiceClient::new(to()).watch_power_states(all).await));
        }
        "config_coordinator" => {
            let all = WatchConfigurationStatesRequest::default();
            open.push(opened(ConfigurationServiceClient::new(to()).watch_configuration_states(all).await));
        }
        _ => {
            let mut fleet = FleetServiceClient::new(to());
            open.push(opened(fleet.watch_power(WatchPowerRequest {}).await));
            open.push(opened(fleet.watch_configurations(WatchConfigurationsRequest {}).await));
        }
    }
    open
}

fn opened<T: Send + 'static>(answer: Result<Response<Streaming<T>>, Status>) -> Open {
    answer.unwrap().into_inner().map(|message| message.map(drop)).boxed()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_finishes_a_list_that_it_has_begun() {
    let mut mesh = Processes::start(1, 0.0).await;
    let count = long_list(&mesh.bos).await;
    let mut response = reqwest::get(format!("{}/v2/components", mesh.bos.url())).await.unwrap();
    let mut body = response.chunk().await.unwrap().expect("a beginning").to_vec();
    mesh.ask_part_to_end("gateway").await;
    let stops = async || mesh.log("gateway").contains("stopping").then_some(());
    eventually("a gateway that was told to stop", stops).await;
    while let Some(chunk) = response.chunk().await.unwrap() {
        body.extend_from_slice(&chunk);
    }
    mesh.part_ended("gateway").await;
    assert_eq!(serde_json::from_slice::<Vec<Value>>(&body).unwrap().len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_stopped_reading_do_not_delay_shutdown() {
    let mut mesh = Processes::start(1, 0.0).await;
    long_list(&mesh.bos).await;
    let _list = reqwest::get(format!("{}/v2/components", mesh.bos.url())).await.unwrap();
    let registry = chassis::plain_channel(&mesh.url("component_registry")).unwrap();
    let mut client = ComponentServiceClient::new(registry);
    let _watch = client.watch_components(WatchComponentsRequest::default()).await.unwrap();
    for part in ["gateway", "component_registry"] {
        mesh.ask_part_to_end(part).await;
    }
    for part in ["gateway", "component_registry"] {
        mesh.part_ended(part).await;
    }
}

/// Makes the list of components long and returns its length.
async fn long_list(bos: &Bos) -> usize {
    let text = "e".repeat(LONG_TEXT);
    let record = |index: usize| json!({"id": format!("c{index}"), "enabled": false, "error": text});
    let records: Vec<_> = (0..LONG_LIST).map(record).collect();
    bos.expect(Method::PUT, "/v2/components", Some(&Value::Array(records))).await;
    bos.get("/v2/components").await.as_array().unwrap().len()
}
