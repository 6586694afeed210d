//! A mesh of processes, and sessions that succeed through faults.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use integration_tests::{bos::Bos, eventually_shown, processes::Processes};
use proto::power::{ListTransitionsRequest, Transition, power_service_client::PowerServiceClient};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tonic::Status;

/// Template that every stage has.
pub const TEMPLATE: &str = "image-1";

/// Part that has transitions on record.
const POWER: &str = "power_controller";

/// Pause between two writes.
const PAUSE: Duration = Duration::from_millis(10);

/// Pause between two checks for a dead part.
const LOOK: Duration = Duration::from_millis(10);

/// Sets up a mesh that runs: its template boots the nodes of every role, and no node may need a second attempt.
pub async fn furnish(bos: &Bos, nodes: usize) {
    bos.discovered(nodes).await;
    bos.options(&json!({"default_retry_policy": 1})).await;
    let every_role = |template: &mut Value| {
        template["boot_sets"]["compute"]["node_roles_groups"] = json!(["Compute", "Application"]);
    };
    bos.template_with(TEMPLATE, every_role).await;
}

/// Changes an option to a new value, and returns the status.
pub async fn change_an_option(bos: &Bos) -> Result<u16, String> {
    static NEXT: AtomicU32 = AtomicU32::new(1000);
    let options = json!({"max_boot_wait_time": NEXT.fetch_add(1, Ordering::Relaxed)});
    let answer = bos.try_send(Method::PATCH, "/v2/options", Some(&options)).await;
    answer.map(|answer| answer.status.as_u16()).map_err(|error| format!("{error:?}"))
}

/// Waits until a write succeeds and returns the elapsed time.
pub async fn until_written(bos: &Bos) -> Duration {
    let began = Instant::now();
    eventually_shown("a write", async || match change_an_option(bos).await {
        Ok(200) => Ok(()),
        other => Err(other),
    })
    .await;
    began.elapsed()
}

/// Replaces parts that abort, for ever.
pub async fn replace(mesh: &mut Processes) -> Infallible {
    loop {
        mesh.replace_aborted();
        sleep(LOOK).await;
    }
}

/// Does `work` while parts that abort are replaced.
pub async fn replacing<T>(mesh: &mut Processes, work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        never = replace(mesh) => match never {},
    }
}

/// Creates a session, however often it takes, and waits until it is complete and has done all that it should.
pub async fn see_through(bos: &Bos, operation: &str, name: &str) {
    create(bos, operation, name).await;
    bos.complete(name).await;
    let whole = async || {
        let path = format!("/v2/sessions/{name}/status");
        let status = bos.try_send(Method::GET, &path, None).await.map_err(|error| format!("{error:?}"))?;
        if status.body["percent_successful"] == json!(100.0) { Ok(()) } else { Err(status.body.to_string()) }
    };
    eventually_shown(&format!("all nodes of {name}"), whole).await;
}

/// Creates a session. An answer that got lost is asked for again, and the session may be there by then.
pub async fn create(bos: &Bos, operation: &str, name: &str) {
    let wish = json!({"template_name": TEMPLATE, "operation": operation, "name": name});
    let mut tries = 0;
    eventually_shown(&format!("a session {name}"), async || {
        tries += 1;
        match bos.try_send(Method::POST, "/v2/sessions", Some(&wish)).await {
            Ok(answer) if answer.status.is_success() || (answer.status == 409 && tries > 1) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Transitions on record at the power controller at `url`.
pub async fn transitions(url: &str) -> Vec<Transition> {
    let client = PowerServiceClient::new(chassis::plain_channel(url).unwrap());
    let list = async || -> Result<_, Status> {
        let mut pages =
            client.clone().list_transitions(ListTransitionsRequest::default()).await?.into_inner();
        let mut transitions = Vec::new();
        while let Some(page) = pages.message().await? {
            transitions.extend(page.transitions);
        }
        Ok(transitions)
    };
    eventually_shown("the transitions", list).await
}

/// Checks the power controller's records: no node needed a second attempt at anything.
pub async fn attempted_once(mesh: &Processes) {
    no_second_attempt(&mesh.url(POWER)).await;
}

/// Checks as [`attempted_once`] does, while an armed part may still abort.
pub async fn attempted_once_replacing(mesh: &mut Processes) {
    let power = mesh.url(POWER);
    replacing(mesh, no_second_attempt(&power)).await;
}

async fn no_second_attempt(power: &str) {
    for transition in transitions(power).await {
        let again = transition.members.iter().find(|member| member.attempt > 1);
        assert!(again.is_none(), "{transition:?}");
    }
}

/// A client that writes continuously, and remembers the acknowledged writes.
pub struct SteadyWriter {
    stop: Arc<AtomicBool>,
    running: JoinHandle<WriterResult>,
}

/// Result of a [`SteadyWriter`].
pub struct WriterResult {
    acknowledged: Vec<String>,
    /// Requests that were not answered with a success. Each was made again.
    pub repeated: usize,
}

impl SteadyWriter {
    /// Writes records of components that the machine does not have, one after the other.
    pub fn start(bos: &Bos) -> Self {
        let (stop, bos) = (Arc::new(AtomicBool::new(false)), bos.clone());
        let stopped = Arc::clone(&stop);
        let running = tokio::spawn(async move {
            let mut written = WriterResult { acknowledged: Vec::new(), repeated: 0 };
            while !stopped.load(Ordering::Relaxed) {
                let id = format!("extra-{}", written.acknowledged.len());
                let path = format!("/v2/components/{id}");
                let record = json!({"enabled": false, "error": id});
                match bos.try_send(Method::PUT, &path, Some(&record)).await {
                    Ok(answer) if answer.status.is_success() => written.acknowledged.push(id),
                    Ok(_) | Err(_) => written.repeated += 1,
                }
                sleep(PAUSE).await;
            }
            written
        });
        Self { stop, running }
    }

    /// Stops writing.
    pub async fn stop(self) -> WriterResult {
        self.stop.store(true, Ordering::Relaxed);
        self.running.await.unwrap()
    }
}

impl WriterResult {
    /// Everything that was acknowledged is there.
    pub async fn is_kept(&self, bos: &Bos) {
        assert!(!self.acknowledged.is_empty(), "nothing was written");
        let components = bos.get("/v2/components").await;
        let held: BTreeSet<_> =
            components.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        let lost: Vec<_> = self.acknowledged.iter().filter(|id| !held.contains(id.as_str())).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        eprintln!(
            "{} writes were acknowledged and kept, {} made again",
            self.acknowledged.len(),
            self.repeated
        );
    }
}
