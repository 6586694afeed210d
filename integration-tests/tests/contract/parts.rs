//! The parts that answer REST, on one kind of database, among systems that others play.

use std::{collections::BTreeMap, time::Duration};

use chassis::{Context, Settings, bind};
use integration_tests::{eventually_shown, mesh::settings, places};
use reqwest::Method;
use reveille::surroundings;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use upstreams::{MachinePlan, Upstreams};

use crate::table::{RuleAnswer, RuleRequest};

/// Nodes of the machine. The first is called `x1000c0s0b0n0`.
const NODES: u32 = 4;

/// Tenant that has the first node.
const TENANT: &str = "blue";

/// Longer than the gateway takes for any request.
const LONGEST: Duration = Duration::from_secs(60);

/// Gateway, component registry and session manager.
pub struct ContractMesh {
    /// Kind of their databases.
    pub database: &'static str,
    url: String,
    client: reqwest::Client,
    /// Default options, put back between rules.
    defaults: Value,
    context: Context,
    upstreams: Upstreams,
    _directory: TempDir,
}

impl ContractMesh {
    /// Starts one mesh on each kind of database.
    pub async fn on_every_database(strict: bool) -> Vec<Self> {
        let mut all = vec![Self::start("sqlite", strict, async |_| true).await.unwrap()];
        all.extend(Self::start("postgresql", strict, places::on_postgres).await);
        all
    }

    /// Starts the parts; `None` where `place` reports that no such database exists.
    async fn start(
        database: &'static str,
        strict: bool,
        place: impl AsyncFnOnce(&mut Settings) -> bool,
    ) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(&directory);
        if !place(&mut settings).await {
            return None;
        }
        surroundings::csm(&mut settings);
        settings.compat.strict_bos = strict;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let mut plan = MachinePlan::quick(NODES);
        let first = plan.hardware[0].id.clone();
        plan.tenants = BTreeMap::from([(TENANT.to_owned(), vec![first])]);
        let upstreams = Upstreams::start(plan, listener).unwrap();
        surroundings::play(&mut settings, &upstreams);
        let registry = bind("component_registry", settings.component_registry.listen).await.unwrap();
        let manager = bind("session_manager", settings.session_manager.listen).await.unwrap();
        let gateway = bind("gateway", settings.gateway.listen).await.unwrap();
        settings.component_registry.url = url(&registry);
        settings.session_manager.url = url(&manager);
        let at = url(&gateway);
        let context = Context::new(settings);
        session_manager::start(context.clone(), manager.into()).await.unwrap();
        component_registry::start(context.clone(), registry.into()).await.unwrap();
        gateway::start(context.clone(), gateway).await.unwrap();
        let client = reqwest::Client::builder().timeout(LONGEST).build().unwrap();
        let mut parts = Self {
            database,
            url: at,
            client,
            defaults: json!({}),
            context,
            upstreams,
            _directory: directory,
        };
        parts.ready().await;
        parts.defaults = parts.get("/v2/options").await;
        Some(parts)
    }

    /// Waits until the parts can do their work and have found every node.
    async fn ready(&self) {
        let ready = async || {
            let request = |path: &str| RuleRequest {
                method: "GET".into(),
                path: path.into(),
                ..RuleRequest::default()
            };
            let answer = self.try_send(&request("/readyz")).await.map_err(|error| error.to_string())?;
            if answer.status != 200 {
                return Err(answer.to_string());
            }
            let found = self.get("/v2/components").await.as_array().map_or(0, Vec::len);
            if found == NODES as usize { Ok(()) } else { Err(format!("{found} components")) }
        };
        eventually_shown("parts that are ready", ready).await;
    }

    /// Removes everything that is stored.
    pub async fn clear(&self) {
        for kind in ["sessions", "sessiontemplates"] {
            for item in self.get(&format!("/v2/{kind}")).await.as_array().unwrap() {
                let path = format!("/v2/{kind}/{}", item["name"].as_str().unwrap());
                let tenant = item["tenant"].as_str().map(|name| ("Cray-Tenant-Name".into(), name.into()));
                self.done("DELETE", &path, "", tenant.into_iter().collect()).await;
            }
        }
        for component in self.get("/v2/components").await.as_array().unwrap() {
            let path = format!("/v2/components/{}", component["id"].as_str().unwrap());
            self.done("DELETE", &path, "", Vec::new()).await;
        }
        if self.get("/v2/options").await != self.defaults {
            self.reset_options().await;
        }
    }

    /// Resets the options to their defaults, and waits until the session manager follows them: that is so when it
    /// accepts sessions without a limit again, which it refused a moment before.
    async fn reset_options(&self) {
        let forbid = json!({"session_limit_required": true});
        for (options, limit_needed) in [(&forbid, true), (&self.defaults, false)] {
            self.done("PATCH", "/v2/options", &options.to_string(), Vec::new()).await;
            let body = json!({"template_name": "none", "operation": "boot"}).to_string();
            let (method, path) = ("POST".to_owned(), "/v2/sessions".to_owned());
            let unlimited = RuleRequest { method, path, headers: Vec::new(), body };
            eventually_shown("options that are followed", async || {
                let answer = self.send(&unlimited).await;
                let refused_later = answer.body.contains("Session Template Name invalid: none");
                if refused_later == limit_needed { Err(answer.to_string()) } else { Ok(()) }
            })
            .await;
        }
    }

    async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.done("GET", path, "", Vec::new()).await).unwrap()
    }

    async fn done(&self, method: &str, path: &str, body: &str, headers: Vec<(String, String)>) -> String {
        let (method, path, body) = (method.to_owned(), path.to_owned(), body.to_owned());
        let request = RuleRequest { method, path, headers, body };
        let answer = self.send(&request).await;
        assert!(answer.status < 300, "{request}: {answer}");
        answer.body
    }

    /// Sends a request unchanged; a body is JSON unless its headers set another type.
    pub async fn send(&self, request: &RuleRequest) -> RuleAnswer {
        self.try_send(request).await.unwrap_or_else(|error| panic!("{request}: {error}"))
    }

    async fn try_send(&self, request: &RuleRequest) -> Result<RuleAnswer, reqwest::Error> {
        let method: Method = request.method.parse().unwrap();
        let mut sent = self.client.request(method, format!("{}{}", self.url, request.path));
        for (name, value) in &request.headers {
            sent = sent.header(name, value);
        }
        if !request.body.is_empty() {
            let typed = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            sent = if typed { sent } else { sent.header("content-type", "application/json") };
            sent = sent.body(request.body.clone());
        }
        let response = sent.send().await?;
        let status = response.status().as_u16();
        let media_type =
            response.headers().get("content-type").map(|value| value.to_str().unwrap().to_owned());
        let body = response.text().await?.replace(&self.url, "http://HOST");
        Ok(RuleAnswer { status, media_type: media_type.unwrap_or_default(), body })
    }

    /// Stops the parts in order.
    pub async fn stop(self) {
        self.context.tasks.shutdown().cancel();
        self.context.tasks.finished(Duration::from_secs(20)).await.unwrap();
        self.upstreams.stop().await;
    }
}

fn url(listener: &TcpListener) -> String {
    format!("http://{}", listener.local_addr().unwrap())
}
