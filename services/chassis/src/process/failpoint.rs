//! Points at which a test aborts the process, to check that it recovers from durable state.
//!
//! A point lies on either side of every effect outside the process: every call of an upstream, every gRPC call, every
//! commit, every statement; and wherever a step of a protocol has been recorded. A test names a directory in
//! [`DIRECTORY`]. A process appends the name of each passed point to the file `passed` there; and it aborts at the
//! point `NAME` if the file `armed/NAME` exists, which it removes first, so that its replacement lives on. The number
//! in that file counts passes: 1 for the next.
//!
//! Release builds contain none of this. `services/decisions/0013-failpoints.md` gives the reasons.

use std::fmt;
#[cfg(debug_assertions)]
use std::{
    fs::{self, File},
    future::Future,
    io::Write,
    path::PathBuf,
    pin::Pin,
    sync::LazyLock,
};

#[cfg(debug_assertions)]
use parking_lot::Mutex;
use tower::Service;

/// Environment variable with the directory of a test that arms points.
pub const DIRECTORY: &str = "REVEILLE_FAILPOINTS";

/// The process is at the point `name`, and ends there if a test wants it to.
#[cfg(debug_assertions)]
pub fn pass(name: fmt::Arguments<'_>) {
    static POINTS: LazyLock<Option<FailpointFiles>> = LazyLock::new(FailpointFiles::of_environment);
    if let Some(points) = &*POINTS {
        points.pass(&name.to_string().replace(['/', ' '], "-"));
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn pass(_: fmt::Arguments<'_>) {}

#[cfg(debug_assertions)]
struct FailpointFiles {
    directory: PathBuf,
    one_at_a_time: Mutex<()>,
}

#[cfg(debug_assertions)]
impl FailpointFiles {
    fn of_environment() -> Option<Self> {
        let directory = std::env::var_os(DIRECTORY)?.into();
        Some(Self { directory, one_at_a_time: Mutex::default() })
    }

    fn pass(&self, name: &str) {
        let _alone = self.one_at_a_time.lock();
        self.note(name);
        if self.is_due(name) {
            eprintln!("aborting at {name}");
            std::process::abort();
        }
    }

    fn note(&self, name: &str) {
        let file = File::options().create(true).append(true).open(self.directory.join("passed"));
        let noted = file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
        noted.expect("the directory of a test can be written");
    }

    /// Returns whether the process is to end now.
    fn is_due(&self, name: &str) -> bool {
        let armed = self.directory.join("armed").join(name);
        let Ok(times) = fs::read_to_string(&armed) else { return false };
        match times.trim().parse::<u32>() {
            Ok(times) if times > 1 => {
                fs::write(&armed, (times - 1).to_string()).expect("the directory of a test can be written");
                false
            }
            // Another process may have been faster.
            Ok(_) | Err(_) => fs::remove_file(&armed).is_ok(),
        }
    }
}

/// A client whose calls pass `SERVICE.METHOD.before`, and `SERVICE.METHOD.after` once an answer begins or is missing.
#[derive(Debug, Clone)]
pub struct FailpointClient<S>(pub(crate) S);

#[cfg(debug_assertions)]
impl<S, B> Service<http::Request<B>> for FailpointClient<S>
where
    S: Service<http::Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let name = method(request.uri().path());
        pass_call(name.as_deref(), "before");
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await;
            pass_call(name.as_deref(), "after");
            answer
        })
    }
}

#[cfg(not(debug_assertions))]
impl<S, B> Service<http::Request<B>> for FailpointClient<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    #[inline(always)]
    fn poll_ready(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    #[inline(always)]
    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        self.0.call(request)
    }
}

/// Returns `SERVICE.METHOD` for a path such as `/reveille.power.v1.PowerService/ListTransitions`; `None` for other
/// paths, such as health checks over HTTP, which arrive at any time.
#[cfg(debug_assertions)]
fn method(path: &str) -> Option<String> {
    let (_, service_and_method) = path.rsplit_once('.')?;
    Some(service_and_method.replace('/', "."))
}

/// Passes the point on this side of the call of `method`, if it is one.
#[cfg(debug_assertions)]
fn pass_call(method: Option<&str>, side: &str) {
    if let Some(method) = method {
        pass(format_args!("{method}.{side}"));
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn a_point_ends_the_process_once_at_the_time_that_is_set() {
        let directory = tempfile::tempdir().unwrap();
        let points =
            FailpointFiles { directory: directory.path().to_owned(), one_at_a_time: Mutex::default() };
        let armed = directory.path().join("armed");
        fs::create_dir(&armed).unwrap();
        assert!(!points.is_due("PCS.transitions_create.before"));
        fs::write(armed.join("PCS.transitions_create.before"), "3").unwrap();
        let due = [(); 5].map(|()| points.is_due("PCS.transitions_create.before"));
        assert_eq!(due, [false, false, true, false, false]);
        fs::write(armed.join("PCS.transitions_create.before"), "").unwrap();
        assert!(points.is_due("PCS.transitions_create.before"));
    }

    #[test]
    fn each_time_is_noted() {
        let directory = tempfile::tempdir().unwrap();
        let points =
            FailpointFiles { directory: directory.path().to_owned(), one_at_a_time: Mutex::default() };
        for name in ["a", "b", "a"] {
            points.pass(name);
        }
        assert_eq!(fs::read_to_string(directory.path().join("passed")).unwrap(), "a\nb\na\n");
    }

    #[test]
    fn calls_are_named_by_service_and_method() {
        let named = method("/reveille.power.v1.PowerService/ListTransitions");
        assert_eq!(named.as_deref(), Some("PowerService.ListTransitions"));
        assert_eq!(method("/readyz"), None);
    }
}
