//! Findings, each with the next step.

use std::fmt::Write as _;

/// Judgement about one subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FindingVerdict {
    /// Subject that needs no action.
    Good,
    /// The subject works, and may hurt later.
    Doubtful,
    /// The subject does not work.
    Wrong,
}

/// Finding about one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DoctorFinding {
    pub verdict: FindingVerdict,
    /// Setting or section, such as `power.pcs`.
    pub subject: String,
    pub text: String,
    /// Next step of the reader; empty: there is none.
    pub next: String,
}

impl FindingVerdict {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Doubtful => "doubtful",
            Self::Wrong => "wrong",
        }
    }
}

impl DoctorFinding {
    pub(super) fn good(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            verdict: FindingVerdict::Good,
            subject: subject.into(),
            text: text.into(),
            next: String::new(),
        }
    }

    pub(super) fn doubtful(
        subject: impl Into<String>,
        text: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            verdict: FindingVerdict::Doubtful,
            subject: subject.into(),
            text: text.into(),
            next: next.into(),
        }
    }

    pub(super) fn wrong(
        subject: impl Into<String>,
        text: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { verdict: FindingVerdict::Wrong, subject: subject.into(), text: text.into(), next: next.into() }
    }
}

/// Returns findings as lines for people.
pub(super) fn listed(findings: &[DoctorFinding]) -> String {
    let width = findings.iter().map(|finding| finding.subject.len()).max().unwrap_or_default();
    let mut lines = String::new();
    for DoctorFinding { verdict, subject, text, next } in findings {
        let word = verdict.word();
        writeln!(lines, "{word:<8}  {subject:<width$}  {text}").expect("a string takes every text");
        if !next.is_empty() {
            writeln!(lines, "{:<8}  {:<width$}  -> {next}", "", "").expect("a string takes every text");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn findings_stand_in_columns_with_their_next_step() {
        let findings = [
            DoctorFinding::good("data_dir", "can be written"),
            DoctorFinding::doubtful("tls.certificate", "ends in 3 days", "renew it"),
            DoctorFinding::wrong("power.pcs", "no answer", "check power.pcs.url"),
        ];
        expect![[r#"
            ok        data_dir         can be written
            doubtful  tls.certificate  ends in 3 days
                                       -> renew it
            wrong     power.pcs        no answer
                                       -> check power.pcs.url
        "#]]
        .assert_eq(&listed(&findings));
        assert_eq!(listed(&[]), "");
    }
}
