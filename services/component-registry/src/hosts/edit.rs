//! Explicit calls about hosts. Each changes the spec, or annotations that the life cycle reads.

use chassis::{
    Fault,
    kinds::host::{OpenHost, annotations, record, status},
};
use domain::{
    core::{invalid::Invalid, time::Timestamp},
    host::{
        guard::DiscardLimit,
        record::{annotations::AnnotationName, state::HostState},
        validate,
    },
};
use proto::host::{
    AbortHostRequest, AttachHostRequest, ChangeHostBmcRequest, DeletionKind, DetachHostRequest, Host,
    HostSpec, HostStatus, InspectHostRequest, ObjectMeta, Precondition, RebootHostRequest, RetryHostRequest,
    SetHostPowerRequest,
};
use serde_json::json;

use super::{
    ledgers::OtherRecords,
    object::{self, DeletionRequest, ObjectChange, ObjectRecord},
};

/// Call of a person about a host.
pub(super) trait HostCall: Send + 'static {
    /// Word for the call, which events show.
    const REASON: &'static str;

    /// Changes the record.
    ///
    /// # Errors
    /// The state of the host does not allow it.
    fn edit(self, host: &mut Host) -> Result<(), Fault>;
}

/// Makes a host.
pub(super) fn create(
    current: Option<&OpenHost>,
    mut wanted: Host,
    now: Timestamp,
) -> Result<ObjectChange<OpenHost>, Fault> {
    wanted.status = None;
    wanted.progress = None;
    wanted.node_claim = None;
    wanted.change = 1;
    wanted.deletion = DeletionKind::Unspecified.into();
    let record = object::create(current, OpenHost::of(wanted), now)?;
    object::check_name("metadata.namespace", &record.meta().namespace)?;
    check(&record.message, None)?;
    Ok(ObjectChange::Stored(record))
}

/// Replaces facts and wishes of a host.
pub(super) fn replace(
    key: &str,
    current: Option<&OpenHost>,
    wanted: Host,
    precondition: &Precondition,
) -> Result<ObjectChange<OpenHost>, Fault> {
    let known = object::expected(key, current, precondition)?;
    let kept = known.message.clone();
    let wanted = Host { meta: wanted.meta, spec: wanted.spec, ..kept };
    let mut record = object::replace(key, current, OpenHost::of(wanted), precondition)?;
    if is_woken(&known.message, &record.message) {
        record.message.change += 1;
        end_authority_of_session(&mut record.message);
    }
    if record.meta().deleted_at.is_none() {
        check(&record.message, Some(&known.message))?;
    }
    Ok(object::settle(current, record))
}

/// Replaces the status of a host.
pub(super) fn replace_status(
    key: &str,
    current: Option<&OpenHost>,
    wanted: HostStatus,
    managed_fields: Option<String>,
    precondition: &Precondition,
) -> Result<ObjectChange<OpenHost>, Fault> {
    let mut record = object::expected(key, current, precondition)?.clone();
    status::from_wire(&wanted)?;
    record.message.status = Some(wanted);
    if let Some(managed_fields) = managed_fields {
        record.meta_mut().managed_fields_json = managed_fields;
    }
    Ok(object::settle(current, record))
}

/// Requests the deletion of a host.
pub(super) fn delete(
    key: &str,
    current: Option<&OpenHost>,
    request: &DeletionRequest,
    forced: bool,
    now: Timestamp,
) -> Result<ObjectChange<OpenHost>, Fault> {
    let mut record = object::delete(key, current, request, now)?;
    let host = &mut record.message;
    let kind = if forced { DeletionKind::Forced } else { DeletionKind::Orderly };
    // An orderly deletion does not take a forced one back.
    let is_news = host.deletion() == DeletionKind::Unspecified || (forced && host.deletion() != kind);
    if is_news {
        host.deletion = kind.into();
        host.change += 1;
    }
    Ok(object::settle(current, record))
}

/// Refuses a change by which too many hosts would lose their systems within a short time.
pub(super) fn guard(
    limit: DiscardLimit,
    current: Option<&OpenHost>,
    change: ObjectChange<OpenHost>,
    others: &OtherRecords<'_, OpenHost>,
    now: Timestamp,
) -> Result<ObjectChange<OpenHost>, Fault> {
    let (ObjectChange::Stored(wanted) | ObjectChange::Gone(wanted) | ObjectChange::Unchanged(wanted)) =
        &change;
    let before = current.map(|current| record::host(&current.message)).transpose()?;
    let wanted = record::host(&wanted.message)?;
    if before.is_some_and(|before| limit.concerns(&before, &wanted, now)) {
        // A record that cannot be read is decided by nobody, so that it loses nothing either.
        let counts =
            |other: &OpenHost| record::host(&other.message).is_ok_and(|other| limit.counts(&other, now));
        limit.judge(others.count(counts), now)?;
    }
    Ok(change)
}

/// Carries out a call about a host.
pub(super) fn call<C: HostCall>(
    key: &str,
    current: Option<&OpenHost>,
    call: C,
) -> Result<ObjectChange<OpenHost>, Fault> {
    let known = object::expected(key, current, &Precondition::default())?;
    let mut wanted = known.message.clone();
    call.edit(&mut wanted)?;
    let mut record = object::replace(key, current, OpenHost::of(wanted), &Precondition::default())?;
    if is_woken(&known.message, &record.message) {
        record.message.change += 1;
        end_authority_of_session(&mut record.message);
    }
    check(&record.message, Some(&known.message))?;
    Ok(object::settle(current, record))
}

/// Lets the spec decide about the power again, which the last session left as it was. A claim that lasts stays.
fn end_authority_of_session(host: &mut Host) {
    host.node_claim.take_if(|claim| claim.released);
}

/// Returns whether a change wakes a host from its rest.
fn is_woken(before: &Host, after: &Host) -> bool {
    let facts =
        |host: &Host| host.meta.as_ref().map(|meta| (meta.annotations.clone(), meta.finalizers.clone()));
    before.spec != after.spec || facts(before) != facts(after)
}

/// Checks a host that a person writes.
fn check(wanted: &Host, before: Option<&Host>) -> Result<(), Fault> {
    let host = record::host(wanted)?;
    let before = before.map(record::host).transpose()?;
    match Fault::of_violations(validate::violations(&host, before.as_ref())) {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

fn spec(host: &mut Host) -> &mut HostSpec {
    host.spec.get_or_insert_default()
}

fn meta(host: &mut Host) -> &mut ObjectMeta {
    host.meta.get_or_insert_default()
}

fn annotate(host: &mut Host, name: &str, value: String) {
    meta(host).annotations.insert(name.to_owned(), value);
}

fn state(host: &Host) -> Result<HostState, Invalid> {
    Ok(record::host(host)?.state())
}

fn locked(host: &Host, reason: &str) -> Fault {
    let meta = host.meta.clone().unwrap_or_default();
    let name = chassis::kinds::host::key(&meta.namespace, &meta.name);
    Fault::Locked { kind: "host".into(), name, reason: reason.into() }
}

impl HostCall for SetHostPowerRequest {
    const REASON: &'static str = "set_power";

    fn edit(self, host: &mut Host) -> Result<(), Fault> {
        spec(host).online = self.online;
        Ok(())
    }
}

impl HostCall for RebootHostRequest {
    const REASON: &'static str = "reboot";

    fn edit(self, host: &mut Host) -> Result<(), Fault> {
        let mode = if self.hard { "hard" } else { "soft" };
        let value = json!({"mode": mode, "force": self.force});
        annotate(host, AnnotationName::Reboot.word(), value.to_string());
        Ok(())
    }
}

impl HostCall for InspectHostRequest {
    const REASON: &'static str = "inspect_again";

    fn edit(self, host: &mut Host) -> Result<(), Fault> {
        if !state(host)?.is_available() {
            return Err(locked(host, "only an available host can be inspected again"));
        }
        annotate(host, AnnotationName::Inspect.word(), String::new());
        Ok(())
    }
}

impl HostCall for DetachHostRequest {
    const REASON: &'static str = "detach";

    fn edit(self, host: &mut Host) -> Result<(), Fault> {
        let action = if self.delay_deletion { "delay" } else { "delete" };
        let value = json!({"force": self.force, "deleteAction": action});
        annotate(host, annotations::DETACHED, value.to_string());
        Ok(())
    }
}

impl HostCall for AttachHostRequest {
    const REASON: &'static str = "attach";

    fn edit(self, host: &mut Host) -> Result<(), Fault> {
        meta(host).annotations.remove(annotations::DETACHED);
        Ok(())
    }
}

impl HostCall for RetryHostRequest {
    const REASON: &'static str = "retry_now";

    fn edit(self, host: &mut Host) -> Result<(), Fault> {
        host.change += 1;
        Ok(())
    }
}

impl HostCall for ChangeHostBmcRequest {
    const REASON: &'static str = "change_bmc";

    fn edit(self, host: &mut Host) -> Result<(), Fault> {
        let known = record::host(host)?;
        if !validate::may_change_bmc(&known) {
            return Err(locked(
                host,
                "the BMC can be changed while the host is registering or detached only",
            ));
        }
        spec(host).bmc = self.bmc;
        if !self.boot_mac_address.is_empty() {
            spec(host).boot_mac_address = self.boot_mac_address;
        }
        Ok(())
    }
}

impl HostCall for AbortHostRequest {
    const REASON: &'static str = "abort";

    fn edit(self, host: &mut Host) -> Result<(), Fault> {
        match state(host)? {
            HostState::Provisioning => {
                spec(host).image = None;
                spec(host).custom_deploy = None;
            }
            HostState::Inspecting => {
                annotate(host, AnnotationName::Inspect.word(), "disabled".to_owned());
            }
            HostState::Unset
            | HostState::Unmanaged
            | HostState::Registering
            | HostState::MatchProfile
            | HostState::Preparing
            | HostState::Available
            | HostState::Ready
            | HostState::Provisioned
            | HostState::ExternallyProvisioned
            | HostState::Deprovisioning
            | HostState::PoweringOffBeforeDelete
            | HostState::Deleting => {
                return Err(locked(host, "provisioning and inspection can be aborted, nothing else"));
            }
        }
        Ok(())
    }
}
