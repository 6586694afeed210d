//! Evidence about a host, as its explanation lists it.

use crate::{
    core::{
        condition::ConditionStatus,
        explanation::{EvidenceItem, EvidenceVerdict},
    },
    host::record::{
        Host, HostDeletion, PowerAuthority,
        condition::{ConditionKind, ConditionReason},
        history::{AttemptEnd, AttemptRecord},
        status::CredentialsRecord,
    },
};

/// Most attempts in a list of evidence.
const MOST_ATTEMPTS: usize = 6;

/// Origin of evidence about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostEvidenceSource {
    /// Record of the host.
    Record,
    /// Decision of the rules.
    Decision,
    /// Login at the BMC.
    Credentials,
    /// Answers of the backend.
    Backend,
    /// Attempt at an operation.
    Attempt,
    /// Condition of the hardware.
    Hardware,
}

type HostEvidenceItem = EvidenceItem<HostEvidenceSource>;

fn present(source: HostEvidenceSource, content: impl Into<String>) -> HostEvidenceItem {
    EvidenceItem::new(source, EvidenceVerdict::Present, content)
}

/// Returns the evidence about a host, from the record to the hardware.
pub(super) fn items(host: &Host) -> Vec<HostEvidenceItem> {
    let mut items = vec![record(host), wish(host)];
    items.extend(deletion(host));
    items.extend(authority(host));
    items.push(decision(host));
    items.push(credentials(host));
    items.push(registration(host));
    items.extend(trouble(host));
    items.extend(attempts(host));
    items.extend(hardware(host));
    items
}

fn record(host: &Host) -> HostEvidenceItem {
    let status = &host.status;
    let state = Some(host.state().word()).filter(|word| !word.is_empty()).unwrap_or("new");
    let operational =
        Some(status.operational.word()).filter(|word| !word.is_empty()).unwrap_or("not decided");
    let power = if status.powered_on { "on" } else { "off" };
    let failures = match status.error_count {
        0 => String::new(),
        count => format!(", failures in a row: {count}"),
    };
    let content = format!("state {state}, status {operational}, power {power}{failures}");
    present(HostEvidenceSource::Record, content).at(status.last_updated)
}

fn wish(host: &Host) -> HostEvidenceItem {
    let power = if host.spec.online { "on" } else { "off" };
    let image = match host.spec.image_url() {
        "" => "no image".to_owned(),
        url => format!("image '{url}'"),
    };
    let image = if host.spec.externally_provisioned { "its own system".to_owned() } else { image };
    present(HostEvidenceSource::Record, format!("wanted: {image}, power {power}"))
}

fn deletion(host: &Host) -> Option<HostEvidenceItem> {
    let content = match host.meta.deletion? {
        HostDeletion::Orderly => "its deletion was requested",
        HostDeletion::Forced => "its deletion without its backend was requested",
    };
    Some(present(HostEvidenceSource::Record, content))
}

fn authority(host: &Host) -> Option<HostEvidenceItem> {
    let content = match host.meta.power_authority {
        PowerAuthority::Spec => return None,
        PowerAuthority::Session => "a session acts on its node",
        PowerAuthority::LastSession => "the last session on its node decides about its power",
    };
    Some(present(HostEvidenceSource::Record, content))
}

fn decision(host: &Host) -> HostEvidenceItem {
    let source = HostEvidenceSource::Decision;
    match host.progress.wait {
        None => EvidenceItem::new(source, EvidenceVerdict::Absent, "no decision was made yet"),
        Some(wait) => present(source, wait.reason.word()).at(Some(wait.since)),
    }
}

/// Tells whether the named login works. Names of secrets are no secrets; their contents are not read.
fn credentials(host: &Host) -> HostEvidenceItem {
    let source = HostEvidenceSource::Credentials;
    let name = &host.spec.credentials_name;
    if name.is_empty() {
        return EvidenceItem::new(source, EvidenceVerdict::Absent, "no secret is named");
    }
    let is_named = |known: &&CredentialsRecord| known.name == *name;
    let good = host.status.good_credentials.as_ref().filter(is_named);
    let tried = host.status.tried_credentials.as_ref().filter(is_named);
    match (tried, good) {
        (None, _) => {
            EvidenceItem::new(source, EvidenceVerdict::Unknown, format!("secret '{name}' was not tried yet"))
        }
        (Some(tried), Some(good)) if tried == good => present(source, format!("secret '{name}' has worked")),
        (Some(_), _) => {
            let content = format!("secret '{name}' was tried and has not worked yet");
            EvidenceItem::new(source, EvidenceVerdict::Absent, content)
        }
    }
}

fn registration(host: &Host) -> HostEvidenceItem {
    let source = HostEvidenceSource::Backend;
    let id = &host.status.provisioning.id;
    match &host.progress.registered {
        None => EvidenceItem::new(source, EvidenceVerdict::Absent, "the host is not registered"),
        Some(_) if id.is_empty() => present(source, "the host is registered"),
        Some(_) => present(source, format!("the host is registered as '{id}'")),
    }
    .at(host.progress.answered_at)
}

fn trouble(host: &Host) -> Option<HostEvidenceItem> {
    let trouble = host.progress.trouble.as_ref()?;
    let content =
        format!("{}, times in a row: {}: {}", trouble.reason.word(), trouble.attempts, trouble.text);
    let item = EvidenceItem::new(HostEvidenceSource::Backend, EvidenceVerdict::Unknown, content);
    Some(item.at(Some(trouble.at)))
}

/// Returns the latest attempts, the newest first.
fn attempts(host: &Host) -> impl Iterator<Item = HostEvidenceItem> {
    host.progress.attempts.attempts().iter().rev().take(MOST_ATTEMPTS).map(attempt)
}

fn attempt(attempt: &AttemptRecord) -> HostEvidenceItem {
    let (word, at) = match attempt.end {
        None => ("under way", attempt.start),
        Some((at, AttemptEnd::Done)) => ("done", at),
        Some((at, AttemptEnd::Failed)) => ("failed", at),
        Some((at, AttemptEnd::NotRegistered)) => ("the backend does not know the host", at),
        Some((at, AttemptEnd::Refused)) => ("refused for want of a slot or an image", at),
        Some((at, AttemptEnd::Replaced)) => ("replaced by another operation", at),
    };
    let content = format!("{}: {word}", attempt.operation.word());
    present(HostEvidenceSource::Attempt, content).at(Some(at))
}

fn hardware(host: &Host) -> Option<HostEvidenceItem> {
    let conditions = &host.status.conditions;
    let health = conditions.iter().find(|condition| condition.kind == ConditionKind::Healthy)?;
    let verdict = match health.status {
        ConditionStatus::True | ConditionStatus::False => EvidenceVerdict::Present,
        ConditionStatus::Unknown => EvidenceVerdict::Unknown,
    };
    let word = if health.reason == ConditionReason::Unknown { "not known" } else { health.reason.word() };
    let item = EvidenceItem::new(HostEvidenceSource::Hardware, verdict, format!("health {word}"));
    Some(item.at(Some(health.since)))
}
