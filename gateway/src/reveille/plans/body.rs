//! Plan as one JSON document that is never in memory as a whole.

use std::time::Duration;

use bytes::Bytes;
use chassis::Fault;
use futures_util::{Stream, stream};
use proto::session::CreatePlanResponse;
use serde::Serialize;
use tonic::{Status, Streaming};

use super::shown::{ShownChange, ShownLeftOut, ShownNode, ShownSummary};
use crate::{
    http::call::{DEADLINE, fault, promised},
    mesh::SESSIONS,
};

/// Time within which the next message has to come.
const NEXT: Duration = DEADLINE;

/// Lists of a plan, in their order in the document and in the messages.
const LISTS: [&str; 3] = ["changes", "nodes", "left_out"];

/// Plan on its way to the client.
pub(super) struct PlanBody {
    messages: Streaming<CreatePlanResponse>,
    writer: PlanWriter,
    /// Part that has not been sent yet.
    next: Bytes,
}

impl PlanBody {
    /// Waits for the summary.
    ///
    /// # Errors
    /// The refusal that the service sends instead.
    pub(super) async fn begin(mut messages: Streaming<CreatePlanResponse>) -> Result<Self, Fault> {
        let first = promised(next(&mut messages).await?)?;
        let mut writer = PlanWriter::default();
        let next = writer.begin(first)?;
        Ok(Self { messages, writer, next })
    }

    /// Returns the document. A failure breaks it off, which clients notice by the missing end.
    pub(super) fn chunks(self) -> impl Stream<Item = Result<Bytes, Fault>> {
        stream::try_unfold(Some(self), |body| async move {
            let Some(body) = body else { return Ok(None) };
            body.step().await.inspect_err(|error| tracing::warn!(%error, "plan broken off")).map(Some)
        })
    }

    async fn step(mut self) -> Result<(Bytes, Option<Self>), Fault> {
        let chunk = std::mem::take(&mut self.next);
        match next(&mut self.messages).await? {
            Some(message) => {
                self.next = self.writer.add(message)?;
                Ok((chunk, Some(self)))
            }
            None => Ok(([chunk, self.writer.end()].concat().into(), None)),
        }
    }
}

async fn next(messages: &mut Streaming<CreatePlanResponse>) -> Result<Option<CreatePlanResponse>, Fault> {
    let message = tokio::time::timeout(NEXT, messages.message()).await;
    let message = message.unwrap_or_else(|_| Err(Status::deadline_exceeded("")));
    message.map_err(|status| fault(SESSIONS, status))
}

/// Writer of the document.
#[derive(Default)]
struct PlanWriter {
    /// Index of the open list in [`LISTS`].
    list: usize,
    /// Whether the open list has an item.
    has_items: bool,
}

impl PlanWriter {
    /// Returns the beginning of the document, by the first message.
    fn begin(&mut self, message: CreatePlanResponse) -> Result<Bytes, Fault> {
        let summary = ShownSummary::from(promised(message.summary.clone())?);
        let mut text = written(&summary)?;
        // The lists are further members of the object.
        text.pop();
        text.extend_from_slice(format!(",\"{}\":[", LISTS[0]).as_bytes());
        self.items(message, &mut text)?;
        Ok(text.into())
    }

    /// Returns the part of the document that a message makes.
    fn add(&mut self, message: CreatePlanResponse) -> Result<Bytes, Fault> {
        let mut text = Vec::new();
        self.items(message, &mut text)?;
        Ok(text.into())
    }

    /// Returns the end of the document.
    fn end(mut self) -> Bytes {
        let mut text = Vec::new();
        self.open(LISTS.len() - 1, &mut text);
        text.extend_from_slice(b"]}");
        text.into()
    }

    fn items(&mut self, message: CreatePlanResponse, text: &mut Vec<u8>) -> Result<(), Fault> {
        self.list(0, message.changes.into_iter().map(ShownChange::from), text)?;
        self.list(1, message.nodes.into_iter().map(ShownNode::from), text)?;
        self.list(2, message.left_out.into_iter().map(ShownLeftOut::from), text)
    }

    fn list(
        &mut self,
        list: usize,
        items: impl Iterator<Item = impl Serialize>,
        text: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        for item in items {
            self.open(list, text);
            if self.has_items {
                text.push(b',');
            }
            self.has_items = true;
            text.append(&mut written(&item)?);
        }
        Ok(())
    }

    /// Closes lists until that one is open.
    fn open(&mut self, list: usize, text: &mut Vec<u8>) {
        while self.list < list {
            self.list += 1;
            self.has_items = false;
            text.extend_from_slice(format!("],\"{}\":[", LISTS[self.list]).as_bytes());
        }
    }
}

fn written(value: &impl Serialize) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|error| Fault::Internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use proto::session::{
        ActionCount, FindingReason, FindingSeverity, LeftOutCount, LeftOutMember, LeftOutReason,
        MemberChange, PlanFinding, PlanSummary, PlannedAction, PlannedNode, PlannedPower, StateChange,
        StateMember,
    };
    use serde_json::{Value, json};

    use super::*;

    fn document(messages: Vec<CreatePlanResponse>) -> Value {
        let mut writer = PlanWriter::default();
        let mut messages = messages.into_iter();
        let mut text = writer.begin(messages.next().unwrap()).unwrap().to_vec();
        for message in messages {
            text.extend(writer.add(message).unwrap());
        }
        text.extend(writer.end());
        serde_json::from_slice(&text).unwrap()
    }

    fn summary() -> CreatePlanResponse {
        let summary = PlanSummary {
            hash: "p1-2".into(),
            planned_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
            taken: 2,
            actions: vec![ActionCount { action: PlannedAction::PowerOn.into(), count: 2 }],
            left_out: vec![LeftOutCount { reason: LeftOutReason::Locked.into(), count: 1 }],
            findings: vec![PlanFinding {
                severity: FindingSeverity::Warning.into(),
                reason: FindingReason::NoConsole.into(),
                boot_set: "compute".into(),
                text: "no console".into(),
                ..PlanFinding::default()
            }],
            likely_duration: Some(prost_types::Duration { seconds: 240, nanos: 0 }),
            late_duration: Some(prost_types::Duration { seconds: 300, nanos: 540_000_000 }),
            learned_from: 512,
        };
        CreatePlanResponse { summary: Some(summary), ..CreatePlanResponse::default() }
    }

    #[test]
    fn messages_make_one_document() {
        let change = StateChange {
            boot_set: "compute".into(),
            members: vec![MemberChange {
                member: StateMember::KernelParameters.into(),
                before: "quiet".into(),
                after: "console=ttyS0".into(),
                removed: vec!["quiet".into()],
                added: vec!["console=ttyS0".into()],
            }],
            nodes: 1,
        };
        let node = |id: &str, change| PlannedNode {
            id: id.into(),
            boot_set: "compute".into(),
            power: PlannedPower::Off.into(),
            action: PlannedAction::PowerOn.into(),
            change,
            held_by: String::new(),
        };
        let locked = LeftOutMember {
            id: "n9".into(),
            boot_set: "compute".into(),
            reason: LeftOutReason::Locked.into(),
        };
        let messages = vec![
            summary(),
            CreatePlanResponse { changes: vec![change], ..CreatePlanResponse::default() },
            CreatePlanResponse { nodes: vec![node("n0", Some(0))], ..CreatePlanResponse::default() },
            CreatePlanResponse { nodes: vec![node("n1", None)], ..CreatePlanResponse::default() },
            CreatePlanResponse { left_out: vec![locked], ..CreatePlanResponse::default() },
        ];
        let expected = json!({
            "hash": "p1-2",
            "planned_at": "2027-01-15T08:00:00.000Z",
            "taken": 2,
            "actions": {"power_on": 2},
            "left_out_counts": {"locked": 1},
            "findings": [{
                "severity": "warning", "reason": "no_console", "boot_set": "compute", "text": "no console", "count": 0,
            }],
            "expected": {"likely": 240.0, "late": 300.5, "learned_from": 512},
            "changes": [{"boot_set": "compute", "nodes": 1, "members": [{
                "member": "kernel_parameters", "before": "quiet", "after": "console=ttyS0",
                "removed": ["quiet"], "added": ["console=ttyS0"],
            }]}],
            "nodes": [
                {"id": "n0", "boot_set": "compute", "power": "off", "action": "power_on", "change": 0},
                {"id": "n1", "boot_set": "compute", "power": "off", "action": "power_on"},
            ],
            "left_out": [{"id": "n9", "boot_set": "compute", "reason": "locked"}],
        });
        assert_eq!(document(messages), expected);
    }

    #[test]
    fn document_without_nodes_has_all_its_lists() {
        let document = document(vec![summary()]);
        for list in LISTS {
            assert_eq!(document[list], json!([]), "{list}");
        }
    }
}
