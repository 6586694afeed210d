//! Hostile requests: each is refused with a problem that names the mistake, and changes nothing.

use std::{fmt::Write as _, net::SocketAddr, time::Duration};

use expect_test::expect;
use integration_tests::{PATIENCE, bos::Bos, eventually, mesh::Mesh};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// The gateway's answer to `bytes` before it closes the connection, however much is unsent by then.
async fn raw(gateway: SocketAddr, bytes: &[u8]) -> String {
    let stream = TcpStream::connect(gateway).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let sent = async {
        // The gateway may have closed the connection.
        let _: std::io::Result<()> = writer.write_all(bytes).await;
        writer
    };
    let mut answer = Vec::new();
    let (_writer, read) = timeout(PATIENCE, async { tokio::join!(sent, reader.read_to_end(&mut answer)) })
        .await
        .expect("an answer and the end of the connection");
    read.unwrap();
    String::from_utf8(answer).unwrap()
}

/// A request with a JSON body, after which the connection ends.
fn request(method: &str, target: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Status and detail of a problem, which is all that an answer may be.
fn problem(answer: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    assert!(head.contains("content-type: application/problem+json"), "{answer}");
    let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
    let members: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["detail", "status", "title", "type"], "{answer}");
    assert_eq!(head.split(' ').nth(1).unwrap(), body["status"].to_string(), "{answer}");
    let detail: String = body["detail"].as_str().unwrap().chars().take(150).collect();
    format!("{} {}: {detail}", body["status"], body["title"].as_str().unwrap())
}

/// Everything that people can change.
async fn everything(bos: &Bos) -> Vec<Value> {
    let mut all = Vec::new();
    for path in ["/v2/components", "/v2/options", "/v2/sessiontemplates", "/v2/sessions"] {
        all.push(bos.get(path).await);
    }
    all
}

fn address(mesh: &Mesh) -> SocketAddr {
    mesh.settings.gateway.url.strip_prefix("http://").unwrap().parse().unwrap()
}

const JSON: &str = "content-type: application/json\r\n";

/// Description, method, target, headers and body of a request.
type BadRequest<'a> = (&'static str, &'static str, &'a str, &'static str, Vec<u8>);

/// Returns requests whose body is none, or too much of one.
fn bad_bodies(component: &str) -> Vec<BadRequest<'_>> {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
    let within = |inner: &[u8]| [b"{\"no_such_option\": ", inner, b"}"].concat();
    let long = |length: usize| format!("{{\"error\": \"{}\"}}", "x".repeat(length)).into_bytes();
    vec![
        ("wrong type", "PATCH", component, JSON, br#"{"enabled": "yes"}"#.into()),
        ("beyond a float", "PATCH", component, JSON, br#"{"retry_policy": 1e400}"#.into()),
        ("beyond 64 bits", "PATCH", component, JSON, br#"{"retry_policy": 18446744073709551616}"#.into()),
        ("2^63", "PATCH", component, JSON, br#"{"retry_policy": 9223372036854775808}"#.into()),
        ("-2^63", "PATCH", component, JSON, br#"{"retry_policy": -9223372036854775808}"#.into()),
        ("minus zero", "PATCH", component, JSON, br#"{"retry_policy": -0}"#.into()),
        ("a float", "PATCH", component, JSON, br#"{"retry_policy": 15.0}"#.into()),
        ("not UTF-8", "PATCH", component, JSON, b"{\"error\": \"\xff\"}".into()),
        ("half a character", "PATCH", component, JSON, br#"{"error": "\ud800"}"#.into()),
        ("byte order mark", "PATCH", component, JSON, "\u{feff}{\"error\": \"e\"}".into()),
        ("UTF-16", "PATCH", component, JSON, b"\xff\xfe{\0}\0".into()),
        ("NUL between", "PATCH", component, JSON, b"{\0}".into()),
        ("two documents", "PATCH", component, JSON, br#"{"error": "a"} {"error": "b"}"#.into()),
        ("no number", "PATCH", component, JSON, br#"{"retry_policy": NaN}"#.into()),
        ("comment", "PATCH", component, JSON, br#"{"error": "e" /* why */}"#.into()),
        ("empty", "PATCH", component, JSON, vec![]),
        ("blank", "PATCH", component, JSON, b"  ".into()),
        ("too long", "PATCH", component, JSON, long(65_537)),
        ("deep", "PATCH", "/v2/options", JSON, within(&deep(1000))),
        ("very deep", "PATCH", "/v2/options", JSON, within(&deep(1_000_000))),
        ("deep for nothing", "PUT", "/v2/components", JSON, deep(1_000_000)),
    ]
}

/// Returns requests with a NUL character.
fn with_nul(component: &str) -> Vec<BadRequest<'_>> {
    vec![
        ("NUL in an error", "PATCH", component, JSON, br#"{"error": "a\u0000b"}"#.into()),
        (
            "NUL in an override",
            "PATCH",
            component,
            JSON,
            br#"{"status": {"status_override": "\u0000"}}"#.into(),
        ),
        (
            "NUL in parameters",
            "PATCH",
            component,
            JSON,
            br#"{"desired_state": {"boot_artifacts": {"kernel_parameters": "a\u0000"}}}"#.into(),
        ),
        ("NUL in a token", "PATCH", component, JSON, br#"{"actual_state": {"bss_token": "\u0000"}}"#.into()),
        ("NUL in an id", "PUT", "/v2/components", JSON, br#"[{"id": "a\u0000", "enabled": true}]"#.into()),
        ("NUL in the path", "PUT", "/v2/components/a%00b", JSON, br#"{"enabled": true}"#.into()),
        ("NUL in a query", "GET", "/v2/components?ids=a%00b", "", vec![]),
        ("NUL in a template's name", "GET", "/v2/sessiontemplates/a%00b", "", vec![]),
        (
            "NUL in a template",
            "PATCH",
            "/v2/sessiontemplates/kept",
            JSON,
            br#"{"description": "\u0000"}"#.into(),
        ),
        (
            "NUL in a list",
            "PATCH",
            "/v2/sessiontemplates/kept",
            JSON,
            br#"{"boot_sets": {"compute": {"path": "p", "type": "s3", "node_list": ["x1", "x\u00002"]}}}"#
                .into(),
        ),
        (
            "NUL in a limit",
            "POST",
            "/v2/sessions",
            JSON,
            br#"{"template_name": "kept", "operation": "boot", "limit": "x\u0000"}"#.into(),
        ),
    ]
}

/// Returns requests with a bad target, type or method.
fn bad_targets(component: &str) -> Vec<BadRequest<'_>> {
    vec![
        ("path is not UTF-8", "GET", "/v2/components/%ff", "", vec![]),
        ("query is not UTF-8", "GET", "/v2/components?session=%ff", "", vec![]),
        ("another type", "PATCH", component, "content-type: text/plain\r\n", br#"{"error": "e"}"#.into()),
        ("no type", "PATCH", component, "", br#"{"error": "e"}"#.into()),
        ("absurd age", "GET", "/v2/sessions?min_age=9999999w", "", vec![]),
        ("absurd age", "DELETE", "/v2/sessions?max_age=9999999w", "", vec![]),
        ("no age", "DELETE", "/v2/sessions?max_age=5y", "", vec![]),
        ("no integer", "GET", "/v2/components?page_size=1e3", "", vec![]),
        (
            "huge integer",
            "GET",
            "/v2/components?page_size=99999999999999999999999999999999999999999999",
            "",
            vec![],
        ),
        ("no such method", "DELETE", "/v2/components", "", vec![]),
        ("made-up method", "BREW", "/v2/components", "", vec![]),
        ("traced", "TRACE", "/v2/components", "", vec![]),
        ("no such path", "GET", "/v2/components/a/b", "", vec![]),
        ("above the root", "GET", "/../v2/components", "", vec![]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_by_name_and_change_nothing() {
    let mesh = Mesh::start(async |_| {}).await;
    mesh.bos.template("kept").await;
    let id = mesh.bos.get("/v2/components").await[0]["id"].as_str().unwrap().to_owned();
    let before = everything(&mesh.bos).await;

    let component = format!("/v2/components/{id}");
    let rows = [bad_bodies(&component), with_nul(&component), bad_targets(&component)].concat();
    let mut lines = String::new();
    for (what, method, target, headers, body) in rows {
        let answer = raw(address(&mesh), &request(method, target, headers, &body)).await;
        writeln!(lines, "{what} -> {}", problem(&answer).replace(&id, "ID").replace('\0', "\\0")).unwrap();
    }
    expect![[r#"
        wrong type -> 400 Bad Request: invalid type: string "yes", expected a boolean - 'enabled'
        beyond a float -> 400 Bad Request: Request body cannot be read: number out of range at line 1 column 22
        beyond 64 bits -> 400 Bad Request: invalid type: floating point `1.8446744073709552e+19`, expected a whole number that is not negative - 'retry_policy'
        2^63 -> 400 Bad Request: 9223372036854775808 is more than any number may be here - 'retry_policy'
        -2^63 -> 400 Bad Request: invalid value: integer `-9223372036854775808`, expected a whole number that is not negative - 'retry_policy'
        minus zero -> 400 Bad Request: invalid type: floating point `-0.0`, expected a whole number that is not negative - 'retry_policy'
        a float -> 400 Bad Request: invalid type: floating point `15.0`, expected a whole number that is not negative - 'retry_policy'
        not UTF-8 -> 400 Bad Request: Request body is not valid JSON
        half a character -> 400 Bad Request: Request body cannot be read: unexpected end of hex escape at line 1 column 18
        byte order mark -> 400 Bad Request: Request body is not valid JSON
        UTF-16 -> 400 Bad Request: Request body is not valid JSON
        NUL between -> 400 Bad Request: Request body is not valid JSON
        two documents -> 400 Bad Request: Request body is not valid JSON
        no number -> 400 Bad Request: Request body is not valid JSON
        comment -> 400 Bad Request: Request body is not valid JSON
        empty -> 400 Bad Request: Request body is not valid JSON
        blank -> 400 Bad Request: Request body is not valid JSON
        too long -> 400 Bad Request: has 65537 characters but may have at most 65536 - 'error'
        deep -> 400 Bad Request: Request body cannot be read: recursion limit exceeded at line 1 column 146
        very deep -> 400 Bad Request: Request body cannot be read: recursion limit exceeded at line 1 column 146
        deep for nothing -> 400 Bad Request: Request body cannot be read: recursion limit exceeded at line 1 column 128
        NUL in an error -> 400 Bad Request: has a NUL character, which no text may have - 'error'
        NUL in an override -> 400 Bad Request: has a NUL character, which no text may have - 'status.status_override'
        NUL in parameters -> 400 Bad Request: has a NUL character, which no text may have - 'desired_state.boot_artifacts.kernel_parameters'
        NUL in a token -> 400 Bad Request: has a NUL character, which no text may have - 'actual_state.bss_token'
        NUL in an id -> 400 Bad Request: has a NUL character, which no text may have - 'id'
        NUL in the path -> 400 Bad Request: has a NUL character, which no text may have - 'id'
        NUL in a query -> 400 Bad Request: query parameter 'ids': has a NUL character, which no text may have
        NUL in a template's name -> 400 Bad Request: the path has 'a\0b', which is no name
        NUL in a template -> 400 Bad Request: The session template could not be patched: has a NUL character, which no text may have - 'description'
        NUL in a list -> 400 Bad Request: The session template could not be patched: has a NUL character, which no text may have - 'boot_sets.compute.node_list[1]'
        NUL in a limit -> 400 Bad Request: has a NUL character, which no text may have - 'limit'
        path is not UTF-8 -> 400 Bad Request: the path is not valid UTF-8
        query is not UTF-8 -> 400 Bad Request: query parameter 'session': is not valid UTF-8
        another type -> 415 Unsupported Media Type: Invalid Content-type (text/plain), expected JSON data
        no type -> 415 Unsupported Media Type: Invalid Content-type (), expected JSON data
        absurd age -> 400 Bad Request: '9999999w' reaches back to before the year 1 - 'min_age'
        absurd age -> 400 Bad Request: '9999999w' reaches back to before the year 1 - 'max_age'
        no age -> 400 Bad Request: '5y' is not an age such as 15m, 4h, 7d or 2w - 'max_age'
        no integer -> 400 Bad Request: Wrong type, expected 'integer' for query parameter 'page_size'
        huge integer -> 400 Bad Request: Wrong type, expected 'integer' for query parameter 'page_size'
        no such method -> 405 Method Not Allowed: The method is not allowed for the requested URL.
        made-up method -> 405 Method Not Allowed: The method is not allowed for the requested URL.
        traced -> 405 Method Not Allowed: The method is not allowed for the requested URL.
        no such path -> 404 Not Found: The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.
        above the root -> 404 Not Found: The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.
    "#]].assert_eq(&lines);
    assert_eq!(everything(&mesh.bos).await, before);
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_refused() {
    let mesh = Mesh::start(async |_| {}).await;
    let gateway = address(&mesh);
    let large = format!("x: {}\r\n", "y".repeat(1 << 20));
    let many: String = (0..1000).map(|number| format!("x-{number}: y\r\n")).collect();
    let chunked = |chunk: &str| {
        let head =
            "PATCH /v2/options HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n";
        format!("{head}{JSON}\r\n{chunk}").into_bytes()
    };
    let mut lines = String::new();
    for (what, bytes) in [
        ("a header of 1 MiB", request("GET", "/v2/components", &large, b"")),
        ("a thousand headers", request("GET", "/v2/components", &many, b"")),
        (
            "an address of 70,000 bytes",
            request("GET", &format!("/v2/components?x={}", "y".repeat(70_000)), "", b""),
        ),
        ("no HTTP", b"hello\r\n\r\n".to_vec()),
        ("a space too many", b"GET /v2 components HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
        (
            "two lengths",
            b"PATCH /v2/options HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}".to_vec(),
        ),
        ("a negative length", b"PATCH /v2/options HTTP/1.1\r\ncontent-length: -2\r\n\r\n{}".to_vec()),
        ("no host", b"GET /v2/options HTTP/1.1\r\nconnection: close\r\n\r\n".to_vec()),
        ("two hosts", request("GET", "/v2/options", "host: another\r\n", b"")),
        ("a body without end", chunked("2\r\n{\"\r\nzz\r\n")),
        ("chunks of a bad body", chunked("1\r\n{\r\n0\r\n\r\n")),
    ] {
        writeln!(lines, "{what} -> {}", problem(&raw(gateway, &bytes).await)).unwrap();
    }
    expect![[r#"
        a header of 1 MiB -> 431 Request Header Fields Too Large: the headers are larger or more than are accepted
        a thousand headers -> 431 Request Header Fields Too Large: the headers are larger or more than are accepted
        an address of 70,000 bytes -> 414 URI Too Long: the address is longer than 65534 bytes
        no HTTP -> 400 Bad Request: the head of the request is not valid HTTP
        a space too many -> 400 Bad Request: the head of the request is not valid HTTP
        two lengths -> 400 Bad Request: the head of the request is not valid HTTP
        a negative length -> 400 Bad Request: the head of the request is not valid HTTP
        no host -> 400 Bad Request: the request has no Host header
        two hosts -> 400 Bad Request: the request has more than one Host header
        a body without end -> 400 Bad Request: the request body could not be read
        chunks of a bad body -> 400 Bad Request: Request body is not valid JSON
    "#]].assert_eq(&lines);
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_are_refused() {
    let mesh = Mesh::start(async |_| {}).await;
    let gateway = address(&mesh);
    let huge = vec![b' '; (64 << 20) + 1];
    for (target, length) in [("/v2/options", (8 << 20) + 1), ("/v2/components", (64 << 20) + 1)] {
        let answer = raw(gateway, &request("PATCH", target, JSON, &huge[..length])).await;
        assert_eq!(
            problem(&answer),
            "413 Content Too Large: the request body is larger than this path accepts"
        );
        // With `expect: 100-continue` the client learns of the refusal before it sends the body.
        let asked = request("PATCH", target, &format!("{JSON}expect: 100-continue\r\n"), &huge[..length]);
        let head = asked.len() - length;
        let answer = raw(gateway, &asked[..head]).await;
        assert_eq!(
            problem(&answer),
            "413 Content Too Large: the request body is larger than this path accepts"
        );
    }
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unusual_requests_that_are_right_are_answered() {
    let mesh = Mesh::start(async |_| {}).await;
    let gateway = address(&mesh);
    let id = mesh.bos.get("/v2/components").await[0]["id"].as_str().unwrap().to_owned();

    let ids: Vec<_> = (0..4_000).map(|number| format!("x{:04}c0s0b0n0", number)).collect();
    let listed = mesh.bos.get(&format!("/v2/components?ids={},{id}", ids.join(","))).await;
    assert_eq!(listed[0]["id"], id.as_str(), "{listed}");
    assert_eq!(listed.as_array().unwrap().len(), 1);

    let body = br#"{"error": "first", "error": "last"}"#;
    let path = format!("/v2/components/{id}");
    let asked = request("PATCH", &path, &format!("{JSON}expect: 100-continue\r\n"), body);
    let answer = raw(gateway, &asked).await;
    assert!(answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(mesh.bos.component(&id).await["error"], "last");

    let chunked = format!(
        "PATCH {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{JSON}transfer-encoding: chunked\r\n\r\n\
         8;odd=yes\r\n{{\"error\"\r\n6\r\n: \"c\"}}\r\n0\r\ntrailer: x\r\n\r\n"
    );
    let answer = raw(gateway, chunked.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(mesh.bos.component(&id).await["error"], "c");

    // Before HTTP/1.1 there was no host.
    let answer = raw(gateway, b"GET /livez HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");

    // There are three requests on one connection, the last of which ends it.
    let first = "GET /livez HTTP/1.1\r\nhost: x\r\n\r\nHEAD /v2/components HTTP/1.1\r\nhost: x\r\n\r\n";
    let pipelined = [first.as_bytes(), &request("GET", "/livez", "", b"")].concat();
    let answer = raw(gateway, &pipelined).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 3, "{answer}");
    assert_eq!(answer.matches("ok\n").count(), 2, "{answer}");
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_answers_head_and_options() {
    let mesh = Mesh::start(async |_| {}).await;
    let document = mesh.bos.get("/openapi.json").await;
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace(['{', '}'], "");
        let allowed = mesh.bos.send(Method::OPTIONS, &path, None).await;
        assert_eq!(allowed.status, StatusCode::OK, "{path}");
        // Live changes have no end, so only the head of the answer is awaited.
        let get = reqwest::get(format!("{}{path}", mesh.bos.url())).await.unwrap().status();
        let head = mesh.bos.send(Method::HEAD, &path, None).await;
        assert_eq!((head.status, head.body), (get, Value::Null), "{path}");
        assert_eq!(get == StatusCode::METHOD_NOT_ALLOWED, item.get("get").is_none(), "{path}");
    }
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_patch_may_name_a_hundred_thousand() {
    let mesh = Mesh::start(async |_| {}).await;
    let id = mesh.bos.get("/v2/components").await[0]["id"].as_str().unwrap().to_owned();
    let mut each: Vec<_> = (0..100_000).map(|n| json!({"id": format!("no-{n}"), "error": "e"})).collect();
    let path = "/v2/components?skip_bad_ids=true";
    each.push(json!({"id": id, "error": "listed"}));
    let each = Value::from(each);
    let patched = mesh.bos.expect(Method::PATCH, path, Some(&each)).await;
    assert_eq!(patched.as_array().unwrap().len(), 1);
    assert_eq!(mesh.bos.component(&id).await["error"], "listed");
    let refused = mesh.bos.send(Method::PATCH, "/v2/components", Some(&each)).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);

    // There are as many ids as the filter has room for.
    let ids: String = (0..10_000).map(|number| format!("{number:04},")).collect();
    let room = 65_535 - id.len();
    let filtered = |ids: String| json!({"patch": {"error": "filtered"}, "filters": {"ids": ids}});
    let most = filtered(format!("{}{id}", ids.get(..50_000).unwrap()));
    mesh.bos.expect(Method::PATCH, path, Some(&most)).await;
    assert_eq!(mesh.bos.component(&id).await["error"], "filtered");
    let more = filtered("x,".repeat(room));
    let refused = mesh.bos.send(Method::PATCH, path, Some(&more)).await;
    assert_eq!(refused.body["detail"], "has more than 65535 characters - 'filters.ids'");
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_cut_off() {
    let mesh = Mesh::start(async |settings| {
        settings.gateway.patience_seconds = 1;
        settings.gateway.stall_seconds = 1;
        settings.gateway.connections = 4;
    })
    .await;
    let gateway = address(&mesh);

    // There are more connections than places, and none of them sends a request.
    let mut idle = Vec::new();
    for _ in 0..16 {
        idle.push(TcpStream::connect(gateway).await.unwrap());
    }
    mesh.bos.get("/v2/options").await;
    drop(idle);

    let (mut reader, mut writer) = TcpStream::connect(gateway).await.unwrap().into_split();
    let slowly = async {
        let head = format!("PATCH /v2/options HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n{JSON}\r\n");
        let mut sent = writer.write_all(head.as_bytes()).await;
        while sent.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            sent = writer.write_all(b" ").await;
        }
    };
    let mut answer = String::new();
    let read = async {
        let mut part = [0; 1000];
        while !answer.contains("}") {
            let length = reader.read(&mut part).await.unwrap();
            assert!(length > 0, "closed after: {answer}");
            answer.push_str(std::str::from_utf8(&part[..length]).unwrap());
        }
    };
    timeout(PATIENCE, async {
        tokio::select! {
            () = slowly => {}
            () = read => {}
        }
    })
    .await
    .expect("an end");
    assert_eq!(problem(&answer), "408 Request Timeout: the request body did not arrive in time");

    let answer = raw(gateway, b"GET /v2/opt").await;
    assert_eq!(answer, "");

    // The clients request more than fits into sockets and buffers, and read none of it.
    let id = mesh.bos.get("/v2/components").await[0]["id"].as_str().unwrap().to_owned();
    let long = json!({"error": "e".repeat(65_536)});
    mesh.bos.expect(Method::PATCH, &format!("/v2/components/{id}"), Some(&long)).await;
    let asked = format!("GET /v2/components/{id} HTTP/1.1\r\nhost: x\r\n\r\n").repeat(1_000);
    let mut deaf = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(gateway).await.unwrap();
        stream.write_all(asked.as_bytes()).await.unwrap();
        deaf.push(stream);
    }
    let answered = async || {
        let answer = Bos::new(mesh.bos.url()).try_send(Method::GET, "/v2/options", None).await.ok()?;
        answer.status.is_success().then_some(())
    };
    eventually("a place of a client that does not read", answered).await;
    drop(deaf);
    mesh.stop().await;
}

/// A connection that has sent `bytes` and waits.
async fn pending(gateway: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// The status of an answer to a request on a connection of its own.
async fn status(gateway: SocketAddr, path: &str) -> String {
    let answer = raw(gateway, &request("GET", path, "", b"")).await;
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_are_answered_when_every_connection_is_at_work() {
    let mesh = Mesh::start(async |settings| settings.gateway.connections = 4).await;
    let gateway = address(&mesh);
    let unfinished = format!("PATCH /v2/options HTTP/1.1\r\nhost: x\r\n{JSON}content-length: 9\r\n\r\n");
    let mut at_work = Vec::new();
    for _ in 0..4 {
        at_work.push(pending(gateway, unfinished.as_bytes()).await);
    }
    // The fourth may not have been read yet.
    let refused = async || (status(gateway, "/v2/options").await == "503").then_some(());
    eventually("a refusal", refused).await;
    assert_eq!(status(gateway, "/livez").await, "200");
    assert_eq!(status(gateway, "/readyz").await, "200");
    drop(at_work);
    let answered = async || (status(gateway, "/v2/options").await == "200").then_some(());
    eventually("a place", answered).await;
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_make_room_for_active_ones() {
    let mesh = Mesh::start(async |settings| {
        settings.gateway.patience_seconds = 3600;
        settings.gateway.connections = 4;
    })
    .await;
    let gateway = address(&mesh);
    let mut idle = Vec::new();
    for asked in [&b""[..], b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n"] {
        for _ in 0..4 {
            let mut stream = TcpStream::connect(gateway).await.unwrap();
            stream.write_all(asked).await.unwrap();
            idle.push(stream);
        }
    }
    for _ in 0..3 {
        let answer = raw(gateway, b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    drop(idle);
    mesh.stop().await;
}
