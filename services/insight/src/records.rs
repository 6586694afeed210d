//! Reads of hosts and devices, when a question comes.

use std::time::Duration;

use chassis::{
    Channel, Fault, Settings,
    kinds::{Interner, device, enrolment, host},
    mesh::{channel::LARGEST_MESSAGE, time},
    within,
};
use domain::{
    core::{invalid::Invalid, time::Timestamp},
    device::{
        enrolment::EnrolmentRequest,
        evaluation::StatusEvidence,
        explanation::{DeviceEvidence, DeviceExplanation, explain_device, explain_request},
        record::{
            Device,
            name::FleetName,
            version::{FleetVersion, TemplateVersionName},
        },
    },
    host::record::Host,
};
use proto::{
    device::{GetDeviceLastSeenRequest, GetDeviceRequest, device_service_client::DeviceServiceClient},
    fleet::{
        GetEnrolmentRequestRequest, GetFleetRequest, enrolment_service_client::EnrolmentServiceClient,
        fleet_service_client::FleetServiceClient,
    },
    host::{GetHostRequest, HostName, host_service_client::HostServiceClient},
};
use tonic::{Code, Status};

use crate::traces::UnansweredParts;

/// Deadline of each call. An explanation is wanted while services are slow, and is then made without them.
const DEADLINE: Duration = Duration::from_secs(2);

/// Name of the fleet manager in answers.
const FLEETS: &str = "fleet manager";

/// Clients of the services with the records of hosts and devices. Clones share the connections.
#[derive(Clone)]
pub(crate) struct RecordPeers {
    hosts: HostServiceClient<Channel>,
    devices: DeviceServiceClient<Channel>,
    fleets: FleetServiceClient<Channel>,
    enrolments: EnrolmentServiceClient<Channel>,
    disconnect_timeout: Duration,
}

/// Device or request for enrolment, with the evidence about it.
pub(crate) enum DeviceSubject {
    /// Device with a record.
    Enrolled(Box<EnrolledDevice>),
    /// Request without a device.
    Requested(Box<EnrolmentRequest>),
}

/// Device with the evidence about it.
pub(crate) struct EnrolledDevice {
    device: Device,
    last_seen: Option<Timestamp>,
    fleet: Option<FleetVersion>,
    enrolment: Option<EnrolmentRequest>,
    timeout: Duration,
}

impl DeviceSubject {
    /// Explains the device or the request at `now`.
    pub(crate) fn explain(&self, now: Timestamp) -> DeviceExplanation {
        match self {
            Self::Requested(request) => explain_request(request),
            Self::Enrolled(enrolled) => enrolled.explain(now),
        }
    }
}

impl EnrolledDevice {
    fn explain(&self, now: Timestamp) -> DeviceExplanation {
        let evaluated = StatusEvidence {
            fleet: self.fleet.as_ref(),
            last_seen: self.last_seen,
            timeout: self.timeout,
            now,
        };
        explain_device(&DeviceEvidence {
            device: &self.device,
            evaluated,
            enrolment: self.enrolment.as_ref(),
        })
    }
}

impl RecordPeers {
    /// Creates the clients, which connect when they are used.
    ///
    /// # Errors
    /// An address in the settings is invalid.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        let registry = chassis::channel(&settings.tls, &settings.component_registry.url)?;
        let fleets = chassis::channel(&settings.tls, &settings.fleet_manager.url)?;
        Ok(Self {
            hosts: HostServiceClient::new(registry.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            devices: DeviceServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE),
            fleets: FleetServiceClient::new(fleets.clone()).max_decoding_message_size(LARGEST_MESSAGE),
            enrolments: EnrolmentServiceClient::new(fleets).max_decoding_message_size(LARGEST_MESSAGE),
            disconnect_timeout: settings.devices.disconnect_timeout(),
        })
    }

    /// Returns a host.
    ///
    /// # Errors
    /// There is no such host, or the component registry does not answer.
    pub(crate) async fn host(&self, namespace: String, name: String) -> Result<Host, Status> {
        let mut client = self.hosts.clone();
        let request = GetHostRequest { name: Some(HostName { namespace, name }) };
        let answer = within(DEADLINE, client.get_host(request)).await?.into_inner();
        Ok(host::record::host(&answer.host.ok_or_else(incomplete)?).map_err(unreadable)?)
    }

    /// Returns a device with the evidence about it, or the request of one without a record. Notes the services that do
    /// not answer.
    ///
    /// # Errors
    /// There is neither, or the component registry does not answer.
    pub(crate) async fn device(
        &self,
        name: &str,
        unanswered: &mut UnansweredParts,
    ) -> Result<DeviceSubject, Status> {
        let (record, enrolment) = tokio::join!(self.record(name), self.enrolment(name));
        let record = match record {
            Ok(record) => record,
            Err(refused) => return without_record(refused, enrolment),
        };
        let enrolment = unanswered.note(FLEETS, enrolment).flatten();
        let (device, last_seen) = record;
        let fleet = self.owner(&device, unanswered).await;
        let timeout = self.disconnect_timeout;
        let enrolled = EnrolledDevice { device, last_seen, fleet, enrolment, timeout };
        Ok(DeviceSubject::Enrolled(Box::new(enrolled)))
    }

    /// Returns a device, and the time at which its agent was last seen.
    async fn record(&self, name: &str) -> Result<(Device, Option<Timestamp>), Status> {
        let (mut client, mut sights) = (self.devices.clone(), self.devices.clone());
        let record = client.get_device(GetDeviceRequest { name: name.to_owned() });
        let sight = sights.get_device_last_seen(GetDeviceLastSeenRequest { name: name.to_owned() });
        let (record, sight) = tokio::try_join!(within(DEADLINE, record), within(DEADLINE, sight))?;
        let message = record.into_inner().device.ok_or_else(incomplete)?;
        let device = device::record::from_wire(message, &mut Interner::default()).map_err(unreadable)?;
        Ok((device, sight.into_inner().last_seen.map(time::from_wire)))
    }

    /// Returns the request by which a device was enrolled; `None`: there is none.
    async fn enrolment(&self, name: &str) -> Result<Option<EnrolmentRequest>, Status> {
        let mut client = self.enrolments.clone();
        let request = GetEnrolmentRequestRequest { name: name.to_owned() };
        let Some(answer) = found(within(DEADLINE, client.get_enrolment_request(request)).await)? else {
            return Ok(None);
        };
        let message = answer.into_inner().request.ok_or_else(incomplete)?;
        Ok(Some(enrolment::from_wire(message, &mut Interner::default()).map_err(unreadable)?))
    }

    /// Returns the fleet that owns a device; `None`: none does, or it was not read.
    async fn owner(&self, device: &Device, unanswered: &mut UnansweredParts) -> Option<FleetVersion> {
        let owner = device.meta.owner.as_ref()?;
        unanswered.note(FLEETS, self.fleet(owner).await).flatten()
    }

    async fn fleet(&self, name: &FleetName) -> Result<Option<FleetVersion>, Status> {
        let mut client = self.fleets.clone();
        let request = GetFleetRequest { name: name.as_str().to_owned() };
        let Some(answer) = found(within(DEADLINE, client.get_fleet(request)).await)? else { return Ok(None) };
        let version = answer.into_inner().fleet.ok_or_else(incomplete)?.template_version;
        let template_version = (!version.is_empty()).then(|| TemplateVersionName(version.into()));
        Ok(Some(FleetVersion { fleet: name.clone(), template_version }))
    }
}

/// Returns the request of a device without a record, or the refusal of the registry.
fn without_record(
    refused: Status,
    enrolment: Result<Option<EnrolmentRequest>, Status>,
) -> Result<DeviceSubject, Status> {
    if refused.code() != Code::NotFound {
        return Err(refused);
    }
    enrolment?.map(|request| DeviceSubject::Requested(Box::new(request))).ok_or(refused)
}

/// Returns the answer; `None`: there is no such record.
fn found<T>(answer: Result<T, Status>) -> Result<Option<T>, Status> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(refused) if refused.code() == Code::NotFound => Ok(None),
        Err(refused) => Err(refused),
    }
}

fn incomplete() -> Fault {
    Fault::Internal("an answer without its record".to_owned())
}

fn unreadable(invalid: Invalid) -> Fault {
    Fault::Internal(format!("an unreadable record: {invalid}"))
}
