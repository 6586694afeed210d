//! Abandonment of transitions, on the word of an operator that they have no further effect.
//!
//! A mark on the record is all of it: the replica that acts follows the record. A transition of another client gets a
//! record for that, so no later term waits for it either.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::{
    Fault,
    kinds::options::OptionsRecord,
    observe::mirror::Mirror,
    process::clock,
    store::ledger::{Draft, Ledger},
};
use domain::{
    boot::power::transition::{PowerTransition, TransitionDelivery},
    core::{event::Actor, invalid::Invalid},
};

use crate::{
    convert,
    driver::{PowerUpstream, UpstreamTransition},
    journal::is_open,
    store::TransitionTable,
};

/// Access to the transitions that may be abandoned.
pub(crate) struct TransitionAbandonment {
    pub(crate) transitions: Ledger<TransitionTable>,
    pub(crate) driver: PowerUpstream,
    pub(crate) options: Mirror<OptionsRecord>,
}

impl TransitionAbandonment {
    /// Marks the transition as abandoned that has this `id`, here or at the upstream, or that has the component; one of
    /// the two is empty. One that is over on record or was abandoned before stays as it is. Returns its record from then
    /// on.
    ///
    /// # Errors
    /// When there is no such transition, or one of another client has ended; when the upstream has to be asked and does
    /// not answer, or the database does not.
    pub(crate) async fn abandon(
        &self,
        id: String,
        component_id: String,
        request_id: String,
    ) -> Result<PowerTransition, Fault> {
        match (id.is_empty(), component_id.is_empty()) {
            (false, true) => self.abandon_one(&id, request_id).await,
            (true, false) => self.abandon_of(&component_id, request_id).await,
            (true, true) | (false, false) => {
                Err(Invalid::new("id", "is needed, or 'component_id' in its place").into())
            }
        }
    }

    async fn abandon_one(&self, id: &str, request_id: String) -> Result<PowerTransition, Fault> {
        let recorded = self.transitions.view().all();
        if recorded.iter().any(|one| one.id == id || one.upstream_id == id) {
            return self.mark(id.to_owned(), None, request_id).await;
        }
        let found = self.driver.look_up(id, self.deadline()).await;
        let found = found.map_err(|failure| Fault::unavailable("power upstream", failure))?;
        match found {
            Some(found) if !found.open => Err(Fault::Locked {
                kind: "transition".to_owned(),
                name: id.to_owned(),
                reason: "it is of another client of the power upstream, and has ended".to_owned(),
            }),
            found => self.mark(id.to_owned(), found, request_id).await,
        }
    }

    /// Abandons the transition that holds the component at the upstream, or else the open one on record.
    async fn abandon_of(&self, component_id: &str, request_id: String) -> Result<PowerTransition, Fault> {
        let holders = self.driver.holders(&HashSet::from([component_id.to_owned()]), self.deadline()).await;
        let mut holders = holders.map_err(|failure| Fault::unavailable("power upstream", failure))?;
        let abandoned: HashSet<_> = self.abandoned_ids();
        holders.retain(|one| !abandoned.contains(&one.id));
        if let Some(holder) = holders.into_iter().next() {
            return self.mark(holder.id.clone(), Some(holder), request_id).await;
        }
        let recorded = self.transitions.view().all();
        let has_it = |one: &&Arc<PowerTransition>| {
            is_open(one) && one.members.iter().any(|member| member.id == component_id)
        };
        let open = recorded.iter().find(has_it);
        let open = open.ok_or_else(|| Fault::not_found("open transition of component", component_id))?;
        self.mark(open.id.clone(), None, request_id).await
    }

    /// Marks a transition on record, or puts one of another client on record, as it was `found` at the upstream.
    async fn mark(
        &self,
        id: String,
        found: Option<UpstreamTransition>,
        request_id: String,
    ) -> Result<PowerTransition, Fault> {
        let now = Some(clock::now());
        let write = self.transitions.write_by(Actor::Client, move |draft| {
            let held = draft.get(&id).or_else(|| known_upstream(draft, &id));
            let before = match (held, found) {
                (Some(held), _) if !is_open(&held) || held.abandoned_at.is_some() => {
                    return Ok(PowerTransition::clone(&held));
                }
                (Some(held), _) => PowerTransition::clone(&held),
                (None, Some(found)) => PowerTransition {
                    id: convert::new_id(),
                    delivery: TransitionDelivery::Finished,
                    created_at: now,
                    ..PowerTransition::of_another(found.action, &found.id, found.ids)
                },
                (None, None) => return Err(Fault::not_found("transition", &id)),
            };
            let abandoned = PowerTransition { abandoned_at: now, abandoned_by: request_id, ..before };
            draft.put(abandoned.clone());
            Ok(abandoned)
        });
        write.await.map(|(transition, _)| transition)
    }

    fn abandoned_ids(&self) -> HashSet<String> {
        let recorded = self.transitions.view().all();
        let abandoned = recorded.iter().filter(|one| one.abandoned_at.is_some());
        abandoned.map(|one| one.upstream_id.clone()).collect()
    }

    /// Returns the deadline for answers of the upstream (BOS reference 4, `pcs_read_timeout`).
    fn deadline(&self) -> Duration {
        Duration::from_secs(self.options.in_force().pcs_read_timeout.into())
    }
}

/// Returns the transition that the upstream has under this id, which is the id that operators read in texts.
fn known_upstream(draft: &Draft<'_, PowerTransition>, upstream_id: &str) -> Option<Arc<PowerTransition>> {
    // A transition that was not sent has no such id.
    let named = draft.select(|one| !upstream_id.is_empty() && one.upstream_id == upstream_id);
    named.into_iter().max_by_key(|one| is_open(one))
}
