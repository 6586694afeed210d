//! Ids that follow a request from the gateway through every service it reaches.

use std::future::Future;

use uuid::Uuid;

/// Header and metadata key that carries the id.
pub const HEADER: &str = "x-request-id";

/// Longest id that is taken over from a caller, so that logs stay readable.
const LONGEST: usize = 128;

tokio::task_local! {
    static CURRENT: String;
}

/// Runs `work` as part of request `id`: calls that it makes carry the id on.
pub async fn scope<F: Future>(id: String, work: F) -> F::Output {
    CURRENT.scope(id, work).await
}

/// Id of the request that is being worked for, if any.
pub fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// The id that a caller gave, or a new one.
pub fn accept(given: Option<&str>) -> String {
    match given {
        Some(id) if !id.is_empty() && id.len() <= LONGEST && id.bytes().all(|b| b.is_ascii_graphic()) => {
            id.to_owned()
        }
        _ => Uuid::new_v4().to_string(),
    }
}
