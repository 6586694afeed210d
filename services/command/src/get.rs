//! `reveille get`: lists of records.

use clap::{Args, Subcommand, ValueEnum};

use crate::{
    components::{self, SelectionFlags},
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    options,
    output::OutputFlags,
    sessions, templates,
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
    }
}
