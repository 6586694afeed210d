//! Evidence about a device, as its explanation lists it.

use crate::{
    core::explanation::{EvidenceItem, EvidenceVerdict},
    device::{
        enrolment::EnrolmentRequest,
        evaluation::{evaluate, facts::StatusFacts},
        record::{
            Device,
            condition::{ConditionKind, DeviceCondition},
            version::RenderedVersion,
        },
    },
};

/// Origin of evidence about a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceEvidenceSource {
    /// Record of the device.
    Record,
    /// Decision of the status rules.
    Decision,
    /// Contact with the agent.
    Contact,
    /// Report of the agent.
    Report,
    /// Fleet that owns the device.
    Fleet,
    /// Request for enrolment, with its certificate.
    Enrolment,
}

type DeviceEvidenceItem = EvidenceItem<DeviceEvidenceSource>;

fn present(source: DeviceEvidenceSource, content: impl Into<String>) -> DeviceEvidenceItem {
    EvidenceItem::new(source, EvidenceVerdict::Present, content)
}

/// Returns the evidence about a device, from the record to the enrolment.
pub(super) fn of_device(
    facts: &StatusFacts<'_>,
    enrolment: Option<&EnrolmentRequest>,
) -> Vec<DeviceEvidenceItem> {
    let device = facts.device;
    let mut items = vec![decision(facts), rendered(device), contact(facts), fleet(facts), running(device)];
    let kinds = ConditionKind::ALL.into_iter();
    items.extend(kinds.filter_map(|kind| device.condition(kind)).map(condition));
    items.extend(applications(device));
    match enrolment {
        Some(request) => items.extend(of_request(request)),
        None => items.push(EvidenceItem::new(
            DeviceEvidenceSource::Enrolment,
            EvidenceVerdict::Unknown,
            "no request for enrolment was read",
        )),
    }
    items
}

/// Returns the evidence about a request for enrolment.
pub(super) fn of_request(request: &EnrolmentRequest) -> Vec<DeviceEvidenceItem> {
    let source = DeviceEvidenceSource::Enrolment;
    let mut items = vec![present(source, "the agent requested its enrolment").at(Some(request.created))];
    items.push(match &request.approval {
        None => EvidenceItem::new(source, EvidenceVerdict::Absent, "nobody has approved the request"),
        Some(approval) => {
            let content = format!("'{}' approved the request", approval.approved_by);
            present(source, content).at(Some(approval.approved_at))
        }
    });
    items.push(match &request.certificate {
        None => EvidenceItem::new(source, EvidenceVerdict::Absent, "no certificate was issued"),
        Some(certificate) => present(source, "a certificate was issued").at(Some(certificate.issued)),
    });
    items
}

/// Tells the statuses that follow now, each with its reason.
fn decision(facts: &StatusFacts<'_>) -> DeviceEvidenceItem {
    let decision = evaluate(facts.device, facts.evidence);
    let (status, reasons) = (decision.status, decision.reasons);
    let content = format!(
        "summary {} ({}), updated {} ({}), applications {} ({}), lifecycle {}",
        status.summary.status.word(),
        reasons.summary.word(),
        status.updated.status.word(),
        reasons.updated.word(),
        status.applications.status.word(),
        reasons.applications.word(),
        status.lifecycle.status.word()
    );
    present(DeviceEvidenceSource::Decision, content)
}

fn rendered(device: &Device) -> DeviceEvidenceItem {
    let source = DeviceEvidenceSource::Record;
    let annotations = &device.meta.annotations;
    let Some(version) = annotations.rendered_version else {
        return EvidenceItem::new(source, EvidenceVerdict::Absent, "no spec was rendered yet");
    };
    let RenderedVersion(version) = version;
    match &annotations.rendered_template_version {
        None => present(source, format!("rendered version {version}")),
        Some(template) => present(source, format!("rendered version {version}, of template {}", template.0)),
    }
}

fn contact(facts: &StatusFacts<'_>) -> DeviceEvidenceItem {
    let source = DeviceEvidenceSource::Contact;
    match facts.evidence.last_seen {
        None => EvidenceItem::new(source, EvidenceVerdict::Absent, "the agent was never seen"),
        Some(seen) => {
            let content =
                format!("the agent was seen; silent for {:?} it counts as gone", facts.evidence.timeout);
            present(source, content).at(Some(seen))
        }
    }
}

fn fleet(facts: &StatusFacts<'_>) -> DeviceEvidenceItem {
    let source = DeviceEvidenceSource::Fleet;
    let Some(owner) = &facts.device.meta.owner else {
        return EvidenceItem::new(source, EvidenceVerdict::Absent, "no fleet owns the device");
    };
    let Some(fleet) = facts.evidence.fleet else {
        let content = format!("fleet '{}' was not read", owner.as_str());
        return EvidenceItem::new(source, EvidenceVerdict::Unknown, content);
    };
    let template = fleet.template_version.as_ref().map_or("no template yet", |version| &version.0);
    present(source, format!("fleet '{}' owns the device, its template: {template}", owner.as_str()))
}

fn running(device: &Device) -> DeviceEvidenceItem {
    let source = DeviceEvidenceSource::Report;
    let reported = &device.reported;
    if reported.rendered_version.is_empty() {
        return EvidenceItem::new(source, EvidenceVerdict::Absent, "the agent reported no version");
    }
    let image = match &*reported.os.image {
        "" => String::new(),
        image => format!(", image '{image}'"),
    };
    present(source, format!("runs version {}{image}", reported.rendered_version))
}

fn condition(condition: &DeviceCondition) -> DeviceEvidenceItem {
    let source = if condition.kind.is_of_service() {
        DeviceEvidenceSource::Record
    } else {
        DeviceEvidenceSource::Report
    };
    let mut content = format!("{}: {}", condition.kind.word(), condition.status.word());
    for text in [condition.reason.word(), &condition.message] {
        if !text.is_empty() {
            content = format!("{content}, {text}");
        }
    }
    present(source, content).at(Some(condition.since))
}

fn applications(device: &Device) -> Option<DeviceEvidenceItem> {
    let applications = &device.reported.applications;
    let named = applications.iter().map(|one| format!("{} {}", one.name, one.status.word()));
    let content = named.collect::<Vec<_>>().join(", ");
    (!content.is_empty()).then(|| present(DeviceEvidenceSource::Report, format!("applications: {content}")))
}
