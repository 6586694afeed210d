//! Commands with which operators use a running Reveille: `reveille status`, `get`, `boot`, `watch` and the others.
//!
//! Commands use the REST API of a gateway and nothing else, so they work from any machine that reaches one. A
//! [`connection`] says which gateway; `record` is the part of its answers that is shown; `table` and `output` show it.
//! [`outcome`] gives the result of a session, `domain::core::node_set` the nodes of a set. Results go to standard output;
//! progress and errors go to standard error.

use std::process::ExitCode;

use clap::Subcommand;

mod audit;
mod client;
mod components;
mod connection;
mod contexts;
mod devices;
mod enable;
mod error;
mod events;
mod explain;
mod follow;
mod get;
mod hosts;
mod options;
mod outcome;
mod output;
mod pages;
mod plan;
mod policy;
mod record;
mod rollout;
mod session_table;
mod sessions;
mod status;
mod table;
mod templates;
mod terminal;
mod timeline;
mod transitions;
mod watch;

use self::error::CommandError;

/// Command of an operator.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Show the machine at a glance: nodes by status, sessions under way, and what is waited for
    #[command(after_help = error::EXIT_CODES)]
    Status(status::StatusFlags),
    /// List components, sessions, templates, options, hosts, devices or power transitions
    #[command(subcommand)]
    Get(get::GetCommand),
    /// Say why a node, session, host or device is as it is, with the evidence and the next step
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainFlags),
    /// Follow a session to its end, or the changes of components
    #[command(subcommand)]
    Watch(watch::WatchCommand),
    /// Show what a session would do, without doing it
    #[command(after_help = plan::EXAMPLES)]
    Plan(plan::PlanFlags),
    /// Boot nodes into the state of a template
    #[command(after_help = sessions::EXAMPLES)]
    Boot(sessions::StartFlags),
    /// Restart nodes into the state of a template
    #[command(after_help = sessions::EXAMPLES)]
    Reboot(sessions::StartFlags),
    /// Shut down the nodes of a template
    #[command(after_help = sessions::EXAMPLES)]
    Shutdown(sessions::StartFlags),
    /// Have nodes acted on again, with all of their attempts
    Enable(enable::EnableFlags),
    /// Show, cancel, pause, resume, retry or delete a session
    #[command(subcommand)]
    Session(sessions::SessionCommand),
    /// Give up a power transition that never ends
    #[command(subcommand)]
    Transition(transitions::TransitionCommand),
    /// Show, store, check or delete session templates
    #[command(subcommand)]
    Template(templates::TemplateCommand),
    /// Show or change options
    #[command(subcommand)]
    Options(options::OptionsCommand),
    /// Show what happened to nodes, sessions and hosts, by whom and why
    Events(events::EventsFlags),
    /// Show who did what to nodes or a session, when and why
    #[command(after_help = timeline::EXAMPLES)]
    Timeline(Box<timeline::TimelineFlags>),
    /// Show the policy of the gateway, or say which of its rules decides
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Check that nobody changed an audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Keep the addresses of gateways
    #[command(subcommand)]
    Context(contexts::ContextCommand),
}

/// Carries a command out.
#[must_use]
pub fn run(command: &OperatorCommand) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(CommandError::Output).and_then(|runtime| runtime.block_on(execute(command)));
    match result {
        Ok(reason) => reason.code(),
        Err(error) => {
            error.report();
            error.reason().code()
        }
    }
}

async fn execute(command: &OperatorCommand) -> Result<error::ExitReason, CommandError> {
    match command {
        OperatorCommand::Status(flags) => status::run(flags).await,
        OperatorCommand::Get(command) => get::run(command).await,
        OperatorCommand::Explain(flags) => explain::run(flags).await,
        OperatorCommand::Watch(command) => watch::run(command).await,
        OperatorCommand::Plan(flags) => plan::run(flags).await,
        OperatorCommand::Boot(flags) => sessions::start("boot", flags).await,
        OperatorCommand::Reboot(flags) => sessions::start("reboot", flags).await,
        OperatorCommand::Shutdown(flags) => sessions::start("shutdown", flags).await,
        OperatorCommand::Enable(flags) => enable::run(flags).await,
        OperatorCommand::Session(command) => sessions::run(command).await,
        OperatorCommand::Transition(command) => transitions::run(command).await,
        OperatorCommand::Template(command) => templates::run(command).await,
        OperatorCommand::Options(command) => options::run(command).await,
        OperatorCommand::Events(flags) => events::run(flags).await,
        OperatorCommand::Timeline(flags) => timeline::run(flags).await,
        OperatorCommand::Policy(command) => policy::run(command),
        OperatorCommand::Audit(command) => audit::run(command),
        OperatorCommand::Context(command) => contexts::run(command),
    }
}
