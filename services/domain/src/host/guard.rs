//! Guard against the loss of many systems by accident, such as automation that clears images (host reference P17): within
//! a time only so many installed hosts may give up their systems, unless each further one has a confirmation.
//!
//! The hosts themselves are the memory, so that replicas and restarts count alike. A host that is deleted counts until its
//! record goes.

use std::time::Duration;

use crate::{
    core::{bos_time, invalid::Invalid, time::Timestamp},
    host::{
        detach, provisioning,
        record::{Host, annotations::DISCARD_UNTIL, state::HostState},
    },
};

/// Limit on hosts that give up their systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscardLimit {
    /// Most hosts within the time; 0: no limit.
    pub most: usize,
    /// Time within which hosts count.
    pub window: Duration,
}

/// Time for which the refusal proposes to confirm.
const PROPOSED: Duration = Duration::from_secs(3600);

impl DiscardLimit {
    /// Returns whether a write gives up an installed system, so that other hosts have to be counted.
    pub fn concerns(self, before: &Host, wanted: &Host, now: Timestamp) -> bool {
        let is_confirmed = [before, wanted].iter().any(|host| is_confirmed(host, now));
        self.most > 0 && !is_confirmed && !is_giving_up(before) && is_giving_up(wanted)
    }

    /// Returns whether a host counts: its system is given up, or was within the time.
    pub fn counts(self, host: &Host, now: Timestamp) -> bool {
        let began = host.status.history.deprovision.start;
        is_giving_up(host) || began.is_some_and(|began| now.since(began) < self.window)
    }

    /// Refuses a write that is concerned while so many hosts count.
    ///
    /// # Errors
    /// The limit is reached. The text tells how to confirm.
    pub fn judge(self, counted: usize, now: Timestamp) -> Result<(), Invalid> {
        if counted < self.most {
            return Ok(());
        }
        let until = format!("{}Z", bos_time::text(now.plus(PROPOSED)));
        let reason = format!(
            "would discard the system of a provisioned host, and {counted} hosts have lost theirs within {} s, where \
             {} may; to confirm, annotate each host that is meant, or all of a selector, with {DISCARD_UNTIL}={until}",
            self.window.as_secs(),
            self.most,
        );
        Err(Invalid::new(format!("metadata.annotations[{DISCARD_UNTIL}]"), reason))
    }
}

/// Returns whether an installed host has to give up its system.
fn is_giving_up(host: &Host) -> bool {
    let is_installed = host.state() == HostState::Provisioned && !detach::is_detached(host);
    is_installed && (host.is_deleted() || provisioning::is_cancelled(host))
}

fn is_confirmed(host: &Host, now: Timestamp) -> bool {
    host.meta.annotations.discard_until.is_some_and(|until| now < until)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;
    use crate::host::record::{HostDeletion, annotations::DetachMark, spec::HostImage};

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    const LIMIT: DiscardLimit = DiscardLimit { most: 2, window: Duration::from_secs(600) };

    fn host(words: &str) -> Host {
        let mut host = Host::default();
        host.spec.image = image("http://a");
        host.status.provisioning.image = image("http://a");
        host.status.provisioning.state = HostState::Provisioned;
        for word in words.split_whitespace() {
            match word {
                "cleared" => host.spec.image = None,
                "changed" => host.spec.image = image("http://b"),
                "deleted" => host.meta.deletion = Some(HostDeletion::Orderly),
                "detached" => host.meta.annotations.detached = Some(DetachMark::default()),
                "confirmed" => host.meta.annotations.discard_until = Some(NOW.plus(PROPOSED)),
                "outdated" => host.meta.annotations.discard_until = Some(NOW),
                "lost-now" => host.status.history.deprovision.start = Some(NOW.minus(PROPOSED / 10)),
                "lost-before" => host.status.history.deprovision.start = Some(NOW.minus(PROPOSED)),
                state => host.status.provisioning.state = HostState::from_word(state).expect("a state"),
            }
        }
        host
    }

    fn image(url: &str) -> Option<HostImage> {
        Some(HostImage { url: url.into(), ..HostImage::default() })
    }

    #[test]
    fn writes_that_give_up_a_system_are_concerned() {
        let rows = [
            ("", ""),
            ("", "cleared"),
            ("", "changed"),
            ("", "deleted"),
            ("cleared", "deleted"),
            ("provisioning", "provisioning cleared"),
            ("available", "available deleted"),
            ("detached", "detached deleted"),
            ("confirmed", "confirmed deleted"),
            ("", "confirmed cleared"),
            ("outdated", "outdated cleared"),
        ];
        let mut table = String::new();
        for (before, wanted) in rows {
            let is_concerned = LIMIT.concerns(&host(before), &host(wanted), NOW);
            writeln!(table, "{before} -> {wanted}: {is_concerned}").unwrap();
        }
        expect![[r#"
             -> : false
             -> cleared: true
             -> changed: true
             -> deleted: true
            cleared -> deleted: false
            provisioning -> provisioning cleared: false
            available -> available deleted: false
            detached -> detached deleted: false
            confirmed -> confirmed deleted: false
             -> confirmed cleared: false
            outdated -> outdated cleared: true
        "#]]
        .assert_eq(&table);
        assert!(!DiscardLimit { most: 0, ..LIMIT }.concerns(&host(""), &host("cleared"), NOW));
    }

    #[test]
    fn hosts_count_while_they_give_up_their_system_and_for_a_time() {
        let rows = [
            "",
            "cleared",
            "deleted",
            "available lost-now",
            "available lost-before",
            "deprovisioning lost-now",
        ];
        let rows = rows.map(|row| format!("{row}: {}\n", LIMIT.counts(&host(row), NOW)));
        expect![[r#"
            : false
            cleared: true
            deleted: true
            available lost-now: true
            available lost-before: false
            deprovisioning lost-now: true
        "#]]
        .assert_eq(&rows.concat());
    }

    #[test]
    fn refusals_tell_how_to_confirm() {
        assert_eq!(LIMIT.judge(1, NOW), Ok(()));
        expect!["metadata.annotations[reveille.io/discard-until]: would discard the system of a provisioned host, and 2 hosts have lost theirs within 600 s, where 2 may; to confirm, annotate each host that is meant, or all of a selector, with reveille.io/discard-until=2027-01-15T09:00:00Z"].assert_eq(&LIMIT.judge(2, NOW).unwrap_err().to_string());
    }
}
