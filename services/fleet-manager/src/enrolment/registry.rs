//! Devices at the component registry.

use std::time::Duration;

use chassis::{
    Channel, Fault,
    kinds::{
        Interner,
        device::record::{from_wire, to_wire},
    },
    mesh::channel::LARGEST_MESSAGE,
    within,
};
use domain::device::record::Device;
use proto::device::{
    GetDeviceRequest, ReportDeviceEnrolmentRequest, device_report_service_client::DeviceReportServiceClient,
    device_service_client::DeviceServiceClient,
};
use tonic::Code;

/// Most time of an answer of the registry.
const DEADLINE: Duration = Duration::from_secs(10);

/// Clients of the registry. Clones share the connection.
#[derive(Clone)]
pub(crate) struct DeviceRegistry {
    devices: DeviceServiceClient<Channel>,
    reports: DeviceReportServiceClient<Channel>,
}

impl DeviceRegistry {
    pub(crate) fn new(registry: Channel) -> Self {
        Self {
            devices: DeviceServiceClient::new(registry.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            reports: DeviceReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE),
        }
    }

    /// Returns a device; `None`: there is none of that name.
    ///
    /// # Errors
    /// The registry does not answer.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Device>, Fault> {
        let request = GetDeviceRequest { name: name.to_owned() };
        let mut devices = self.devices.clone();
        match within(DEADLINE, devices.get_device(request)).await {
            Ok(found) => {
                let device = found.into_inner().device.unwrap_or_default();
                Ok(Some(from_wire(device, &mut Interner::default())?))
            }
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(Fault::from(status)),
        }
    }

    /// Creates an enrolled device. One of that name is that of an earlier try.
    ///
    /// # Errors
    /// The registry does not answer, or refuses the device.
    pub(crate) async fn enrol(&self, device: &Device) -> Result<(), Fault> {
        let request = ReportDeviceEnrolmentRequest { device: Some(to_wire(device)) };
        let mut reports = self.reports.clone();
        match within(DEADLINE, reports.report_device_enrolment(request)).await {
            Ok(_) => Ok(()),
            Err(status) if status.code() == Code::AlreadyExists => Ok(()),
            Err(status) => Err(Fault::from(status)),
        }
    }
}
