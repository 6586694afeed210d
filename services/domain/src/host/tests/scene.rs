use std::{sync::Arc, time::Duration};

use crate::{
    core::{backoff::Jitter, time::Timestamp},
    host::{
        dispatch,
        evidence::{
            CredentialsSight, DeployData, DriverSight, DriverView, FirmwareWish, HardwareHealth,
            HostEvidence, HostMoment, HostPolicy, PullSecretProblem, RamdiskSight, SlotOffer,
        },
        pass::HostPass,
        record::{
            Host, HostDeletion, PowerAuthority,
            annotations::{DetachMark, InspectRequest, RebootMode, RebootRequest, UnreadableText},
            call::{
                DoneFacts, DriverAnswer, DriverCall, DriverReport, DriverTrouble, InspectCall,
                PreparationParts, PrepareCall, ProvisionCall, RegisterCall, ServiceCall,
            },
            progress::{CallCarrier, HostRest, HostWork, SlotClaim},
            reason::WaitReason,
            spec::{HostImage, InspectionMode, RaidVolume, RaidWish, RootDeviceHints},
            state::HostState,
            status::{
                CredentialsRecord, HostError, HostErrorKind, HostInventory, OperationalStatus, WantedSystem,
            },
        },
        registration,
    },
};

pub(in crate::host) const NOW: Timestamp = Timestamp(10_000_000);
pub(in crate::host) const MOMENT: HostMoment = HostMoment { now: NOW, jitter: Jitter(u32::MAX) };

/// Time of everything that happened before the decision.
pub(in crate::host) const BEFORE: Timestamp = Timestamp(NOW.0 - 1_000);

pub(in crate::host) struct Scene {
    pub host: Host,
    pub seen: HostEvidence,
    pub policy: HostPolicy,
}

/// Returns a managed, registered host that is off and wants to be, with a driver that knows it, after `words`:
/// - `in:state` with `-` for blanks, `op:status`, `error:kind`, `count:n`, `fails:n`, `limit:n`, `attempted:url`;
/// - wishes: `online`, `image:url:checksum`, `custom:method`, `external`, `never-off`, `no-inspection`, `hints:disk`,
///   `raid`, `raid:none`, `no-address`, `no-secret-name`, `profile:name`;
/// - installed: `has:url`, `had:method`, `raided`; `new` for a record without status, `bare` for one without finalizer;
/// - annotations: `paused`, `detached`, `detached:force`, `detached:delay`, `reboot:mode`, `reboot:force`,
///   `reboot:bad`, `hold:key`, `inspect`, `inspect:disabled`, `details`, `details:bad`, `status`, `status:bad`;
/// - deletion: `del`, `del:forced`; a session on the node of the host: `session`, `session:over`;
/// - driver: `on`, `power:unknown`, `unlisted`, `absent`, `not-ready`, `needs-adoption`, `busy`, `virtual-media`,
///   `power-failure`, `health:word`, `wants-ramdisk`, `ramdisk:failed`, `unregistered`;
/// - `operation=answer` for a call with its answer, `operation=?` for one without;
/// - companions: `secret:word`, `no-slot`, `waiting-for-slot`, `settings:word`, `versions:word`, `on-reboot`,
///   `data-image`, `deploy-data:bad`, `pull-secret:bad`, `stored:arch`;
/// - `rest`, `rest:over`, `rest:changed` for a rest that began earlier.
pub(in crate::host) fn scene(words: &str) -> Scene {
    let mut scene = bare();
    for word in words.split_whitespace() {
        if let Some((operation, answer)) = word.split_once('=') {
            converse(&mut scene, operation, answer);
            continue;
        }
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        let is_known = wish(&mut scene.host, name, value)
            || annotate(&mut scene.host, name, value)
            || record(&mut scene, name, value)
            || look(&mut scene, name)
            || accompany(&mut scene.seen, name, value);
        assert!(is_known, "what is {word}?");
    }
    if !words.split_whitespace().any(|word| word == "unregistered" || word == "new") {
        scene.host.progress.registered =
            registration::wanted(&mut HostPass::new(scene.host.clone(), &scene.seen, &scene.policy, MOMENT))
                .ok();
    }
    scene
}

fn login(version: &str) -> CredentialsRecord {
    CredentialsRecord { name: "login".into(), version: version.into() }
}

fn image(url: &str) -> HostImage {
    let (url, checksum) = url.split_once(':').unwrap_or((url, ""));
    HostImage { url: url.into(), checksum: checksum.into(), ..HostImage::default() }
}

fn disk(name: &str) -> RootDeviceHints {
    RootDeviceHints { device_name: Some(format!("/dev/{name}").into()), ..RootDeviceHints::default() }
}

fn bare() -> Scene {
    let mut host = Host::default();
    host.meta.has_finalizer = true;
    host.spec.bmc_address = "redfish://bmc".into();
    host.spec.credentials_name = "login".into();
    host.spec.architecture = "x86_64".into();
    let status = &mut host.status;
    status.operational = OperationalStatus::Ok;
    status.last_updated = Some(BEFORE);
    status.hardware_profile = "unknown".into();
    status.hardware = Some(Arc::default());
    status.provisioning.id = "id".into();
    status.provisioning.root_device_hints = Some(disk("sda"));
    status.good_credentials = Some(login("1"));
    status.tried_credentials = Some(login("1"));
    host.progress.answered_at = Some(BEFORE);
    let view = DriverView { asked_at: NOW, powered_on: Some(false), ..DriverView::default() };
    let seen = HostEvidence {
        driver: DriverSight::Known(view),
        slot: SlotOffer::Open,
        credentials: CredentialsSight::Complete { version: "1".into() },
        ..HostEvidence::default()
    };
    Scene { host, seen, policy: HostPolicy::default() }
}

fn wish(host: &mut Host, name: &str, value: &str) -> bool {
    let spec = &mut host.spec;
    match name {
        "online" => spec.online = true,
        "image" => spec.image = Some(image(value)),
        "custom" => spec.custom_deploy = Some(value.into()),
        "external" => spec.externally_provisioned = true,
        "never-off" => spec.disable_power_off = true,
        "no-inspection" => spec.inspection = Some(InspectionMode::Disabled),
        "hints" => spec.root_device_hints = Some(disk(value)),
        "raid" if value == "none" => {
            spec.raid = Some(RaidWish { hardware: Some(Vec::new()), software: None });
        }
        "raid" => spec.raid = Some(raid()),
        "no-address" => spec.bmc_address = "".into(),
        "no-secret-name" => spec.credentials_name = "".into(),
        "profile" => spec.hardware_profile = value.into(),
        _ => return false,
    }
    true
}

fn raid() -> RaidWish {
    let volume = RaidVolume { level: "1".into(), ..RaidVolume::default() };
    RaidWish { hardware: Some(vec![volume]), software: None }
}

fn annotate(host: &mut Host, name: &str, value: &str) -> bool {
    let annotations = &mut host.meta.annotations;
    let mark = DetachMark { force: value == "force", delays_deletion: value == "delay" };
    let mode = if value == "hard" { RebootMode::Hard } else { RebootMode::Soft };
    let is_unreadable = value == "bad";
    let force = value == "force";
    let reboot = RebootRequest { key: None, mode, force, is_unreadable };
    let inventory = Arc::new(HostInventory { architecture: "arm64".into(), details: "given".into() });
    match name {
        "session" if value == "over" => host.meta.power_authority = PowerAuthority::LastSession,
        "session" => host.meta.power_authority = PowerAuthority::Session,
        "paused" => annotations.paused = true,
        "detached" => annotations.detached = Some(mark),
        "reboot" => annotations.reboots.push(reboot),
        "hold" => annotations.reboots.push(RebootRequest { key: Some(value.into()), ..reboot }),
        "inspect" if value == "disabled" => annotations.inspect = Some(InspectRequest::Disabled),
        "inspect" => annotations.inspect = Some(InspectRequest::Again),
        "details" if is_unreadable => annotations.hardware_details = Some(Err(UnreadableText)),
        "details" => annotations.hardware_details = Some(Ok(inventory)),
        "status" if is_unreadable => annotations.status = Some(Err(UnreadableText)),
        "status" => annotations.status = Some(Ok(Box::new(bare().host.status))),
        "del" if force || value == "forced" => host.meta.deletion = Some(HostDeletion::Forced),
        "del" => host.meta.deletion = Some(HostDeletion::Orderly),
        _ => return false,
    }
    true
}

fn record(scene: &mut Scene, name: &str, value: &str) -> bool {
    let Scene { host, policy, seen } = scene;
    let status = &mut host.status;
    let number = value.parse().unwrap_or_default();
    match name {
        "in" => {
            status.provisioning.state = HostState::from_word(&value.replace('-', " ")).expect("a state");
        }
        "op" => status.operational = OperationalStatus::from_word(value).expect("a status"),
        "error" => {
            let kind = HostErrorKind::from_word(&format!("{} error", value.replace('-', " ")));
            status.error = Some(HostError { kind: kind.expect("a kind"), text: "old".into() });
            status.operational = OperationalStatus::Error;
            status.error_count = status.error_count.max(1);
        }
        "count" => status.error_count = number,
        "fails" => status.provisioning_fail_count = number,
        "limit" => policy.max_provisioning_retries = number,
        "attempted" => {
            let image = (value != "-").then(|| image(value));
            let procedure = host.spec.custom_deploy.clone();
            status.last_attempt = Some(WantedSystem { image, procedure });
        }
        "has" => status.provisioning.image = Some(image(value)),
        "had" => status.provisioning.custom_deploy = Some(value.into()),
        "raided" => status.provisioning.raid = Some(raid()),
        "no-profile" => status.hardware_profile = "".into(),
        "no-hardware" => status.hardware = None,
        "waiting-for-slot" => host.progress.slot = SlotClaim::Waiting { since: BEFORE },
        "holding-slot" => host.progress.slot = SlotClaim::Held,
        "rest" => host.progress.rest = Some(rest(value)),
        "later-call" => {
            let work = host.progress.work.as_mut().expect("a conversation comes first");
            (work.number, work.changed_by) = (2, 1);
            let reports = [&mut seen.reports.host_provisioner, &mut seen.reports.power_controller];
            reports.into_iter().flatten().for_each(|report| report.number = 2);
        }
        "unregistered" => host.status.good_credentials = None,
        "new" => (host.status, host.progress) = Default::default(),
        "bare" => host.meta.has_finalizer = false,
        _ => return false,
    }
    true
}

fn rest(value: &str) -> HostRest {
    let until = if value == "over" { BEFORE } else { NOW.plus(Duration::from_secs(7)) };
    let change = u64::from(value == "changed");
    HostRest { reason: WaitReason::BackingOff, until: Some(until), change }
}

fn look(scene: &mut Scene, name: &str) -> bool {
    let mut view = scene.seen.driver.view().copied().unwrap_or_default();
    let mut sight = None;
    match name {
        "on" => {
            view.powered_on = Some(true);
            scene.host.status.powered_on = true;
        }
        "turned-on" => view.powered_on = Some(true),
        "power" => view.powered_on = None,
        "stale-look" => view.asked_at = BEFORE,
        "needs-adoption" => view.needs_adoption = true,
        "busy" => view.is_busy = true,
        "virtual-media" => view.boots_without_slot = true,
        "power-failure" => view.has_power_failure = true,
        "ailing" => view.health = Some(HardwareHealth::Critical),
        "wants-ramdisk" => view.wants_ramdisk = true,
        "unlisted" => sight = Some(DriverSight::Unlisted),
        "absent" => sight = Some(DriverSight::Absent { asked_at: NOW }),
        "not-ready" => sight = Some(DriverSight::NotReady),
        _ => return false,
    }
    scene.seen.driver = sight.unwrap_or(DriverSight::Known(view));
    true
}

fn accompany(seen: &mut HostEvidence, name: &str, value: &str) -> bool {
    match name {
        "secret" => seen.credentials = secret(value),
        "no-slot" => seen.slot = SlotOffer::Taken,
        "ramdisk" if value == "failed" => seen.ramdisk = RamdiskSight::Failed { text: "no image".into() },
        "ramdisk" => seen.ramdisk = RamdiskSight::Built(Arc::default()),
        "settings" => seen.settings = Some(firmware(value)),
        "versions" => seen.components = Some(firmware(value)),
        "on-reboot" => (seen.on_reboot.settings, seen.on_reboot.components) = (true, true),
        "data-image" => seen.data_image.wanted = Some("iso".into()),
        "deploy-data" => seen.deploy_data = DeployData::Unreadable { text: "no user data".into() },
        "pull-secret" => {
            seen.deploy_data = DeployData::PullSecretUnusable {
                problem: PullSecretProblem::Format,
                text: "odd secret".into(),
            }
        }
        "stored" => {
            let details = "stored".into();
            seen.hardware_data = Some(Arc::new(HostInventory { architecture: value.into(), details }));
        }
        _ => return false,
    }
    true
}

fn secret(value: &str) -> CredentialsSight {
    match value {
        "missing" => CredentialsSight::Missing,
        "unreadable" => CredentialsSight::Unreadable,
        "incomplete" => CredentialsSight::Incomplete,
        "kept" => CredentialsSight::Kept { version: "1".into() },
        version => CredentialsSight::Complete { version: version.into() },
    }
}

fn firmware(value: &str) -> FirmwareWish {
    FirmwareWish {
        is_judged: value != "unjudged",
        is_read: value != "unread",
        is_changed: value != "same",
        is_valid: value != "invalid",
        read_at: NOW,
        is_pending: true,
    }
}

fn converse(scene: &mut Scene, operation: &str, answer: &str) {
    let call = call(operation);
    let carrier = dispatch::carrier(call.kind(), scene.policy.power_carrier);
    let work = HostWork {
        number: 1,
        call,
        since: BEFORE,
        carrier,
        parts: PreparationParts { storage: true, settings: false, components: true },
        changed_by: 0,
        is_accepted: false,
    };
    scene.host.progress.work = Some(work);
    scene.host.progress.calls = 1;
    let report = reply(answer).map(|answer| DriverReport { number: 1, at: BEFORE, answer });
    report_by(&mut scene.seen, carrier, report);
}

/// Sets the last report of a part that carries calls out.
pub(in crate::host) fn report_by(
    seen: &mut HostEvidence,
    carrier: CallCarrier,
    report: Option<DriverReport>,
) {
    match carrier {
        CallCarrier::HostProvisioner => seen.reports.host_provisioner = report,
        CallCarrier::PowerController => seen.reports.power_controller = report,
    }
}

fn reply(answer: &str) -> Option<DriverAnswer> {
    let inventory = Arc::new(HostInventory { architecture: "x86_64".into(), details: "found".into() });
    let seconds = Duration::from_secs;
    Some(match answer {
        "?" => return None,
        "done" => {
            DriverAnswer::Done(DoneFacts { id: Some("id".into()), inventory: Some(inventory), started: true })
        }
        "done-empty" => DriverAnswer::Done(DoneFacts::default()),
        "running" => DriverAnswer::InProgress { again_in: seconds(5), started: false },
        "started" => DriverAnswer::InProgress { again_in: seconds(5), started: true },
        "poll" => DriverAnswer::InProgress { again_in: seconds(1), started: false },
        "failed" => DriverAnswer::Failed { text: "broken".into() },
        "not-registered" => DriverAnswer::NotRegistered,
        "needs-slot" => DriverAnswer::NeedsSlot,
        "needs-ramdisk" => DriverAnswer::NeedsRamdisk,
        "unreachable" => DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text: "refused".into() },
        "busy" => DriverAnswer::Trouble { kind: DriverTrouble::Busy, text: "locked".into() },
        answer => panic!("what is {answer}?"),
    })
}

fn call(operation: &str) -> DriverCall {
    match operation {
        "register" => DriverCall::Register(Box::new(RegisterCall {
            registration: Default::default(),
            state: HostState::Registering,
            operational: OperationalStatus::Ok,
            architecture: "".into(),
            credentials_changed: false,
            restart: false,
        })),
        "inspect" => DriverCall::Inspect(InspectCall {
            boot_mode: Default::default(),
            mode: InspectionMode::Agent,
            architecture: "".into(),
            restart: false,
            refresh: false,
            force_reboot: false,
        }),
        "prepare" => DriverCall::Prepare(Box::new(PrepareCall {
            target_raid: None,
            actual_raid: None,
            hints: None,
            parts: PreparationParts::default(),
            unprepared: false,
            restart: false,
        })),
        "service" => DriverCall::Service(ServiceCall { parts: PreparationParts::default(), restart: false }),
        "provision" => DriverCall::Provision(Box::new(ProvisionCall {
            system: WantedSystem::default(),
            boot_mode: Default::default(),
            hints: None,
            force_reboot: false,
        })),
        "adopt" => DriverCall::Adopt { state: HostState::Provisioned, restart: false },
        "deprovision" => DriverCall::Deprovision { restart: false, cleaning_disabled: false },
        "power-on" => DriverCall::PowerOn { force: false },
        "power-off" => {
            DriverCall::PowerOff { mode: RebootMode::Soft, force: false, cleaning_disabled: false }
        }
        "detach" => DriverCall::Detach { force: false },
        "delete" => DriverCall::Delete,
        "attach" => DriverCall::AttachDataImage { url: "iso".into() },
        operation => panic!("what is {operation}?"),
    }
}
