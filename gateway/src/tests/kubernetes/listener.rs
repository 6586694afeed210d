//! The port of the face, with the certificate that is made at the first start.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

use super::*;
use crate::{
    http::{
        certificate::{self, FaceListener},
        serve::{self, ServedListener},
    },
    port::CallerChecks,
};

fn acceptor(
    settings: &Settings,
    listen: std::net::SocketAddr,
) -> anyhow::Result<Option<chassis::mesh::tls::ServerTls>> {
    certificate::of_face(FaceListener {
        face: "kubernetes",
        settings: &settings.gateway.kubernetes,
        directory: &settings.data_dir,
        listen,
    })
}

fn connector(certificate: &std::path::Path) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn listener_is_secret_by_a_certificate_that_is_kept() {
    let site = HostSite::start().await;
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = acceptor(&settings, address).unwrap();
    let certificate = directory.path().join("kubernetes-certificate.pem");
    let made = std::fs::read(&certificate).unwrap();
    assert!(acceptor(&settings, address).unwrap().is_some());
    assert_eq!(std::fs::read(&certificate).unwrap(), made);
    let app = crate::port::face_app(site.router.clone(), crate::kubernetes::PREFIX, CallerChecks::default());
    let limits = crate::limits(&settings.gateway, &ProcessCapacity::of_process(&settings));
    let served = ServedListener { listener, tls };
    let serving = serve::serve(served, app, crate::port::is_vital, limits, site.context.tasks.shutdown());
    let serving = tokio::spawn(serving);
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = connector(&certificate).connect(name, stream).await.unwrap();
    stream.write_all(b"GET /version HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("\"gitVersion\":\"v1."), "{answer}");
    site.stop().await;
    serving.await.unwrap();
}

#[test]
fn plain_connections_stay_on_the_machine() {
    let mut settings = Settings::default();
    settings.gateway.kubernetes.plain = true;
    let acceptor = |address: &str| acceptor(&settings, address.parse().unwrap());
    assert!(acceptor("127.0.0.1:1").unwrap().is_none());
    assert!(acceptor("0.0.0.0:1").is_err());
}
