//! Calls about fleets and the versions of their templates: reads requests, writes ledgers, answers.

use std::{collections::BTreeMap, sync::Arc};

use chassis::{
    Fault,
    kinds::{
        Interner,
        device::record::labels,
        fleet::{
            FleetRecord,
            version::{self, TemplateVersionRecord},
            written,
        },
    },
    process::clock,
    store::{
        ledger::{Draft, Responses, Selection},
        resource::{Resource, WireForm as _},
    },
};
use domain::{
    core::event::Actor,
    device::{
        fleet::record::{Fleet, FleetSpec},
        record::{DeviceLabels, name::FleetName},
        selector::{FieldSelector, LabelSelector},
    },
};
use proto::{
    Encoded,
    fleet::{self as wire, fleet_service_server::FleetService},
};
use tonic::{Request, Response, Status, async_trait};

use crate::store::FleetLedgers;

/// Fleets or versions in one message of a list.
const PAGE: usize = 100;

/// Kind of resource in faults.
const FLEET: &str = FleetRecord::KIND;

pub(crate) struct FleetRpc {
    pub(crate) ledgers: FleetLedgers,
}

#[async_trait]
impl FleetService for FleetRpc {
    type ListFleetsStream = Responses<wire::ListFleetsResponse>;

    async fn list_fleets(
        &self,
        request: Request<wire::ListFleetsRequest>,
    ) -> Result<Response<Self::ListFleetsStream>, Status> {
        let request = request.into_inner();
        let wanted_labels = LabelSelector::parse(&request.label_selector).map_err(Fault::from)?;
        let wanted_fields = FieldSelector::parse(&request.field_selector).map_err(Fault::from)?;
        let fleets = &self.ledgers.fleets;
        fleets.fresh().await?;
        let revision = fleets.view().revision();
        let selection = Selection {
            after: request.start_after,
            most: most(request.page_size),
            wanted: Box::new(move |record: &FleetRecord| {
                wanted_labels.matches(&record.fleet.labels) && wanted_fields.matches_fleet(&record.fleet)
            }),
            ..Selection::default()
        };
        Ok(fleets.serve_list(selection, PAGE, move |found| {
            let fleets = found.iter().map(|record| record.to_wire().into_owned()).collect();
            wire::ListFleetsResponse { fleets, revision }
        }))
    }

    async fn get_fleet(
        &self,
        request: Request<wire::GetFleetRequest>,
    ) -> Result<Response<wire::GetFleetResponse>, Status> {
        self.ledgers.fleets.fresh().await?;
        let record = self.stored(&request.into_inner().name)?;
        Ok(Response::new(wire::GetFleetResponse { fleet: message(&record) }))
    }

    type WatchFleetsStream = Responses<Encoded<wire::WatchFleetsResponse>>;

    async fn watch_fleets(
        &self,
        request: Request<wire::WatchFleetsRequest>,
    ) -> Result<Response<Self::WatchFleetsStream>, Status> {
        self.ledgers.fleets.serve_watch(request).await
    }

    async fn create_fleet(
        &self,
        request: Request<wire::CreateFleetRequest>,
    ) -> Result<Response<wire::CreateFleetResponse>, Status> {
        let record = self.create(request.into_inner()).await?;
        Ok(Response::new(wire::CreateFleetResponse { fleet: message(&record) }))
    }

    async fn replace_fleet(
        &self,
        request: Request<wire::ReplaceFleetRequest>,
    ) -> Result<Response<wire::ReplaceFleetResponse>, Status> {
        let record = self.replace(request.into_inner()).await?;
        Ok(Response::new(wire::ReplaceFleetResponse { fleet: message(&record) }))
    }

    async fn delete_fleet(
        &self,
        request: Request<wire::DeleteFleetRequest>,
    ) -> Result<Response<wire::DeleteFleetResponse>, Status> {
        let key = request.into_inner().name;
        let name: Arc<str> = key.as_str().into();
        let delete = move |draft: &mut Draft<'_, FleetRecord>| {
            draft.delete(&key);
            Ok(())
        };
        self.ledgers.fleets.write_by(Actor::Client, delete).await?;
        self.ledgers.settle_versions(vec![name]).await?;
        Ok(Response::new(wire::DeleteFleetResponse {}))
    }

    type ListTemplateVersionsStream = Responses<wire::ListTemplateVersionsResponse>;

    async fn list_template_versions(
        &self,
        request: Request<wire::ListTemplateVersionsRequest>,
    ) -> Result<Response<Self::ListTemplateVersionsStream>, Status> {
        let wire::ListTemplateVersionsRequest { fleet, page_size, start_after } = request.into_inner();
        self.ledgers.fleets.fresh().await?;
        self.stored(&fleet)?;
        let after = match start_after.as_str() {
            "" => String::new(),
            name => version::key(&fleet, name).to_string(),
        };
        let selection = Selection {
            after,
            most: most(page_size),
            conditions: vec![vec![(version::FLEET, fleet.clone())]],
            wanted: Box::new(move |record: &TemplateVersionRecord| record.version.fleet.as_str() == fleet),
            ..Selection::default()
        };
        self.ledgers.versions.list(selection, PAGE).await
    }

    async fn get_template_version(
        &self,
        request: Request<wire::GetTemplateVersionRequest>,
    ) -> Result<Response<wire::GetTemplateVersionResponse>, Status> {
        let wire::GetTemplateVersionRequest { fleet, name } = request.into_inner();
        let versions = &self.ledgers.versions;
        versions.fresh().await?;
        let found = versions.view().get(&version::key(&fleet, &name));
        let record = found.filter(|record| *record.version.name.0 == *name);
        let record = record.ok_or_else(|| Fault::not_found(TemplateVersionRecord::KIND, &name))?;
        let template_version = Some(record.to_wire().into_owned());
        Ok(Response::new(wire::GetTemplateVersionResponse { template_version }))
    }
}

impl FleetRpc {
    async fn create(&self, request: wire::CreateFleetRequest) -> Result<Arc<FleetRecord>, Fault> {
        let wire::CreateFleetRequest { name: key, labels, spec } = request;
        let name = FleetName::parse(&key)?;
        let (labels, spec) = wish(labels, spec)?;
        let fleet = Fleet::new(name, labels, spec, clock::now())?;
        let create = move |draft: &mut Draft<'_, FleetRecord>| {
            let name = fleet.name.as_str();
            if draft.has_row(name) {
                return Err(Fault::AlreadyExists { kind: FLEET.to_owned(), name: name.to_owned() });
            }
            draft.put(FleetRecord::of(fleet));
            Ok(())
        };
        self.write(&key, create).await
    }

    async fn replace(&self, request: wire::ReplaceFleetRequest) -> Result<Arc<FleetRecord>, Fault> {
        let wire::ReplaceFleetRequest { name: key, labels, spec, expected_revision } = request;
        let (labels, spec) = wish(labels, spec)?;
        let name = key.clone();
        let replace = move |draft: &mut Draft<'_, FleetRecord>| {
            let known = draft.get(&name).ok_or_else(|| Fault::not_found(FLEET, &name))?;
            if expected_revision != 0 && known.revision() != expected_revision {
                return Err(Fault::Conflict { kind: FLEET.to_owned(), name });
            }
            let fleet = known.fleet.replaced(labels, spec)?;
            if fleet != known.fleet {
                draft.put(FleetRecord::of(fleet));
            }
            Ok(())
        };
        self.write(&key, replace).await
    }

    /// Changes a fleet and stores the version of its template; returns the fleet.
    async fn write(
        &self,
        name: &str,
        change: impl FnOnce(&mut Draft<'_, FleetRecord>) -> Result<(), Fault> + Send + 'static,
    ) -> Result<Arc<FleetRecord>, Fault> {
        self.ledgers.fleets.write_by(Actor::Client, change).await?;
        self.ledgers.settle_versions(vec![name.into()]).await?;
        self.stored(name)
    }

    fn stored(&self, name: &str) -> Result<Arc<FleetRecord>, Fault> {
        self.ledgers.fleets.view().get(name).ok_or_else(|| Fault::not_found(FLEET, name))
    }
}

/// Reads the wish of a person for a fleet.
fn wish(
    written_labels: BTreeMap<String, String>,
    spec: Option<wire::FleetSpec>,
) -> Result<(DeviceLabels, FleetSpec), Fault> {
    let mut texts = Interner::default();
    Ok((labels(written_labels, &mut texts), written(spec.unwrap_or_default(), &mut texts)?))
}

/// Returns the limit of a list; 0: none.
fn most(page_size: u32) -> usize {
    if page_size == 0 { usize::MAX } else { page_size as usize }
}

/// Returns the message of a record, for an answer.
fn message(record: &FleetRecord) -> Option<wire::Fleet> {
    Some(record.to_wire().into_owned())
}
