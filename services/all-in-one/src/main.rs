//! `reveille`: the whole mesh in one process, a demo, the migration from BOS, and the commands of operators.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use reveille::mesh;

mod backup;
mod certificates;
mod demo;
mod doctor;
mod moving;
mod pages;
mod parts;
mod version;

#[derive(Parser)]
#[command(name = "reveille", about = "Wakes fleets of machines", after_help = EXAMPLES)]
#[command(version = version::SHORT, long_version = version::LONG.as_str(), arg_required_else_help = true)]
struct ReveilleArguments {
    #[command(subcommand)]
    task: ReveilleSubcommand,
}

#[derive(Subcommand)]
enum ReveilleSubcommand {
    /// Serve the whole mesh in this process until Ctrl-C or SIGTERM
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<chassis::CommandFlags>),
    /// Boot a simulated fleet through the mesh, show how it goes, and keep serving
    #[command(after_help = DEMO_EXAMPLES, args_conflicts_with_subcommands = true)]
    Demo(Box<demo::DemoArguments>),
    /// Check that the settings fit the machine around them: files, databases, ports, and the systems that are asked
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(Box<chassis::CommandFlags>),
    /// Bring the export of a BOS, or of another Reveille, to a running Reveille
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(moving::ImportFlags),
    /// Write components, templates and options of a running Reveille or BOS
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(moving::ExportFlags),
    /// Copy everything that a mesh keeps, while it runs: databases, keys and certificates
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(Box<backup::BackupFlags>),
    /// Put a backup in the place of what a stopped mesh keeps
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(Box<backup::RestoreFlags>),
    /// Make certificates for TLS between the parts and to the gateway
    #[command(after_help = CERTIFICATE_EXAMPLES)]
    Certificates(certificates::CertificateFlags),
    #[command(flatten)]
    Operator(Box<command::OperatorCommand>),
    /// Print the completions of a shell
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completions {
        /// Shell that completes
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write one for each command
    Man {
        /// Directory for a page for each command; created where missing
        #[arg(long, value_name = "DIRECTORY")]
        directory: Option<std::path::PathBuf>,
    },
}

const EXAMPLES: &str = "\
Examples:
  reveille demo                                 boot 96 simulated nodes and look around
  reveille demo --nodes 10000 --speed 0 --exit  see how fast it is
  reveille demo hosts                           register a rack of bare-metal hosts, and boot it
  reveille demo devices                         enrol edge devices, and update them
  reveille serve --data-dir /var/lib/reveille   serve the mesh; SQLite files go to that directory
  reveille help demo                            every flag of the demo
  reveille status                               look at a running mesh
  reveille boot compute --limit x1000c[0-3]s[0-7]b0n[0-1] --wait";

const SERVE_EXAMPLES: &str = "\
Settings come from defaults, then --profile, then --config, then the environment, then flags:
  reveille serve --print-config > reveille.toml
  reveille serve --config reveille.toml --log info,power_controller=debug
  REVEILLE__GATEWAY__LISTEN=0.0.0.0:7700 reveille serve
  reveille serve --set gateway.listen=127.0.0.1:8080";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  reveille doctor --profile csm --config reveille.toml

Settings are read as by `reveille serve`. Each system is asked one cheap question, and nothing is changed; it may run
beside a mesh that uses the same settings. The exit code is 1 if anything is wrong, and 0 otherwise.";

const DEMO_EXAMPLES: &str = "\
Examples:
  reveille demo --operation reboot --faults 0.05
  reveille demo --nodes 10000 --speed 0 --exit
  reveille demo --faults stuck-off=1,never-reports=2 --seed 7
  reveille demo --inventory components.json --groups groups.json --template template.json

The files are what a machine exports:
  --inventory  the answer to GET /hsm/v2/State/Components
  --groups     the answer to GET /hsm/v2/groups
  --template   a session template as for `cray bos sessiontemplates create --file`

With --exit the exit code is 0 if the session completed without error and every node without an
injected fault is stable, and 1 otherwise.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  reveille import bos-export-20260206 --dry-run   say what would be created, changed and left
  reveille import bos-export-20260206
  reveille import bos-export-20260206 --url http://reveille.example:7700/apis/bos

Reads options.json, sessiontemplates.json and components.json, each where it is there, in the directory or in its
folder v2. What is there already is left alone, so an import can be repeated. The exit code is 0 if no record was
skipped, and 1 otherwise.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  reveille export bos-export
  reveille export bos-export --url http://cray-bos    from BOS itself

Writes options.json, sessiontemplates.json and components.json in the folder v2 of the directory.";

const BACKUP_EXAMPLES: &str = "\
Examples:
  reveille backup /backup/$(date +%F) --config /etc/reveille/reveille.toml
  reveille backup backup --data-dir /var/lib/reveille

Settings are read as by `reveille serve`. Every database that they name or that is in the data directory is copied while
it is used, each as it is at a moment of its own, with the keys and certificates that are there. Databases of PostgreSQL are
copied whole, by pg_dump. The directory appears once everything is in it. The exit code is 0 if it does.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  reveille restore /backup/2026-02-06 --config /etc/reveille/reveille.toml

The backup is checked first, and nothing is done while a part runs or somebody uses a database. What the mesh has until then is
put into a directory `before-restore-...` beside it. Files belong to the user of the data directory afterwards. After an
interruption no part starts until a restore has ended.";

const CERTIFICATE_EXAMPLES: &str = "\
Examples:
  reveille certificates tls > reveille.toml     make them for this machine
  reveille serve --config reveille.toml         use them
  reveille certificates tls --name boot.example --name 192.0.2.7

Each part gets a certificate with its identity, such as spiffe://reveille/gateway, and so does the operator, for
calls over gRPC. Repeated, all of them and their authority are replaced, and running parts go on with the new ones:
the previous authority stays trusted until the next time. The key of the authority is kept nowhere.";

const COMPLETION_EXAMPLES: &str = "\
Examples:
  reveille completions bash > /usr/share/bash-completion/completions/reveille
  reveille completions zsh > ~/.zfunc/_reveille
  reveille completions fish > ~/.config/fish/completions/reveille.fish";

fn main() -> ExitCode {
    chassis::process::telemetry::name_commit(version::COMMIT);
    match ReveilleArguments::parse().task {
        ReveilleSubcommand::Serve(command) => chassis::run_command(&command, mesh::serve),
        ReveilleSubcommand::Doctor(flags) => doctor::run(&flags),
        ReveilleSubcommand::Demo(arguments) => demo::run(*arguments),
        ReveilleSubcommand::Import(flags) => moving::import(&flags),
        ReveilleSubcommand::Export(flags) => moving::export(&flags),
        ReveilleSubcommand::Backup(flags) => backup::backup(&flags),
        ReveilleSubcommand::Restore(flags) => backup::restore(&flags),
        ReveilleSubcommand::Certificates(flags) => certificates::run(&flags),
        ReveilleSubcommand::Operator(operator) => command::run(&operator),
        ReveilleSubcommand::Completions { shell } => pages::completions(ReveilleArguments::command(), shell),
        ReveilleSubcommand::Man { directory } => {
            pages::man(ReveilleArguments::command(), directory.as_deref())
        }
    }
}
