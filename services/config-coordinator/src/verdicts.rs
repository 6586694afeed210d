//! Verdicts on refusals: whether the nodes are at fault, or the service that refuses.

use std::{collections::HashMap, hash::Hash};

use domain::core::refusal::{RefusalMemory, Witness};
use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    isolate::GroupPart,
    step::PlacingStep,
    trouble::StepTrouble,
    upstream::{Failure, FailureKind},
};

/// Refusals of one step, which separate trouble of the service from trouble of items. The memory is lost with the
/// process: after a restart the verdict on a refusal has to be found again.
pub(crate) struct StepVerdicts<K> {
    step: PlacingStep,
    state: Mutex<VerdictState<K>>,
}

struct VerdictState<K> {
    refusals: RefusalMemory<K>,
    /// Status with which the service refuses every item; `None`: it takes calls, or was not called yet. The status is
    /// compared, because the text may name other nodes each time.
    refuses: Option<StatusCode>,
}

impl<K: Clone + Eq + Hash> StepVerdicts<K> {
    pub(crate) fn new(step: PlacingStep) -> Self {
        Self { step, state: Mutex::new(VerdictState { refusals: RefusalMemory::default(), refuses: None }) }
    }

    /// Returns the number of the next round of calls.
    pub(crate) fn next_round(&self) -> u32 {
        self.state.lock().refusals.next_round()
    }

    /// Returns the troubles of the items that were not taken in a round; each group has its parts. Trouble of the
    /// service is logged when it begins, when its status changes and when it ends.
    pub(crate) fn troubles<T>(
        &self,
        groups: &[Vec<GroupPart<K, T>>],
        generation: impl Fn(&K) -> u64,
        now: Instant,
    ) -> HashMap<K, StepTrouble> {
        let mut state = self.state.lock();
        for part in groups.iter().flatten() {
            state.note(part, &generation, now);
        }
        let (mut troubles, mut refuses) = (HashMap::new(), None);
        for parts in groups {
            let within = parts.iter().any(|part| part.outcome.is_ok());
            for part in parts {
                let Err(failure) = &part.outcome else { continue };
                let (mut set_aside, mut ground) = (0, "");
                for item in part.items.iter() {
                    let trouble = match failure.kind {
                        FailureKind::Unreachable | FailureKind::Ambiguous => StepTrouble::awaited(failure),
                        FailureKind::Denied => StepTrouble::refusing(failure),
                        FailureKind::Refused => match state.ground(item, failure, within, now) {
                            Some(found) => {
                                (set_aside, ground) = (set_aside + 1, found);
                                StepTrouble::refused(self.step, failure)
                            }
                            None => {
                                refuses.get_or_insert(failure);
                                StepTrouble::refusing(failure)
                            }
                        },
                    };
                    troubles.insert(item.clone(), trouble);
                }
                if set_aside > 0 {
                    tracing::warn!(%failure, step = ?self.step, nodes = set_aside, why = ground, "nodes set aside after a refusal");
                }
            }
        }
        let is_taken = groups.iter().flatten().any(|part| part.outcome.is_ok());
        state.log(self.step, refuses, is_taken);
        troubles
    }

    /// Forgets items that no longer exist.
    pub(crate) fn forget<'a>(&self, items: impl IntoIterator<Item = &'a K>)
    where
        K: 'a,
    {
        self.state.lock().refusals.forget(items);
    }
}

impl<K: Clone + Eq + Hash> VerdictState<K> {
    fn note<T>(&mut self, part: &GroupPart<K, T>, generation: impl Fn(&K) -> u64, now: Instant) {
        if part.outcome.is_ok() {
            self.refusals.take(part.items.iter(), now.into_std());
        } else if part.is_refused() {
            self.refusals.refuse(part.items.iter().map(|item| (item, generation(item))), now.into_std());
        }
    }

    /// Returns why an item is set aside that was refused just now; `None`: it waits for the service.
    fn ground(&mut self, item: &K, failure: &Failure, within: bool, now: Instant) -> Option<&'static str> {
        if is_definite(failure) {
            return Some("it is about the nodes themselves");
        }
        let witness = self.refusals.blame(item, within, now.into_std())?;
        Some(match witness {
            Witness::Before => "others were taken before",
            Witness::Nobody | Witness::Elsewhere | Witness::Within => "others are taken",
        })
    }

    fn log(&mut self, step: PlacingStep, refuses: Option<&Failure>, is_taken: bool) {
        match refuses {
            Some(failure) if self.refuses != failure.status => {
                tracing::warn!(?step, %failure, "every node is refused, waiting for the service");
                self.refuses = failure.status;
            }
            None if is_taken && self.refuses.take().is_some() => {
                tracing::info!(?step, "nodes are taken again");
            }
            Some(_) | None => {}
        }
    }
}

/// Returns whether a refusal is about the item, whatever the state of the service: this service refused it, or the peer
/// does not have the one thing that the call named.
fn is_definite(failure: &Failure) -> bool {
    failure.status.is_none_or(|status| status == StatusCode::NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::*;

    fn part(items: &[u32], outcome: Result<(), u16>) -> GroupPart<u32, ()> {
        let failure = |status| Failure {
            kind: if status == 403 { FailureKind::Denied } else { FailureKind::Refused },
            status: StatusCode::from_u16(status).ok(),
            text: format!("CFS ({status})"),
        };
        GroupPart::of_single_call(items.into(), outcome.map_err(failure))
    }

    #[test]
    fn items_are_refused_only_while_others_are_taken() {
        let (verdicts, start) = (StepVerdicts::new(PlacingStep::Configuration), Instant::now());
        let mut rows = String::new();
        let mut round = |seconds: u64, generation: u64, groups: &[Vec<GroupPart<u32, ()>>]| {
            let now = start + Duration::from_secs(seconds);
            let mut troubles: Vec<_> = verdicts.troubles(groups, |_| generation, now).into_iter().collect();
            troubles.sort_by_key(|(item, _)| *item);
            rows += &format!("{seconds} s: {troubles:?}\n");
        };
        round(0, 1, &[vec![part(&[1, 2], Ok(()))]]);
        round(10, 1, &[vec![part(&[1], Err(400)), part(&[2], Err(400))], vec![part(&[3], Err(404))]]);
        round(40, 1, &[vec![part(&[1], Err(400))], vec![part(&[2], Ok(()))]]);
        round(59, 1, &[vec![part(&[1], Err(400))], vec![part(&[2], Ok(()))]]);
        round(60, 1, &[vec![part(&[1], Err(400))]]);
        round(70, 2, &[vec![part(&[1], Err(400))]]);
        round(71, 2, &[vec![part(&[2], Err(503)), part(&[3], Ok(()))]]);
        round(100, 3, &[vec![part(&[1], Err(400))]]);
        round(159, 3, &[vec![part(&[1], Err(400))]]);
        round(160, 3, &[vec![part(&[1], Err(400))]]);
        round(161, 3, &[vec![part(&[1], Err(400)), part(&[2], Err(400))]]);
        round(162, 3, &[vec![part(&[1], Err(403))]]);
        for seconds in [300, 350, 400] {
            round(seconds, 4, &[vec![part(&[1, 2], Err(400))]]);
        }
        expect![[r#"
            0 s: []
            10 s: [(1, Refusing("waiting for CFS (400)")), (2, Refusing("waiting for CFS (400)")), (3, Refused("Error encountered setting CFS information: CFS (404)"))]
            40 s: [(1, Refusing("waiting for CFS (400)"))]
            59 s: [(1, Refusing("waiting for CFS (400)"))]
            60 s: [(1, Refused("Error encountered setting CFS information: CFS (400)"))]
            70 s: [(1, Refusing("waiting for CFS (400)"))]
            71 s: [(2, Refused("Error encountered setting CFS information: CFS (503)"))]
            100 s: [(1, Refusing("waiting for CFS (400)"))]
            159 s: [(1, Refusing("waiting for CFS (400)"))]
            160 s: [(1, Refusing("waiting for CFS (400)"))]
            161 s: [(1, Refusing("waiting for CFS (400)")), (2, Refusing("waiting for CFS (400)"))]
            162 s: [(1, Refusing("waiting for CFS (403)"))]
            300 s: [(1, Refusing("waiting for CFS (400)")), (2, Refusing("waiting for CFS (400)"))]
            350 s: [(1, Refusing("waiting for CFS (400)")), (2, Refusing("waiting for CFS (400)"))]
            400 s: [(1, Refusing("waiting for CFS (400)")), (2, Refusing("waiting for CFS (400)"))]
        "#]]
        .assert_eq(&rows);
    }
}
