//! `reveille get`: lists of records.

use clap::{Args, Subcommand, ValueEnum};

use crate::{
    components::{self, SelectionFlags},
    connection::ConnectionFlags,
    devices::{self, DevicesFlags},
    error::{CommandError, ExitReason},
    hosts::{self, HostsFlags},
    options,
    output::OutputFlags,
    sessions, templates, transitions,
};

/// Kind of records to list.
#[derive(Debug, Subcommand)]
pub enum GetCommand {
    /// List nodes with their status
    Components(ComponentsFlags),
    /// List sessions, the newest last
    Sessions(SessionsFlags),
    /// List session templates
    Templates(CommonFlags),
    /// List options with their values
    Options(CommonFlags),
    /// List bare-metal hosts
    Hosts(HostsFlags),
    /// List edge devices
    Devices(DevicesFlags),
    /// List the power transitions that Reveille requested or gave up, the oldest first
    Transitions(TransitionsFlags),
}

/// Flags of `reveille get transitions`.
#[derive(Debug, Args)]
pub struct TransitionsFlags {
    /// Only transitions with that node
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    #[command(flatten)]
    common: CommonFlags,
}

/// Flags of `reveille get components`.
#[derive(Debug, Args)]
pub struct ComponentsFlags {
    #[command(flatten)]
    selection: SelectionFlags,
    #[command(flatten)]
    common: CommonFlags,
}

/// Flags of `reveille get sessions`.
#[derive(Debug, Args)]
pub struct SessionsFlags {
    /// Only sessions with that status
    #[arg(long, value_enum, value_name = "STATUS")]
    status: Option<ProgressWord>,
    #[command(flatten)]
    common: CommonFlags,
}

/// Status of a session.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProgressWord {
    /// Sessions whose nodes are not known yet
    Pending,
    /// Sessions whose nodes are acted on
    Running,
    /// Sessions that have ended
    Complete,
}

impl ProgressWord {
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Complete => "complete",
        }
    }
}

/// Flags of every list.
#[derive(Debug, Args)]
pub struct CommonFlags {
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Carries a command out.
///
/// # Errors
/// The gateway does not answer or refuses.
pub(crate) async fn run(command: &GetCommand) -> Result<ExitReason, CommandError> {
    match command {
        GetCommand::Components(ComponentsFlags { selection, common }) => {
            components::list(&common.connection.client()?, selection, &common.output).await
        }
        GetCommand::Sessions(SessionsFlags { status, common }) => {
            let status = status.map(ProgressWord::word);
            sessions::list(&common.connection.client()?, status, &common.output).await
        }
        GetCommand::Templates(common) => templates::list(&common.connection.client()?, &common.output).await,
        GetCommand::Options(common) => options::list(&common.connection.client()?, &[], &common.output).await,
        GetCommand::Hosts(flags) => hosts::list(flags).await,
        GetCommand::Devices(flags) => devices::list(flags).await,
        GetCommand::Transitions(TransitionsFlags { node, common }) => {
            transitions::list(&common.connection.client()?, node.as_deref(), &common.output).await
        }
    }
}
