//! Devices over gRPC, for people and their tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chassis::{
    Fault,
    kinds::device::{
        DeviceRecord, last_seen, record::labels, selection::DeviceSelection, spec, status::counts_to_wire,
    },
    mesh::time,
    process::clock,
    store::{
        ledger::{Draft, Responses},
        resource::WireForm as _,
    },
};
use domain::{
    core::{event::Actor, invalid::Invalid},
    device::{
        counts::DeviceCounts,
        decommission::decommission,
        record::{Device, name::DeviceName},
        restore::{mark_restored, resume},
        write::{DeviceWish, check_new, replace},
    },
};
use proto::{
    Encoded,
    device::{
        CountDevicesRequest, CountDevicesResponse, CreateDeviceRequest, CreateDeviceResponse,
        DecommissionDeviceRequest, DecommissionDeviceResponse, DeleteDeviceRequest, DeleteDeviceResponse,
        DeviceFilter, DeviceSpec, GetDeviceLastSeenRequest, GetDeviceLastSeenResponse, GetDeviceRequest,
        GetDeviceResponse, ListDeviceLabelsRequest, ListDeviceLabelsResponse, ListDevicesRequest,
        ListDevicesResponse, MarkDevicesRestoredRequest, MarkDevicesRestoredResponse, ReplaceDeviceRequest,
        ReplaceDeviceResponse, ReplaceDeviceStatusRequest, ReplaceDeviceStatusResponse, ResumeDevicesRequest,
        ResumeDevicesResponse, WatchDeviceSightsRequest, WatchDeviceSightsResponse, WatchDevicesRequest,
        WatchDevicesResponse, device_service_server::DeviceService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use super::ledgers::{DEVICE, DeviceLedgers, StatusWrite, conflict, selection};

/// Devices in one message of a list.
const PAGE: usize = 100;

#[async_trait]
impl DeviceService for DeviceLedgers {
    type ListDevicesStream = Responses<ListDevicesResponse>;

    async fn list_devices(
        &self,
        request: Request<ListDevicesRequest>,
    ) -> Result<Response<Self::ListDevicesStream>, Status> {
        let ListDevicesRequest { filter, start_after, page_size } = request.into_inner();
        let wanted = selected_by(filter.as_ref())?;
        self.devices.fresh().await?;
        let revision = self.devices.view().revision();
        Ok(self.devices.serve_list(selection(wanted, start_after, page_size), PAGE, move |found| {
            let devices = found.iter().map(|record| record.to_wire().into_owned()).collect();
            ListDevicesResponse { devices, revision }
        }))
    }

    async fn get_device(
        &self,
        request: Request<GetDeviceRequest>,
    ) -> Result<Response<GetDeviceResponse>, Status> {
        let record = self.read(&request.into_inner().name).await?;
        Ok(Response::new(GetDeviceResponse { device: message(&record) }))
    }

    async fn get_device_last_seen(
        &self,
        request: Request<GetDeviceLastSeenRequest>,
    ) -> Result<Response<GetDeviceLastSeenResponse>, Status> {
        let record = self.read(&request.into_inner().name).await?;
        self.liveness.sights.fresh().await?;
        let sight = self.liveness.seen(record.device.meta.name.as_str());
        let last_seen = last_seen(&record.device, sight).map(time::to_wire);
        Ok(Response::new(GetDeviceLastSeenResponse { last_seen }))
    }

    type WatchDevicesStream = Responses<Encoded<WatchDevicesResponse>>;

    async fn watch_devices(
        &self,
        request: Request<WatchDevicesRequest>,
    ) -> Result<Response<Self::WatchDevicesStream>, Status> {
        match request.get_ref().filter.clone() {
            None => self.devices.serve_watch(request).await,
            Some(filter) => {
                let wanted = selected_by(Some(&filter))?;
                self.devices.serve_watch_of(request, move |record| wanted.matches(record)).await
            }
        }
    }

    type WatchDeviceSightsStream = Responses<Encoded<WatchDeviceSightsResponse>>;

    async fn watch_device_sights(
        &self,
        request: Request<WatchDeviceSightsRequest>,
    ) -> Result<Response<Self::WatchDeviceSightsStream>, Status> {
        self.liveness.sights.serve_watch(request).await
    }

    async fn count_devices(
        &self,
        request: Request<CountDevicesRequest>,
    ) -> Result<Response<CountDevicesResponse>, Status> {
        let wanted = selected_by(request.into_inner().filter.as_ref())?;
        self.devices.fresh().await?;
        let mut counts = DeviceCounts::default();
        self.selected(wanted).for_each(|record| counts.add(&record.device));
        Ok(Response::new(CountDevicesResponse { counts: Some(counts_to_wire(counts)) }))
    }

    async fn list_device_labels(
        &self,
        request: Request<ListDeviceLabelsRequest>,
    ) -> Result<Response<ListDeviceLabelsResponse>, Status> {
        let wanted = selected_by(request.into_inner().filter.as_ref())?;
        self.devices.fresh().await?;
        let mut labels: BTreeSet<Arc<str>> = BTreeSet::new();
        self.selected(wanted).for_each(|record| labels.extend(record.labels().iter().cloned()));
        let labels = labels.iter().map(ToString::to_string).collect();
        Ok(Response::new(ListDeviceLabelsResponse { labels }))
    }

    async fn create_device(
        &self,
        request: Request<CreateDeviceRequest>,
    ) -> Result<Response<CreateDeviceResponse>, Status> {
        let record = self.create(request.into_inner()).await?;
        Ok(Response::new(CreateDeviceResponse { device: message(&record) }))
    }

    async fn replace_device(
        &self,
        request: Request<ReplaceDeviceRequest>,
    ) -> Result<Response<ReplaceDeviceResponse>, Status> {
        let ReplaceDeviceRequest { name, labels, spec, expected_revision } = request.into_inner();
        let wish = self.wish(labels, spec.unwrap_or_default())?;
        let record = self.change(name, expected_revision, move |device| replace(device, wish)).await?;
        Ok(Response::new(ReplaceDeviceResponse { device: message(&record) }))
    }

    async fn replace_device_status(
        &self,
        request: Request<ReplaceDeviceStatusRequest>,
    ) -> Result<Response<ReplaceDeviceStatusResponse>, Status> {
        let ReplaceDeviceStatusRequest { name, document, expected_revision, is_patch } = request.into_inner();
        let document = self.status_document(document)?;
        let record = self.write_status(StatusWrite { name, document, expected_revision, is_patch }).await?;
        Ok(Response::new(ReplaceDeviceStatusResponse { device: message(&record) }))
    }

    async fn delete_device(
        &self,
        request: Request<DeleteDeviceRequest>,
    ) -> Result<Response<DeleteDeviceResponse>, Status> {
        let name = request.into_inner().name;
        let delete = move |draft: &mut Draft<'_, DeviceRecord>| {
            if !draft.has_row(&name) {
                return Err(Fault::not_found(DEVICE, &name));
            }
            draft.delete(&name);
            Ok(())
        };
        self.devices.write_by(Actor::Client, delete).await?;
        Ok(Response::new(DeleteDeviceResponse {}))
    }

    async fn decommission_device(
        &self,
        request: Request<DecommissionDeviceRequest>,
    ) -> Result<Response<DecommissionDeviceResponse>, Status> {
        let DecommissionDeviceRequest { name, target } = request.into_inner();
        let target = spec::target("target", &target).map_err(Fault::from)?;
        let rule = move |device: &Device| decommission(device, target).map_err(conflict);
        let record = self.change(name, 0, rule).await?;
        Ok(Response::new(DecommissionDeviceResponse { device: message(&record) }))
    }

    async fn resume_devices(
        &self,
        request: Request<ResumeDevicesRequest>,
    ) -> Result<Response<ResumeDevicesResponse>, Status> {
        let filter = request.into_inner().filter.unwrap_or_default();
        if filter == DeviceFilter::default() {
            return Err(Fault::Invalid(Invalid::new("filter", "has no selector")).into());
        }
        let resumed_devices = self.change_selected(selected_by(Some(&filter))?, resume).await?;
        Ok(Response::new(ResumeDevicesResponse { resumed_devices }))
    }

    async fn mark_devices_restored(
        &self,
        request: Request<MarkDevicesRestoredRequest>,
    ) -> Result<Response<MarkDevicesRestoredResponse>, Status> {
        let wanted = selected_by(request.into_inner().filter.as_ref())?;
        let marked_devices = self.change_selected(wanted, mark_restored).await?;
        Ok(Response::new(MarkDevicesRestoredResponse { marked_devices }))
    }
}

impl DeviceLedgers {
    async fn create(&self, request: CreateDeviceRequest) -> Result<Arc<DeviceRecord>, Fault> {
        let CreateDeviceRequest { name, labels, spec } = request;
        let device_name = DeviceName::parse(&name)?;
        let wish = self.wish(labels, spec.unwrap_or_default())?;
        check_new(&wish)?;
        let (key, writer) = (name.clone(), self.writer.clone());
        let create = move |draft: &mut Draft<'_, DeviceRecord>| {
            if draft.has_row(&key) {
                return Err(Fault::AlreadyExists { kind: DEVICE.to_owned(), name: key });
            }
            let mut device = Device::new(device_name, clock::now());
            device.meta.labels = wish.labels;
            device.spec = wish.spec;
            writer.put(draft, None, device);
            Ok(())
        };
        self.devices.write_by(Actor::Client, create).await?;
        self.stored(&name)
    }

    /// Reads the wish of a person for a device.
    fn wish(&self, written: BTreeMap<String, String>, spec: DeviceSpec) -> Result<DeviceWish, Fault> {
        let mut texts = self.writer.texts.lock();
        Ok(DeviceWish { labels: labels(written, &mut texts), spec: spec::written(spec, &mut texts)? })
    }
}

fn selected_by(filter: Option<&DeviceFilter>) -> Result<DeviceSelection, Fault> {
    Ok(DeviceSelection::parse(filter)?)
}

/// Returns the message of a record, for an answer.
pub(super) fn message(record: &DeviceRecord) -> Option<proto::device::Device> {
    Some(record.to_wire().into_owned())
}
