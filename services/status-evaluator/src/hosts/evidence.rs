//! Evidence about a host from its mirrors.

use chassis::kinds::host::{document, evidence};
use domain::{
    core::invalid::Invalid,
    host::{
        evidence::{CallReports, CredentialsSight, DeployData, HostEvidence, PullSecretProblem, SlotOffer},
        record::Host,
    },
};
use proto::host::{self as wire, DocumentKind, HostSecret, SecretReference};

use super::mirrors::HostMirrors;

/// Types of secrets for image registries, each with the value that it has to have.
const PULL_SECRETS: [(&str, &str); 2] =
    [("kubernetes.io/dockerconfigjson", ".dockerconfigjson"), ("kubernetes.io/dockercfg", ".dockercfg")];

/// Value that stands in for one that is named after its purpose.
const ANY_VALUE: &str = "value";

/// Factor that keeps the parts of a number of changes apart.
const SPREAD: u64 = 1_000_003;

/// Reads a host for the rules. Its number of changes includes the secret and the image that it owns.
///
/// # Errors
/// The record cannot be read.
pub(super) fn host(mirrors: &HostMirrors, message: &wire::Host) -> Result<Host, Invalid> {
    let mut host = chassis::kinds::host::record::host(message)?;
    let secret = mirrors.secret(message, &host.spec.credentials_name);
    let image = mirrors.document_revision(message, DocumentKind::PreprovisioningImage);
    let parts = [secret.map_or(0, |secret| secret.message.revision), image];
    let mix = |change: u64, part: u64| change.wrapping_mul(SPREAD).wrapping_add(part);
    host.meta.change = parts.into_iter().fold(host.meta.change, mix);
    Ok(host)
}

/// Returns the evidence about a host besides its record.
///
/// # Errors
/// A report of a driver cannot be read.
pub(super) fn evidence(
    mirrors: &HostMirrors,
    host: &wire::Host,
    slot: SlotOffer,
) -> Result<HostEvidence, Invalid> {
    let sight = mirrors.sight(host);
    let read = |report: Option<&wire::DriverReport>| report.map(evidence::report).transpose();
    let reports = CallReports {
        host_provisioner: read(sight.as_ref().and_then(|sight| sight.report.as_ref()))?,
        power_controller: read(mirrors.power(host).and_then(|power| power.report).as_ref())?,
    };
    Ok(HostEvidence {
        driver: evidence::sight(sight.as_ref().and_then(|sight| sight.sight.as_ref())),
        reports,
        slot,
        credentials: credentials(mirrors, host),
        hardware_data: mirrors.document(host, DocumentKind::HardwareData, document::hardware).flatten(),
        ramdisk: mirrors
            .document(host, DocumentKind::PreprovisioningImage, document::ramdisk)
            .unwrap_or_default(),
        settings: mirrors.document(host, DocumentKind::FirmwareSettings, document::settings).flatten(),
        components: mirrors.document(host, DocumentKind::FirmwareComponents, document::components).flatten(),
        on_reboot: mirrors.document(host, DocumentKind::UpdatePolicy, document::policy).unwrap_or_default(),
        data_image: mirrors.document(host, DocumentKind::DataImage, document::data_image).unwrap_or_default(),
        deploy_data: deploy_data(mirrors, host),
    })
}

fn credentials(mirrors: &HostMirrors, host: &wire::Host) -> CredentialsSight {
    let bmc = host.spec.as_ref().and_then(|spec| spec.bmc.as_ref());
    let Some(secret) = bmc.and_then(|bmc| mirrors.secret(host, &bmc.credentials_name)) else {
        return CredentialsSight::Missing;
    };
    let secret = &secret.message;
    if has(secret, "username") && has(secret, "password") {
        CredentialsSight::Complete { version: version(secret).into() }
    } else {
        CredentialsSight::Incomplete
    }
}

/// Returns the version of the values of a secret, which another secret of the same name does not repeat.
fn version(secret: &HostSecret) -> String {
    let uid = secret.meta.as_ref().map_or("", |meta| &meta.uid);
    let short = uid.split('-').next().unwrap_or_default();
    format!("{}-{short}", secret.data_version)
}

fn has(secret: &HostSecret, name: &str) -> bool {
    secret.data_keys.iter().any(|key| key == name)
}

fn deploy_data(mirrors: &HostMirrors, host: &wire::Host) -> DeployData {
    let Some(spec) = &host.spec else { return DeployData::Ready };
    let wishes = [
        (spec.user_data.as_ref(), Some("userData")),
        (spec.meta_data.as_ref(), Some("metaData")),
        // Network data may be empty.
        (spec.network_data.as_ref(), None),
    ];
    let problem = wishes.into_iter().find_map(|(reference, key)| unreadable(mirrors, host, reference?, key));
    if let Some(text) = problem {
        return DeployData::Unreadable { text: text.into() };
    }
    let pull_secret = spec.image.as_ref().map_or("", |image| &image.oci_auth_secret_name);
    if pull_secret.is_empty() { DeployData::Ready } else { pull_login(mirrors, host, pull_secret) }
}

/// Returns the reason for which a secret cannot be read; `None`: it can.
fn unreadable(
    mirrors: &HostMirrors,
    host: &wire::Host,
    reference: &SecretReference,
    key: Option<&str>,
) -> Option<String> {
    let own = host.meta.as_ref().map_or("", |meta| &meta.namespace);
    if !reference.namespace.is_empty() && reference.namespace != own {
        return Some(format!("the secret '{}' is in another namespace", reference.name));
    }
    let Some(secret) = mirrors.secret(host, &reference.name) else {
        return Some(format!("the secret '{}' does not exist", reference.name));
    };
    let key = key.filter(|key| !has(&secret.message, key) && !has(&secret.message, ANY_VALUE))?;
    Some(format!("the secret '{}' has neither '{key}' nor '{ANY_VALUE}'", reference.name))
}

fn pull_login(mirrors: &HostMirrors, host: &wire::Host, name: &str) -> DeployData {
    let Some(secret) = mirrors.secret(host, name) else {
        return DeployData::Unreadable { text: format!("the secret '{name}' does not exist").into() };
    };
    let secret = &secret.message;
    let unusable = |problem, text: String| DeployData::PullSecretUnusable { problem, text: text.into() };
    match PULL_SECRETS.iter().find(|(kind, _)| *kind == secret.r#type) {
        None => {
            let text =
                format!("the secret '{name}' has the type '{}', which is not supported", secret.r#type);
            unusable(PullSecretProblem::Format, text)
        }
        Some((_, key)) if !has(secret, key) => {
            unusable(PullSecretProblem::Content, format!("the secret '{name}' lacks '{key}'"))
        }
        Some(_) => DeployData::Ready,
    }
}
