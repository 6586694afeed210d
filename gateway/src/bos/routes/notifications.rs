//! `/scn`: state change notifications, as the hardware state manager sends them to its subscribers. Notifications are
//! passed on as hints; the change itself is read from the inventory.

use axum::extract::State;
use http::StatusCode;
use proto::inventory::NotifyChangeRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    bos::{problem::BosProblem, wire::strict::JsonObject},
    http::{
        call::{answer, call},
        extract::JsonBody,
    },
    mesh::{MeshHandle, REGISTRY},
};

/// Components that have changed. Further members describe the change, and are not relied on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "Notification")]
pub(super) struct ChangeNotification {
    #[serde(rename = "Components")]
    components: Vec<String>,
}

/// Takes a notification. The sender repeats it unless the answer is 200 exactly.
pub(super) async fn notify(
    State(mesh): State<MeshHandle>,
    JsonBody(JsonObject(notification)): JsonBody<JsonObject<ChangeNotification>>,
) -> Result<StatusCode, BosProblem> {
    let request = NotifyChangeRequest { ids: notification.components };
    answer(REGISTRY, mesh.inventory.clone().notify_change(call(request))).await?;
    Ok(StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::{body::Body, extract::Request};
    use chassis::{Context, Server, Settings};
    use expect_test::expect;
    use futures_util::stream::{self, BoxStream, StreamExt};
    use http::header::CONTENT_TYPE;
    use proto::inventory::{
        ListInventoryRequest, ListInventoryResponse, NotifyChangeResponse,
        inventory_service_server::{InventoryService, InventoryServiceServer},
    };
    use tokio::net::TcpListener;
    use tonic::{Response, Status, async_trait};
    use tower::ServiceExt;

    use super::*;

    /// A registry that remembers the hints it got.
    #[derive(Clone, Default)]
    struct Registry(Arc<Mutex<Vec<Vec<String>>>>);

    #[async_trait]
    impl InventoryService for Registry {
        type ListInventoryStream = BoxStream<'static, Result<ListInventoryResponse, Status>>;

        async fn list_inventory(
            &self,
            _: tonic::Request<ListInventoryRequest>,
        ) -> Result<Response<Self::ListInventoryStream>, Status> {
            Ok(Response::new(stream::empty().boxed()))
        }

        async fn notify_change(
            &self,
            request: tonic::Request<NotifyChangeRequest>,
        ) -> Result<Response<NotifyChangeResponse>, Status> {
            self.0.lock().unwrap().push(request.into_inner().ids);
            Ok(Response::new(NotifyChangeResponse {}))
        }
    }

    async fn told(settings: &Settings, body: String) -> String {
        let request = Request::post("/scn").header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body)).unwrap();
        let Ok(response) = crate::tests::app(settings).oneshot(request).await;
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        format!("{status} {}", String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn notifications_are_passed_on_as_hints() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut settings = Settings::default();
        settings.component_registry.url = format!("http://{}", listener.local_addr().unwrap());
        let context = Context::new(settings.clone());
        let registry = Registry::default();
        let mut server = Server::default();
        server.add(InventoryServiceServer::new(registry.clone()));
        chassis::serve(&context, "registry", listener, server).await.unwrap().now();

        let bodies = [
            r#"{"Components": ["x1", "x2"], "State": "Off"}"#,
            r#"{"Components": ["x1"], "Enabled": false, "Flag": "OK", "News": {}}"#,
            r#"{"Components": []}"#,
            r#"{"State": "Off"}"#,
            r#"{"Components": "x1"}"#,
            r#"{"Components": [1]}"#,
            r#"["x1"]"#,
            r#"{"Components": ["x1""#,
            "",
        ];
        let mut lines = String::new();
        for body in bodies {
            lines.push_str(&format!("{body} -> {}\n", told(&settings, body.to_owned()).await));
        }
        let huge =
            format!(r#"{{"Components": ["{}"]}}"#, "x".repeat(crate::http::endpoint::SINGLE_BODY as usize));
        lines.push_str(&format!("huge -> {}\n", told(&settings, huge).await));
        expect![[r#"
            {"Components": ["x1", "x2"], "State": "Off"} -> 200 
            {"Components": ["x1"], "Enabled": false, "Flag": "OK", "News": {}} -> 200 
            {"Components": []} -> 200 
            {"State": "Off"} -> 400 {"detail":"missing field `Components`","status":400,"title":"Bad Request","type":"about:blank"}
            {"Components": "x1"} -> 400 {"detail":"invalid type: string \"x1\", expected a sequence - 'Components'","status":400,"title":"Bad Request","type":"about:blank"}
            {"Components": [1]} -> 400 {"detail":"invalid type: integer `1`, expected a string - 'Components[0]'","status":400,"title":"Bad Request","type":"about:blank"}
            ["x1"] -> 400 {"detail":"invalid type: sequence, expected an object","status":400,"title":"Bad Request","type":"about:blank"}
            {"Components": ["x1" -> 400 {"detail":"Request body is not valid JSON","status":400,"title":"Bad Request","type":"about:blank"}
             -> 400 {"detail":"Request body is not valid JSON","status":400,"title":"Bad Request","type":"about:blank"}
            huge -> 413 {"detail":"the request body is larger than this path accepts","status":413,"title":"Content Too Large","type":"about:blank"}
        "#]].assert_eq(&lines);
        let hints = registry.0.lock().unwrap().clone();
        assert_eq!(hints, [vec!["x1".to_owned(), "x2".to_owned()], vec!["x1".to_owned()], vec![]]);

        context.tasks.shutdown().cancel();
        context.tasks.finished(std::time::Duration::from_secs(5)).await.unwrap();
        let gone = told(&settings, r#"{"Components": ["x1"]}"#.to_owned()).await;
        assert!(gone.starts_with("503 ") && gone.contains("component registry"), "{gone}");
    }
}
