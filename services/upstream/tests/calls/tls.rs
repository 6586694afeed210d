//! Verification of a peer's certificate: authority, name and validity.

use std::{path::Path, sync::Arc};

use chassis::settings;
use expect_test::expect;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::{io::AsyncReadExt, net::TcpListener};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivateKeyDer},
};
use upstream::{Failure, FailureKind, Peer, Request};

use crate::server::{say, settings, steady};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Serves TLS with a certificate for `name`, and returns the address.
async fn serve(authority: &Authority, name: &str) -> std::net::SocketAddr {
    present(authority, CertificateParams::new(vec![name.to_owned()]).unwrap()).await
}

/// Serves TLS with a certificate of `params`, and returns the address.
async fn present(authority: &Authority, params: CertificateParams) -> std::net::SocketAddr {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let Ok(mut connection) = acceptor.accept(connection).await else { continue };
            let mut head = [0; 4096];
            if matches!(connection.read(&mut head).await, Ok(1..)) {
                say(&mut connection, b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\n1")
                    .await;
            }
        }
    });
    address
}

fn trusting(address: std::net::SocketAddr, ca_file: &Path) -> settings::Peer {
    settings::Peer {
        plain_http: false,
        ca_file: ca_file.to_owned(),
        ..settings(&format!("https://{address}"))
    }
}

async fn ask(peer: &Peer) -> Result<(), Failure> {
    peer.call(Request::get("test", "/")).await.map(|_| ())
}

#[tokio::test]
async fn certificates_are_verified_by_default() {
    let (directory, ours, other) = (tempfile::tempdir().unwrap(), authority(), authority());
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, ours.pem()).unwrap();
    let good = serve(&ours, "127.0.0.1").await;
    let (foreign, misnamed) = (serve(&other, "127.0.0.1").await, serve(&ours, "pcs.example").await);
    assert_eq!(ask(&Peer::new("PCS", &trusting(good, &file)).unwrap()).await, Ok(()));
    let mut table = String::new();
    for address in [foreign, misnamed] {
        let failure = ask(&Peer::new("PCS", &trusting(address, &file)).unwrap()).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unreachable);
        table.push_str(&steady(&failure.text, address));
        table.push('\n');
        let careless = settings::Peer { verify_tls: false, ..trusting(address, &file) };
        assert_eq!(ask(&Peer::new("PCS", &careless).unwrap()).await, Ok(()));
    }
    expect![[r#"
        PCS at ADDRESS (failing since TIME: invalid peer certificate: BadSignature)
        PCS at ADDRESS (failing since TIME: invalid peer certificate: certificate not valid for name "127.0.0.1"; certificate is only valid for DnsName("pcs.example"))
    "#]].assert_eq(&table);
    let system = settings::Peer { ca_file: "".into(), ..trusting(good, &file) };
    assert_eq!(ask(&Peer::new("PCS", &system).unwrap()).await.unwrap_err().kind, FailureKind::Unreachable);
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_refused_as_such() {
    let (directory, ours) = (tempfile::tempdir().unwrap(), authority());
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, ours.pem()).unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let failure = ask(&Peer::new("PCS", &trusting(present(&ours, params).await, &file)).unwrap()).await;
    let failure = failure.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable, "nothing was sent");
    assert!(failure.text.contains("invalid peer certificate: certificate expired"), "{}", failure.text);
}

#[tokio::test]
async fn authorities_are_read_again_when_they_change() {
    let (directory, old, new) = (tempfile::tempdir().unwrap(), authority(), authority());
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, old.pem()).unwrap();
    let (before, after) = (serve(&old, "127.0.0.1").await, serve(&new, "127.0.0.1").await);
    let group = upstream::PeerGroup::new("PCS", &trusting(before, &file)).unwrap();
    let [before, after] = [before, after].map(|at| group.peer("PCS", &format!("https://{at}"), "").unwrap());
    assert!(ask(&before).await.is_ok() && ask(&after).await.is_err());
    std::fs::write(&file, new.pem() + &old.pem()).unwrap();
    assert!(ask(&before).await.is_ok() && ask(&after).await.is_ok());
    std::fs::write(&file, "half written").unwrap();
    assert!(ask(&before).await.is_ok() && ask(&after).await.is_ok(), "those before stay");
    std::fs::write(&file, new.pem()).unwrap();
    assert!(ask(&before).await.is_err() && ask(&after).await.is_ok());
}

#[test]
fn settings_that_cannot_work_are_refused_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, "no certificate").unwrap();
    let fine = settings::Peer { plain_http: false, ..settings("https://pcs.example") };
    let with = |change: &dyn Fn(&mut settings::Peer)| {
        let mut settings = fine.clone();
        change(&mut settings);
        settings
    };
    let mut table = String::new();
    for settings in [
        fine.clone(),
        with(&|peer| peer.url.clear()),
        with(&|peer| peer.url = "http://pcs.example".into()),
        with(&|peer| peer.url = "https://root:s3cret@pcs.example".into()),
        with(&|peer| peer.ca_file = file.clone()),
        with(&|peer| peer.ca_file = directory.path().join("missing")),
        with(&|peer| peer.credentials = "s3cret".into()),
        with(&|peer| peer.credentials = "vault:s3cret".into()),
        with(&|peer| peer.connect_seconds = 0.0),
        with(&|peer| peer.answer_seconds = -1.0),
        with(&|peer| peer.total_seconds = f64::NAN),
        with(&|peer| peer.total_seconds = 1e9),
        with(&|peer| peer.batch_size = 0),
        with(&|peer| peer.calls_in_flight = 0),
        with(&|peer| peer.largest_answer = 0),
    ] {
        let told = Peer::new("PCS", &settings).map_or_else(|error| error.to_string(), |_| "fine".to_owned());
        assert!(!told.contains("s3cret"));
        table.push_str(&told.replace(&directory.path().display().to_string(), "DIRECTORY"));
        table.push('\n');
    }
    expect![[r#"
        fine
        url: is not set
        url: is not encrypted, which has to be allowed by plain_http = true
        url: holds a user, who belongs into the credentials
        ca_file: DIRECTORY/ca.pem: holds no certificate
        ca_file: DIRECTORY/missing: No such file or directory (os error 2)
        credentials: has to be file:PATH or env:NAME
        credentials: has to be file:PATH or env:NAME
        connect_seconds: has to be more than 0 and at most 86400 seconds
        answer_seconds: has to be more than 0 and at most 86400 seconds
        total_seconds: has to be more than 0 and at most 86400 seconds
        total_seconds: has to be more than 0 and at most 86400 seconds
        batch_size: has to be at least 1
        calls_in_flight: has to be at least 1
        largest_answer: has to be at least 1
    "#]]
    .assert_eq(&table);
}
