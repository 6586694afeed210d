//! Restores transitions that the database has lost: its standby took over without the last commits, or a backup was
//! restored.
//!
//! Requests to the upstream have happened whether they are on record or not, and without the record they would be
//! repeated. So the holder of the role records again all that it knows, and deletes or closes transitions that
//! reappeared although they were over or withdrawn. Every replica remembers the open transitions, so the next holder
//! does the same for one that has died with the database.

use std::{collections::HashSet, sync::Arc};

use domain::{
    boot::{
        component::loss::{Record, Remedy, remedy},
        power::transition::{PowerTransition, TaskOutcome, TransitionDelivery, TransitionMember},
    },
    core::trouble::Trouble,
};

use crate::{
    convert,
    journal::{JournalChanges, RoleLost, TransitionJournal, is_open},
    memory::{TransitionEnd, TransitionMemory},
    outcome,
};

/// Lost transitions, each with its remedy.
type TransitionLosses = Vec<(Remedy, Arc<PowerTransition>)>;

/// Compares the record with the memory. Returns the losses in the order in which to restore them. `is_over`: every
/// attempt of the transition is known to have ended.
pub(crate) fn losses(
    memory: &TransitionMemory,
    journal: &TransitionJournal,
    is_over: impl Fn(&PowerTransition) -> bool,
) -> TransitionLosses {
    let record = journal.all().into_iter().filter(|one| memory.get(&one.id).is_none());
    let mut losses: TransitionLosses = memory
        .all()
        .cloned()
        .chain(record)
        .filter_map(|one| {
            let known = memory.get(&one.id).map(|known| known.revision);
            let record = journal.get(&one.id);
            let record = record.map(|held| Record { revision: held.revision, is_open: is_open(&held) });
            let left = memory.end_of(&one.id);
            let is_over = left.is_some_and(|end| end.is_on_record) || is_over(&one);
            let remedy = remedy(known, record, left.is_some(), is_over)?;
            Some((
                remedy,
                left.filter(|_| remedy == Remedy::Close).map_or(one.clone(), |end| ended(&one, end).into()),
            ))
        })
        .collect();
    losses.sort_by_key(|(remedy, _)| *remedy);
    losses
}

/// Transitions that are on record again.
pub(crate) struct RestoredTransitions {
    pub(crate) transitions: Vec<Arc<PowerTransition>>,
    /// Whether every loss is restored. Otherwise the next holder of the role needs the memory of this one.
    pub(crate) is_whole: bool,
}

/// Restores `losses`.
pub(crate) async fn make_good(journal: &TransitionJournal, losses: TransitionLosses) -> RestoredTransitions {
    let returned = losses.iter().filter(|(remedy, _)| remedy.is_of_what_came_back());
    let returned: HashSet<String> = returned.map(|(_, one)| one.id.clone()).collect();
    let mut restored = RestoredTransitions { transitions: Vec::new(), is_whole: true };
    for (remedy, transition) in losses {
        tracing::warn!(transition = transition.id, ?remedy, "re-recording transition after database loss");
        match mend(journal, remedy, &transition, &returned).await {
            Ok(()) if remedy.is_of_what_came_back() => {}
            Ok(()) => restored.transitions.push(transition),
            Err(lost) => {
                restored.is_whole = false;
                tracing::info!(transition = transition.id, why = %lost, "transition not re-recorded");
            }
        }
    }
    restored
}

/// Carries out one remedy. Transitions that `returned` block no other.
async fn mend(
    journal: &TransitionJournal,
    remedy: Remedy,
    transition: &PowerTransition,
    returned: &HashSet<String>,
) -> Result<(), RoleLost> {
    match remedy {
        Remedy::Close => journal.put(transition.clone()).await,
        Remedy::Delete => {
            let delete = vec![transition.id.clone()];
            journal.write(JournalChanges { put: Vec::new(), delete }).await
        }
        Remedy::Renew | Remedy::Restore => journal.restore(transition, returned).await,
    }
}

/// Returns a transition that had reached its `end` as ended once more. Its outcomes are lost and count as failures, but for
/// members that had none: their effect may still come.
fn ended(transition: &PowerTransition, end: &TransitionEnd) -> PowerTransition {
    const LOST: &str = "the database had lost its end";
    let mut over = PowerTransition { delivery: TransitionDelivery::Finished, ..transition.clone() };
    let had_outcome = |member: &&mut TransitionMember| {
        outcome::is_unresolved(member) && end.is_on_record && !end.unresolved.contains(&member.id)
    };
    for member in over.members.iter_mut().filter(had_outcome) {
        member.outcome = TaskOutcome::Failed;
        LOST.clone_into(&mut member.error);
    }
    convert::with_trouble(over, Trouble::failed(LOST).as_ref())
}

#[cfg(test)]
mod tests {
    use chassis::process::clock;
    use domain::boot::{bos::options::Options, component::Action, power::Outlook};
    use proto::power::{PowerReading, PowerState};

    use super::*;
    use crate::engine::NodeRecords;

    #[test]
    fn effect_of_a_transition_that_had_ended_is_awaited_without_outcome_only() {
        let members =
            ["x1", "x2"].map(|id| TransitionMember { id: id.into(), generation: 1, ..Default::default() });
        let open = PowerTransition {
            action: Some(Action::PoweringOffGracefully),
            delivery: TransitionDelivery::Accepted,
            sent_at: Some(clock::now()),
            members: members.to_vec(),
            ..PowerTransition::default()
        };
        let unresolved = HashSet::from(["x2".to_owned()]);
        let on_record = TransitionEnd { id: "t".to_owned(), is_on_record: true, unresolved };
        let deleted = TransitionEnd { is_on_record: false, unresolved: HashSet::new(), id: "t".to_owned() };
        for (end, id, is_settled) in
            [(&on_record, "x1", true), (&on_record, "x2", false), (&deleted, "x1", false)]
        {
            let nodes = NodeRecords::recall(vec![Arc::new(ended(&open, end))]);
            let state =
                PowerState { id: id.into(), reading: PowerReading::On.into(), ..PowerState::default() };
            let outlook = nodes.outlook(&state, 2, &Options::default(), clock::now());
            assert_eq!(outlook == Outlook::Settled, is_settled, "{id}");
        }
    }
}
