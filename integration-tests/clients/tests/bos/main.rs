//! csm-rs, the library under the operators' tool manta, as a client of the REST contract: every call that it has for
//! sessions and session templates.
//!
//! The environment holds the address of a running gateway. Tests of one gateway run at the same time, so each has names
//! and nodes of its own.

mod gateway;
mod sessions;
mod templates;

use serde_json::json;

use crate::gateway::{Refusal, TOKEN, client};

#[tokio::test]
async fn a_gateway_in_service_is_healthy() {
    let health = client().bos_health_check(TOKEN).await.unwrap();
    assert_eq!(health, json!({"apiStatus": "ok", "dbStatus": "ok"}));
}

#[tokio::test]
async fn calls_of_version_1_find_nothing() {
    let client = client();
    let detail = "The requested URL was not found on the server. If you entered the URL manually please check your \
                  spelling and try again.";
    let gone = Refusal { status: 404, detail: detail.into() };
    let template = "version-1".to_owned();
    assert_eq!(Refusal::of(client.bos_template_v1_get(TOKEN, None).await), gone);
    assert_eq!(Refusal::of(client.bos_template_v1_get(TOKEN, Some(&template)).await), gone);
    assert_eq!(Refusal::of(client.bos_session_v1_post(TOKEN, &template, "boot").await), gone);
}
