//! `reveille enable`: has nodes acted on again, as after a failure whose cause was removed.

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    client::parsed,
    components::{missing, refuse_missing, table},
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    output::{OutputFlags, show},
    record::ComponentRecord,
    sessions::node_set,
};

/// Path of the components.
const PATH: &str = "/components";

/// Flags of `reveille enable`.
#[derive(Debug, Args)]
pub struct EnableFlags {
    /// Nodes, such as x1000c[0-3]s[0-7]b0n[0-1]. Each is brought to the state that was last wanted of it: one that no session
    /// ever set a state for is switched off
    nodes: String,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Enables nodes and shows them.
///
/// # Errors
/// The nodes are no node set, some of them do not exist, or the gateway refuses.
pub(crate) async fn run(flags: &EnableFlags) -> Result<ExitReason, CommandError> {
    let set = node_set(&flags.nodes)?;
    let names = set.names();
    let client = flags.connection.client()?;
    // A component whose attempts are used up is given up again at once.
    let attempts = json!({
        "power_on_attempts": 0, "power_off_graceful_attempts": 0, "power_off_forceful_attempts": 0
    });
    let missing = missing(&names, &client.components_named(&names, &[]).await?);
    if !missing.is_empty() {
        return refuse_missing(&missing);
    }
    let change = |id: &&str| json!({ "id": id, "enabled": true, "event_stats": attempts });
    let changes = names.iter().map(change).collect();
    let document = client.send(Method::PATCH, PATH, &Value::Array(changes)).await?;
    let components: Vec<ComponentRecord> = parsed(PATH, document.clone())?;
    let names = components.iter().map(|component| component.id.clone()).collect();
    show(&flags.output, &document, names, |wide| table(&components, wide, chrono::Utc::now()))?;
    Ok(ExitReason::Done)
}
