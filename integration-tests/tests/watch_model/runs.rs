//! Runs of the whole on every database.

use std::{env, fs, time::Duration};

use test_databases::EmptyDatabase;

use crate::{
    checker::{RuleViolation, WatchContract, WatchRule, check},
    faults::{FAULTS, PlantedFault},
    history::RunHistory,
    site::RegistryEnd,
    workload::{RunWorkload, summary},
};

/// Repeats the choices of a run.
const SEED: &str = "REVEILLE_SEED";

/// Variable with the time for which writers write, in seconds.
const SECONDS: &str = "REVEILLE_WATCH_SECONDS";

/// Variable with the number of registries that share one database, where it can be shared.
const REGISTRIES: &str = "REVEILLE_REGISTRIES";

/// File for the history of a run that breaks a rule.
const DUMP: &str = "REVEILLE_WATCH_HISTORY";

/// Deletions that a registry remembers at least.
const REMEMBERED: usize = 10_000;

const CONTRACT: WatchContract = WatchContract { remembered: REMEMBERED };

fn from_environment<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().ok().unwrap_or_else(|| panic!("{name}={text} cannot be read")))
}

fn workload() -> RunWorkload {
    let seconds = from_environment(SECONDS).unwrap_or(4.0);
    RunWorkload {
        seed: from_environment(SEED).unwrap_or_else(|| u64::from(rand::random::<u32>())),
        registries: 1,
        end: RegistryEnd::Orderly,
        duration: Duration::from_secs_f64(seconds),
        restarts: true,
        lies: false,
        churn: 0,
    }
}

/// Runs it on every kind of database and fails if a rule was broken.
async fn run_everywhere(workload: RunWorkload) -> Vec<RunHistory> {
    run_on(test_databases::every_kind().await, workload).await
}

async fn run_on(databases: Vec<EmptyDatabase>, workload: RunWorkload) -> Vec<RunHistory> {
    let mut histories = Vec::new();
    for database in databases {
        let registries = match database.kind {
            "postgresql" => from_environment(REGISTRIES).unwrap_or(2),
            // SQLite is of one process.
            _ => 1,
        };
        let workload = RunWorkload { registries, ..workload.clone() };
        println!("{SEED}={} on {}: {workload:?}", workload.seed, database.kind);
        let history = workload.run(&database.url).await;
        println!("{}", summary(&history));
        let findings = check(&history, CONTRACT);
        if let Some(file) = env::var_os(DUMP).filter(|_| !findings.is_empty()) {
            fs::write(file, format!("{history:#?}")).unwrap();
        }
        let told: Vec<_> = findings.iter().take(20).map(RuleViolation::to_string).collect();
        let count = findings.len();
        assert!(findings.is_empty(), "{SEED}={} finds {count}:\n{}", workload.seed, told.join("\n"));
        histories.push(history);
    }
    histories
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_keep_their_contract_while_registries_restart() {
    for history in run_everywhere(workload()).await {
        assert!(summary(&history).broke > 0, "no watch was cut");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_keep_their_contract_while_registries_are_killed() {
    run_everywhere(RunWorkload { end: RegistryEnd::Killed, ..workload() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_from_forgotten_deletions_starts_over() {
    let mut databases = test_databases::every_kind().await;
    // So many deletions take a minute and more on a server, which only a long run has.
    if from_environment::<f64>(SECONDS).is_none() {
        databases.truncate(1);
    }
    for history in run_on(databases, RunWorkload { churn: 2 * REMEMBERED + 1_000, ..workload() }).await {
        assert!(summary(&history).expired > 0, "nobody had to start over");
    }
}

/// Returns the rules, one of which has to be found broken.
fn broken_by(fault: PlantedFault) -> &'static [WatchRule] {
    match fault {
        PlantedFault::Skip | PlantedFault::Deletions => &[WatchRule::NoGap],
        PlantedFault::Repeat => &[WatchRule::NoDuplicate],
        PlantedFault::Bookmark => &[WatchRule::NoTimeTravel, WatchRule::NoGap],
        PlantedFault::Swap => &[WatchRule::NoTimeTravel],
        PlantedFault::Resume => &[WatchRule::NoGap, WatchRule::Fresh],
        PlantedFault::Compaction => &[WatchRule::NoGap, WatchRule::Gone],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checker_bites() {
    let mut unnoticed = FAULTS.to_vec();
    // On a slow machine, one run of a watch may miss the change that the lie is about.
    for _ in 0..5 {
        let workload = RunWorkload { lies: true, restarts: false, ..workload() };
        println!("{SEED}={}", workload.seed);
        let database = test_databases::every_kind().await.swap_remove(0);
        let history = workload.run(&database.url).await;
        assert_eq!(findings_of(&history, None), [], "findings without a lie");
        unnoticed.retain(|fault| {
            let findings = findings_of(&history, Some(*fault));
            !findings.iter().any(|finding| broken_by(*fault).contains(&finding.rule))
        });
        if unnoticed.is_empty() {
            return;
        }
    }
    panic!("lies that nobody noticed: {unnoticed:?}");
}

/// Violations among the watchers without a fault and those with `fault`.
fn findings_of(history: &RunHistory, fault: Option<PlantedFault>) -> Vec<RuleViolation> {
    let lied_to = |name: &str| FAULTS.into_iter().find(|fault| format!("{fault:?}") == name);
    let heard = |name: &str| lied_to(name).is_none_or(|lie| Some(lie) == fault);
    let watchers = history.watchers.iter().filter(|(name, _)| heard(name)).cloned().collect();
    check(&RunHistory { watchers, writes: history.writes.clone(), last: history.last }, CONTRACT)
}
