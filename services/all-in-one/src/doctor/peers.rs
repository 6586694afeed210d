//! The systems around the mesh, each asked one cheap question.

use std::time::{Duration, Instant};

use chassis::{
    Settings,
    settings::{
        BootParametersDriver, CatalogueDriver, ConfigurationDriver, ImagesDriver, InventoryDriver,
        Peer as PeerSettings, PowerDriver, TenantsDriver,
    },
};
use domain::core::time::SKEW;
use reqwest::StatusCode;
use serde_json::Value;
use upstream::{CredentialUse, Failure, FailureKind, Peer, Request};

use super::finding::DoctorFinding;

/// Time for an answer. People wait for it, and each of these questions is answered within a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// Question to one system.
struct PeerQuestion<'a> {
    name: &'static str,
    /// Section of the settings.
    section: &'static str,
    settings: &'a PeerSettings,
    shown: CredentialUse,
    request: Request,
    content: ExpectedContent,
}

/// Content by which an answer is recognised as that of the system.
#[derive(Clone, Copy)]
enum ExpectedContent {
    /// A JSON object with this member.
    Member(&'static str),
    /// JSON.
    Json,
    /// Refusal of a request without credentials, or about something that does not exist.
    Refusal,
}

/// Asks every system that a driver of the settings needs, all at once.
pub(super) async fn peers(settings: &Settings) -> Vec<DoctorFinding> {
    let asked = questions(settings).into_iter().map(PeerQuestion::ask);
    let mut findings = Vec::new();
    for of_one in futures_util::future::join_all(asked).await {
        findings.extend(of_one);
    }
    findings
}

/// Returns the questions, in the order of a boot.
fn questions(settings: &Settings) -> Vec<PeerQuestion<'_>> {
    let of = |name, section, settings, request, content| PeerQuestion {
        name,
        section,
        settings,
        shown: CredentialUse::Header,
        request,
        content,
    };
    let mut questions = Vec::new();
    match settings.inventory.driver {
        InventoryDriver::Hsm => {
            let locks = Request::get("locks", "/locks/status").query("type", "Node").query("locked", "True");
            let content = ExpectedContent::Member("Components");
            questions.push(of("HSM", "inventory.hsm", &settings.inventory.hsm, locks, content));
        }
        InventoryDriver::Simulated | InventoryDriver::File | InventoryDriver::Hosts => {}
    }
    match settings.images.driver {
        ImagesDriver::S3 => {
            // The driver signs its requests. This one is not signed, and its refusal shows that the store is there.
            let none = Request::get("object", "/reveille-doctor/none").anonymous();
            let question = of("S3", "images.s3", &settings.images.s3, none, ExpectedContent::Refusal);
            questions.push(PeerQuestion { shown: CredentialUse::Signature, ..question });
        }
        ImagesDriver::Simulated | ImagesDriver::File => {}
    }
    match settings.images.catalogue {
        CatalogueDriver::Ims => {
            let question = session_manager::questions::of_catalogue();
            questions.push(of("IMS", "images.ims", &settings.images.ims, question, ExpectedContent::Json));
        }
        CatalogueDriver::None => {}
    }
    match settings.boot_parameters.driver {
        BootParametersDriver::Bss => {
            let status = config_coordinator::questions::of_boot_parameters();
            let bss = &settings.boot_parameters.bss;
            questions.push(of("BSS", "boot_parameters.bss", bss, status, ExpectedContent::Json));
        }
        BootParametersDriver::Simulated | BootParametersDriver::BuiltIn => {}
    }
    match settings.power.driver {
        PowerDriver::Pcs => {
            let transitions = Request::get("transitions_list", "/transitions");
            let content = ExpectedContent::Member("transitions");
            questions.push(of("PCS", "power.pcs", &settings.power.pcs, transitions, content));
        }
        PowerDriver::Simulated | PowerDriver::Redfish | PowerDriver::Hosts => {}
    }
    match settings.configuration.driver {
        ConfigurationDriver::Cfs => {
            let one = config_coordinator::questions::of_configuration();
            let content = ExpectedContent::Member("components");
            questions.push(of("CFS", "configuration.cfs", &settings.configuration.cfs, one, content));
        }
        ConfigurationDriver::Simulated | ConfigurationDriver::None => {}
    }
    match settings.tenants.driver {
        TenantsDriver::Tapms => {
            let list = session_manager::questions::of_tenants();
            let content = ExpectedContent::Member("items");
            questions.push(of("TAPMS", "tenants.tapms", &settings.tenants.tapms, list, content));
        }
        TenantsDriver::None => {}
    }
    questions
}

impl ExpectedContent {
    /// Returns whether a failure is the expected answer.
    fn is(self, failure: &Failure) -> bool {
        match self {
            Self::Refusal => {
                [Some(StatusCode::FORBIDDEN), Some(StatusCode::NOT_FOUND)].contains(&failure.status)
            }
            Self::Member(_) | Self::Json => false,
        }
    }
}

impl PeerQuestion<'_> {
    async fn ask(self) -> Vec<DoctorFinding> {
        let Self { name, section, settings, shown, request, content } = self;
        if settings.url.is_empty() {
            let text = format!("no address is set, and the driver needs {name}");
            return vec![DoctorFinding::wrong(section, text, format!("set {section}.url"))];
        }
        let peer = match Peer::new(name, settings) {
            Ok(peer) => peer,
            Err(error) => {
                return vec![DoctorFinding::wrong(
                    section,
                    format!("{section}.{error}"),
                    "correct that setting",
                )];
            }
        };
        if let Some(flaw) = peer.credential_flaw(shown) {
            let next = format!("correct what {section}.credentials names");
            return vec![DoctorFinding::wrong(
                section,
                format!("its credentials cannot be used: {flaw}"),
                next,
            )];
        }
        let began = Instant::now();
        let answer = peer.ask(request.answer_within(PATIENCE), |answer| match content {
            ExpectedContent::Refusal => Ok(()),
            ExpectedContent::Json => answer.json::<Value>().map(drop),
            ExpectedContent::Member(member) => {
                let has_it = answer.json::<Value>()?.get(member).is_some();
                if has_it { Ok(()) } else { Err(format!("an answer without '{member}'")) }
            }
        });
        let mut findings = match answer.await {
            Ok(()) => {
                let text = format!("{name} at {} answers within {:?}", peer.url(), rounded(began.elapsed()));
                vec![DoctorFinding::good(section, text)]
            }
            Err(failure) if content.is(&failure) => {
                vec![DoctorFinding::good(section, format!("{name} at {} answers", peer.url()))]
            }
            Err(failure) => {
                let next = next_step(section, &failure);
                vec![DoctorFinding::wrong(section, failure.text, next)]
            }
        };
        findings.extend(clock(section, &peer));
        findings.extend(exposure(section, settings));
        findings
    }
}

/// Returns the time to the millisecond, but no less than one.
fn rounded(elapsed: Duration) -> Duration {
    Duration::from_millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1))
}

fn next_step(section: &str, failure: &Failure) -> String {
    match (failure.status, failure.kind) {
        (Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN), _) => {
            format!("{section}.credentials has to name credentials that it takes")
        }
        (Some(StatusCode::NOT_FOUND), _) => {
            format!(
                "{section}.url has to have the prefix of the API, such as /apis/... behind an API gateway"
            )
        }
        (Some(_), _) => "look at the log of that system".to_owned(),
        (None, FailureKind::Unreachable) => {
            format!(
                "check {section}.url, the network between, and {section}.ca_file if the certificate is not trusted"
            )
        }
        (None, FailureKind::Ambiguous | FailureKind::Refused | FailureKind::Denied) => {
            format!("check that {section}.url is the address of that system")
        }
    }
}

fn clock(section: &str, peer: &Peer) -> Option<DoctorFinding> {
    let off = peer.clock().map(|offset| offset.least_difference()).filter(|off| *off > SKEW)?;
    let text = format!("its clock and that of this machine differ by {} s or more", off.as_secs());
    Some(DoctorFinding::doubtful(section, text, "have both follow the same time servers"))
}

fn exposure(section: &str, settings: &PeerSettings) -> Option<DoctorFinding> {
    let is_https = settings.url.to_ascii_lowercase().starts_with("https:");
    let has_secrets = !settings.credentials.is_empty();
    if is_https && !settings.verify_tls {
        let text = "its certificate is not checked, so anybody between may read the credentials";
        return Some(DoctorFinding::doubtful(
            section,
            text,
            format!("set {section}.ca_file, and verify_tls = true"),
        ));
    }
    let text = "its credentials travel without encryption";
    let next = format!("use an https address in {section}.url");
    (!is_https && has_secrets).then(|| DoctorFinding::doubtful(section, text, next))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use expect_test::expect;
    use upstreams::{MachinePlan, Service, ServiceTrouble, Upstreams};

    use super::*;
    use crate::doctor::finding::listed;

    fn site() -> (Settings, Upstreams) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let upstreams = Upstreams::start(MachinePlan::quick(2), listener).unwrap();
        let mut settings = Settings::default();
        reveille::surroundings::csm(&mut settings);
        reveille::surroundings::play(&mut settings, &upstreams);
        (settings, upstreams)
    }

    /// Returns the findings without times and addresses.
    async fn found(settings: &Settings, upstreams: &Upstreams) -> String {
        let lines = listed(&peers(settings).await);
        let lines = lines.replace(&upstreams.url(), "URL").replace(&upstreams.address().to_string(), "HOST");
        let untimed = |line: &str| match line.split_once(" within ").or_else(|| line.split_once(" since ")) {
            Some((line, _)) => format!("{line}\n"),
            None => format!("{line}\n"),
        };
        lines.lines().map(untimed).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_system_is_asked_and_named_by_its_section() {
        let (settings, upstreams) = site();
        expect![[r#"
            ok        inventory.hsm        HSM at URL/apis/smd/hsm/v2 answers
            ok        images.s3            S3 at URL answers
            ok        images.ims           IMS at URL/apis/ims/v3 answers
            ok        boot_parameters.bss  BSS at URL/apis/bss/boot/v1 answers
            ok        power.pcs            PCS at URL/apis/power-control/v1 answers
            ok        configuration.cfs    CFS at URL/apis/cfs/v3 answers
            ok        tenants.tapms        TAPMS at URL/apis/tapms/v1alpha3 answers
        "#]]
        .assert_eq(&found(&settings, &upstreams).await);
        upstreams.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_does_not_work_is_told_with_the_setting_to_mend() {
        let (mut settings, upstreams) = site();
        upstreams.trouble(ServiceTrouble::status(Service::Pcs, 401));
        settings.configuration.cfs.url += "/wrong";
        settings.inventory.hsm.url.clear();
        settings.boot_parameters.bss.url = "http://127.0.0.1:9".into();
        settings.images.ims.connect_seconds = 0.0;
        settings.tenants.tapms.credentials = "env:NOBODY_SET_THIS".into();
        let found = found(&settings, &upstreams).await;
        expect![[r#"
            wrong     inventory.hsm        no address is set, and the driver needs HSM
                                           -> set inventory.hsm.url
            ok        images.s3            S3 at URL answers
            wrong     images.ims           images.ims.connect_seconds: has to be more than 0 and at most 86400 seconds
                                           -> correct that setting
            wrong     boot_parameters.bss  BSS at 127.0.0.1:9 (failing
                                           -> check boot_parameters.bss.url, the network between, and boot_parameters.bss.ca_file if the certificate is not trusted
            wrong     power.pcs            PCS at HOST (refused GET /transitions
                                           -> power.pcs.credentials has to name credentials that it takes
            wrong     configuration.cfs    CFS at HOST (refused GET /components: 404 Not Found: /wrong/components is not a path of this service)
                                           -> configuration.cfs.url has to have the prefix of the API, such as /apis/... behind an API gateway
            wrong     tenants.tapms        its credentials cannot be used: credentials: NOBODY_SET_THIS: environment variable not found
                                           -> correct what tenants.tapms.credentials names
        "#]].assert_eq(&found);
        upstreams.stop().await;
    }
}
