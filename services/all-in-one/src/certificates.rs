//! `reveille certificates`: an authority and certificates for one machine or a test cluster.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use chassis::{
    Settings, cause_first,
    mesh::tls::{CertificateIssuer, IssuedCertificate, write_private},
};
use clap::Args;
use domain::core::workload::WorkloadIdentity;

/// Holders of certificates: the parts by their sections in the settings, and the operator, for calls over gRPC.
const HOLDERS: [&str; 11] = [
    "component_registry",
    "session_manager",
    "status_evaluator",
    "power_controller",
    "config_coordinator",
    "host_provisioner",
    "fleet_manager",
    "insight",
    "simulator",
    "gateway",
    "operator",
];

/// File with the authorities, in the directory.
const AUTHORITIES: &str = "ca.pem";

/// Last line of a PEM certificate.
const CERTIFICATE_END: &str = "-----END CERTIFICATE-----\n";

/// Flags of `reveille certificates`.
#[derive(Args)]
pub(crate) struct CertificateFlags {
    /// Directory for the files; created where missing
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Further name or address under which machines reach the parts; may be repeated
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Trust domain of the identities
    #[arg(long, value_name = "DOMAIN", default_value = "reveille")]
    trust_domain: String,
    /// Days until the certificates end
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36500))]
    days: u32,
}

/// Makes the files and prints the settings to use them.
pub(crate) fn run(flags: &CertificateFlags) -> ExitCode {
    match make(flags) {
        Ok(settings) => {
            print!("{settings}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}", cause_first(&error));
            ExitCode::FAILURE
        }
    }
}

/// Replaces all certificates. The previous authority stays trusted, so that running parts go on meanwhile.
fn make(flags: &CertificateFlags) -> anyhow::Result<String> {
    let directory = &flags.directory;
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let directory = fs::canonicalize(directory).with_context(|| directory.display().to_string())?;
    let issuer = CertificateIssuer::new(flags.days)?;
    let issued = HOLDERS.map(|holder| Ok((holder, issue(&issuer, flags, holder)?)));
    let issued = issued.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let authorities = directory.join(AUTHORITIES);
    write_private(&authorities, &(issuer.pem() + &latest_authority(&authorities)?))?;
    for (holder, IssuedCertificate { certificate, key }) in issued {
        write_private(&directory.join(format!("{holder}-key.pem")), &key)?;
        write_private(&directory.join(format!("{holder}.pem")), &certificate)?;
    }
    Ok(settings(&directory))
}

fn issue(
    issuer: &CertificateIssuer,
    flags: &CertificateFlags,
    holder: &str,
) -> anyhow::Result<IssuedCertificate> {
    let identity = format!("spiffe://{}/{}", flags.trust_domain, holder.replace('_', "-"));
    let identity = WorkloadIdentity::parse(&identity)
        .with_context(|| format!("--trust-domain: '{}' is no trust domain", flags.trust_domain))?;
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    names.extend(flags.names.iter().cloned());
    issuer.issue(&identity, &names).context("--name")
}

/// Returns the newest authority of a file, which is the first; nothing if there is no file.
fn latest_authority(file: &Path) -> anyhow::Result<String> {
    if !file.exists() {
        return Ok(String::new());
    }
    let all = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let end = all.find(CERTIFICATE_END).map_or(0, |at| at + CERTIFICATE_END.len());
    Ok(all[..end].to_owned())
}

/// Settings of the whole mesh in one process, and of parts that run on this machine.
fn settings(directory: &Path) -> String {
    let directory = directory.display();
    let defaults = Settings::default();
    let mut text = format!(
        "\
# A part that is a process of its own takes its own certificate:
#   reveille-PART --set tls.certificate={directory}/PART.pem --set tls.key={directory}/PART-key.pem
[tls]
ca_file = \"{directory}/{AUTHORITIES}\"
certificate = \"{directory}/gateway.pem\"
key = \"{directory}/gateway-key.pem\"

[gateway]
certificate = \"{directory}/gateway.pem\"
key = \"{directory}/gateway-key.pem\"
url = \"https://{}\"
",
        defaults.gateway.listen
    );
    for (part, listen) in [
        ("component_registry", defaults.component_registry.listen),
        ("session_manager", defaults.session_manager.listen),
        ("status_evaluator", defaults.status_evaluator.listen),
        ("power_controller", defaults.power_controller.listen),
        ("config_coordinator", defaults.config_coordinator.listen),
        ("host_provisioner", defaults.host_provisioner.listen),
        ("fleet_manager", defaults.fleet_manager.listen),
        ("insight", defaults.insight.listen),
        ("simulator", defaults.simulator.listen),
    ] {
        text += &format!("\n[{part}]\nurl = \"https://{listen}\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use chassis::mesh::tls::ServerTls;
    use domain::access::calls::CALL_TABLE;

    use super::*;

    #[test]
    fn printed_settings_use_the_files_that_were_made() {
        let directory = tempfile::tempdir().unwrap();
        let flags = |days| CertificateFlags {
            directory: directory.path().join("certificates"),
            names: vec!["boot.example".into()],
            trust_domain: "site".into(),
            days,
        };
        make(&flags(1)).unwrap();
        let first = fs::read_to_string(flags(1).directory.join(AUTHORITIES)).unwrap();
        let printed = make(&flags(2)).unwrap();
        let both = fs::read_to_string(flags(1).directory.join(AUTHORITIES)).unwrap();
        assert!(both.ends_with(&first) && both.matches("BEGIN").count() == 2, "{both}");
        let file = directory.path().join("reveille.toml");
        fs::write(&file, printed).unwrap();
        let settings = Settings::load(Some(&file), &[]).unwrap();
        assert_eq!(settings.check_encryption(), Ok(()));
        assert!(ServerTls::for_parts(&settings.tls, CALL_TABLE).unwrap().is_some());
        let made = fs::read_dir(flags(1).directory).unwrap().map(|file| file.unwrap());
        let modes: Vec<_> = made.map(|file| file.metadata().unwrap().permissions().mode() & 0o777).collect();
        assert_eq!(modes, vec![0o600; 2 * HOLDERS.len() + 1]);
    }

    #[test]
    fn wrong_trust_domains_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let refused = make(&CertificateFlags {
            directory: directory.path().to_owned(),
            names: Vec::new(),
            trust_domain: "My Site".into(),
            days: 1,
        });
        assert!(refused.unwrap_err().to_string().contains("--trust-domain: 'My Site'"));
    }
}
