use expect_test::expect;
use reqwest::{Method, StatusCode};
use serde_json::json;
use upstreams::{MachinePlan, NodeChange, NodeFaults, Service::Bss};

use crate::stage::{Stage, stage};

const A: &str = "x1000c0s0b0n0";
const B: &str = "x1000c0s0b0n1";

async fn put(stage: &Stage, hosts: &[&str], kernel: &str) -> (StatusCode, Option<String>) {
    let body = json!({"hosts": hosts, "params": "quiet", "kernel": kernel, "initrd": "s3://i/initrd"});
    let answer = stage.send(Bss, Method::PUT, "/bootparameters", Some(&body)).await.expect("an answer");
    let token =
        answer.headers().get("BSS-Referral-Token").map(|token| token.to_str().expect("text").to_owned());
    (answer.status(), token)
}

#[tokio::test]
async fn each_put_of_boot_data_gets_a_token_and_replaces() {
    let stage = stage(MachinePlan::quick(4)).await;
    let (status, first) = put(&stage, &[A, B], "s3://i/kernel").await;
    let (_, second) = put(&stage, &[B], "s3://j/kernel").await;
    assert_eq!(status, StatusCode::OK);
    assert_ne!(first.expect("a token"), second.expect("a token"));
    let mut seen = String::new();
    for query in ["name=x1000c0s0b0n0,x1000c0s0b0n1", "mac=02:00:00:00:00:01", "nid=2", "name=x9c0s0b0n0"] {
        let (status, mut held) = stage.get(Bss, &format!("/bootparameters?{query}")).await;
        if let Some(held) = held.as_array_mut() {
            held.sort_by_key(|one| one["kernel"].to_string());
        }
        seen += &format!("{} {held}\n", status.as_u16());
    }
    expect![[r#"
        200 [{"hosts":["x1000c0s0b0n0"],"initrd":"s3://i/initrd","kernel":"s3://i/kernel","params":"quiet"},{"hosts":["x1000c0s0b0n1"],"initrd":"s3://i/initrd","kernel":"s3://j/kernel","params":"quiet"}]
        200 [{"hosts":["x1000c0s0b0n1"],"initrd":"s3://i/initrd","kernel":"s3://j/kernel","params":"quiet"}]
        200 [{"hosts":["x1000c0s0b0n1"],"initrd":"s3://i/initrd","kernel":"s3://j/kernel","params":"quiet"}]
        404 {"detail":"no boot data for these hosts","status":404,"title":"Not Found","type":"about:blank"}
    "#]].assert_eq(&seen);
    assert_eq!(stage.upstreams.boot_requests().len(), 2);
}

#[tokio::test]
async fn script_boots_the_stored_data() {
    let stage = stage(MachinePlan::quick(4)).await;
    let (_, token) = put(&stage, &[A], "s3://i/kernel").await;
    let (_, by_name) = stage.get(Bss, "/bootscript?name=x1000c0s0b0n0").await;
    let (_, by_mac) = stage.get(Bss, "/bootscript?mac=02:00:00:00:00:00").await;
    assert_eq!(by_name, by_mac);
    let script = by_name.as_str().expect("a text").replace(&token.expect("a token"), "TOKEN");
    expect![[r#"
        #!ipxe
        kernel --name kernel s3://i/kernel initrd=initrd quiet xname=x1000c0s0b0n0 nid=1 bss_referral_token=TOKEN || goto again
        initrd --name initrd s3://i/initrd || goto again
        boot || goto again
        :again
        sleep 30
        chain /apis/bss/boot/v1/bootscript?name=x1000c0s0b0n0
    "#]].assert_eq(&script);
    assert_eq!(stage.get(Bss, "/bootscript?name=x1000c0s0b0n1").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn boot_data_can_be_refused_because_of_one_host() {
    let stage = stage(MachinePlan::quick(4)).await;
    let faults = NodeFaults { bss_reject: true, ..NodeFaults::default() };
    let change = NodeChange { faults: Some(faults), ..NodeChange::default() };
    stage.upstreams.change(&[B.to_owned()], &change).expect("known");
    assert_eq!(put(&stage, &[A, B], "k").await, (StatusCode::BAD_REQUEST, None));
    assert_eq!(put(&stage, &[], "k").await, (StatusCode::BAD_REQUEST, None));
    assert_eq!(put(&stage, &[A], "k").await.0, StatusCode::OK);
}
