//! Sessions: `reveille boot`, `reboot`, `shutdown`, and `reveille session`.

use clap::{Args, Subcommand};
use domain::core::node_set::NodeSet;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    client::{GatewayClient, named, parsed, segment},
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    follow::{WaitFlags, follow},
    output::{OutputFlags, print, show},
    record::{SessionEnd, SessionRecord},
    rollout::RolloutFlags,
    session_table::table,
    terminal::note,
};

/// Examples of the commands that create a session.
pub(crate) const EXAMPLES: &str = "\
Examples:
  reveille boot compute --limit x1000c[0-3]s[0-7]b0n[0-1] --wait
  reveille reboot compute --limit 'Compute,!x1000c0s0b0n0' --stage
  reveille shutdown compute --wait --timeout 30m -o json
  reveille reboot compute --canary 1 --batch 25% --soak 5m --threshold 95% --wait
  reveille plan compute, then: reveille boot compute --plan HASH --wait

With --wait the exit code tells the result of the session; `reveille status --help` lists the codes.";

/// Flags of a command that creates a session.
#[derive(Debug, Args)]
pub struct StartFlags {
    /// Session template with the state of the nodes
    template: String,
    /// Nodes of the template that take part, such as x1000c[0-3]s[0-7]b0n[0-1],!x1000c0s3b0n0; groups and roles too
    /// [default: all]
    #[arg(long, value_name = "NODES")]
    limit: Option<String>,
    /// Name of the session [default: a new one]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only stage the state: nodes act on it when it is applied
    #[arg(long)]
    stage: bool,
    /// Take nodes that the inventory disables too
    #[arg(long)]
    include_disabled: bool,
    /// Hash of a plan, as `reveille plan` shows it: the session is refused if the plan does not hold any more
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
    /// Number of nodes that the session takes, where the site wants large sessions confirmed
    #[arg(long, value_name = "COUNT")]
    confirm: Option<u32>,
    #[command(flatten)]
    rollout: RolloutFlags,
    /// Wait for the end of the session, and end with its result
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    waiting: WaitFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Command about one session.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Show a session
    Get(NamedFlags),
    /// Delete a session. Its nodes keep their desired state, and what is under way goes on
    Delete(NamedFlags),
    /// End a session: nothing new begins for its nodes, and they are disabled. What is under way ends by itself
    Cancel(ReasonFlags),
    /// Pause a session: nothing new begins for its nodes, and what is under way ends. No attempt is lost
    Pause(ReasonFlags),
    /// Resume a paused session
    Resume(ResumeFlags),
    /// Repeat a session for the nodes that failed; after a cancellation, for those that were not done
    Retry(RetryFlags),
}

/// Flags of `reveille session cancel` and `pause`.
#[derive(Debug, Args)]
pub struct ReasonFlags {
    /// Name of the session
    name: String,
    /// Reason for other people, which the events of the session show
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Flags of `reveille session resume`.
#[derive(Debug, Args)]
pub struct ResumeFlags {
    /// Name of the session
    name: String,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Flags of `reveille session retry`.
#[derive(Debug, Args)]
pub struct RetryFlags {
    /// Name of the session
    name: String,
    /// Wait for the end of the new session, and end with its result
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    waiting: WaitFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Flags of a command about one session.
#[derive(Debug, Args)]
pub struct NamedFlags {
    /// Name of the session
    name: String,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Creates a session.
///
/// # Errors
/// The limit is no node set, or the gateway refuses.
pub(crate) async fn start(operation: &str, flags: &StartFlags) -> Result<ExitReason, CommandError> {
    let body = flags.body(operation)?;
    let client = flags.connection.client()?;
    let document = create(&client, flags, body).await?;
    let session: SessionRecord = parsed("/sessions", document.clone())?;
    if flags.wait {
        note(&format!("session {} created", session.name));
        return follow(&client, &session.name, flags.waiting, &flags.output).await;
    }
    if flags.output.is_for_people() {
        print(&format!("session {} created\n", session.name))?;
        note(&format!("next: `reveille watch session {}` follows it", session.name));
    } else {
        show_all(&flags.output, &document, vec![session])?;
    }
    Ok(ExitReason::Done)
}

/// Creates a session. BOS has no plans, rollouts and confirmations, so a session with one of them is created at a path of
/// Reveille's own.
async fn create(client: &GatewayClient, flags: &StartFlags, mut body: Value) -> Result<Value, CommandError> {
    let rollout = flags.rollout.body();
    if flags.plan.is_none() && flags.confirm.is_none() && rollout.is_none() {
        return client.send(Method::POST, "/sessions", &body).await;
    }
    if let Some(plan) = &flags.plan {
        body["plan_hash"] = json!(plan);
    }
    if let Some(nodes) = flags.confirm {
        body["confirmed_nodes"] = json!(nodes);
    }
    if let Some(rollout) = rollout {
        body["rollout"] = rollout;
    }
    let document = client.send_own(Method::POST, "/reveille/v1/sessions", &body).await?;
    let created: SessionEnd = parsed("/reveille/v1/sessions", document)?;
    client.get(&format!("/sessions/{}", segment(&created.name)), &[]).await
}

impl StartFlags {
    fn body(&self, operation: &str) -> Result<Value, CommandError> {
        let mut body = json!({
            "operation": operation,
            "template_name": self.template,
            "stage": self.stage,
            "include_disabled": self.include_disabled,
        });
        if let Some(name) = &self.name {
            body["name"] = json!(name);
        }
        if let Some(limit) = &self.limit {
            body["limit"] = json!(node_set(limit)?.limit());
        }
        Ok(body)
    }
}

/// Reads a set of nodes.
///
/// # Errors
/// Points at the first character that is wrong.
pub(crate) fn node_set(text: &str) -> Result<NodeSet, CommandError> {
    NodeSet::parse(text).map_err(|error| CommandError::NodeSet { text: text.to_owned(), error })
}

/// Reads the name of one node. `what` refuses several, and `next` says what to do for them.
///
/// # Errors
/// Points at the first character that is wrong, or refuses several nodes.
pub(crate) fn one_node(text: &str, what: &str, next: &'static str) -> Result<String, CommandError> {
    match node_set(text)?.names()[..] {
        [id] => Ok(id.to_owned()),
        _ => Err(CommandError::Usage { what: what.to_owned(), next }),
    }
}

/// Carries a command out.
///
/// # Errors
/// The session does not exist, or the gateway refuses.
pub(crate) async fn run(command: &SessionCommand) -> Result<ExitReason, CommandError> {
    match command {
        SessionCommand::Get(flags) => {
            let path = format!("/sessions/{}", segment(&flags.name));
            let client = flags.connection.client()?;
            let document = client.get(&path, &[]).await.map_err(named("session", &flags.name))?;
            let session = parsed(&path, document.clone())?;
            show_all(&flags.output, &document, vec![session])?;
        }
        SessionCommand::Delete(flags) => {
            let path = format!("/sessions/{}", segment(&flags.name));
            let client = flags.connection.client()?;
            client.delete(&path).await.map_err(named("session", &flags.name))?;
            print(&format!("session {} deleted\n", flags.name))?;
        }
        SessionCommand::Cancel(flags) => {
            let client = flags.connection.client()?;
            act(&client, &flags.name, "cancel", &[("reason", flags.reason.clone())]).await?;
            print(&format!("session {} cancelled\n", flags.name))?;
        }
        SessionCommand::Pause(flags) => {
            let client = flags.connection.client()?;
            act(&client, &flags.name, "pause", &[("reason", flags.reason.clone())]).await?;
            print(&format!("session {} paused\n", flags.name))?;
            note(&format!("next: `reveille session resume {}` lets it go on", flags.name));
        }
        SessionCommand::Resume(flags) => {
            act(&flags.connection.client()?, &flags.name, "resume", &[]).await?;
            print(&format!("session {} resumed\n", flags.name))?;
        }
        SessionCommand::Retry(flags) => return retry(flags).await,
    }
    Ok(ExitReason::Done)
}

async fn retry(flags: &RetryFlags) -> Result<ExitReason, CommandError> {
    let client = flags.connection.client()?;
    let session = act(&client, &flags.name, "retry", &[]).await?;
    if flags.wait {
        note(&format!("session {} retries {}", session.name, flags.name));
        return follow(&client, &session.name, flags.waiting, &flags.output).await;
    }
    print(&format!("session {} retries {}\n", session.name, flags.name))?;
    note(&format!("next: `reveille watch session {}` follows it", session.name));
    Ok(ExitReason::Done)
}

async fn act(
    client: &GatewayClient,
    name: &str,
    action: &str,
    query: &[(&str, String)],
) -> Result<SessionEnd, CommandError> {
    let path = format!("/reveille/v1/sessions/{}/{action}", segment(name));
    parsed(&path, client.act(&path, query).await.map_err(named("session", name))?)
}

/// Lists sessions, the newest last.
///
/// # Errors
/// The gateway refuses.
pub(crate) async fn list(
    client: &GatewayClient,
    status: Option<&str>,
    output: &OutputFlags,
) -> Result<ExitReason, CommandError> {
    let query: Vec<_> = status.map(|status| ("status", status.to_owned())).into_iter().collect();
    let mut documents: Vec<Value> = parsed("/sessions", client.get("/sessions", &query).await?)?;
    documents.sort_by_key(|session| session["status"]["start_time"].as_str().map(str::to_owned));
    let document = Value::Array(documents);
    let mut sessions: Vec<SessionRecord> = parsed("/sessions", document.clone())?;
    if output.is_for_people() {
        tell_details(client, &mut sessions).await?;
    }
    show_all(output, &document, sessions)?;
    Ok(ExitReason::Done)
}

/// Adds the progress of sessions under way that BOS does not show.
async fn tell_details(client: &GatewayClient, sessions: &mut [SessionRecord]) -> Result<(), CommandError> {
    if sessions.iter().all(|session| session.status.status == "complete") {
        return Ok(());
    }
    let all: Vec<SessionEnd> = match client.get_own("/reveille/v1/sessions", &[]).await {
        Ok(document) => parsed("/reveille/v1/sessions", document)?,
        // The gateway knows no results, pauses and rollouts.
        Err(CommandError::Refused { status: 404 | 405, .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    for session in sessions.iter_mut().filter(|session| session.status.status != "complete") {
        let own = all.iter().find(|own| own.name == session.name && own.tenant == session.tenant);
        session.detail = own.map(SessionEnd::detail).unwrap_or_default();
    }
    Ok(())
}

fn show_all(
    output: &OutputFlags,
    document: &Value,
    sessions: Vec<SessionRecord>,
) -> Result<(), CommandError> {
    let names = sessions.iter().map(|session| session.name.clone()).collect();
    show(output, document, names, |wide| table(&sessions, wide))
}
