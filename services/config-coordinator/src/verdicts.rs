//! Verdicts on refusals: whether the nodes are at fault, or the service that refuses.

use std::{collections::HashMap, hash::Hash, time::Duration};

use domain::{
    power::REFUSED_ALONE,
    refusal::{self, RefusalStep},
};
use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    isolate::Part,
    trouble::{Step, Trouble},
    upstream::{Failure, FailureKind},
};

/// Refused items of one step with the time of their first refusal, and when the service last took others. It is a memory
/// of this process: after a restart a refusal has to show anew whose fault it is.
pub(crate) struct Verdicts<K> {
    step: Step,
    state: Mutex<VerdictState<K>>,
}

struct VerdictState<K> {
    suspects: HashMap<K, Suspect>,
    taken_at: Option<Instant>,
    rounds: u32,
    /// Status with which the service refuses everybody; none: it takes calls, or was not called yet. Its words may name
    /// other nodes each time.
    refuses: Option<StatusCode>,
}

/// First and last refusal of an item. A newer generation is not suspected of what an older one was refused for.
#[derive(Clone, Copy)]
struct Suspect {
    generation: u64,
    since: Instant,
    last: Instant,
}

impl<K: Clone + Eq + Hash> Verdicts<K> {
    pub(crate) fn new(step: Step) -> Self {
        let state = VerdictState { suspects: HashMap::new(), taken_at: None, rounds: 0, refuses: None };
        Self { step, state: Mutex::new(state) }
    }

    /// Number of the next round of calls.
    pub(crate) fn next_round(&self) -> u32 {
        let mut state = self.state.lock();
        state.rounds = state.rounds.wrapping_add(1);
        state.rounds
    }

    /// Troubles of the items that were not taken in a round, of which each group has its parts. Trouble of the service is
    /// logged when it begins, when its status changes and when it ends.
    pub(crate) fn troubles<T>(
        &self,
        groups: &[Vec<Part<K, T>>],
        generation: impl Fn(&K) -> u64,
        now: Instant,
    ) -> HashMap<K, Trouble> {
        let mut state = self.state.lock();
        for part in groups.iter().flatten() {
            state.note(part, &generation, now);
        }
        let (mut troubles, mut refuses) = (HashMap::new(), None);
        for parts in groups {
            let within = parts.iter().any(|part| part.outcome.is_ok());
            for part in parts {
                let Err(failure) = &part.outcome else { continue };
                let mut set_aside = 0;
                for item in part.items.iter() {
                    let trouble = if failure.kind != FailureKind::Refused {
                        Trouble::awaited(failure)
                    } else if is_definite(failure) || state.judges(item, within, now) {
                        set_aside += 1;
                        Trouble::refused(self.step, failure)
                    } else {
                        refuses.get_or_insert(failure);
                        Trouble::refusing(failure)
                    };
                    troubles.insert(item.clone(), trouble);
                }
                if set_aside > 0 {
                    tracing::warn!(%failure, step = ?self.step, nodes = set_aside, "refused while others are taken");
                }
            }
        }
        state.log(self.step, refuses, now);
        troubles
    }

    /// Forgets items that no longer exist.
    pub(crate) fn forget<'a>(&self, items: impl IntoIterator<Item = &'a K>)
    where
        K: 'a,
    {
        let mut state = self.state.lock();
        for item in items {
            state.suspects.remove(item);
        }
    }
}

impl<K: Clone + Eq + Hash> VerdictState<K> {
    fn note<T>(&mut self, part: &Part<K, T>, generation: impl Fn(&K) -> u64, now: Instant) {
        for item in part.items.iter() {
            if part.outcome.is_ok() {
                self.suspects.remove(item);
            } else if part.is_refused() {
                let generation = generation(item);
                let known = self.suspects.get(item).filter(|known| known.generation == generation).copied();
                let since = known.map_or(now, |known| known.since);
                self.suspects.insert(item.clone(), Suspect { generation, since, last: now });
            }
        }
        if part.outcome.is_ok() {
            self.taken_at = Some(now);
        }
    }

    /// Whether the service refuses this very item. `within`: it took others of its group.
    fn judges(&self, item: &K, within: bool, now: Instant) -> bool {
        let refused_for = self.suspects.get(item).map_or(Duration::ZERO, |suspect| now - suspect.since);
        let taken_ago = self.taken_at.map(|taken_at| now - taken_at);
        let is_recent = |suspect: &Suspect| now - suspect.last < REFUSED_ALONE;
        let alone = !self.suspects.iter().any(|(other, suspect)| other != item && is_recent(suspect));
        let witness = refusal::witness(within, refused_for, taken_ago, alone);
        refusal::next_step(1, witness, true) == RefusalStep::SetAside
    }

    fn log(&mut self, step: Step, refuses: Option<&Failure>, now: Instant) {
        match refuses {
            Some(failure) if self.refuses != failure.status => {
                tracing::warn!(?step, %failure, "every node is refused, waiting for the service");
                self.refuses = failure.status;
            }
            None if self.taken_at == Some(now) && self.refuses.take().is_some() => {
                tracing::info!(?step, "nodes are taken again");
            }
            Some(_) | None => {}
        }
    }
}

/// Whether a refusal is about the item, however the service feels: we refused it ourselves, or the service does not have
/// the one thing that the call named.
fn is_definite(failure: &Failure) -> bool {
    failure.status.is_none_or(|status| status == StatusCode::NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn part(items: &[u32], outcome: Result<(), u16>) -> Part<u32, ()> {
        let failure = |status| Failure {
            kind: FailureKind::Refused,
            status: StatusCode::from_u16(status).ok(),
            text: format!("CFS ({status})"),
        };
        Part { items: items.into(), outcome: outcome.map_err(failure) }
    }

    #[test]
    fn items_are_refused_only_while_others_are_taken() {
        let (verdicts, start) = (Verdicts::new(Step::Configuration), Instant::now());
        let mut rows = String::new();
        let mut round = |seconds: u64, generation: u64, groups: &[Vec<Part<u32, ()>>]| {
            let now = start + Duration::from_secs(seconds);
            let mut troubles: Vec<_> = verdicts.troubles(groups, |_| generation, now).into_iter().collect();
            troubles.sort_by_key(|(item, _)| *item);
            rows += &format!("{seconds} s: {troubles:?}\n");
        };
        round(0, 1, &[vec![part(&[1, 2], Ok(()))]]);
        round(10, 1, &[vec![part(&[1], Err(400)), part(&[2], Err(400))], vec![part(&[3], Err(404))]]);
        round(40, 1, &[vec![part(&[1], Err(400))], vec![part(&[2], Ok(()))]]);
        round(60, 1, &[vec![part(&[1], Err(400))]]);
        round(70, 2, &[vec![part(&[1], Err(400))]]);
        round(71, 2, &[vec![part(&[2], Err(503)), part(&[3], Ok(()))]]);
        round(100, 3, &[vec![part(&[1], Err(400))]]);
        round(159, 3, &[vec![part(&[1], Err(400))]]);
        round(160, 3, &[vec![part(&[1], Err(400))]]);
        round(161, 3, &[vec![part(&[1], Err(400)), part(&[2], Err(400))]]);
        expect![[r#"
            0 s: []
            10 s: [(1, Refusing("waiting for CFS (400)")), (2, Refusing("waiting for CFS (400)")), (3, Refused("Error encountered setting CFS information: CFS (404)"))]
            40 s: [(1, Refused("Error encountered setting CFS information: CFS (400)"))]
            60 s: [(1, Refused("Error encountered setting CFS information: CFS (400)"))]
            70 s: [(1, Refusing("waiting for CFS (400)"))]
            71 s: [(2, Refused("Error encountered setting CFS information: CFS (503)"))]
            100 s: [(1, Refusing("waiting for CFS (400)"))]
            159 s: [(1, Refusing("waiting for CFS (400)"))]
            160 s: [(1, Refused("Error encountered setting CFS information: CFS (400)"))]
            161 s: [(1, Refusing("waiting for CFS (400)")), (2, Refusing("waiting for CFS (400)"))]
        "#]]
        .assert_eq(&rows);
    }
}
