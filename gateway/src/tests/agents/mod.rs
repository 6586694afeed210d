//! The port of agents, over TLS, with the fleet manager and the registry behind it.

mod trouble;
mod world;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use expect_test::expect;
use rcgen::KeyPair;
use serde_json::{Value, json};

use world::{AgentWorld, TestAgent, signed_elsewhere};

fn os(image: &str) -> Value {
    json!({ "os": { "image": image } })
}

impl AgentWorld {
    /// Sets the spec of a device, as a person does.
    async fn wish(&self, agent: &TestAgent, image: &str) {
        let device = json!({
            "apiVersion": "v1beta1", "kind": "Device", "metadata": { "name": agent.name }, "spec": os(image),
        });
        assert_eq!(self.person("PUT", &agent.path(""), Some(device)).await.0, 200);
    }

    /// Polls as the agent does; returns the version that it gets.
    async fn poll(&self, agent: &TestAgent, known: &str) -> String {
        let (status, version) = self.poll_once(agent, known).await;
        assert_eq!(status, 200);
        version.expect("a version")
    }

    /// Polls as the agent does; returns the status of the answer, and the version that it brings.
    async fn poll_once(&self, agent: &TestAgent, known: &str) -> (u16, Option<String>) {
        let path = agent.path(&format!("/rendered?knownRenderedVersion={known}"));
        let (status, device) = self.ask(Some(&agent.certificate), "GET", &path, None).await.unwrap();
        let version = &device["metadata"]["annotations"]["device-controller/renderedVersion"];
        (status, version.as_str().map(str::to_owned))
    }

    /// Reports a stage of the end of a device.
    async fn report_end(&self, agent: &TestAgent, reason: &str) {
        let condition = json!({
            "type": "DeviceDecommissioning", "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let report = agent.report("0", json!([condition]));
        let path = agent.path("/status");
        let reported = self.ask(Some(&agent.certificate), "PUT", &path, Some(report)).await.unwrap();
        assert_eq!(reported.0, 200, "{reported:?}");
    }

    async fn renew(&self, agent: &TestAgent, name: &str, key: &KeyPair) -> (u16, Value) {
        let request = json!({
            "apiVersion": "v1beta1", "kind": "CertificateSigningRequest", "metadata": { "name": name },
            "spec": {
                "request": STANDARD.encode(agent.csr(key)), "usages": ["clientAuth", "CA:false"],
                "signerName": "flightctl.io/device-management-renewal",
            },
        });
        let path = "/certificatesigningrequests";
        self.ask(Some(&agent.certificate), "POST", path, Some(request)).await.unwrap()
    }
}

#[tokio::test]
async fn enrolled_agents_poll_and_report_for_their_own_device() {
    let world = AgentWorld::start().await;
    let agent = world.enrolled().await;
    let certificate = Some(&agent.certificate);
    let (status, device) = world.ask(certificate, "GET", &agent.path(""), None).await.unwrap();
    assert_eq!((status, &device["metadata"]["name"]), (200, &json!(agent.name)));
    assert_eq!(device["status"]["lifecycle"]["status"], "Enrolled");

    world.wish(&agent, "os:1").await;
    let mut known = world.poll(&agent, "0").await;
    let next = async {
        while world.poll(&agent, &known).await == known {}
        world.poll(&agent, "").await
    };
    let (next, ()) = tokio::join!(next, world.wish(&agent, "os:2"));
    assert!(next.parse::<u64>().unwrap() > known.parse().unwrap());
    known = next;

    let report = agent.report(&known, json!([]));
    let (status, device) = world.ask(certificate, "PUT", &agent.path("/status"), Some(report)).await.unwrap();
    assert_eq!((status, &device["status"]["summary"]["status"]), (200, &json!("Online")), "{device}");
    assert_eq!(device["status"]["config"]["renderedVersion"], json!(known));
    let warm = json!([{ "op": "replace", "path": "/status/resources/cpu", "value": "Warning" }]);
    let (status, device) = world.ask(certificate, "PATCH", &agent.path("/status"), Some(warm)).await.unwrap();
    assert_eq!((status, &device["status"]["summary"]["status"]), (200, &json!("Degraded")), "{device}");
    assert_eq!(world.person("GET", &agent.path("/lastseen"), None).await.0, 200);

    let mut stale = agent.report(&known, json!([]));
    stale["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(world.ask(certificate, "PUT", &agent.path("/status"), Some(stale)).await.unwrap().0, 409);
    let relabelled = json!([{ "op": "add", "path": "/metadata/labels/site", "value": "south" }]);
    assert_eq!(
        world.ask(certificate, "PATCH", &agent.path("/status"), Some(relabelled)).await.unwrap().0,
        400
    );
    world.end().await;
}

#[tokio::test]
async fn another_device_is_refused_by_both_names() {
    let world = AgentWorld::start().await;
    let (agent, other) = (world.enrolled().await, world.enrolled().await);
    let report = || Some(other.report("1", json!([])));
    let requests = [
        ("GET", other.path(""), None),
        ("GET", other.path("/rendered"), None),
        ("PUT", other.path("/status"), report()),
        ("PATCH", other.path("/status"), Some(json!([]))),
        ("PUT", agent.path("/status"), report()),
        ("POST", "/enrollmentrequests".to_owned(), Some(json!({}))),
        ("GET", format!("/enrollmentrequests/{}", agent.name), None),
    ];
    let mut lines = String::new();
    for (method, path, body) in requests {
        let line = world.line(Some(&agent.certificate), (method, &path, body)).await;
        lines += &format!("{method} {path} -> {line}\n");
    }
    let lines = lines.replace(&agent.name, "OWN").replace(&other.name, "OTHER");
    expect![[r#"
        GET /devices/OTHER -> 403 the certificate is that of device 'OWN', which may not speak for device 'OTHER'
        GET /devices/OTHER/rendered -> 403 the certificate is that of device 'OWN', which may not speak for device 'OTHER'
        PUT /devices/OTHER/status -> 403 the certificate is that of device 'OWN', which may not speak for device 'OTHER'
        PATCH /devices/OTHER/status -> 403 the certificate is that of device 'OWN', which may not speak for device 'OTHER'
        PUT /devices/OWN/status -> 403 the certificate is that of device 'OWN', which may not speak for device 'OTHER'
        POST /enrollmentrequests -> 403 the certificate is that of device 'OWN', and requests to be enrolled need the certificate for these
        GET /enrollmentrequests/OWN -> 403 the certificate is that of device 'OWN', and requests to be enrolled need the certificate for these
    "#]].assert_eq(&lines);
    world.end().await;
}

#[tokio::test]
async fn certificates_that_do_not_count_are_refused() {
    let world = AgentWorld::start().await;
    let agent = world.enrolled().await;
    let own = agent.path("");
    let ended = world.signed_by_hand(&agent.name, |parameters| {
        parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    let serving = world.signed_by_hand(&agent.name, |parameters| {
        parameters.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    });
    let by_hand = world.signed_by_hand(&agent.name, |_| {});
    let enrolling = world.signed_by_hand("enrolment", |_| {});
    let request = format!("/enrollmentrequests/{}", agent.name);
    let rows = [
        ("own", Some(agent.certificate.clone()), &own),
        ("none", None, &own),
        ("foreign authority", Some(signed_elsewhere(&agent.name)), &own),
        ("ended", Some(ended), &own),
        ("for servers", Some(serving), &own),
        ("signed by hand", Some(by_hand), &own),
        ("enrolling", Some(world.enrolling()), &own),
        ("enrolling by hand", Some(enrolling.clone()), &own),
        ("enrolling by hand", Some(enrolling), &request),
    ];
    let mut lines = String::new();
    for (about, certificate, path) in rows {
        let line = world.line(certificate.as_ref(), ("GET", path, None)).await;
        lines += &format!("{about}: {line}\n");
    }
    expect![[r#"
        own: 200 -
        none: 401 the request needs the certificate of a device, or the one with which agents ask to be enrolled, and came without
        foreign authority: no connection
        ended: no connection
        for servers: no connection
        signed by hand: 401 the certificate for 'OWN' has a serial number that no certificate of a device has
        enrolling: 403 the certificate is the one with which agents ask to be enrolled, and speaks for no device
        enrolling by hand: 403 the certificate is the one with which agents ask to be enrolled, and speaks for no device
        enrolling by hand: 200 -
    "#]].assert_eq(&lines.replace(&agent.name, "OWN"));
    world.end().await;
}

#[tokio::test]
async fn people_find_nothing_at_the_port_of_agents() {
    let world = AgentWorld::start().await;
    let agent = world.enrolled().await;
    let mut lines = String::new();
    for (method, path) in [
        ("GET", "/devices"),
        ("DELETE", &*agent.path("")),
        ("PUT", &agent.path("")),
        ("PUT", &agent.path("/decommission")),
        ("PUT", &format!("/enrollmentrequests/{}/approval", agent.name)),
        ("GET", "/enrollmentrequests"),
        ("GET", "/fleets"),
        ("GET", "/events"),
        ("POST", "/deviceactions/resume"),
    ] {
        let line = world.line(Some(&agent.certificate), (method, path, Some(json!({})))).await;
        lines += &format!("{method} {path} -> {line}\n");
    }
    expect![[r#"
        GET /devices -> 404 no such path
        DELETE /devices/OWN -> 405 the method is not possible for this path
        PUT /devices/OWN -> 405 the method is not possible for this path
        PUT /devices/OWN/decommission -> 404 no such path
        PUT /enrollmentrequests/OWN/approval -> 404 no such path
        GET /enrollmentrequests -> 405 the method is not possible for this path
        GET /fleets -> 404 no such path
        GET /events -> 404 no such path
        POST /deviceactions/resume -> 404 no such path
    "#]]
    .assert_eq(&lines.replace(&agent.name, "OWN"));
    world.end().await;
}

#[tokio::test]
async fn renewed_certificates_work_beside_earlier_ones() {
    let world = AgentWorld::start().await;
    let mut agent = world.enrolled().await;
    let (first, next) = (agent.certificate.clone(), KeyPair::generate().unwrap());
    let (status, renewed) = world.renew(&agent, "r1", &next).await;
    assert_eq!(status, 201, "{renewed}");
    assert_eq!(renewed["status"]["conditions"][0]["type"], "Approved");
    let path = "/certificatesigningrequests/r1";
    assert_eq!(world.ask(Some(&first), "GET", path, None).await.unwrap(), (200, renewed.clone()));
    let path = "/certificatesigningrequests/r2";
    assert_eq!(world.ask(Some(&first), "GET", path, None).await.unwrap().0, 404);
    let pem = STANDARD.decode(renewed["status"]["certificate"].as_str().unwrap()).unwrap();
    agent.certificate.chain = String::from_utf8(pem).unwrap();
    agent.certificate.key = next.serialize_pem();
    for certificate in [&first, &agent.certificate] {
        assert_eq!(world.ask(Some(certificate), "GET", &agent.path(""), None).await.unwrap().0, 200);
    }
    assert_eq!(world.renew(&agent, "r1", &KeyPair::generate().unwrap()).await.0, 409);
    let enrolling = world.enrolling();
    let (status, _) = world.ask(Some(&enrolling), "GET", path, None).await.unwrap();
    assert_eq!(status, 403);
    world.end().await;
}

#[tokio::test]
async fn decommissioned_devices_are_refused_with_every_certificate() {
    let world = AgentWorld::start().await;
    let mut agent = world.enrolled().await;
    let first = agent.certificate.clone();
    let (_, renewed) = world.renew(&agent, "r1", &KeyPair::from_pem(&first.key).unwrap()).await;
    let pem = STANDARD.decode(renewed["status"]["certificate"].as_str().unwrap()).unwrap();
    agent.certificate.chain = String::from_utf8(pem).unwrap();
    let mut open = world.connect(Some(&first)).await.unwrap();
    assert_eq!(open.ask("GET", &agent.path(""), None).await.unwrap().0, 200);

    let end = json!({ "target": "Unenroll" });
    assert_eq!(world.person("PUT", &agent.path("/decommission"), Some(end)).await.0, 200);
    world.report_end(&agent, "Started").await;
    assert_eq!(world.renew(&agent, "r2", &KeyPair::generate().unwrap()).await.0, 409);
    world.report_end(&agent, "Completed").await;

    let answer = world.until_answered(&agent, 401).await;
    let message = answer["message"].as_str().unwrap().replace(&agent.name, "OWN");
    assert_eq!(message, "the certificate of device 'OWN' is revoked: the device was decommissioned");
    // The earlier certificate too, over a connection from before.
    assert_eq!(open.ask("GET", &agent.path(""), None).await.unwrap().0, 401);
    assert_eq!(world.ask(Some(&first), "GET", &agent.path(""), None).await.unwrap().0, 401);
    world.end().await;
}

#[tokio::test]
async fn deleted_devices_enrol_anew_and_leave_their_certificates_behind() {
    let world = AgentWorld::start().await;
    let mut agent = world.enrolled().await;
    let earlier = agent.certificate.clone();
    assert_eq!(world.person("DELETE", &agent.path(""), None).await.0, 200);
    let text = format!("Device of name \"{}\" not found", agent.name);
    let revoked = async {
        loop {
            let answer = world.until_answered(&agent, 404).await;
            let message = answer["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with(&text), "{message}");
            if message.contains("revoked") {
                return;
            }
        }
    };
    tokio::time::timeout(world::PATIENCE, revoked).await.expect("a revocation");
    let path = format!("/enrollmentrequests/{}", agent.name);
    let gone = async { while world.person("GET", &path, None).await.0 != 404 {} };
    tokio::time::timeout(world::PATIENCE, gone).await.expect("the request is forgotten");

    world.enrol(&mut agent).await;
    world.until_answered(&agent, 200).await;
    assert_eq!(world.ask(Some(&earlier), "GET", &agent.path(""), None).await.unwrap().0, 404);
    world.end().await;
}

#[tokio::test]
async fn replaced_authorities_count_without_a_restart_of_the_gateway() {
    let mut world = AgentWorld::start().await;
    let (agent, earlier) = (world.enrolled().await, world.enrolling());
    world.replace_authority().await;
    let enrolling = world.enrolling();
    assert_ne!(enrolling.chain, earlier.chain);
    world.until_certificates_count(&enrolling).await;
    for certificate in [&agent.certificate, &world.enrolled().await.certificate] {
        assert_eq!(world.ask(Some(certificate), "GET", "/nothing", None).await.unwrap().0, 404);
    }
    assert_eq!(world.ask(Some(&earlier), "GET", "/nothing", None).await.unwrap().0, 404);
    world.end().await;
}
