//! `/boot/v1/bootscript`: the script that the boot firmware of a node runs. The path is that of the boot script service
//! of a CSM system, so that DHCP and firmware need not know the difference.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use chassis::{
    Fault,
    mesh::call_class::{self, CallClass},
};
use http::{
    HeaderMap, HeaderValue, Uri,
    header::{CONTENT_TYPE, HOST},
    uri::Authority,
};
use proto::boot::{GetBootScriptRequest, get_boot_script_request::Node};
use tonic::Code;

use crate::{
    bos::{problem::BosProblem, wire::primitive::LONGEST_ID},
    http::{
        call::{DEADLINE, call, fault},
        problem::RequestProblem,
        query::QueryParameters,
    },
    mesh::{COORDINATOR, MeshHandle},
};

/// Most characters of a MAC address, with room for unusual notations.
pub(super) const LONGEST_MAC: usize = 64;

/// Seconds until firmware repeats a request that could not be answered: a restart of a service is over by then.
const PAUSE: u32 = 10;

/// Shows the script of a node. A node that is not known or not prepared has none, and no node has one where another
/// service serves scripts.
///
/// Firmware takes every error for "boot something else", which is right in these cases. While the mesh cannot answer,
/// firmware gets a script that waits and repeats the request: a node that was switched on to boot must not end up on
/// its disk because a service was restarted.
pub(super) async fn show(
    State(mesh): State<MeshHandle>,
    uri: Uri,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, BosProblem> {
    let request = GetBootScriptRequest { node: Some(asked_for(&query)?) };
    let mut scripts = mesh.boot_scripts.clone();
    let answer = call_class::scope(CallClass::Report, scripts.get_boot_script(call(request)));
    let answer = tokio::time::timeout(DEADLINE, answer).await;
    let status = match answer {
        Ok(Ok(answer)) => return Ok(script(answer.into_inner().script)),
        Ok(Err(status)) => status,
        Err(_) => return Ok(script(wait_and_ask(&uri, &headers, "no answer in time"))),
    };
    if status.code() == Code::FailedPrecondition {
        return Err(BosProblem::not_found(status.message()));
    }
    match fault(COORDINATOR, status) {
        Fault::Unavailable { what, reason } => {
            tracing::warn!(what, reason, "a node has to ask for its boot script again");
            Ok(script(wait_and_ask(&uri, &headers, &reason)))
        }
        Fault::Busy { reason, .. } => Ok(script(wait_and_ask(&uri, &headers, &reason))),
        fault => Err(fault.into()),
    }
}

/// Returns the node in the first given parameter of MAC address, name and number, as with other boot script services.
/// Firmware sends an empty parameter for a value that it does not know.
fn asked_for(query: &QueryParameters) -> Result<Node, RequestProblem> {
    let given = |name, longest| {
        let text = query.text(name, 0..=longest);
        text.map(|text| text.filter(|text| !text.is_empty()).map(str::to_owned))
    };
    if let Some(mac) = given("mac", LONGEST_MAC)? {
        return Ok(Node::Mac(mac));
    }
    if let Some(id) = given("name", LONGEST_ID)? {
        return Ok(Node::Id(id));
    }
    let nid = query.integer("nid", 0..=u32::MAX)?;
    nid.map(Node::Nid).ok_or_else(|| RequestProblem::bad_request("one of mac, name and nid has to be given"))
}

/// Returns a script that waits and repeats the request at the same address.
fn wait_and_ask(uri: &Uri, headers: &HeaderMap, reason: &str) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = text("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
    // A header can hold more than an address, and the rest could be commands to firmware.
    let given = text(HOST.as_str()).and_then(|host| host.parse::<Authority>().ok());
    let authority = given.as_ref().or_else(|| uri.authority()).map_or("localhost", Authority::as_str);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let reason: String = reason.chars().map(harmless).collect();
    format!(
        "#!ipxe\necho Reveille cannot tell what to boot: {reason}\n:again\nsleep {PAUSE}\n\
         chain --replace --autofree {scheme}://{authority}{path} || goto again\n"
    )
}

/// Returns the letter, or a space for one that could make a word of the reason a command to firmware.
fn harmless(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || ".:-_/".contains(letter) { letter } else { ' ' }
}

fn script(script: String) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"))], script).into_response()
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::Request};
    use chassis::{Context, Server, Settings};
    use expect_test::expect;
    use proto::boot::{
        GetBootScriptResponse, ListScriptRequestsRequest, ListScriptRequestsResponse,
        boot_script_service_server::{BootScriptService, BootScriptServiceServer},
    };
    use tokio::net::TcpListener;
    use tonic::Status;
    use tower::ServiceExt;

    /// Service that answers by the requested node.
    struct Scripts;

    #[tonic::async_trait]
    impl BootScriptService for Scripts {
        async fn get_boot_script(
            &self,
            request: tonic::Request<super::GetBootScriptRequest>,
        ) -> Result<tonic::Response<GetBootScriptResponse>, Status> {
            let node = request.into_inner().node.unwrap();
            match &node {
                super::Node::Id(id) if id == "elsewhere" => {
                    Err(Status::failed_precondition("boot scripts are served by another service"))
                }
                super::Node::Id(id) if id == "nobody" => {
                    Err(chassis::Fault::not_found("boot_script", id).into())
                }
                super::Node::Id(id) if id == "later" => {
                    Err(chassis::Fault::unavailable("database", "gone; reboot\n|| shell").into())
                }
                _ => Ok(tonic::Response::new(GetBootScriptResponse { script: format!("{node:?}\n") })),
            }
        }

        async fn list_script_requests(
            &self,
            _: tonic::Request<ListScriptRequestsRequest>,
        ) -> Result<tonic::Response<ListScriptRequestsResponse>, Status> {
            Ok(tonic::Response::new(ListScriptRequestsResponse::default()))
        }
    }

    #[test]
    fn firmware_is_told_to_ask_where_it_asked() {
        let uri = "/boot/v1/bootscript?name=x1".parse().unwrap();
        for (host, proto, expected) in [
            ("gateway:7700", "https", "https://gateway:7700/boot/v1/bootscript?name=x1 "),
            ("[fd00::1]:7700", "http", "http://[fd00::1]:7700/boot/v1/bootscript?name=x1 "),
            ("gateway || shell", "http://evil/ ||", "http://localhost/boot/v1/bootscript?name=x1 "),
        ] {
            let mut headers = super::HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            headers.insert("x-forwarded-proto", proto.parse().unwrap());
            let script = super::wait_and_ask(&uri, &headers, "gone");
            assert!(script.contains(&format!(" {expected}")), "{script}");
        }
    }

    #[tokio::test]
    async fn firmware_gets_a_script_or_an_error_or_is_told_to_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut settings = Settings::default();
        settings.config_coordinator.url = format!("http://{}", listener.local_addr().unwrap());
        let context = Context::new(settings.clone());
        let mut server = Server::default();
        server.add(BootScriptServiceServer::new(Scripts));
        chassis::serve(&context, "scripts", listener, server).await.unwrap().now();
        let silent = {
            let mut settings = settings.clone();
            settings.config_coordinator.url = "http://127.0.0.1:1".into();
            settings
        };

        let mut told = String::new();
        for (settings, query) in [
            (&settings, "mac=a4:bf:01:2e:7c:10&name=x1&nid=3"),
            (&settings, "mac=&name=x1"),
            (&settings, "nid=3"),
            (&settings, "nid=three"),
            (&settings, ""),
            (&settings, "name=elsewhere"),
            (&settings, "name=nobody"),
            (&settings, "name=later&x=%20"),
            (&silent, "name=x1"),
        ] {
            let request = Request::builder().uri(format!("/boot/v1/bootscript?{query}"));
            let request = request.header("host", "gateway:7700").body(Body::empty()).unwrap();
            let Ok(response) = crate::tests::app(settings).oneshot(request).await;
            let status = response.status().as_u16();
            let kind = response.headers()["content-type"].clone();
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let body = String::from_utf8(body.to_vec()).unwrap().replace("127.0.0.1:1", "CLOSED");
            told += &format!("{query} -> {status} {}\n{}\n", kind.to_str().unwrap(), body.trim_end());
        }
        expect![[r#"
            mac=a4:bf:01:2e:7c:10&name=x1&nid=3 -> 200 text/plain; charset=UTF-8
            Mac("a4:bf:01:2e:7c:10")
            mac=&name=x1 -> 200 text/plain; charset=UTF-8
            Id("x1")
            nid=3 -> 200 text/plain; charset=UTF-8
            Nid(3)
            nid=three -> 400 application/problem+json
            {"detail":"Wrong type, expected 'integer' for query parameter 'nid'","status":400,"title":"Bad Request","type":"about:blank"}
             -> 400 application/problem+json
            {"detail":"one of mac, name and nid has to be given","status":400,"title":"Bad Request","type":"about:blank"}
            name=elsewhere -> 404 application/problem+json
            {"detail":"boot scripts are served by another service","status":404,"title":"Not Found","type":"about:blank"}
            name=nobody -> 404 application/problem+json
            {"detail":"Boot script 'nobody' does not exist","status":404,"title":"The resource was not found","type":"about:blank"}
            name=later&x=%20 -> 200 text/plain; charset=UTF-8
            #!ipxe
            echo Reveille cannot tell what to boot: gone  reboot    shell
            :again
            sleep 10
            chain --replace --autofree http://gateway:7700/boot/v1/bootscript?name=later&x=%20 || goto again
            name=x1 -> 200 text/plain; charset=UTF-8
            #!ipxe
            echo Reveille cannot tell what to boot: Connection refused
            :again
            sleep 10
            chain --replace --autofree http://gateway:7700/boot/v1/bootscript?name=x1 || goto again
        "#]].assert_eq(&told);
        context.tasks.shutdown().cancel();
        context.tasks.finished(std::time::Duration::from_secs(5)).await.unwrap();
    }
}
