//! Certificates and authorities of the systems around a mesh that are replaced all the time, and one that has expired.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use integration_tests::{
    authority::{CertificateAuthority, CertificateValidity},
    eventually_shown,
    processes::{PEERS, Processes},
    tls_front::TlsFront,
};
use tokio::time::sleep;
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
