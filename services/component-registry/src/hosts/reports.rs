//! Decisions about hosts, as the status evaluator reports them.

use std::borrow::Cow;

use chassis::{
    Fault,
    kinds::host::{HostRecord, OpenHost, annotations, progress, status},
    store::{ledger::Draft, resource::Resource},
};
use domain::core::{event::EventContent, invalid::Invalid};
use proto::{
    event::EventBody,
    host::{
        HostDecision, HostName, ReleaseNodesRequest, ReleaseNodesResponse, ReportHostDecisionsRequest,
        ReportHostDecisionsResponse, host_report_service_server::HostReportService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use super::{
    claims::{CompanionWork, STATUS_EVALUATOR},
    ledgers::HostLedgers,
    object::{self, ObjectChange, ObjectRecord as _},
    records::key_of,
};

/// Kind of the events that decisions bring along. Their reasons are the words of the contract.
const LIFE_CYCLE: &str = "life_cycle";

/// Detail of an event that is a warning.
const TYPE: &str = "type";

#[async_trait]
impl HostReportService for HostLedgers {
    async fn report_host_decisions(
        &self,
        request: Request<ReportHostDecisionsRequest>,
    ) -> Result<Response<ReportHostDecisionsResponse>, Status> {
        let decisions = request.into_inner().decisions;
        decisions.iter().try_for_each(check).map_err(Fault::from)?;
        // Companions are changed for the newest records, whichever replica wrote them.
        self.hosts.fresh().await?;
        self.change_companions(self.companion_work(&decisions)).await?;
        let note = move |draft: &mut Draft<'_, HostRecord>| {
            Ok(decisions.into_iter().filter_map(|decision| note(draft, decision)).collect())
        };
        let (stale_names, revision) = self.hosts.write_by(STATUS_EVALUATOR, note).await?;
        Ok(Response::new(ReportHostDecisionsResponse { stale_names, revision }))
    }

    async fn release_nodes(
        &self,
        request: Request<ReleaseNodesRequest>,
    ) -> Result<Response<ReleaseNodesResponse>, Status> {
        self.release(request.into_inner().hosts).await?;
        Ok(Response::new(ReleaseNodesResponse {}))
    }
}

impl HostLedgers {
    /// Returns the changes of companions that decisions about the newest records ask for.
    fn companion_work(&self, decisions: &[HostDecision]) -> CompanionWork {
        let mut work = CompanionWork::default();
        for decision in decisions {
            let key = key_of(&decision.name.clone().unwrap_or_default());
            let host = self.hosts.view().get(&key).filter(|host| host.revision() == decision.revision);
            if let Some(host) = host {
                work.add(&host.open(), decision);
            }
        }
        work
    }
}

/// Checks that the stored record can be read again.
fn check(decision: &HostDecision) -> Result<(), Invalid> {
    decision.status.as_ref().map(status::from_wire).transpose()?;
    decision.progress.as_ref().map(progress::from_wire).transpose()?;
    Ok(())
}

/// Stores a decision; returns the name of a host that is another one by now.
fn note(draft: &mut Draft<'_, HostRecord>, decision: HostDecision) -> Option<HostName> {
    let name = decision.name.clone().unwrap_or_default();
    let key = key_of(&name);
    let Some(known) = draft.get(&key).filter(|known| known.revision() == decision.revision) else {
        return Some(name);
    };
    let known = known.open();
    let events = decision.events.iter().map(content).collect();
    match object::settle(Some(&known), decided(&known, decision)) {
        ObjectChange::Stored(record) => draft.put_with(record.into(), "", events),
        ObjectChange::Gone(record) => {
            draft.put_with(record.into(), "", events);
            draft.delete(&key);
        }
        ObjectChange::Unchanged(record) if events.is_empty() => drop(record),
        ObjectChange::Unchanged(record) => draft.put_with(record.into(), "", events),
    }
    None
}

/// Returns the host after a decision. A change by a decision does not wake the host.
fn decided(known: &OpenHost, decision: HostDecision) -> OpenHost {
    let mut record = known.clone();
    record.message.status = decision.status;
    record.message.progress = decision.progress;
    let is_finalized = known.meta().finalizers.iter().any(|name| name == annotations::FINALIZER);
    let meta = record.meta_mut();
    for name in &decision.removed_annotations {
        meta.annotations.remove(name);
    }
    match (is_finalized, decision.has_finalizer) {
        (false, true) => meta.finalizers.push(annotations::FINALIZER.to_owned()),
        (true, false) => meta.finalizers.retain(|name| name != annotations::FINALIZER),
        (true, true) | (false, false) => {}
    }
    let spec = record.message.spec.get_or_insert_default();
    if spec.architecture.is_empty() && !decision.architecture.is_empty() {
        spec.architecture = decision.architecture;
        record.meta_mut().generation += 1;
    }
    record
}

fn content(event: &EventBody) -> EventContent {
    let kind = event.details.iter().find(|detail| detail.name == TYPE).map(|detail| detail.value.as_str());
    EventContent::of(LIFE_CYCLE)
        .because(Cow::Owned(event.reason.clone()))
        .saying(&event.text.as_str().into())
        .with(TYPE, kind.unwrap_or_default())
}
