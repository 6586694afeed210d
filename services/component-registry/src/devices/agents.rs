//! Calls of agents over gRPC, which the gateway makes for them.

use std::time::Duration;

use chassis::{
    Fault,
    process::clock,
    store::{ledger::Responses, resource::Resource as _},
};
use domain::core::invalid::Invalid;
use futures_util::{StreamExt as _, stream};
use proto::device::{
    PollRenderedDeviceRequest, PollRenderedDeviceResponse, ReportDeviceStatusRequest,
    ReportDeviceStatusResponse, ReportHeartbeatsRequest, ReportHeartbeatsResponse,
    WatchRenderedDeviceRequest, WatchRenderedDeviceResponse, device_agent_service_server::DeviceAgentService,
};
use tonic::{Request, Response, Status, async_trait};

use super::{
    ledgers::{DeviceLedgers, StatusWrite},
    people::message,
    polls::{DevicePoller, RenderedStream},
};

/// Longest wait of a poll, after which agents expect an answer (device reference 3.4).
const LONGEST_WAIT: Duration = Duration::from_secs(120);

#[async_trait]
impl DeviceAgentService for DeviceLedgers {
    async fn report_device_status(
        &self,
        request: Request<ReportDeviceStatusRequest>,
    ) -> Result<Response<ReportDeviceStatusResponse>, Status> {
        let ReportDeviceStatusRequest { name, document, expected_revision, is_patch } = request.into_inner();
        let document = self.status_document(document)?;
        // Before the write, which evaluates the device.
        self.seen(&name).await?;
        let write = StatusWrite { name, document, expected_revision, is_patch };
        let record = self.write_status(write).await?;
        Ok(Response::new(ReportDeviceStatusResponse { device: message(&record) }))
    }

    async fn report_heartbeats(
        &self,
        request: Request<ReportHeartbeatsRequest>,
    ) -> Result<Response<ReportHeartbeatsResponse>, Status> {
        let names = request.into_inner().names;
        let is_unknown = |name: &String| self.devices.view().get(name).is_none();
        if names.iter().any(is_unknown) {
            // Another replica may have just created the device.
            self.devices.fresh().await?;
        }
        let now = clock::now();
        for record in names.iter().filter_map(|name| self.devices.view().get(name)) {
            self.liveness.note(record.shared_key(), now);
        }
        Ok(Response::new(ReportHeartbeatsResponse {}))
    }

    async fn poll_rendered_device(
        &self,
        request: Request<PollRenderedDeviceRequest>,
    ) -> Result<Response<PollRenderedDeviceResponse>, Status> {
        let PollRenderedDeviceRequest { name, known_version, longest_wait, is_onlooker } =
            request.into_inner();
        let wait = longest_wait.map_or(Ok(LONGEST_WAIT), Duration::try_from);
        let wait = wait.map_err(|_| Fault::Invalid(Invalid::new("longest_wait", "is negative")))?;
        let poller = if is_onlooker { DevicePoller::Onlooker } else { DevicePoller::Agent };
        let found = self.poll(poller, &name, known_version.as_deref(), wait.min(LONGEST_WAIT)).await?;
        let device = found.and_then(|record| message(&record));
        Ok(Response::new(PollRenderedDeviceResponse { device }))
    }

    type WatchRenderedDeviceStream = Responses<WatchRenderedDeviceResponse>;

    async fn watch_rendered_device(
        &self,
        request: Request<WatchRenderedDeviceRequest>,
    ) -> Result<Response<Self::WatchRenderedDeviceStream>, Status> {
        let WatchRenderedDeviceRequest { name, known_version } = request.into_inner();
        // A device that does not exist is refused before the stream begins.
        self.seen(&name).await?;
        let specs = RenderedStream::new(self.clone(), name, known_version);
        let specs = stream::unfold(Some(specs), async |specs| {
            let mut specs = specs?;
            match specs.next().await {
                Ok(record) => {
                    Some((Ok(WatchRenderedDeviceResponse { device: message(&record) }), Some(specs)))
                }
                Err(fault) => Some((Err(fault.into()), None)),
            }
        });
        Ok(Response::new(specs.take_until(self.tasks.shutdown().cancelled_owned()).boxed()))
    }
}
