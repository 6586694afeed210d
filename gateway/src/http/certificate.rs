//! The certificate of a listener: given by the settings, or made at the first start and kept.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use anyhow::Context as _;
use chassis::{
    mesh::tls::{CertificateFiles, ServerTls, self_signed, write_private},
    settings::{FaceSettings, GatewaySettings},
};

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

/// Port with a certificate of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CertifiedPort<'a> {
    /// Word for the port in settings, and in the names of files.
    pub name: &'static str,
    /// Files of the settings; empty: none.
    pub certificate: &'a Path,
    pub key: &'a Path,
    /// Directory that keeps a certificate that was made.
    pub directory: &'a Path,
    pub listen: SocketAddr,
}

impl CertifiedPort<'_> {
    /// Returns the files of the settings, or those of a certificate that is made at the first start and kept.
    ///
    /// # Errors
    /// When a file is missing, or cannot be made.
    pub(crate) fn files(self) -> anyhow::Result<CertificateFiles> {
        let given = given(&format!("gateway.{}", self.name), self.certificate, self.key)?;
        given.map_or_else(|| kept(self.name, self.directory, self.listen.ip()), Ok)
    }
}

/// Returns the TLS of the common port; none if it has no certificate.
///
/// # Errors
/// When the certificate cannot be read, or there is none for a port that other machines reach.
pub(crate) fn common(
    settings: &GatewaySettings,
    listen: SocketAddr,
    insecure: bool,
) -> anyhow::Result<Option<ServerTls>> {
    let files = given("gateway", &settings.certificate, &settings.key)?;
    let tls = files.map(|files| ServerTls::for_anyone(&files)).transpose().context("gateway.certificate")?;
    ServerTls::check_exposure(listen, tls.as_ref(), "gateway.certificate and gateway.key", insecure)?;
    Ok(tls)
}

/// Returns the TLS of a face's own port; none if its settings want plain connections.
///
/// # Errors
/// When the certificate cannot be read or made, or plain connections are wanted from other machines.
pub(crate) fn of_face(listener: FaceListener<'_>) -> anyhow::Result<Option<ServerTls>> {
    let FaceListener { face, settings, directory, listen } = listener;
    if settings.plain {
        let field = format!("gateway.{face}.plain");
        anyhow::ensure!(listen.ip().is_loopback(), "{field}: clients of other machines need a certificate");
        return Ok(None);
    }
    let (certificate, key) = (&*settings.certificate, &*settings.key);
    let files = CertifiedPort { name: face, certificate, key, directory, listen }.files()?;
    ServerTls::for_anyone(&files).map(Some).with_context(|| format!("gateway.{face}"))
}

fn given(section: &str, certificate: &Path, key: &Path) -> anyhow::Result<Option<CertificateFiles>> {
    match (certificate.as_os_str().is_empty(), key.as_os_str().is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some(CertificateFiles { certificate: certificate.into(), key: key.into() })),
        (true, false) => anyhow::bail!("{section}.certificate: missing, although there is a key"),
        (false, true) => anyhow::bail!("{section}.key: missing, although there is a certificate"),
    }
}

/// Returns the files of our own certificate, which are made if there are none.
fn kept(port: &str, directory: &Path, address: IpAddr) -> anyhow::Result<CertificateFiles> {
    let certificate = directory.join(format!("{port}-certificate.pem"));
    let key = directory.join(format!("{port}-key.pem"));
    let files = CertificateFiles { certificate, key };
    if files.certificate.exists() && files.key.exists() {
        return Ok(files);
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let made = self_signed(names(address))?;
    write_private(&files.key, &made.key)?;
    write_private(&files.certificate, &made.certificate)?;
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
