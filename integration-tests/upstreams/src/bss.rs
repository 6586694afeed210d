//! The boot script service: boot data of each host, and the scripts made of them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use axum::http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use simulator::boot::BootData;

use crate::{
    call::{SystemAnswer, SystemCall, either},
    history::EventKind,
    kept::LatestRequests,
    state::MachineState,
};

pub(crate) const OPERATIONS: &[&str] = &[
    "GET /service/status",
    "GET /bootparameters",
    "PUT /bootparameters",
    "POST /bootparameters",
    "DELETE /bootparameters",
    "GET /bootscript",
];

/// The header that carries the token; the real service writes it with capitals, which mean nothing.
const TOKEN: HeaderName = HeaderName::from_static("bss-referral-token");

/// Boot data that were accepted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BootRequest {
    /// Milliseconds since the start.
    pub at_millis: u64,
    /// Hosts that boot with these data.
    pub hosts: Vec<String>,
    /// The kernel's command line.
    pub params: String,
    /// Path of the kernel.
    pub kernel: String,
    /// Path of the initial file system.
    pub initrd: String,
    /// Token of the boot data.
    pub token: Arc<str>,
}

/// Boot data by host.
#[derive(Debug, Default)]
pub(crate) struct BootRecords {
    hosts: HashMap<String, Arc<BootRequest>>,
    accepted: LatestRequests<BootRequest>,
}

impl BootRecords {
    /// The latest requests that were accepted, oldest first.
    pub(crate) fn accepted(&self) -> Vec<BootRequest> {
        self.accepted.list()
    }
}

/// Answers one request.
pub(crate) fn answer(state: &mut MachineState, call: &SystemCall) -> SystemAnswer {
    match call.operation {
        "GET /service/status" => SystemAnswer::json(&json!({"bss-status": "running"})),
        "GET /bootparameters" => either(list(state, call)),
        "PUT /bootparameters" | "POST /bootparameters" => either(put(state, call)),
        "DELETE /bootparameters" => either(delete(state, call)),
        _ => script(state, call),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BootQuery {
    hosts: Vec<String>,
    macs: Vec<String>,
    nids: Vec<u32>,
    params: String,
    kernel: String,
    initrd: String,
}

fn put(state: &mut MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let wanted: BootQuery = call.json()?;
    let mut hosts = wanted.hosts;
    hosts.extend(wanted.macs.iter().filter_map(|mac| state.host_of_mac(mac)));
    hosts.extend(wanted.nids.iter().filter_map(|nid| state.host_of_nid(*nid)));
    if hosts.is_empty() {
        return Err(SystemAnswer::bad_request("need at least one of hosts, macs and nids"));
    }
    let rejected = |host: &&String| {
        state.machine.position(host).is_some_and(|position| state.faults[position].bss_reject)
    };
    if let Some(host) = hosts.iter().find(rejected) {
        return Err(SystemAnswer::bad_request(&format!("invalid host {host}")));
    }
    let boot = Arc::new(BootData::accept(&wanted.params));
    let request = BootRequest {
        at_millis: u64::try_from(state.now.as_millis()).unwrap_or(u64::MAX),
        hosts,
        params: wanted.params,
        kernel: wanted.kernel,
        initrd: wanted.initrd,
        token: boot.token.clone(),
    };
    let (items, token) = (request.hosts.len(), boot.token.clone());
    state.hold(boot, request.into());
    Ok(SystemAnswer::empty(StatusCode::OK).with_header(TOKEN, &token).about(items))
}

fn delete(state: &mut MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let wanted: BootQuery = call.json()?;
    for host in &wanted.hosts {
        state.boot.hosts.remove(host);
    }
    Ok(SystemAnswer::empty(StatusCode::OK).about(wanted.hosts.len()))
}

impl MachineState {
    /// Holds boot data for its hosts, which find them when they turn on.
    fn hold(&mut self, boot: Arc<BootData>, request: Arc<BootRequest>) {
        let positions: Vec<_> = request.hosts.iter().filter_map(|host| self.machine.position(host)).collect();
        self.machine.set_boot_data(&boot, &positions);
        for position in positions {
            self.history.note(self.now, position, EventKind::BootData { token: boot.token.clone() });
        }
        for host in &request.hosts {
            self.boot.hosts.insert(host.clone(), request.clone());
        }
        self.boot.accepted.push(request.hosts.len(), BootRequest::clone(&request));
    }

    fn host_of_mac(&self, mac: &str) -> Option<String> {
        let digits: String = mac.chars().filter(char::is_ascii_hexdigit).collect();
        let position = usize::from_str_radix(digits.strip_prefix("0200")?, 16).ok()?;
        Some(self.inventory.nodes.get(position)?.id.clone())
    }

    fn host_of_nid(&self, nid: u32) -> Option<String> {
        self.inventory.nodes.iter().find(|node| node.nid == nid).map(|node| node.id.clone())
    }

    /// The host that the query names by name, MAC address or number.
    fn host(&self, call: &SystemCall) -> Option<String> {
        let by_mac = || call.parameter("mac").and_then(|mac| self.host_of_mac(mac));
        let by_nid = || call.parameter("nid")?.parse().ok().and_then(|nid| self.host_of_nid(nid));
        call.parameter("name").map(str::to_owned).or_else(by_mac).or_else(by_nid)
    }
}

/// The address of the network card of the node at a position.
pub(crate) fn mac_of(position: usize) -> String {
    let [.., a, b, c, d] = position.to_be_bytes();
    format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

#[derive(Serialize)]
struct BootView<'a> {
    hosts: Vec<&'a str>,
    params: &'a str,
    kernel: &'a str,
    initrd: &'a str,
}

/// Boot data of the hosts asked about; hosts with equal data share an entry.
fn list(state: &MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let asked: Option<Vec<String>> = match (call.body, state.host(call)) {
        (_, Some(host)) => Some(host.split(',').map(str::to_owned).collect()),
        ([], None) => None,
        (_, None) => Some(call.json::<BootQuery>()?.hosts).filter(|hosts| !hosts.is_empty()),
    };
    let mut groups: BTreeMap<&str, (&BootRequest, Vec<&str>)> = BTreeMap::new();
    let mut add = |host: &'_ str| {
        if let Some((host, held)) = state.boot.hosts.get_key_value(host) {
            groups.entry(&held.token).or_insert((held, Vec::new())).1.push(host);
        }
    };
    match &asked {
        Some(hosts) => hosts.iter().for_each(|host| add(host)),
        None => state.boot.hosts.keys().for_each(|host| add(host)),
    }
    if groups.is_empty() && asked.is_some() {
        return Err(SystemAnswer::not_found("no boot data for these hosts"));
    }
    let shown = |(held, mut hosts): (&'_ BootRequest, Vec<&'_ str>)| {
        hosts.sort_unstable();
        json!(BootView { hosts, params: &held.params, kernel: &held.kernel, initrd: &held.initrd })
    };
    let items = asked.map_or(state.boot.hosts.len(), |hosts| hosts.len());
    Ok(SystemAnswer::json(&groups.into_values().map(shown).collect::<Vec<_>>()).about(items))
}

/// The script of one host for its network boot firmware.
fn script(state: &MachineState, call: &SystemCall) -> SystemAnswer {
    let host = state.host(call);
    let held = host.as_ref().and_then(|host| Some((host, state.boot.hosts.get(host)?)));
    let Some((host, held)) = held else {
        return SystemAnswer::not_found("no boot data for this host");
    };
    let position = state.machine.position(host);
    let nid = position.map_or(0, |position| state.inventory.nodes[position].nid);
    let BootRequest { params, kernel, initrd, token, .. } = held.as_ref();
    let script = [
        "#!ipxe".to_owned(),
        format!(
            "kernel --name kernel {kernel} initrd=initrd {params} xname={host} nid={nid} bss_referral_token={token} || goto again"
        ),
        format!("initrd --name initrd {initrd} || goto again"),
        "boot || goto again".to_owned(),
        ":again".to_owned(),
        "sleep 30".to_owned(),
        format!("chain /apis/bss/boot/v1/bootscript?name={host}"),
    ];
    SystemAnswer::of(StatusCode::OK, "text/plain; charset=UTF-8", script.join("\n") + "\n").about(1)
}
