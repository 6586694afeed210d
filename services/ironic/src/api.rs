//! Calls of one Ironic.

use http::{HeaderName, HeaderValue, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use upstream::{Failure, FailureKind, Peer, Request, SecretText};

use host_calls::StillDue;

use crate::node::{IronicNode, ProvisionVerb};

/// Header with the API version that a request is written for.
const VERSION: HeaderName = HeaderName::from_static("x-openstack-ironic-api-version");

/// Newest API version whose features are used: the abort of a deployment.
const NEWEST: u32 = 110;

/// Oldest API version that has everything a host needs.
const OLDEST: u32 = 89;

/// API version from which a node shows the health of its hardware.
const HEALTH: u32 = 109;

/// Ironic at one address.
pub struct IronicBackend {
    /// Name in the settings.
    pub name: String,
    /// Permits for operations.
    pub slots: Semaphore,
    peer: Peer,
    /// API version of the calls; `None`: not agreed yet.
    version: Mutex<Option<u32>>,
}

impl IronicBackend {
    /// Creates an Ironic of that name, which takes so many operations at the same time.
    pub fn new(name: &str, peer: Peer, slots: usize) -> Self {
        Self { name: name.to_owned(), slots: Semaphore::new(slots), peer, version: Mutex::default() }
    }

    /// Lists all nodes.
    pub async fn list(&self) -> Result<Vec<IronicNode>, Failure> {
        let health = if self.version().await? >= HEALTH { ",health" } else { "" };
        let fields = format!("{}{health}", IronicNode::FIELDS);
        let mut nodes: Vec<IronicNode> = Vec::new();
        loop {
            let mut request = Request::get("node_list", "/v1/nodes")
                .query("fields", &fields)
                .query("limit", self.peer.batch_size().to_string());
            if let Some(last) = nodes.last() {
                request = request.query("marker", &last.uuid);
            }
            let page = self.json(request).await?;
            let listed = page["nodes"].as_array().into_iter().flatten();
            let known = nodes.len();
            nodes.extend(listed.map(IronicNode::read));
            if page["next"].is_null() || nodes.len() == known {
                return Ok(nodes);
            }
        }
    }

    /// Reads the node of that id or name; `None`: there is none.
    pub async fn node(&self, name: &str) -> Result<Option<IronicNode>, Failure> {
        let read = self.json(Request::get("node_get", format!("/v1/nodes/{name}"))).await;
        Ok(found(read)?.map(|document| IronicNode::read(&document)))
    }

    /// Makes a node.
    pub async fn create(&self, node: &Value, password: Option<SecretText>) -> Result<IronicNode, Failure> {
        let request = Request::post("node_create", "/v1/nodes").json(node);
        let made = self.json(hiding(request, password)).await?;
        Ok(IronicNode::read(&made))
    }

    /// Changes a node.
    pub async fn change(
        &self,
        node: &IronicNode,
        changes: &[Value],
        password: Option<SecretText>,
    ) -> Result<IronicNode, Failure> {
        let request = Request::patch("node_change", path(node, "")).json(&changes);
        let changed = self.json(hiding(request, password)).await?;
        Ok(IronicNode::read(&changed))
    }

    /// Requests a change of the provision state. `members` are further members of the request.
    pub async fn provision(
        &self,
        node: &IronicNode,
        verb: ProvisionVerb,
        members: Value,
    ) -> Result<(), Failure> {
        let mut body = members;
        body["target"] = verb.word().into();
        self.send(Request::put("node_provision", path(node, "/states/provision")).json(&body)).await
    }

    /// Requests a change of the power, unless it is no longer due right before the request leaves.
    pub async fn power(&self, node: &IronicNode, body: &Value, still_due: &StillDue) -> Result<(), Failure> {
        let still_due = still_due.clone();
        let request = Request::put("node_power", path(node, "/states/power")).json(body);
        self.send(request.while_wanted(move || still_due.is_due())).await
    }

    /// Sets the RAID volumes that the next cleaning builds.
    pub async fn set_raid(&self, node: &IronicNode, target: &Value) -> Result<(), Failure> {
        self.send(Request::put("node_raid", path(node, "/states/raid")).json(target)).await
    }

    /// Begins the maintenance of a node.
    pub async fn begin_maintenance(&self, node: &IronicNode) -> Result<(), Failure> {
        let reason = json!({"reason": "the host is being released"});
        self.send(Request::put("node_maintain", path(node, "/maintenance")).json(&reason)).await
    }

    /// Ends the maintenance of a node.
    pub async fn end_maintenance(&self, node: &IronicNode) -> Result<(), Failure> {
        self.send(Request::delete("node_maintain", path(node, "/maintenance"))).await
    }

    /// Removes a node.
    pub async fn delete(&self, node: &IronicNode) -> Result<(), Failure> {
        self.send(Request::delete("node_delete", path(node, ""))).await
    }

    /// Returns whether the node has a port with that MAC address.
    pub async fn has_port(&self, node: &IronicNode, mac: &str) -> Result<bool, Failure> {
        let request =
            Request::get("port_list", "/v1/ports").query("node", &node.uuid).query("fields", "address");
        let listed = self.json(request).await?;
        let mut ports = listed["ports"].as_array().into_iter().flatten();
        Ok(ports.any(|port| port["address"].as_str().is_some_and(|one| one.eq_ignore_ascii_case(mac))))
    }

    /// Makes a port that the host boots from.
    pub async fn create_port(&self, node: &IronicNode, mac: &str) -> Result<(), Failure> {
        let port = json!({"node_uuid": node.uuid, "address": mac.to_lowercase(), "pxe_enabled": true});
        self.send(Request::post("port_create", "/v1/ports").json(&port)).await
    }

    /// Reads the inventory of the last inspection; `None`: there is none.
    pub async fn inventory(&self, node: &IronicNode) -> Result<Option<Value>, Failure> {
        found(self.json(Request::get("inventory_get", path(node, "/inventory"))).await)
    }

    /// Reads the firmware settings of a node, with their rules; `None`: there are none.
    pub async fn bios(&self, node: &IronicNode) -> Result<Option<Value>, Failure> {
        let request = Request::get("bios_get", path(node, "/bios")).query("detail", "true");
        found(self.json(request).await)
    }

    /// Reads the firmware versions of a node; `None`: there are none.
    pub async fn firmware(&self, node: &IronicNode) -> Result<Option<Value>, Failure> {
        found(self.json(Request::get("firmware_get", path(node, "/firmware"))).await)
    }

    /// Reads the last failure that the history of a node has kept.
    pub async fn last_failure(&self, node: &IronicNode) -> Result<Option<String>, Failure> {
        let request = Request::get("history_get", path(node, "/history")).query("detail", "true");
        let history = self.json(request).await?;
        let failures = history["history"].as_array().into_iter().flatten();
        let failures = failures.filter(|event| event["severity"] == "ERROR");
        let last = failures.max_by_key(|event| event["created_at"].as_str().unwrap_or_default().to_owned());
        Ok(last.and_then(|event| event["event"].as_str()).map(str::to_owned))
    }

    /// Returns whether any process of this Ironic works on nodes. The API alone answers, too.
    pub async fn has_workers(&self) -> Result<bool, Failure> {
        let drivers = self.json(Request::get("driver_list", "/v1/drivers")).await?;
        Ok(drivers["drivers"].as_array().is_some_and(|drivers| !drivers.is_empty()))
    }

    /// Returns whether an image is inserted at the BMC of the node.
    pub async fn has_media(&self, node: &IronicNode) -> Result<bool, Failure> {
        let media = self.json(Request::get("media_get", path(node, "/vmedia"))).await?;
        let mut slots = media["vmedia"].as_array().into_iter().flatten();
        Ok(slots.any(|slot| slot["inserted"] == true))
    }

    /// Inserts an image at the BMC of the node.
    pub async fn insert_media(&self, node: &IronicNode, url: &str) -> Result<(), Failure> {
        let body = json!({"device_type": "cdrom", "image_url": url});
        self.send(Request::post("media_insert", path(node, "/vmedia")).json(&body)).await
    }

    /// Ejects the image at the BMC of the node.
    pub async fn eject_media(&self, node: &IronicNode) -> Result<(), Failure> {
        self.send(Request::delete("media_eject", path(node, "/vmedia"))).await
    }

    /// Returns the API version that both sides know, newest first.
    pub async fn version(&self) -> Result<u32, Failure> {
        if let Some(version) = *self.version.lock() {
            return Ok(version);
        }
        let root: Value = self.peer.json(Request::get("version_get", "/")).await?;
        let offered = root["default_version"]["version"].as_str().and_then(minor).unwrap_or(0);
        if offered < OLDEST {
            let text =
                format!("Ironic {} offers the API up to 1.{offered}, and 1.{OLDEST} is needed", self.name);
            return Err(Failure { kind: FailureKind::Unreachable, status: None, text });
        }
        let version = offered.min(NEWEST);
        *self.version.lock() = Some(version);
        Ok(version)
    }

    async fn json(&self, request: Request) -> Result<Value, Failure> {
        let request = self.versioned(request).await?;
        self.noting_version(self.peer.json(request).await)
    }

    async fn send(&self, request: Request) -> Result<(), Failure> {
        let request = self.versioned(request).await?;
        self.noting_version(self.peer.call(request).await.map(|_| ()))
    }

    async fn versioned(&self, request: Request) -> Result<Request, Failure> {
        let version = format!("1.{}", self.version().await?);
        let value = HeaderValue::try_from(version).expect("digits and a dot are visible characters");
        Ok(request.header(VERSION, value))
    }

    /// Forgets the API version where Ironic no longer knows it: another release answers by now.
    fn noting_version<T>(&self, answer: Result<T, Failure>) -> Result<T, Failure> {
        if let Err(Failure { status: Some(StatusCode::NOT_ACCEPTABLE), .. }) = &answer {
            *self.version.lock() = None;
        }
        answer
    }
}

fn path(node: &IronicNode, rest: &str) -> String {
    format!("/v1/nodes/{}{rest}", node.uuid)
}

fn hiding(request: Request, password: Option<SecretText>) -> Request {
    match password {
        Some(password) => request.hiding(password),
        None => request,
    }
}

/// Returns the minor number of an API version.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.parse().ok()
}

fn found(read: Result<Value, Failure>) -> Result<Option<Value>, Failure> {
    match read {
        Ok(document) => Ok(Some(document)),
        Err(failure)
            if failure.status == Some(StatusCode::NOT_FOUND) && failure.kind == FailureKind::Refused =>
        {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}
