//! Callers with JSON web tokens of an issuer whose keys change, behind a server of its own.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::{KeyPair as RsaKeyPair, KeySize},
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
        RSA_PSS_SHA256,
    },
};
use axum::{Router, body::Body, extract::Request, routing::get};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use chassis::{
    Tasks,
    settings::{IdentitySettings, IssuerSettings},
};
use chrono::Utc;
use expect_test::expect;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::identity::{IdentityGate, RequestCaller};

/// Bound of waiting for a change to show.
const BOUND: Duration = Duration::from_secs(20);

/// Key of an issuer that signs tokens.
enum SigningKey {
    Edwards(Ed25519KeyPair),
    Curve(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl SigningKey {
    fn new(kind: &str) -> Self {
        match kind {
            "EdDSA" => Self::Edwards(Ed25519KeyPair::generate().unwrap()),
            "ES256" => Self::Curve(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()),
            _ => Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()),
        }
    }

    fn public(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| BASE64.encode(bytes);
        match self {
            Self::Edwards(key) => {
                json!({ "kid": id, "kty": "OKP", "crv": "Ed25519", "x": text(key.public_key().as_ref()), "use": "sig" })
            }
            Self::Curve(key) => {
                let point = key.public_key().as_ref();
                json!({ "kid": id, "kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..]) })
            }
            Self::Rsa(key) => {
                let public = key.public_key();
                let (modulus, exponent) = (public.modulus(), public.exponent());
                let modulus = modulus.big_endian_without_leading_zero();
                let exponent = exponent.big_endian_without_leading_zero();
                json!({ "kid": id, "kty": "RSA", "n": text(modulus), "e": text(exponent), "alg": "RS256" })
            }
        }
    }

    fn token(&self, header: Value, claims: &Value) -> String {
        let message = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let random = SystemRandom::new();
        let signature = match self {
            Self::Edwards(key) => key.sign(message.as_bytes()).as_ref().to_vec(),
            Self::Curve(key) => key.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                let padding = if header["alg"] == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                key.sign(padding, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
        };
        format!("{message}.{}", BASE64.encode(signature))
    }
}

/// Server of an issuer; `None`: it fails.
#[derive(Clone)]
struct IssuerServer {
    url: String,
    keys: Arc<Mutex<Option<Vec<Value>>>>,
}

impl IssuerServer {
    async fn start(keys: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { url: url.clone(), keys: Arc::new(Mutex::new(Some(keys))) };
        let served = Arc::clone(&server.keys);
        let document = json!({ "issuer": url, "jwks_uri": format!("{url}/keys") }).to_string();
        let router =
            Router::new().route("/.well-known/openid-configuration", get(async move || document)).route(
                "/keys",
                get(async move || match served.lock().unwrap().clone() {
                    Some(keys) => Ok(json!({ "keys": keys }).to_string()),
                    None => Err(StatusCode::BAD_GATEWAY),
                }),
            );
        tokio::spawn(async move { axum_serve(listener, router).await });
        server
    }

    fn publish(&self, keys: Option<Vec<Value>>) {
        *self.keys.lock().unwrap() = keys;
    }

    fn claims(&self) -> Value {
        let now = Utc::now().timestamp();
        json!({ "iss": self.url, "aud": "reveille", "sub": "alice", "exp": now + 600, "roles": ["admin"] })
    }

    fn settings(&self) -> IssuerSettings {
        IssuerSettings {
            issuer: self.url.clone(),
            audience: "reveille".into(),
            plain_http: true,
            refresh_seconds: 1,
            ..IssuerSettings::default()
        }
    }
}

/// Serves connections one after another, each in a task.
async fn axum_serve(listener: TcpListener, router: Router) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let io = hyper_util::rt::TokioIo::new(stream);
            hyper::server::conn::http1::Builder::new().serve_connection(io, service).await
        });
    }
}

fn gate(issuer: IssuerSettings, tasks: &Tasks) -> IdentityGate {
    let settings =
        IdentitySettings { issuers: [("site".to_owned(), issuer)].into(), ..IdentitySettings::default() };
    IdentityGate::start(&settings, tasks).unwrap().unwrap()
}

/// Returns the outcome of a request with the token: the name of the caller, or the refusal.
async fn ask(gate: &IdentityGate, token: &str) -> String {
    let request = Request::get("/v2/components").header("authorization", format!("Bearer {token}"));
    match gate.admit("", request.body(Body::empty()).unwrap()).await {
        Ok(request) => request.extensions().get::<RequestCaller>().unwrap().caller.as_ref().unwrap().shown(),
        Err(refusal) => {
            let problem = refusal.problem();
            format!("{} {}", problem.status.as_u16(), problem.detail)
        }
    }
}

/// Asks until the outcome begins so.
async fn ask_until(gate: &IdentityGate, token: &str, expected: &str) {
    let mut last = String::new();
    let reached = async {
        loop {
            last = ask(gate, token).await;
            if last.starts_with(expected) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reached = tokio::time::timeout(BOUND, reached).await;
    assert!(reached.is_ok(), "{last}, not {expected}");
}

#[tokio::test]
async fn tokens_count_by_signature_and_claims() {
    let keys = ["EdDSA", "ES256", "RS256"].map(|kind| (kind, SigningKey::new(kind)));
    let published: Vec<_> = keys.iter().map(|(kind, key)| key.public(kind)).collect();
    let server = IssuerServer::start(published).await;
    let tasks = Tasks::default();
    let gate = gate(server.settings(), &tasks);
    let mut lines = String::new();
    for (kind, key) in &keys {
        let token = key.token(json!({ "alg": kind, "kid": kind }), &server.claims());
        lines += &format!("{kind}: {}\n", ask(&gate, &token).await);
        lines += &format!("{kind} again: {}\n", ask(&gate, &token).await);
        let token = key.token(json!({ "alg": kind }), &server.claims());
        lines += &format!("{kind} without the id of a key: {}\n", ask(&gate, &token).await);
    }
    let (_, key) = &keys[0];
    let header = || json!({ "alg": "EdDSA", "kid": "EdDSA" });
    let with = |member: &str, value: Value| {
        let mut claims = server.claims();
        claims[member] = value;
        claims
    };
    let good = key.token(header(), &server.claims());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let other = key.token(header(), &with("sub", json!("mallory")));
    let mixed = format!("{}.{signature}", other.rsplit_once('.').unwrap().0);
    let stranger = SigningKey::new("EdDSA").token(header(), &server.claims());
    let pss = keys[2].1.token(json!({ "alg": "PS256", "kid": "RS256" }), &server.claims());
    for (name, token) in [
        ("ended", key.token(header(), &with("exp", json!(Utc::now().timestamp() - 60)))),
        ("other audience", key.token(header(), &with("aud", json!("other")))),
        ("other issuer", key.token(header(), &with("iss", json!("https://other.example")))),
        ("no role", key.token(header(), &with("roles", json!([])))),
        ("unknown key", key.token(json!({ "alg": "EdDSA", "kid": "new" }), &server.claims())),
        ("key of another kind", key.token(json!({ "alg": "EdDSA", "kid": "RS256" }), &server.claims())),
        ("algorithm of another key", pss),
        ("claims of another token", mixed),
        ("key of a stranger", stranger),
        ("no signature", format!("{message}.")),
        ("no algorithm", key.token(json!({ "alg": "none" }), &server.claims())),
        ("shared secret", key.token(json!({ "alg": "HS256", "kid": "EdDSA" }), &server.claims())),
    ] {
        lines += &format!("{name}: {}\n", ask(&gate, &token).await);
    }
    expect![[r#"
        EdDSA: alice@site
        EdDSA again: alice@site
        EdDSA without the id of a key: alice@site
        ES256: alice@site
        ES256 again: alice@site
        ES256 without the id of a key: alice@site
        RS256: alice@site
        RS256 again: alice@site
        RS256 without the id of a key: alice@site
        ended: 401 the token has expired, or is not valid yet
        other audience: 401 the token is not valid: it is for another audience
        other issuer: 401 the token is unknown
        no role: 403 no rule of the policy allows this to the caller
        unknown key: 401 the token is not valid: its issuer has no such key
        key of another kind: 401 the token is not valid: its signature is wrong
        algorithm of another key: 401 the token is not valid: its signature is wrong
        claims of another token: 401 the token is not valid: its signature is wrong
        key of a stranger: 401 the token is not valid: its signature is wrong
        no signature: 401 the token is not valid: its signature is wrong
        no algorithm: 401 the token is not valid: its algorithm is not allowed
        shared secret: 401 the token is not valid: its algorithm is not allowed
    "#]]
    .assert_eq(&lines);
    tasks.shutdown().cancel();
}

#[tokio::test]
async fn keys_rotate_and_withdrawn_ones_stop_counting() {
    let (old, new) = (SigningKey::new("EdDSA"), SigningKey::new("ES256"));
    let server = IssuerServer::start(vec![old.public("old")]).await;
    let tasks = Tasks::default();
    let gate = gate(IssuerSettings { longest_seconds: 3, ..server.settings() }, &tasks);
    let old_token = old.token(json!({ "alg": "EdDSA", "kid": "old" }), &server.claims());
    let new_token = new.token(json!({ "alg": "ES256", "kid": "new" }), &server.claims());
    ask_until(&gate, &old_token, "alice@site").await;
    server.publish(Some(vec![old.public("old"), new.public("new")]));
    ask_until(&gate, &new_token, "alice@site").await;
    ask_until(&gate, &old_token, "alice@site").await;
    server.publish(Some(vec![new.public("new")]));
    ask_until(&gate, &old_token, "401 the token is not valid: its issuer has no such key").await;
    ask_until(&gate, &new_token, "alice@site").await;
    // The last keys count for a while without their issuer, and then no longer.
    server.publish(None);
    assert_eq!(ask(&gate, &new_token).await, "alice@site");
    ask_until(&gate, &new_token, "503 the keys of the issuer 'site' are not available").await;
    server.publish(Some(vec![new.public("new")]));
    ask_until(&gate, &new_token, "alice@site").await;
    tasks.shutdown().cancel();
}

#[tokio::test]
async fn keys_in_a_file_are_read_again() {
    let (old, new) = (SigningKey::new("EdDSA"), SigningKey::new("EdDSA"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys.json");
    let write = |key: Value| std::fs::write(&file, json!({ "keys": [key] }).to_string()).unwrap();
    write(old.public("old"));
    let issuer = "https://issuer.example";
    let settings = IssuerSettings {
        issuer: issuer.into(),
        audience: "reveille".into(),
        jwks: file.display().to_string(),
        node_subjects: "spiffe://site/compute/{xname}/workload/bos-reporter".into(),
        ..IssuerSettings::default()
    };
    let tasks = Tasks::default();
    let gate = gate(settings, &tasks);
    let subject = "spiffe://site/compute/x1000c0s0b0n0/workload/bos-reporter";
    let claims =
        json!({ "iss": issuer, "aud": ["reveille"], "sub": subject, "exp": Utc::now().timestamp() + 600 });
    let token = |key: &SigningKey, id: &str| key.token(json!({ "alg": "EdDSA", "kid": id }), &claims);
    ask_until(&gate, &token(&old, "old"), "403 no rule of the policy allows this").await;
    write(new.public("new"));
    ask_until(&gate, &token(&new, "new"), "403").await;
    ask_until(&gate, &token(&old, "old"), "401").await;
    let path = "/v2/components/x1000c0s0b0n0";
    let report = Request::patch(path).header("authorization", format!("Bearer {}", token(&new, "new")));
    assert!(gate.admit("", report.body(Body::empty()).unwrap()).await.is_ok());
    tasks.shutdown().cancel();
}

#[tokio::test]
async fn silent_issuers_refuse_nobody_for_good() {
    let key = SigningKey::new("EdDSA");
    let server = IssuerServer::start(Vec::new()).await;
    server.publish(None);
    let tasks = Tasks::default();
    let gate = gate(server.settings(), &tasks);
    let token = key.token(json!({ "alg": "EdDSA", "kid": "a" }), &server.claims());
    ask_until(&gate, &token, "503 the keys of the issuer 'site' are not available").await;
    let probe = Request::get("/livez").header("authorization", format!("Bearer {token}"));
    assert!(gate.admit("", probe.body(Body::empty()).unwrap()).await.is_ok(), "probes need no keys");
    server.publish(Some(vec![key.public("a")]));
    ask_until(&gate, &token, "alice@site").await;
    tasks.shutdown().cancel();
}
