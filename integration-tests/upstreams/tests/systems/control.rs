use expect_test::expect;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use upstreams::{
    MachinePlan,
    Service::{Hsm, Pcs, Tapms},
};

use crate::stage::{each, stage, until};

#[tokio::test]
async fn nodes_can_be_looked_at_and_changed() {
    let stage = stage(MachinePlan::quick(4)).await;
    let change =
        json!({"ids": ["x1000c0s0b0n0"], "set": {"locked": true, "faults": {"hardware": "stuck-off"}}});
    assert_eq!(stage.control(Method::PATCH, "/nodes", Some(change)).await.0, StatusCode::NO_CONTENT);
    let (_, nodes) = stage.control(Method::GET, "/nodes?ids=x1000c0s0b0n0", None).await;
    expect![[r#"
        {
          "arch": "X86",
          "configuration_enabled": false,
          "configuration_status": "unconfigured",
          "desired_configuration": "",
          "enabled": true,
          "faults": {
            "bss_reject": false,
            "cfs_missing": false,
            "cfs_reject": false,
            "cfs_status": null,
            "hardware": "stuck-off",
            "hsm_missing": false,
            "pcs_error": null,
            "pcs_missing": false,
            "pcs_omitted": false,
            "pcs_reject": false,
            "pcs_task_fails": null,
            "pcs_undefined": false
          },
          "id": "x1000c0s0b0n0",
          "locked": true,
          "mac": "02:00:00:00:00:00",
          "nid": 1,
          "on": false,
          "power": {
            "crossings": 0,
            "force_off": 0,
            "on": 0,
            "overlaps": 0,
            "refused_reservations": 0,
            "restart": 0,
            "soft_off": 0
          },
          "reserved_by": null,
          "role": "Compute",
          "sub_role": "",
          "token": "",
          "up": false
        }"#]]
    .assert_eq(&format!("{:#}", nodes[0]));

    let press = json!({"ids": ["x1000c0s0b0n1"], "command": "on"});
    stage.control(Method::POST, "/press", Some(press)).await;
    until("on", || stage.upstreams.summary().on == 1).await;
    let (_, history) = stage.control(Method::GET, "/nodes/x1000c0s0b0n1/history", None).await;
    assert_eq!(each(&history, "what"), ["on"]);
    let (_, summary) = stage.control(Method::GET, "", None).await;
    assert_eq!((&summary["nodes"], &summary["on"]), (&json!(4), &json!(1)));
}

#[tokio::test]
async fn mistakes_are_named() {
    let stage = stage(MachinePlan::quick(4)).await;
    let mut seen = String::new();
    let requests: [(Method, &str, Option<Value>); 8] = [
        (Method::PATCH, "/nodes", Some(json!({"ids": ["x9"], "set": {}}))),
        (Method::PATCH, "/nodes", Some(json!({"set": {"broken": true}}))),
        (Method::POST, "/press", Some(json!({"command": "harder"}))),
        (Method::POST, "/trouble", Some(json!({"service": "moon", "effect": {"kind": "hang"}}))),
        (Method::DELETE, "/trouble/7", None),
        (Method::DELETE, "/trouble?service=moon", None),
        (Method::POST, "/tenants/blue", Some(json!([]))),
        (Method::GET, "/nothing", None),
    ];
    for (method, path, body) in requests {
        let (status, answer) = stage.control(method.clone(), path, body).await;
        seen += &format!("{method} {path}: {} {}\n", status.as_u16(), answer["detail"]);
    }
    expect![[r#"
        PATCH /nodes: 404 "x9 is not a node of the machine"
        PATCH /nodes: 400 "unknown field `broken`, expected one of `faults`, `enabled`, `locked`, `role`, `sub_role`, `arch`, `reserved`, `reserved_seconds` at line 1 column 16"
        POST /press: 400 "command must be on, soft_off or force_off"
        POST /trouble: 400 "unknown variant `moon`, expected one of `hsm`, `pcs`, `bss`, `cfs`, `ims`, `s3`, `tapms` at line 1 column 42"
        DELETE /trouble/7: 404 "there is no such trouble"
        DELETE /trouble?service=moon: 400 "no such service"
        POST /tenants/blue: 405 "use PUT or DELETE"
        GET /nothing: 404 "there is no such control"
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn trouble_comes_and_goes() {
    let stage = stage(MachinePlan::quick(4)).await;
    let trouble = json!({"service": "pcs", "count": 5, "effect": {"kind": "status", "code": 503}});
    let (_, added) = stage.control(Method::POST, "/trouble", Some(trouble)).await;
    assert_eq!(added, json!({"number": 1}));
    assert_eq!(stage.get(Pcs, "/transitions").await.0, StatusCode::SERVICE_UNAVAILABLE);
    let (_, list) = stage.control(Method::GET, "/trouble", None).await;
    assert_eq!(list["1"]["count"], 4);
    assert_eq!(stage.control(Method::DELETE, "/trouble/1", None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(stage.get(Pcs, "/transitions").await.0, StatusCode::OK);
    let (_, counters) = stage.control(Method::GET, "/counters", None).await;
    assert_eq!((&counters[0]["requests"], &counters[0]["failed"]), (&json!(2), &json!(1)));
    stage.control(Method::DELETE, "/counters", None).await;
    assert_eq!(stage.control(Method::GET, "/log", None).await.1, json!([]));
}

#[tokio::test]
async fn surroundings_can_be_changed() {
    let stage = stage(MachinePlan::quick(4)).await;
    let ids = json!(["x1000c0s0b0n0"]);
    for path in ["/groups/red", "/partitions/p1", "/tenants/blue"] {
        assert_eq!(stage.control(Method::PUT, path, Some(ids.clone())).await.0, StatusCode::NO_CONTENT);
    }
    assert_eq!(stage.get(Hsm, "/groups/red").await.1["members"]["ids"], ids);
    assert_eq!(stage.get(Hsm, "/partitions/p1").await.1["members"]["ids"], ids);
    assert_eq!(stage.get(Tapms, "/tenants/blue").await.0, StatusCode::OK);
    stage.control(Method::DELETE, "/tenants/blue", None).await;
    assert_eq!(stage.get(Tapms, "/tenants/blue").await.0, StatusCode::NOT_FOUND);
    let image = json!({"arch": "aarch64", "in_catalogue": false});
    assert_eq!(stage.control(Method::PUT, "/images/gone", Some(image)).await.0, StatusCode::NO_CONTENT);
}
