//! Directories, databases, files and ports.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use access_policy::parse_policy;
use chassis::{
    Settings, cause_first, check_writable,
    mesh::tls::{CertificateFiles, ServerTls},
    process::clock,
    settings::{AuditPlace, IdentitySettings},
    store::database,
};
use domain::access::calls::CALL_TABLE;
use upstream::machine::MachineFile;

use super::finding::DoctorFinding;
use crate::parts::{PartPlace, parts};

/// Time before the end of a certificate from which it should have been renewed: a holiday with its weekends.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// Checks the data directory and every file that the settings name.
pub(super) fn files(settings: &Settings) -> Vec<DoctorFinding> {
    let mut findings = vec![directory("data_dir", &settings.data_dir)];
    if let AuditPlace::Directory(path) = settings.audit.place() {
        findings.push(directory("audit.to", path));
    }
    findings.extend(identity(&settings.gateway.identity));
    findings.extend(mesh_certificate(settings));
    let files = CertificateFiles {
        certificate: settings.gateway.certificate.clone(),
        key: settings.gateway.key.clone(),
    };
    if !files.certificate.as_os_str().is_empty() {
        let used = ServerTls::for_anyone(&files).map(drop);
        findings.push(certificate("gateway.certificate", used, &files));
    }
    if !settings.machine_file.as_os_str().is_empty() {
        findings.push(match MachineFile::open(&settings.machine_file) {
            Ok(file) => {
                let machine = file.current();
                let (nodes, bmcs) = (machine.nodes.len(), machine.bmcs.len());
                DoctorFinding::good("machine_file", format!("lists {nodes} nodes and {bmcs} BMCs"))
            }
            Err(error) => {
                DoctorFinding::wrong("machine_file", error.to_string(), "correct that place of the file")
            }
        });
    }
    findings
}

/// Checks the files about callers.
fn identity(settings: &IdentitySettings) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    if let Err(reason) = settings.is_on() {
        findings.push(DoctorFinding::wrong("gateway.identity", reason, "add a source of credentials"));
    }
    let tokens = &settings.token_file;
    if !tokens.as_os_str().is_empty() {
        let subject = "gateway.identity.token_file";
        findings.push(match std::fs::read_to_string(tokens) {
            Ok(_) => DoctorFinding::good(subject, format!("{} can be read", tokens.display())),
            Err(error) => {
                let next = "let the user of Reveille read it, or name another file";
                DoctorFinding::wrong(subject, format!("cannot read {}: {error}", tokens.display()), next)
            }
        });
    }
    let policy = &settings.policy_file;
    if !policy.as_os_str().is_empty() {
        let text = std::fs::read_to_string(policy).map_err(|error| error.to_string());
        let parsed = text.and_then(|text| parse_policy(&text).map_err(|error| error.to_string()));
        let subject = "gateway.identity.policy_file";
        findings.push(match parsed {
            Ok(_) => DoctorFinding::good(subject, format!("{} is a policy", policy.display())),
            Err(error) => {
                let next = "`reveille policy show` prints the default policy, to start from";
                DoctorFinding::wrong(subject, format!("{}: {error}", policy.display()), next)
            }
        });
    }
    findings
}

fn directory(subject: &str, path: &Path) -> DoctorFinding {
    let existing = path.ancestors().find(|one| one.exists()).map(PathBuf::from).unwrap_or_else(|| ".".into());
    let existing = if existing.as_os_str().is_empty() { PathBuf::from(".") } else { existing };
    match check_writable(&existing) {
        Ok(()) if existing == path => {
            DoctorFinding::good(subject, format!("{} can be written", path.display()))
        }
        Ok(()) => DoctorFinding::good(subject, format!("{} can be created", path.display())),
        Err(error) => {
            let next = "let the user of Reveille write there, or name another directory";
            DoctorFinding::wrong(subject, format!("cannot write to {}: {error}", existing.display()), next)
        }
    }
}

fn mesh_certificate(settings: &Settings) -> Option<DoctorFinding> {
    if let Err(reason) = settings.check_encryption() {
        return Some(DoctorFinding::wrong(
            "tls",
            reason,
            "`reveille certificates DIRECTORY` makes the files",
        ));
    }
    let files =
        CertificateFiles { certificate: settings.tls.certificate.clone(), key: settings.tls.key.clone() };
    match ServerTls::for_parts(&settings.tls, CALL_TABLE) {
        Ok(None) => None,
        Ok(Some(_)) => Some(certificate("tls.certificate", Ok(()), &files)),
        Err(error) => Some(certificate("tls.certificate", Err(error), &files)),
    }
}

fn certificate(subject: &str, used: anyhow::Result<()>, files: &CertificateFiles) -> DoctorFinding {
    let ends = match used.and_then(|()| files.ends()) {
        Ok(ends) => ends,
        Err(error) => {
            let next = "`reveille certificates DIRECTORY` makes files that fit together";
            return DoctorFinding::wrong(subject, cause_first(&error), next);
        }
    };
    let left = ends.since(clock::now());
    let days = left.as_secs() / (24 * 3600);
    match left {
        Duration::ZERO => DoctorFinding::wrong(subject, "the certificate has ended", "renew it"),
        left if left < SOON => {
            let next = "renew it; parts read the new files while they run";
            DoctorFinding::doubtful(subject, format!("the certificate ends in {days} days"), next)
        }
        _ => DoctorFinding::good(subject, format!("the certificate is valid for {days} more days")),
    }
}

/// Connects to every database that the settings name.
pub(super) async fn databases(settings: &Settings) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for PartPlace { section, database_url, .. } in parts(settings) {
        if database_url.is_empty() {
            continue;
        }
        let subject = format!("{section}.database_url");
        if let Err(error) = database::reach(database_url).await {
            let next = "check server, name, user and password in the address";
            findings.push(DoctorFinding::wrong(subject, cause_first(&error), next));
            continue;
        }
        findings.push(match database::unverified_host(database_url) {
            None => DoctorFinding::good(subject, "the database takes connections"),
            Some(host) => {
                let text =
                    format!("the database takes connections, and nobody verifies that it is that of {host}");
                DoctorFinding::doubtful(
                    subject,
                    text,
                    "add sslmode=verify-full and sslrootcert to the address",
                )
            }
        });
    }
    findings
}

/// Checks that each part can listen, and that nobody else reaches a port that is not encrypted. While Reveille runs, the ports
/// of all parts are in use.
pub(super) fn ports(settings: &Settings) -> Vec<DoctorFinding> {
    let is_encrypted = settings.tls.is_set().unwrap_or_default();
    let parts = parts(settings);
    let mut findings: Vec<_> = parts.iter().filter_map(|part| port(part, is_encrypted, settings)).collect();
    findings.extend(shared_ports(&parts));
    let (taken, free): (Vec<_>, Vec<_>) = parts.iter().partition(|part| is_in_use(part.listen));
    if !free.is_empty() {
        findings.extend(taken.iter().map(|part| {
            let text = format!("{} is in use, while ports of other parts are free", part.listen);
            let next = "find the program that has it, or name another port";
            DoctorFinding::doubtful(format!("{}.listen", part.section), text, next)
        }));
    }
    if findings.is_empty() {
        findings.push(DoctorFinding::good("ports", "all are free, or in use as while Reveille runs"));
    }
    findings
}

/// Returns parts with the address of a part before.
fn shared_ports(parts: &[PartPlace<'_>]) -> Vec<DoctorFinding> {
    let fixed: Vec<_> = parts.iter().filter(|part| part.listen.port() != 0).collect();
    let mut findings = Vec::new();
    for (index, part) in fixed.iter().enumerate() {
        if let Some(first) = fixed[..index].iter().find(|first| first.listen == part.listen) {
            let text = format!("{} is the address of {} too", part.listen, first.section);
            findings.push(DoctorFinding::wrong(
                format!("{}.listen", part.section),
                text,
                "name another port",
            ));
        }
    }
    findings
}

fn is_in_use(listen: SocketAddr) -> bool {
    TcpListener::bind(listen).is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

fn port(part: &PartPlace<'_>, is_encrypted: bool, settings: &Settings) -> Option<DoctorFinding> {
    let PartPlace { section, listen, .. } = part;
    let subject = format!("{section}.listen");
    if let Err(error) = TcpListener::bind(listen)
        && error.kind() != ErrorKind::AddrInUse
    {
        let next = "name an address of this machine, and a port that its user may use";
        return Some(DoctorFinding::wrong(subject, format!("cannot listen on {listen}: {error}"), next));
    }
    let is_gateway = *section == "gateway";
    let has_tls =
        if is_gateway { !settings.gateway.certificate.as_os_str().is_empty() } else { is_encrypted };
    if has_tls {
        return None;
    }
    let certificate = if is_gateway { "gateway.certificate" } else { "tls.certificate" };
    let exposed = ServerTls::check_exposure(*listen, None, certificate, false).err()?.to_string();
    let next = "give it certificates before the site goes into use";
    Some(match settings.tls.insecure {
        true => DoctorFinding::doubtful(subject, exposed, next),
        false => DoctorFinding::wrong(subject, exposed, ""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::{FindingVerdict, listed};

    /// Settings without fixed ports.
    fn portless() -> Settings {
        let mut settings = Settings::default();
        for listen in [
            &mut settings.gateway.listen,
            &mut settings.component_registry.listen,
            &mut settings.session_manager.listen,
            &mut settings.status_evaluator.listen,
            &mut settings.power_controller.listen,
            &mut settings.config_coordinator.listen,
            &mut settings.host_provisioner.listen,
            &mut settings.fleet_manager.listen,
            &mut settings.insight.listen,
            &mut settings.simulator.listen,
        ] {
            listen.set_port(0);
        }
        settings
    }

    fn verdicts(findings: &[DoctorFinding]) -> Vec<(&str, FindingVerdict)> {
        findings.iter().map(|finding| (finding.subject.as_str(), finding.verdict)).collect()
    }

    #[test]
    fn data_directories_are_tried_and_not_made() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("a/b");
        assert_eq!(super::directory("data_dir", directory.path()).verdict, FindingVerdict::Good);
        let found = super::directory("data_dir", &missing);
        assert_eq!((found.verdict, missing.exists()), (FindingVerdict::Good, false), "{found:?}");
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(super::directory("data_dir", &file.join("below")).verdict, FindingVerdict::Wrong);
    }

    #[test]
    fn files_that_do_not_fit_are_named_by_their_setting() {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        assert_eq!(verdicts(&files(&settings)), [("data_dir", FindingVerdict::Good)]);
        settings.tls.certificate = directory.path().join("gateway.pem");
        settings.machine_file = directory.path().join("machine.toml");
        settings.gateway.certificate = directory.path().join("gateway.pem");
        settings.gateway.identity.policy_file = directory.path().join("policy.toml");
        settings.audit.to = "/proc/nowhere".to_owned();
        let found = files(&settings);
        let wrong = [
            ("audit.to", FindingVerdict::Wrong),
            ("gateway.identity", FindingVerdict::Wrong),
            ("gateway.identity.policy_file", FindingVerdict::Wrong),
            ("tls", FindingVerdict::Wrong),
            ("gateway.certificate", FindingVerdict::Wrong),
            ("machine_file", FindingVerdict::Wrong),
        ];
        assert_eq!(verdicts(&found)[1..], wrong, "{}", listed(&found));
    }

    #[test]
    fn ports_that_others_reach_have_to_be_encrypted() {
        let mut settings = portless();
        assert_eq!(verdicts(&ports(&settings)), [("ports", FindingVerdict::Good)]);
        settings.insight.listen = "0.0.0.0:0".parse().unwrap();
        settings.fleet_manager.listen = "192.0.2.1:7709".parse().unwrap();
        let found = ports(&settings);
        let wrong =
            [("fleet_manager.listen", FindingVerdict::Wrong), ("insight.listen", FindingVerdict::Wrong)];
        assert_eq!(verdicts(&found), wrong, "{}", listed(&found));
        settings.tls.insecure = true;
        assert_eq!(verdicts(&ports(&settings))[1], ("insight.listen", FindingVerdict::Doubtful));
    }

    #[test]
    fn ports_that_others_have_are_named() {
        let mut settings = portless();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        settings.gateway.listen = taken.local_addr().unwrap();
        assert_eq!(verdicts(&ports(&settings)), [("gateway.listen", FindingVerdict::Doubtful)]);
        drop(taken);
        settings.insight.listen = settings.gateway.listen;
        assert_eq!(verdicts(&ports(&settings)), [("insight.listen", FindingVerdict::Wrong)]);
    }

    #[tokio::test]
    async fn databases_are_connected_to() {
        let mut settings = Settings::default();
        assert_eq!(verdicts(&databases(&settings).await), [], "files are in the data directory");
        settings.session_manager.database_url = "postgres://nobody:secret@127.0.0.1:9/none".into();
        let found = databases(&settings).await;
        assert_eq!(verdicts(&found), [("session_manager.database_url", FindingVerdict::Wrong)]);
        assert!(!listed(&found).contains("secret"), "{found:?}");
    }
}
