//! `reveille status`: the machine at a glance.

use std::{collections::BTreeMap, fmt::Write as _};

use clap::Args;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::{
    client::{GatewayClient, parsed},
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    output::{OutputFlags, print, show},
    record::{ComponentRecord, PeerRecord, SessionRecord},
    session_table,
    table::{Cell, Table, TableForm, Tone},
    terminal::note,
};

/// Path of the systems outside the mesh.
const PEERS: &str = "/reveille/v1/peers";

/// Most reasons that are shown.
const MOST_REASONS: usize = 10;

/// Flags of `reveille status`.
#[derive(Debug, Args)]
pub struct StatusFlags {
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// State of the machine.
struct MachineStatus {
    url: String,
    is_ready: bool,
    /// State of each part that the gateway needs.
    parts: BTreeMap<String, String>,
    peer_documents: Vec<Value>,
    nodes: NodeTally,
    /// Sessions that have not ended.
    sessions: Vec<SessionRecord>,
    session_documents: Vec<Value>,
}

/// Counts of nodes.
#[derive(Debug, Default)]
struct NodeTally {
    all: usize,
    enabled: usize,
    by_status: BTreeMap<String, (usize, Option<Tone>)>,
    /// Nodes that are acted on, and failed ones, by their error.
    by_error: BTreeMap<String, usize>,
}

/// Shows the machine. The exit code says whether the gateway is ready.
///
/// # Errors
/// The gateway does not answer or refuses.
pub(crate) async fn run(flags: &StatusFlags) -> Result<ExitReason, CommandError> {
    let client = flags.connection.client()?;
    let status = MachineStatus::read(&client).await?;
    match flags.output.is_for_people() {
        true => print(&status.text(flags.output.form(), flags.output.is_wide()))?,
        false => show(&flags.output, &status.document(), status.names(), |wide| {
            session_table::table(&status.sessions, wide)
        })?,
    }
    Ok(if status.is_ready { ExitReason::Done } else { ExitReason::Unavailable })
}

impl NodeTally {
    fn count(&mut self, component: &ComponentRecord) {
        self.all += 1;
        self.enabled += usize::from(component.enabled);
        let entry = self.by_status.entry(component.status.status.clone()).or_default();
        *entry = (entry.0 + 1, Some(component.tone()));
        // A stable node may keep the text of an old error.
        if !component.error.is_empty() && component.tone() != Tone::Good {
            *self.by_error.entry(component.error.clone()).or_default() += 1;
        }
    }

    /// Returns the errors, those of most nodes first.
    fn errors(&self) -> Vec<(&str, usize)> {
        let mut errors: Vec<_> = self.by_error.iter().map(|(text, count)| (text.as_str(), *count)).collect();
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        errors
    }
}

impl MachineStatus {
    async fn read(client: &GatewayClient) -> Result<Self, CommandError> {
        let (is_ready, parts) = client.readiness().await?;
        let parts = parsed("/readyz", parts)?;
        let peer_documents = peers(client).await;
        let mut nodes = NodeTally::default();
        for component in client.components(&[]).await? {
            nodes.count(&parsed("/components", component)?);
        }
        let mut session_documents: Vec<Value> = parsed("/sessions", client.get("/sessions", &[]).await?)?;
        session_documents.retain(|session| session["status"]["status"] != "complete");
        let sessions = parsed("/sessions", Value::Array(session_documents.clone()))?;
        let url = client.url().to_owned();
        Ok(Self { url, is_ready, parts, peer_documents, nodes, sessions, session_documents })
    }

    fn text(&self, form: TableForm, wide: bool) -> String {
        let mut text = String::new();
        let mut add = |line: &str| writeln!(text, "{line}").expect("a text can always be written to");
        add(&format!("gateway {} is {}", self.url, if self.is_ready { "ready" } else { "not ready" }));
        for (part, state) in self.parts.iter().filter(|(_, state)| *state != "ready") {
            add(&format!("  {part}: {state}"));
        }
        for peer in self.peer_documents.iter().filter_map(failing_peer) {
            add(&format!("  {peer}"));
        }
        add(&format!("\nnodes: {}, of which {} are acted on", self.nodes.all, self.nodes.enabled));
        if self.nodes.all > 0 {
            text.push_str(&self.statuses().render(form));
        }
        match self.sessions.is_empty() {
            true => text.push_str("\nno sessions under way\n"),
            false => {
                text.push_str("\nsessions under way:\n");
                text.push_str(&session_table::table(&self.sessions, wide).render(form));
            }
        }
        let errors = self.errors();
        if !errors.is_empty() {
            text.push_str("\nwhat nodes wait for, or failed of:\n");
            text.push_str(&errors.render(form));
        }
        text
    }

    fn statuses(&self) -> Table {
        let mut table = Table::new(["STATUS", "NODES"]);
        for (status, (count, tone)) in &self.nodes.by_status {
            let tone = tone.unwrap_or(Tone::Plain);
            table.push([Cell::new(status, tone), Cell::plain(count.to_string())]);
        }
        table
    }

    fn errors(&self) -> Table {
        let mut table = Table::new(["NODES", "REASON"]);
        for (text, count) in self.nodes.errors().into_iter().take(MOST_REASONS) {
            table.push([Cell::plain(count.to_string()), Cell::plain(text)]);
        }
        table
    }

    fn document(&self) -> Value {
        let statuses: BTreeMap<_, _> =
            self.nodes.by_status.iter().map(|(status, (count, _))| (status, count)).collect();
        let errors: Vec<_> = self.nodes.errors().into_iter().map(error_document).collect();
        json!({
            "gateway": self.url,
            "ready": self.is_ready,
            "parts": self.parts,
            "peers": self.peer_documents,
            "components": {"count": self.nodes.all, "enabled": self.nodes.enabled, "by_status": statuses},
            "errors": errors,
            "sessions": self.session_documents,
        })
    }

    /// Returns the names of the sessions under way.
    fn names(&self) -> Vec<String> {
        self.sessions.iter().map(|session| session.name.clone()).collect()
    }
}

/// Returns what the gateway tells about systems outside the mesh; nothing, if it knows no such path or does not tell this
/// client. The status is wanted most while something fails, so a failure is noted alone.
async fn peers(client: &GatewayClient) -> Vec<Value> {
    let answer = client.get_own(PEERS, &[]).await;
    match answer.and_then(|peers| parsed(PEERS, peers)) {
        Ok(peers) => peers,
        Err(CommandError::Refused { status: 403 | 404, .. }) => Vec::new(),
        Err(error) => {
            note(&format!("systems around the machine are not shown: {error}"));
            Vec::new()
        }
    }
}

/// Returns the line about a peer that fails.
fn failing_peer(document: &Value) -> Option<String> {
    let PeerRecord { name, address, state, since, error } = PeerRecord::deserialize(document).ok()?;
    (state == "fails").then(|| format!("{name} at {address} fails since {since}: {error}"))
}

fn error_document((text, count): (&str, usize)) -> Value {
    json!({"text": text, "components": count})
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn status_counts_nodes_and_reasons() {
        let mut nodes = NodeTally::default();
        let waiting = "waiting for PCS at https://pcs (failing since noon: no answer)";
        for (status, enabled, error) in [
            ("stable", false, ""),
            ("stable", false, "an old error"),
            ("power_on_pending", true, waiting),
            ("power_on_pending", true, waiting),
            ("failed", false, "PCS: no such node"),
        ] {
            let component = json!({"status": {"status": status}, "enabled": enabled, "error": error});
            nodes.count(&serde_json::from_value(component).unwrap());
        }
        let session = json!({"name": "night", "operation": "boot", "template_name": "t",
            "status": {"status": "pending", "waiting_for": "HSM"}});
        let status = MachineStatus {
            url: "http://gateway".to_owned(),
            is_ready: false,
            parts: [("registry", "ready"), ("manager", "no answer")]
                .map(|(part, state)| (part.to_owned(), state.to_owned()))
                .into(),
            peer_documents: vec![
                json!({"name": "PCS", "address": "pcs:443", "state": "fails", "since": "noon", "error": "no answer"}),
                json!({"name": "HSM", "address": "hsm:443", "state": "works", "since": "noon"}),
            ],
            nodes,
            sessions: vec![serde_json::from_value(session.clone()).unwrap()],
            session_documents: vec![session],
        };
        let text = status.text(TableForm { width: Some(60), colours: false }, false);
        expect![[r#"
            gateway http://gateway is not ready
              manager: no answer
              PCS at pcs:443 fails since noon: no answer

            nodes: 5, of which 2 are acted on
            STATUS            NODES
            failed            1
            power_on_pending  2
            stable            2

            sessions under way:
            NAME   OPERATION  TEMPLATE  STATUS   AGE  ERROR
            night  boot       t         pending       HSM

            what nodes wait for, or failed of:
            NODES  REASON
            2      waiting for PCS at https://pcs (failing since noon: …
            1      PCS: no such node
            {"components":{"by_status":{"failed":1,"power_on_pending":2,"stable":2},"count":5,"enabled":2},"errors":[{"components":2,"text":"waiting for PCS at https://pcs (failing since noon: no answer)"},{"components":1,"text":"PCS: no such node"}],"gateway":"http://gateway","parts":{"manager":"no answer","registry":"ready"},"peers":[{"address":"pcs:443","error":"no answer","name":"PCS","since":"noon","state":"fails"},{"address":"hsm:443","name":"HSM","since":"noon","state":"works"}],"ready":false,"sessions":[{"name":"night","operation":"boot","status":{"status":"pending","waiting_for":"HSM"},"template_name":"t"}]}
        "#]].assert_eq(&format!("{text}{}\n", status.document()));
    }
}
