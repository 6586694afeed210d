//! Abandonment of transitions, on the word of an operator that they have no further effect.
//!
//! A mark on the record is all of it: the replica that acts follows the record. A transition of another client gets a
//! record for that, so no later term waits for it either.

use std::sync::Arc;

use chassis::{Fault, process::clock, store::ledger::Draft};
use domain::{
    boot::power::transition::{PowerTransition, TransitionDelivery},
    core::{event::Actor, invalid::Invalid},
};

use crate::{
    convert,
    driver::UpstreamTransition,
    holder::{self, HolderQuestion, NodeHolder},
    journal::is_open,
};

/// Access to the transitions that may be abandoned.
pub(crate) struct TransitionAbandonment {
    pub(crate) holders: HolderQuestion,
}

impl TransitionAbandonment {
    /// Marks the transition as abandoned that has this `id`, here or at the upstream, or that holds the component; one of
    /// the two is empty. One that is over, here and at the upstream, or was abandoned before stays as it is. Returns its
    /// record from then on.
    ///
    /// # Errors
    /// When there is no such transition, or one of another client has ended; when the one that holds the component is of this
    /// service and was not called off, because its time is not over or because it is in doubt; when the upstream has to be
    /// asked and does not answer, or the database does not.
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
        let recorded = self.holders.transitions.view().all();
        let named = recorded.iter().filter(|one| one.id == id || one.upstream_id == id);
        let named = named.max_by_key(|one| is_open(one));
        let is_known =
            |one: &PowerTransition| is_open(one) || one.abandoned_at.is_some() || one.upstream_id.is_empty();
        if named.is_some_and(|one| is_known(one)) {
            return self.mark(id.to_owned(), None, request_id).await;
        }
        let upstream_id = named.map_or(id, |one| &one.upstream_id);
        let found = self.holders.driver.look_up(upstream_id, self.holders.deadline()).await;
        let found = found.map_err(|failure| Fault::unavailable("power upstream", failure));
        match (named, found) {
            // The upstream may have begun again with one that is over on record.
            (Some(over), Ok(found)) => {
                self.mark(over.id.clone(), found.filter(|found| found.open), request_id).await
            }
            (Some(over), Err(fault)) => {
                tracing::debug!(id, %fault, "the transition is over on record");
                Ok(PowerTransition::clone(over))
            }
            (None, Err(fault)) => Err(fault),
            (None, Ok(Some(found))) if !found.open => Err(Fault::Locked {
                kind: "transition".to_owned(),
                name: id.to_owned(),
                reason: "it is of another client of the power upstream, and has ended".to_owned(),
            }),
            (None, Ok(found)) => self.mark(id.to_owned(), found, request_id).await,
        }
    }

    /// Abandons the transition that holds the component. One of this service within its time is meant only if its id is
    /// named: a person who says it again does not mean a later transition.
    async fn abandon_of(&self, component_id: &str, request_id: String) -> Result<PowerTransition, Fault> {
        if let Some(own) = self.holders.own(component_id) {
            return match own.withdrawn_at {
                Some(_) => self.mark(own.id.clone(), None, request_id).await,
                None => Err(within_its_time(&own, component_id)),
            };
        }
        let mut holders = self.holders.ask(vec![component_id.to_owned()]).await?;
        match (holders.found.pop(), holders.unread) {
            (Some((NodeHolder::Foreign(found), _)), _) => {
                self.mark(found.id.clone(), Some(found), request_id).await
            }
            (Some((NodeHolder::Own(held) | NodeHolder::Abandoned(held), _)), _) => {
                self.mark(held.id.clone(), None, request_id).await
            }
            (None, Some(unread)) => Err(Fault::unavailable("power upstream", unread)),
            (None, None) => Err(Fault::not_found("transition that holds component", component_id)),
        }
    }

    /// Marks a transition on record, or puts one of another client on record, as it was `found` at the upstream.
    async fn mark(
        &self,
        id: String,
        found: Option<UpstreamTransition>,
        request_id: String,
    ) -> Result<PowerTransition, Fault> {
        let now = Some(clock::now());
        let write = self.holders.transitions.write_by(Actor::Client, move |draft| {
            let held = draft.get(&id).or_else(|| known_upstream(draft, &id));
            let before = match (held, found) {
                (Some(held), _) if held.abandoned_at.is_some() => return Ok(PowerTransition::clone(&held)),
                (Some(held), None) if !is_open(&held) => return Ok(PowerTransition::clone(&held)),
                (Some(held), _) => PowerTransition::clone(&held),
                (None, Some(found)) => PowerTransition {
                    id: convert::new_id(),
                    delivery: TransitionDelivery::Finished,
                    created_at: holder::began(&found).or(now),
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
}

fn within_its_time(own: &PowerTransition, component_id: &str) -> Fault {
    Fault::Locked {
        kind: "transition".to_owned(),
        name: own.id.clone(),
        reason: format!(
            "it holds component '{component_id}' and was not called off yet; name it by its id to abandon it all the same"
        ),
    }
}

/// Returns the transition that the upstream has under this id, which is the id that operators read in texts.
fn known_upstream(draft: &Draft<'_, PowerTransition>, upstream_id: &str) -> Option<Arc<PowerTransition>> {
    // A transition that was not sent has no such id.
    let named = draft.select(|one| !upstream_id.is_empty() && one.upstream_id == upstream_id);
    named.into_iter().max_by_key(|one| is_open(one))
}
