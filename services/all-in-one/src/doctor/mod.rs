//! `reveille doctor`: whether the settings fit the machine around them, before or beside a mesh that uses them. Nothing is
//! changed anywhere.
//!
//! - `finding`: findings, each with the next step
//! - `peers`: the systems around the mesh, each asked one cheap question
//! - `places`: directories, databases, files and ports

use std::process::ExitCode;

use chassis::{CommandFlags, Settings, cause_first};

use self::finding::{DoctorFinding, FindingVerdict};

mod finding;
mod peers;
mod places;

/// Checks the settings, and prints its findings.
pub(crate) fn run(flags: &CommandFlags) -> ExitCode {
    let settings = match flags.settings() {
        Ok(settings) => settings,
        Err(error) => {
            let next = "`reveille serve --print-config` shows every key";
            print!("{}", finding::listed(&[DoctorFinding::wrong("settings", cause_first(&error), next)]));
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let findings = runtime.expect("a runtime").block_on(examine(&settings));
    print!("{}", finding::listed(&findings));
    match findings.iter().map(|finding| finding.verdict).max() {
        Some(FindingVerdict::Wrong) => ExitCode::FAILURE,
        Some(FindingVerdict::Good | FindingVerdict::Doubtful) | None => ExitCode::SUCCESS,
    }
}

/// Returns findings about the settings, in the order in which they are worth mending.
async fn examine(settings: &Settings) -> Vec<DoctorFinding> {
    let mut findings = places::files(settings);
    findings.extend(places::databases(settings).await);
    findings.extend(places::ports(settings));
    findings.extend(peers::peers(settings).await);
    findings
}
