//! Census of sessions by state, and their results, from changes of the records.

use std::{collections::HashMap, convert::Infallible, pin::pin, sync::Arc};

use chassis::store::resource::Batch;
use domain::boot::session::{Progress, Session, SessionResult};
use futures_util::StreamExt;
use metrics::{counter, gauge};

use crate::{record::SessionRecord, shared::ManagerState};

/// Sessions by state.
const SESSIONS: &str = "reveille_sessions";

/// Sessions that ended.
const RESULTS: &str = "reveille_session_results_total";

/// States of sessions in the census.
const STATES: [&str; 4] = ["pending", "running", "paused", "complete"];

/// Result of a session that a version without results completed.
const UNKNOWN: &str = "unknown";

/// Counts sessions until the end of a term, while this replica acts: every replica would count the same.
pub(crate) async fn run(shared: ManagerState) -> anyhow::Result<Infallible> {
    metrics::describe_gauge!(SESSIONS, "Sessions by state");
    metrics::describe_counter!(RESULTS, "Sessions that ended by operation and result");
    let shown = ShownCensus;
    let mut census = SessionCensus::default();
    let mut batches = pin!(shared.sessions.follow());
    while let Some(batch) = batches.next().await {
        for ended in census.apply(&batch) {
            let result = ended.session.result.as_ref().map_or(UNKNOWN, SessionResult::word);
            let operation = ended.session.operation.word();
            counter!(RESULTS, "operation" => operation, "result" => result).increment(1);
        }
        if batch.synced {
            let view = shared.sessions.view();
            census.keep(|key| view.get(key).is_some());
        }
        shown.show(&census);
    }
    anyhow::bail!("the ledger of sessions ended")
}

/// Census in the metrics, which is withdrawn when this is dropped.
struct ShownCensus;

impl ShownCensus {
    fn show(&self, census: &SessionCensus) {
        for state in STATES {
            gauge!(SESSIONS, "state" => state).set(census.counts.get(state).copied().unwrap_or(0) as f64);
        }
    }
}

impl Drop for ShownCensus {
    fn drop(&mut self) {
        self.show(&SessionCensus::default());
    }
}

/// Sessions with their states.
#[derive(Default)]
struct SessionCensus {
    states: HashMap<Arc<str>, &'static str>,
    counts: HashMap<&'static str, usize>,
    /// Whether everything on record was seen once.
    is_complete: bool,
}

impl SessionCensus {
    /// Applies changes, and returns the sessions that ended by them.
    fn apply(&mut self, batch: &Batch<SessionRecord>) -> Vec<Arc<SessionRecord>> {
        batch.deleted.iter().for_each(|deletion| self.set(&deletion.key, None));
        let mut ended = Vec::new();
        for record in &batch.changed {
            let state = state(&record.session);
            let was_complete = self.states.get(&record.key) == Some(&Progress::Complete.word());
            if self.is_complete && record.session.progress == Progress::Complete && !was_complete {
                ended.push(Arc::clone(record));
            }
            self.set(&record.key, Some(state));
        }
        self.is_complete |= batch.synced;
        ended
    }

    /// Removes sessions that are not on record any more.
    fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        let gone: Vec<_> = self.states.keys().filter(|key| !is_kept(key)).cloned().collect();
        gone.iter().for_each(|key| self.set(key, None));
    }

    fn set(&mut self, key: &Arc<str>, state: Option<&'static str>) {
        let before = match state {
            Some(state) => self.states.insert(Arc::clone(key), state),
            None => self.states.remove(key),
        };
        if let Some(count) = before.and_then(|before| self.counts.get_mut(before)) {
            *count -= 1;
        }
        if let Some(state) = state {
            *self.counts.entry(state).or_default() += 1;
        }
    }
}

fn state(session: &Session) -> &'static str {
    match session.progress {
        Progress::Pending | Progress::Running if session.pause.is_some() => "paused",
        progress => progress.word(),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use chassis::store::resource::ResourceDeletion;
    use domain::{
        boot::{
            session::{NewSession, SessionPause, create},
            template::Operation,
        },
        core::{id::Tenant, time::Timestamp},
    };
    use expect_test::expect;

    use super::*;

    fn session(name: &str) -> Session {
        let wish = NewSession {
            name: name.to_owned(),
            tenant: Tenant::default(),
            operation: Operation::Boot,
            template_name: "t".to_owned(),
            limit: String::new(),
            stage: false,
            include_disabled: false,
            retry_of: None,
            plan: None,
            confirmed_nodes: None,
            rollout: None,
        };
        create(wish, &Default::default(), Default::default(), format!("{name}-id"), Timestamp(1)).unwrap()
    }

    fn record(name: &str, word: &str) -> Arc<SessionRecord> {
        let session = session(name);
        let pause = SessionPause {
            by: "alice".into(),
            since: Timestamp(1),
            reason: Arc::default(),
            request_id: Arc::default(),
        };
        let (progress, pause) = match word {
            "pending" => (Progress::Pending, None),
            "running" => (Progress::Running, None),
            "paused" => (Progress::Running, Some(pause)),
            _ => (Progress::Complete, None),
        };
        Arc::new(SessionRecord::new(Session { progress, pause, ..session }))
    }

    #[test]
    fn a_session_ends_once() {
        let mut census = SessionCensus::default();
        let mut rows = String::new();
        for (words, synced) in [
            ("a:pending b:complete", true),
            ("a:running c:complete", false),
            ("a:paused c:complete", false),
            ("a:complete b:deleted", false),
            ("a:running", true),
        ] {
            let words = words.split(' ').map(|word| word.split_once(':').unwrap());
            let (deleted, changed): (Vec<_>, Vec<_>) = words.partition(|(_, word)| *word == "deleted");
            let key = |name: &str| SessionRecord::new(session(name)).key;
            let deleted = deleted.iter().map(|(name, _)| ResourceDeletion { key: key(name), revision: 1 });
            let changed = changed.iter().map(|(name, word)| record(name, word)).collect();
            let batch = Batch { changed, deleted: deleted.collect(), revision: 1, synced };
            let ended: Vec<_> = census.apply(&batch).iter().map(|one| one.session.name.clone()).collect();
            let counts = STATES.map(|state| census.counts.get(state).copied().unwrap_or(0));
            writeln!(rows, "{counts:?} ended {ended:?}").unwrap();
        }
        census.keep(|_| false);
        writeln!(rows, "{:?}", census.states.len()).unwrap();
        expect![[r#"
            [1, 0, 0, 1] ended []
            [0, 1, 0, 2] ended ["c"]
            [0, 0, 1, 2] ended []
            [0, 0, 0, 2] ended ["a"]
            [0, 1, 0, 1] ended []
            0
        "#]]
        .assert_eq(&rows);
    }
}
