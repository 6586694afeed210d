//! Certificates and authorities of the systems around a mesh that are replaced all the time, and one that has expired.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use integration_tests::{
    authority::{CertificateAuthority, CertificateValidity},
    eventually_shown,
    processes::{PEERS, Processes},
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};
use upstreams::{MachinePlan, NodePace, Service};

use crate::{
    history::{HistoryMark, is_safe},
    stage::{SteadyWriter, attempted_once, create, furnish, see_through},
};

const NODES: u32 = 10;

/// Duration of each step of a node, so that a boot sees some generations of certificates.
const STEP: Duration = Duration::from_secs(1);

/// Time between replacements of all certificates and their authority.
const ROTATION: Duration = Duration::from_secs(1);

/// System whose certificate expires, by the name that metrics and errors give it.
const EXPIRED: &str = "CFS";

/// A proxy that terminates TLS in front of a system that does not.
#[derive(Clone)]
struct TlsFront {
    url: String,
    config: Arc<Mutex<Arc<ServerConfig>>>,
    validity: Arc<Mutex<CertificateValidity>>,
}

impl TlsFront {
    /// Stands before the systems at `address` with a certificate of `authority`.
    async fn before(
        address: SocketAddr,
        authority: &CertificateAuthority,
        validity: CertificateValidity,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let config = Arc::new(Mutex::new(config(authority, validity)));
        let front = Self {
            url: format!("https://{}", listener.local_addr().unwrap()),
            config: Arc::clone(&config),
            validity: Arc::new(Mutex::new(validity)),
        };
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let acceptor = TlsAcceptor::from(Arc::clone(&config.lock().unwrap()));
                tokio::spawn(async move {
                    // A client that rejects the certificate closes the connection.
                    let Ok(mut connection) = acceptor.accept(connection).await else { return };
                    let mut system = TcpStream::connect(address).await.unwrap();
                    // Either end may go at any time.
                    let _ended = tokio::io::copy_bidirectional(&mut connection, &mut system).await;
                });
            }
        });
        front
    }

    /// Shows a certificate of `authority` to new connections.
    fn present(&self, authority: &CertificateAuthority) {
        let validity = *self.validity.lock().unwrap();
        *self.config.lock().unwrap() = config(authority, validity);
    }

    /// Makes the next certificate a valid one.
    fn renew(&self) {
        *self.validity.lock().unwrap() = CertificateValidity::Now;
    }
}

fn config(authority: &CertificateAuthority, validity: CertificateValidity) -> Arc<ServerConfig> {
    let issued = authority.certificate(validity);
    let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    let builder = ServerConfig::builder().with_no_client_auth();
    Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
}

/// Replaces the file of trusted authorities by a rename, as a rotation does.
fn trust(file: &Path, authorities: [&CertificateAuthority; 2]) {
    let next = file.with_extension("next");
    fs::write(&next, authorities.map(CertificateAuthority::pem).concat()).unwrap();
    fs::rename(next, file).unwrap();
}

/// Replaces everything again and again: an authority is trusted for a while before it is seen.
async fn rotate(file: PathBuf, fronts: [TlsFront; 2], mut current: CertificateAuthority) {
    loop {
        let next = CertificateAuthority::new();
        trust(&file, [&current, &next]);
        sleep(ROTATION).await;
        fronts.iter().for_each(|front| front.present(&next));
        current = next;
    }
}

/// Returns the calls to systems with valid certificates without a known answer, as the parts count them.
async fn unanswered(mesh: &Processes) -> Vec<String> {
    let mut found = Vec::new();
    for part in mesh.parts() {
        let metrics =
            reqwest::get(format!("{}/metrics", mesh.url(part))).await.unwrap().text().await.unwrap();
        let calls = metrics.lines().filter(|line| line.starts_with("reveille_upstream_calls_total"));
        let failed = calls.filter(|line| {
            ["unreachable", "ambiguous"]
                .iter()
                .any(|outcome| line.contains(&format!("outcome=\"{outcome}\"")))
        });
        let expired = format!("peer=\"{EXPIRED}\"");
        found.extend(failed.filter(|line| !line.contains(&expired)).map(str::to_owned));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_rotation_is_seamless_and_an_expired_certificate_is_named() {
    let mut mesh = Processes::prepare();
    let pace =
        NodePace { soft_off: STEP, power_on: STEP, boot: STEP, configuration: STEP, ..NodePace::default() };
    let upstreams = mesh.among(MachinePlan { up: true, pace: Some(pace), ..MachinePlan::quick(NODES) }).await;
    let (file, first) = (mesh.directory.path().join("authorities.pem"), CertificateAuthority::new());
    fs::write(&file, first.pem()).unwrap();
    let valid = TlsFront::before(upstreams.address(), &first, CertificateValidity::Now).await;
    let expired = TlsFront::before(upstreams.address(), &first, CertificateValidity::Over).await;
    for (peer, service) in PEERS {
        let front = if service == Service::Cfs { &expired } else { &valid };
        let url = upstreams.url_of(service).replace(&upstreams.url(), &front.url);
        let file = file.display();
        mesh.set(&format!("[{peer}]\nurl = \"{url}\"\nca_file = \"{file}\"\nplain_http = false\n"));
    }
    let rotation = tokio::spawn(rotate(file, [valid, expired.clone()], first));
    mesh.begin().await;
    furnish(&mesh.bos, NODES as usize).await;
    let (mark, writer) = (HistoryMark::now(&upstreams), SteadyWriter::start(&mesh.bos));
    create(&mesh.bos, "reboot", "through-rotations").await;
    eventually_shown("a component that waits because of an expired certificate", async || {
        let components = mesh.bos.get("/v2/components").await;
        let errors = components.as_array().unwrap().iter().filter_map(|one| one["error"].as_str());
        let errors: BTreeSet<_> = errors.map(str::to_owned).collect();
        let is_named = |error: &String| error.contains(EXPIRED) && error.contains("certificate expired");
        if errors.iter().any(is_named) { Ok(()) } else { Err(errors) }
    })
    .await;
    expired.renew();
    see_through(&mesh.bos, "reboot", "through-rotations").await;
    rotation.abort();
    writer.stop().await.is_kept(&mesh.bos).await;
    is_safe(&upstreams, &mark, &["Soft-Off", "On"]);
    attempted_once(&mesh).await;
    assert_eq!(unanswered(&mesh).await, Vec::<String>::new());
}
