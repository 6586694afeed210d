//! Records of calls, between their kinds and the rules.

use chassis::{
    kinds::host::{HostPowerRecord, SightRecord, evidence, parse_key},
    mesh::time,
    store::resource::Resource,
};
use domain::host::{
    dispatch::{CallIntent, CallRecord},
    record::{HostKey, operation::OperationKind},
};
use proto::{host as wire, power::HostPower};

use crate::HostIdentity;

/// Kind of records in which a part keeps its calls of hosts.
pub trait CallJournal: Resource + Sized {
    /// Reads the record of calls of the host with that unique id. Calls of an earlier host of the name do not count.
    fn calls(&self, uid: &str) -> CallRecord;

    /// Returns the record with other calls. What else is on `known` stays, if it is about this host.
    #[must_use]
    fn with_calls(known: Option<&Self>, host: &HostIdentity, calls: &CallRecord) -> Self;
}

impl CallJournal for SightRecord {
    fn calls(&self, uid: &str) -> CallRecord {
        let sight = self.message();
        if sight.uid == uid { read(sight.intent, sight.report.as_ref()) } else { CallRecord::default() }
    }

    fn with_calls(known: Option<&Self>, host: &HostIdentity, calls: &CallRecord) -> Self {
        let HostKey { namespace, name } = parse_key(&host.key);
        let known = known.map(Self::message).filter(|sight| *sight.uid == *host.uid);
        Self::of(wire::HostSight {
            namespace: namespace.to_string(),
            name: name.to_string(),
            uid: host.uid.to_string(),
            sight: known.and_then(|sight| sight.sight),
            report: calls.report.as_ref().map(evidence::report_to_wire),
            intent: calls.intent.map(intent_to_wire),
            revision: 0,
        })
    }
}

impl CallJournal for HostPowerRecord {
    fn calls(&self, uid: &str) -> CallRecord {
        let power = self.message();
        if power.uid == uid { read(power.intent, power.report.as_ref()) } else { CallRecord::default() }
    }

    fn with_calls(_known: Option<&Self>, host: &HostIdentity, calls: &CallRecord) -> Self {
        let HostKey { namespace, name } = parse_key(&host.key);
        Self::of(HostPower {
            namespace: namespace.to_string(),
            name: name.to_string(),
            uid: host.uid.to_string(),
            report: calls.report.as_ref().map(evidence::report_to_wire),
            intent: calls.intent.map(intent_to_wire),
            revision: 0,
        })
    }
}

fn read(intent: Option<wire::CallIntent>, report: Option<&wire::DriverReport>) -> CallRecord {
    CallRecord {
        report: report.and_then(|report| evidence::report(report).ok()),
        intent: intent.and_then(read_intent),
    }
}

/// Reads an intent. One of a kind that this version does not know is about no operation that it asks for.
fn read_intent(intent: wire::CallIntent) -> Option<CallIntent> {
    Some(CallIntent {
        kind: OperationKind::from_word(&intent.kind)?,
        since: time::from_wire(intent.since?),
        at: time::from_wire(intent.at?),
    })
}

fn intent_to_wire(intent: CallIntent) -> wire::CallIntent {
    wire::CallIntent {
        kind: intent.kind.word().to_owned(),
        since: Some(time::to_wire(intent.since)),
        at: Some(time::to_wire(intent.at)),
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        core::time::Timestamp,
        host::record::call::{DoneFacts, DriverAnswer, DriverReport},
    };

    use super::*;

    fn host(uid: &str) -> HostIdentity {
        HostIdentity { key: "m/h".into(), uid: uid.into() }
    }

    fn calls() -> CallRecord {
        let at = Timestamp(7_000);
        CallRecord {
            report: Some(DriverReport { number: 7, at, answer: DriverAnswer::Done(DoneFacts::default()) }),
            intent: Some(CallIntent { kind: OperationKind::PowerOn, since: Timestamp(5_000), at }),
        }
    }

    fn is_read_back<J: CallJournal>() {
        let record = J::with_calls(None, &host("1"), &calls());
        assert_eq!(record.key(), "m/h");
        assert_eq!(record.calls("1"), calls());
        assert_eq!(record.calls("2"), CallRecord::default());
    }

    #[test]
    fn calls_count_for_their_host_alone() {
        is_read_back::<SightRecord>();
        is_read_back::<HostPowerRecord>();
    }

    #[test]
    fn look_stays_on_record_beside_the_calls_of_its_host() {
        let look = Some(wire::DriverSight::default());
        let seen = wire::HostSight {
            namespace: "m".to_owned(),
            name: "h".to_owned(),
            uid: "1".to_owned(),
            sight: look,
            ..wire::HostSight::default()
        };
        let known = SightRecord::of(seen);
        assert_eq!(SightRecord::with_calls(Some(&known), &host("1"), &calls()).message().sight, look);
        assert_eq!(SightRecord::with_calls(Some(&known), &host("2"), &calls()).message().sight, None);
    }
}
