//! Statuses of applications: of one by its workloads, and of all together (device reference 2.5).

use crate::device::record::{
    application::{ApplicationReport, ApplicationStatus},
    status::{ApplicationsStatus, StatusEntry},
};

/// Numbers of the workloads of an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkloadCounts {
    /// Workloads that are being made.
    pub starting: u32,
    /// Workloads that run.
    pub running: u32,
    /// Workloads that run and fail their health check.
    pub unhealthy: u32,
    /// Workloads that ended by themselves. They count as ended, too.
    pub exited: u32,
    /// Workloads that are being stopped.
    pub stopping: u32,
    /// Workloads that have ended in any way.
    pub ended: u32,
    /// All workloads.
    pub total: u32,
}

impl WorkloadCounts {
    /// Running workloads of all, as an agent reports them.
    pub fn ready(&self) -> String {
        format!("{}/{}", self.running, self.total)
    }

    fn sum_is_total(&self, parts: &[u32]) -> bool {
        parts.iter().map(|part| u64::from(*part)).sum::<u64>() == u64::from(self.total)
    }
}

/// Contribution of one application to the status of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApplicationHealth {
    /// The application does its work, or has done it.
    Healthy,
    /// The application does part of its work.
    Degraded,
    /// The application has failed.
    Error,
    /// Status not known yet.
    Unknown,
}

/// Status of an application, and its contribution to the status of all.
pub type ApplicationVerdict = (ApplicationStatus, ApplicationHealth);

struct WorkloadRow {
    when: fn(&WorkloadCounts) -> bool,
    then: ApplicationVerdict,
}

const fn row(
    when: fn(&WorkloadCounts) -> bool,
    status: ApplicationStatus,
    health: ApplicationHealth,
) -> WorkloadRow {
    WorkloadRow { when, then: (status, health) }
}

/// Rows about an application that should run, in the order in which they are tried. Row 10, an error, is the rest.
#[rustfmt::skip]
const WANTED: &[WorkloadRow] = &[
    /* 3 */ row(|counts| counts.total == 0, ApplicationStatus::Unknown, ApplicationHealth::Unknown),
    /* 4 */ row(|counts| counts.starting > 0 && counts.running > 0, ApplicationStatus::Starting, ApplicationHealth::Degraded),
    /* 5 */ row(|counts| counts.starting > 0, ApplicationStatus::Preparing, ApplicationHealth::Unknown),
    /* 6 */ row(|counts| counts.exited == counts.total, ApplicationStatus::Completed, ApplicationHealth::Healthy),
    /* 7 */ row(is_running_or_exited, ApplicationStatus::Running, ApplicationHealth::Healthy),
    /* 8 */ row(is_unhealthy, ApplicationStatus::Running, ApplicationHealth::Degraded),
    /* 9 */ row(|counts| counts.running > 0, ApplicationStatus::Running, ApplicationHealth::Degraded),
];

fn is_running_or_exited(counts: &WorkloadCounts) -> bool {
    counts.running == counts.total || counts.sum_is_total(&[counts.running, counts.exited])
}

fn is_unhealthy(counts: &WorkloadCounts) -> bool {
    counts.unhealthy > 0
        && counts.sum_is_total(&[counts.running, counts.unhealthy, counts.ended, counts.stopping])
}

/// Judges an application by its workloads.
pub fn judge(counts: &WorkloadCounts, should_run: bool) -> ApplicationVerdict {
    if should_run {
        let row = WANTED.iter().find(|row| (row.when)(counts));
        return row.map_or((ApplicationStatus::Error, ApplicationHealth::Error), |row| row.then);
    }
    if counts.ended == counts.total {
        (ApplicationStatus::Stopped, ApplicationHealth::Healthy)
    } else {
        (ApplicationStatus::Stopping, ApplicationHealth::Degraded)
    }
}

/// Judges all applications by their statuses alone, for agents that give no verdict of their own. An application that
/// runs badly cannot be seen this way.
pub(crate) fn judge_reports(applications: &[ApplicationReport]) -> StatusEntry<ApplicationsStatus> {
    judge_all(applications.iter().map(|report| (&*report.name, health_of(report.status))))
}

fn health_of(status: ApplicationStatus) -> ApplicationHealth {
    match status {
        ApplicationStatus::Error => ApplicationHealth::Error,
        ApplicationStatus::Preparing
        | ApplicationStatus::Starting
        | ApplicationStatus::Stopping
        | ApplicationStatus::Unknown => ApplicationHealth::Degraded,
        ApplicationStatus::Running | ApplicationStatus::Completed | ApplicationStatus::Stopped => {
            ApplicationHealth::Healthy
        }
    }
}

/// Judges all applications by the contribution of each, given by name. The text lists those that are not well, errors
/// first.
pub fn judge_all<'a>(
    applications: impl Iterator<Item = (&'a str, ApplicationHealth)>,
) -> StatusEntry<ApplicationsStatus> {
    let mut failed = Vec::new();
    let mut degraded = Vec::new();
    let mut count = 0;
    for (name, health) in applications {
        count += 1;
        match health {
            ApplicationHealth::Error => failed.push(name),
            ApplicationHealth::Degraded | ApplicationHealth::Unknown => degraded.push(name),
            ApplicationHealth::Healthy => {}
        }
    }
    let status = match (count, failed.len(), degraded.len()) {
        (0, ..) => ApplicationsStatus::NoApplications,
        (_, 0, 0) => ApplicationsStatus::Healthy,
        (_, 0, _) => ApplicationsStatus::Degraded,
        _ => ApplicationsStatus::Error,
    };
    StatusEntry::new(
        status,
        list(failed, "in error").chain(list(degraded, "degraded")).collect::<Vec<_>>().join(", "),
    )
}

fn list<'a>(mut names: Vec<&'a str>, word: &'static str) -> impl Iterator<Item = String> + use<'a> {
    names.sort_unstable();
    names.into_iter().map(move |name| format!("{name} {word}"))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    /// Counts workloads by words such as `running`.
    fn counts(words: &str) -> WorkloadCounts {
        let mut counts = WorkloadCounts::default();
        for word in words.split_whitespace() {
            counts.total += 1;
            match word {
                "init" => counts.starting += 1,
                "running" => counts.running += 1,
                "unhealthy" => counts.unhealthy += 1,
                "stopping" => counts.stopping += 1,
                "die" => counts.ended += 1,
                "exited" => {
                    counts.exited += 1;
                    counts.ended += 1;
                }
                other => panic!("no workload is {other}"),
            }
        }
        counts
    }

    #[test]
    fn applications_are_judged_by_their_workloads() {
        let rows = [
            "",
            "init",
            "init running",
            "die die",
            "die running",
            "running running",
            "exited exited",
            "running exited",
            "unhealthy",
            "unhealthy running",
            "unhealthy stopping",
            "running stopping",
            "running running exited exited",
            "exited die",
        ];
        let mut table = String::new();
        for words in rows {
            let counts = counts(words);
            let (wanted, unwanted) = (judge(&counts, true), judge(&counts, false));
            writeln!(table, "{words} ({}): {wanted:?}, unwanted {unwanted:?}", counts.ready()).unwrap();
        }
        expect![[r#"
             (0/0): (Unknown, Unknown), unwanted (Stopped, Healthy)
            init (0/1): (Preparing, Unknown), unwanted (Stopping, Degraded)
            init running (1/2): (Starting, Degraded), unwanted (Stopping, Degraded)
            die die (0/2): (Error, Error), unwanted (Stopped, Healthy)
            die running (1/2): (Running, Degraded), unwanted (Stopping, Degraded)
            running running (2/2): (Running, Healthy), unwanted (Stopping, Degraded)
            exited exited (0/2): (Completed, Healthy), unwanted (Stopped, Healthy)
            running exited (1/2): (Running, Healthy), unwanted (Stopping, Degraded)
            unhealthy (0/1): (Running, Degraded), unwanted (Stopping, Degraded)
            unhealthy running (1/2): (Running, Degraded), unwanted (Stopping, Degraded)
            unhealthy stopping (0/2): (Running, Degraded), unwanted (Stopping, Degraded)
            running stopping (1/2): (Running, Degraded), unwanted (Stopping, Degraded)
            running running exited exited (2/4): (Running, Healthy), unwanted (Stopping, Degraded)
            exited die (0/2): (Error, Error), unwanted (Stopped, Healthy)
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn all_applications_are_judged_by_the_worst() {
        use ApplicationHealth::{Degraded, Error, Healthy, Unknown};
        let rows: [&[(&str, ApplicationHealth)]; 5] = [
            &[],
            &[("a", Healthy), ("b", Healthy)],
            &[("b", Unknown), ("a", Degraded), ("c", Healthy)],
            &[("c", Error), ("a", Degraded), ("b", Error)],
            &[("a", Unknown)],
        ];
        let entries = rows.map(|row| {
            let entry = judge_all(row.iter().copied());
            format!("{} ({})", entry.status.word(), entry.info)
        });
        expect![[r#"
            NoApplications ()
            Healthy ()
            Degraded (a degraded, b degraded)
            Error (b in error, c in error, a degraded)
            Degraded (a degraded)"#]]
        .assert_eq(&entries.join("\n"));
    }
}
