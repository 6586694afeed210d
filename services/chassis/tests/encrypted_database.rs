//! Connections to a PostgreSQL behind TLS: its authority and its name are verified.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::{fs, path::Path, sync::Arc, time::Duration};

use chassis::store::database::connect;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sea_orm::ConnectionTrait as _;
use sea_orm_migration::{MigrationTrait, MigratorTrait};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};

/// Bound of a connection, good or bad.
const BOUND: Duration = Duration::from_secs(60);

/// Message of a client of PostgreSQL that asks for TLS: its length, and a number in place of a version.
const ENCRYPTION_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

struct NoTables;

impl MigratorTrait for NoTables {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Vec::new()
    }
}

/// Authority with a certificate for `localhost`.
struct TestAuthority {
    certificate: String,
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
}

impl TestAuthority {
    fn new() -> Self {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let own = own.signed_by(&key, &issuer).unwrap();
        Self { certificate, chain: vec![own.der().clone()], key: key.serialize_der() }
    }

    fn write(&self, path: &Path) -> String {
        fs::write(path, &self.certificate).unwrap();
        path.display().to_string()
    }

    fn acceptor(&self) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), key);
        TlsAcceptor::from(Arc::new(config.unwrap()))
    }
}

/// Ends TLS in front of the server at `address`, as a pooler does, and returns its own port.
async fn terminate(address: String, acceptor: TlsAcceptor) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            tokio::spawn(relay(client, address.clone(), acceptor.clone()));
        }
    });
    port
}

/// Passes an encrypted connection on. A client that does not ask for TLS is closed.
async fn relay(mut client: TcpStream, address: String, acceptor: TlsAcceptor) -> std::io::Result<()> {
    let mut asked = [0; 8];
    client.read_exact(&mut asked).await?;
    if asked != ENCRYPTION_REQUEST {
        return Ok(());
    }
    client.write_all(b"S").await?;
    let mut client = acceptor.accept(client).await?;
    let mut server = TcpStream::connect(address).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn authority_and_name_of_the_database_are_verified() {
    let Some(url) = test_databases::on_postgres().await else { return };
    let (before, rest) = url.split_once('@').unwrap();
    let (address, database) = rest.split_once('/').unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (right, wrong) = (TestAuthority::new(), TestAuthority::new());
    let right_file = right.write(&directory.path().join("right.pem"));
    let wrong_file = wrong.write(&directory.path().join("wrong.pem"));
    let port = terminate(address.to_owned(), right.acceptor()).await;
    for (host, mode, file, told) in [
        ("localhost", "verify-full", &right_file, None),
        ("localhost", "verify-full", &wrong_file, Some("certificate")),
        ("127.0.0.1", "verify-full", &right_file, Some("certificate")),
        ("127.0.0.1", "verify-ca", &right_file, None),
        ("localhost", "disable", &right_file, Some("")),
    ] {
        let url = format!("{before}@{host}:{port}/{database}?sslmode={mode}&sslrootcert={file}");
        let connected = tokio::time::timeout(BOUND, connect::<NoTables>(&url)).await.unwrap();
        match (connected, told) {
            (Ok(database), None) => drop(database.execute_unprepared("SELECT 1").await.unwrap()),
            (Err(error), Some(told)) => {
                let error = format!("{error:#}");
                assert!(error.contains(told), "{host} {mode}: {error}");
            }
            (Ok(_), Some(_)) => panic!("{host} {mode} {file}: connected"),
            (Err(error), None) => panic!("{host} {mode} {file}: {error:#}"),
        }
    }
}
