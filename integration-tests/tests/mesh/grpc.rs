//! Health, reflection and refusals of every part over gRPC.

use expect_test::expect;
use integration_tests::{eventually, mesh::Mesh};
use proto::{
    component::{
        ActualState, Component, DeleteComponentRequest, DesiredState, GetComponentRequest,
        PatchComponentsRequest, PatchEach, PutComponentsRequest,
        component_service_client::ComponentServiceClient, patch_components_request::Selection,
    },
    evaluation::{EvaluateRequest, ExplainRequest, evaluation_service_client::EvaluationServiceClient},
    option::{Options, UpdateOptionsRequest, options_service_client::OptionsServiceClient},
    session::{
        CreateSessionRequest, GetSessionRequest, Operation, session_service_client::SessionServiceClient,
    },
    simulation::{GetImageRequest, fleet_service_client::FleetServiceClient},
    template::{
        GetSessionTemplateRequest, PutSessionTemplateRequest, SessionTemplate,
        session_template_service_client::SessionTemplateServiceClient,
    },
};
use tonic::Status;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use tonic_types::StatusExt;

/// Services of every part besides its own.
const COMMON: [&str; 3] =
    ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "reveille.peer.v1.PeerService"];

#[tokio::test(flavor = "multi_thread")]
async fn every_part_lists_its_services_as_serving() {
    let mesh = Mesh::start(async |_| {}).await;
    let settings = &mesh.settings;
    let mut told = String::new();
    for (part, url) in [
        ("component registry", &settings.component_registry.url),
        ("session manager", &settings.session_manager.url),
        ("status evaluator", &settings.status_evaluator.url),
        ("power controller", &settings.power_controller.url),
        ("config coordinator", &settings.config_coordinator.url),
        ("host provisioner", &settings.host_provisioner.url),
        ("fleet manager", &settings.fleet_manager.url),
        ("insight", &settings.insight.url),
        ("simulator", &settings.simulator.url),
    ] {
        let serving = async || (health(url, "").await == "SERVING").then_some(());
        eventually(&format!("a serving {part}"), serving).await;
        told += &format!("{part}: {}\n", health(url, "").await);
        for service in services(url).await {
            told += &format!("    {service}: {}\n", health(url, &service).await);
        }
    }
    mesh.stop().await;
    expect![[r#"
        component registry: SERVING
            reveille.component.v1.ComponentService: SERVING
            reveille.component.v1.ReportService: SERVING
            reveille.device.v1.DeviceAgentService: SERVING
            reveille.device.v1.DeviceReportService: SERVING
            reveille.device.v1.DeviceService: SERVING
            reveille.event.v1.EventService: SERVING
            reveille.host.v1.HostDocumentService: SERVING
            reveille.host.v1.HostReportService: SERVING
            reveille.host.v1.HostSecretService: SERVING
            reveille.host.v1.HostService: SERVING
            reveille.inventory.v1.InventoryService: SERVING
            reveille.option.v1.OptionsService: SERVING
        session manager: SERVING
            reveille.event.v1.EventService: SERVING
            reveille.session.v1.PlanService: SERVING
            reveille.session.v1.SessionService: SERVING
            reveille.template.v1.SessionTemplateService: SERVING
            reveille.tenant.v1.TenantService: SERVING
        status evaluator: SERVING
            reveille.evaluation.v1.EvaluationService: SERVING
        power controller: SERVING
            reveille.event.v1.EventService: SERVING
            reveille.power.v1.HostPowerService: SERVING
            reveille.power.v1.PowerService: SERVING
        config coordinator: SERVING
            reveille.boot.v1.BootScriptService: SERVING
            reveille.configuration.v1.ConfigurationService: SERVING
        host provisioner: SERVING
            reveille.host.v1.HostSightService: SERVING
        fleet manager: SERVING
            reveille.event.v1.EventService: SERVING
            reveille.fleet.v1.CertificateService: SERVING
            reveille.fleet.v1.EnrolmentService: SERVING
            reveille.fleet.v1.FleetService: SERVING
        insight: SERVING
            reveille.insight.v1.ExplainService: SERVING
            reveille.insight.v1.TimelineService: SERVING
        simulator: SERVING
            reveille.simulation.v1.FleetService: SERVING
            reveille.simulation.v1.RackService: SERVING
    "#]]
    .assert_eq(&told);
}

/// Services in server reflection, sorted, without the common ones.
async fn services(url: &str) -> Vec<String> {
    let mut client = ServerReflectionClient::new(chassis::plain_channel(url).unwrap());
    let request = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..Default::default()
    };
    let request = futures_util::stream::iter([request]);
    let mut answers = client.server_reflection_info(request).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(list)) = answer else { panic!("{answer:?}") };
    let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    for common in COMMON {
        let index = names.iter().position(|name| name == common);
        names.remove(index.unwrap_or_else(|| panic!("{url} does not list {common}")));
    }
    names.sort_unstable();
    names
}

/// The word of the health service for a service of the part at `url`; empty: the part as a whole.
async fn health(url: &str, service: &str) -> String {
    let mut client = HealthClient::new(chassis::plain_channel(url).unwrap());
    match client.check(HealthCheckRequest { service: service.to_owned() }).await {
        Ok(answer) => answer.into_inner().status().as_str_name().to_owned(),
        Err(status) => format!("{:?}", status.code()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_carry_reasons_for_programs() {
    let mesh = Mesh::start(async |_| {}).await;
    let mut told = String::new();
    for (name, refused) in refusals(&mesh).await {
        told += &format!("{name}\n{}", details(&refused));
    }
    mesh.stop().await;
    expect![[r#"
        get a component
            NotFound: component 'nope' does not exist
            error info: reveille NOT_FOUND
            resource: component 'nope'
        delete a component
            NotFound: component 'nope' does not exist
            error info: reveille NOT_FOUND
            resource: component 'nope'
        patch nothing
            InvalidArgument: selection: is missing
            error info: reveille INVALID
            bad request: 'selection' is missing
        patch with a long text
            InvalidArgument: error: has 65537 characters but may have at most 65536
            error info: reveille INVALID
            bad request: 'error' has 65537 characters but may have at most 65536
        report too early
            FailedPrecondition: component 'waiting': actual state cannot be written while the status is 'on_hold'
            error info: reveille LOCKED
            resource: component 'waiting'
        change options
            InvalidArgument: bss_read_timeout: 1 is not between 10 and 86400
            error info: reveille INVALID
            bad request: 'bss_read_timeout' 1 is not between 10 and 86400
        create a session again
            AlreadyExists: session 'taken' already exists
            error info: reveille ALREADY_EXISTS
            resource: session 'taken'
        create a session without a template
            NotFound: session_template 'nope' does not exist
            error info: reveille NOT_FOUND
            resource: session_template 'nope'
        get a session
            NotFound: session 'nope' does not exist
            error info: reveille NOT_FOUND
            resource: session 'nope'
        get a template
            NotFound: session_template 'nope' does not exist
            error info: reveille NOT_FOUND
            resource: session_template 'nope'
        put a template
            InvalidArgument: name: 'Not a name' has ' ', only letters, digits and -._ are allowed
            error info: reveille INVALID
            bad request: 'name' 'Not a name' has ' ', only letters, digits and -._ are allowed
        explain
            NotFound: component 'nope' does not exist
            error info: reveille NOT_FOUND
            resource: component 'nope'
        evaluate nothing
            InvalidArgument: component: is required
            error info: reveille INVALID
            bad request: 'component' is required
        get an image
            NotFound: image manifest 'nope' does not exist
            error info: reveille NOT_FOUND
            resource: image manifest 'nope'
    "#]].assert_eq(&told);
}

async fn refusals(mesh: &Mesh) -> Vec<(&'static str, Status)> {
    let mut refusals = refusals_of_the_registry(mesh).await;
    refusals.extend(refusals_of_the_session_manager(mesh).await);
    let channel = |url: &str| chassis::plain_channel(url).unwrap();
    let mut evaluations = EvaluationServiceClient::new(channel(&mesh.settings.status_evaluator.url));
    let mut fleet = FleetServiceClient::new(channel(&mesh.settings.simulator.url));
    let lost = "nope".to_owned();
    refusals.extend([
        ("explain", refusal(evaluations.explain(ExplainRequest { component_id: lost.clone() }).await)),
        ("evaluate nothing", refusal(evaluations.evaluate(EvaluateRequest::default()).await)),
        ("get an image", refusal(fleet.get_image(GetImageRequest { path: lost }).await)),
    ]);
    refusals
}

async fn refusals_of_the_registry(mesh: &Mesh) -> Vec<(&'static str, Status)> {
    let channel = chassis::plain_channel(&mesh.settings.component_registry.url).unwrap();
    let mut components = ComponentServiceClient::new(channel.clone());
    let mut options = OptionsServiceClient::new(channel);
    // Enabled and to be switched off, so it may not report a boot.
    let waiting = Component {
        id: "waiting".into(),
        enabled: Some(true),
        desired_state: Some(DesiredState { bss_token: Some("none".into()), ..Default::default() }),
        ..Default::default()
    };
    components
        .put_components(PutComponentsRequest { components: vec![waiting], ..Default::default() })
        .await
        .unwrap();
    let patch = |patch, guard_actual_state| PatchComponentsRequest {
        selection: Some(Selection::Each(PatchEach { patches: vec![patch] })),
        guard_actual_state,
        ..PatchComponentsRequest::default()
    };
    let long = Component { id: "waiting".into(), error: Some("e".repeat(65_537)), ..Default::default() };
    let report = Component {
        id: "waiting".into(),
        actual_state: Some(ActualState { bss_token: Some("t".into()), ..Default::default() }),
        ..Default::default()
    };
    let hasty = Options { bss_read_timeout: Some(1), ..Default::default() };
    let lost = "nope".to_owned();
    vec![
        (
            "get a component",
            refusal(components.get_component(GetComponentRequest { id: lost.clone(), scope: None }).await),
        ),
        (
            "delete a component",
            refusal(
                components.delete_component(DeleteComponentRequest { id: lost.clone(), scope: None }).await,
            ),
        ),
        ("patch nothing", refusal(components.patch_components(PatchComponentsRequest::default()).await)),
        ("patch with a long text", refusal(components.patch_components(patch(long, false)).await)),
        ("report too early", refusal(components.patch_components(patch(report, true)).await)),
        (
            "change options",
            refusal(
                options
                    .update_options(UpdateOptionsRequest { options: Some(hasty), ..Default::default() })
                    .await,
            ),
        ),
    ]
}

async fn refusals_of_the_session_manager(mesh: &Mesh) -> Vec<(&'static str, Status)> {
    let channel = chassis::plain_channel(&mesh.settings.session_manager.url).unwrap();
    let mut sessions = SessionServiceClient::new(channel.clone());
    let mut templates = SessionTemplateServiceClient::new(channel);
    mesh.bos.template("image-1").await;
    let session = CreateSessionRequest {
        name: "taken".into(),
        operation: Operation::Boot.into(),
        template_name: "image-1".into(),
        ..Default::default()
    };
    sessions.create_session(session.clone()).await.unwrap();
    let nameless = SessionTemplate { name: "Not a name".into(), ..Default::default() };
    let lost = "nope".to_owned();
    vec![
        ("create a session again", refusal(sessions.create_session(session.clone()).await)),
        (
            "create a session without a template",
            refusal(
                sessions
                    .create_session(CreateSessionRequest {
                        name: "free".into(),
                        template_name: "nope".into(),
                        ..session
                    })
                    .await,
            ),
        ),
        (
            "get a session",
            refusal(
                sessions.get_session(GetSessionRequest { name: lost.clone(), tenant: String::new() }).await,
            ),
        ),
        (
            "get a template",
            refusal(
                templates
                    .get_session_template(GetSessionTemplateRequest {
                        name: lost.clone(),
                        tenant: "red".into(),
                    })
                    .await,
            ),
        ),
        (
            "put a template",
            refusal(
                templates
                    .put_session_template(PutSessionTemplateRequest {
                        session_template: Some(nameless),
                        ..Default::default()
                    })
                    .await,
            ),
        ),
    ]
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, Status>) -> Status {
    answer.unwrap_err()
}

/// Everything that a program can read from a status, and the text.
fn details(status: &Status) -> String {
    let details = status.get_error_details();
    let mut told = format!("    {:?}: {}\n", status.code(), status.message());
    if let Some(info) = details.error_info() {
        told += &format!("    error info: {} {}\n", info.domain, info.reason);
    }
    if let Some(resource) = details.resource_info() {
        told += &format!("    resource: {} '{}'\n", resource.resource_type, resource.resource_name);
    }
    for violation in details.bad_request().into_iter().flat_map(|bad| &bad.field_violations) {
        told += &format!("    bad request: '{}' {}\n", violation.field, violation.description);
    }
    told
}
