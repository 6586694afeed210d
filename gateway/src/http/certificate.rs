//! The certificate of a listener: given by the settings, or made at the first start and kept.

use std::{
    fs,
    io::Write as _,
    net::{IpAddr, SocketAddr},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use chassis::settings::FaceSettings;
use rcgen::{CertificateParams, DnType, KeyPair};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

/// Files of a certificate and its key.
struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// Face that has a listener of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaceListener<'a> {
    /// Word for the face in settings, and in the names of files.
    pub face: &'static str,
    pub settings: &'a FaceSettings,
    /// Directory that keeps a certificate that was made.
    pub directory: &'a Path,
    pub listen: SocketAddr,
}

/// Returns what makes connections of a listener secret; none if its settings want plain ones.
///
/// # Errors
/// When the certificate cannot be read or made, or plain connections are wanted from other machines.
pub(crate) fn acceptor(listener: FaceListener<'_>) -> anyhow::Result<Option<TlsAcceptor>> {
    let FaceListener { face, settings, directory, listen } = listener;
    if settings.plain {
        let field = format!("gateway.{face}.plain");
        anyhow::ensure!(listen.ip().is_loopback(), "{field}: clients of other machines need a certificate");
        return Ok(None);
    }
    let files = given(face, settings)?.map_or_else(|| kept(face, directory, listen.ip()), Ok)?;
    let read = |path: &Path| format!("cannot read {}", path.display());
    let chain =
        CertificateDer::pem_file_iter(&files.certificate).with_context(|| read(&files.certificate))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().with_context(|| read(&files.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).with_context(|| read(&files.key))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .with_context(|| format!("gateway.{face}: certificate and key do not fit"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn given(face: &str, settings: &FaceSettings) -> anyhow::Result<Option<CertificateFiles>> {
    let FaceSettings { certificate, key, .. } = settings;
    match (certificate.as_os_str().is_empty(), key.as_os_str().is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some(CertificateFiles { certificate: certificate.clone(), key: key.clone() })),
        (true, false) => anyhow::bail!("gateway.{face}.certificate: missing, although there is a key"),
        (false, true) => anyhow::bail!("gateway.{face}.key: missing, although there is a certificate"),
    }
}

/// Returns the files of our own certificate, which are made if there are none.
fn kept(face: &str, directory: &Path, address: IpAddr) -> anyhow::Result<CertificateFiles> {
    let certificate = directory.join(format!("{face}-certificate.pem"));
    let key = directory.join(format!("{face}-key.pem"));
    let files = CertificateFiles { certificate, key };
    if files.certificate.exists() && files.key.exists() {
        return Ok(files);
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let pair = KeyPair::generate()?;
    let mut parameters = CertificateParams::new(names(address))?;
    parameters.distinguished_name.push(DnType::CommonName, "Reveille");
    let made = parameters.self_signed(&pair)?;
    write(&files.key, &pair.serialize_pem())?;
    write(&files.certificate, &made.pem())?;
    tracing::info!(certificate = %files.certificate.display(), "made a certificate");
    Ok(files)
}

/// Returns the names under which clients know this machine.
fn names(address: IpAddr) -> Vec<String> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = ["localhost", "127.0.0.1", "::1", host.trim()].into_iter().map(str::to_owned);
    let mut names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    let address = address.to_string();
    if !names.contains(&address) {
        names.push(address);
    }
    names
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}
