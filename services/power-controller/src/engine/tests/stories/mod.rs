//! Stories of transitions, from their first event to their last.

mod abandonment;
mod announcement;
mod delivery;
mod doubt;
mod follow;
mod holders;
mod unrecorded;
mod waits;

use domain::{
    boot::power::{Outlook, transition::TaskOutcome},
    core::{clock_offset::ClockOffset, trouble::TroubleKind},
};
use expect_test::{Expect, expect};
use proto::power::{PowerReading, PowerState};

use super::*;
use crate::driver::FoundTransitions;

pub(super) fn check(scene: &EngineScene, expected: &Expect) {
    expected.assert_eq(&scene.log);
}

/// Returns a power-on in doubt.
fn in_doubt() -> EngineScene {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.decide();
    scene.due(1);
    scene.answer(1, Err(DriverFailure::Ambiguous("no answer".to_owned())));
    scene.log.clear();
    scene
}

/// Returns the answer of the upstream with these transitions that are not on record. Its clock is right.
pub(super) fn answer(found: Vec<UpstreamTransition>) -> ForeignAnswer {
    let clock = ClockOffset::measure(START, START, START, Duration::ZERO);
    let ids = |ended: bool| {
        let listed = found.iter().filter(|one| !ended || !one.open);
        Arc::new(listed.map(|one| one.id.clone()).collect::<HashSet<_>>())
    };
    ForeignAnswer { listed: ids(false), ended: ids(true), found, clock }
}

pub(super) fn found(accepted: Vec<UpstreamTransition>) -> EngineEvent {
    EngineEvent::ForeignFound(Ok(answer(accepted)))
}

/// Returns a shutdown that the upstream never got, with the mark of an operator who gave it up. `in_doubt`: the upstream
/// may have got it; `restart`: another process goes on with it.
fn given_up(in_doubt: bool, restart: bool) -> EngineScene {
    let mut scene = EngineScene::power_off(&["x1"]);
    scene.decide();
    scene.due(1);
    let away = || "PCS is away".to_owned();
    let failure =
        if in_doubt { DriverFailure::Ambiguous(away()) } else { DriverFailure::Unreachable(away()) };
    scene.answer(1, Err(failure));
    let marked = Arc::new(PowerTransition { abandoned_at: Some(scene.now.at), ..scene.transition(1) });
    if restart {
        let polls = PollSchedule::new(Duration::from_secs(1), Duration::from_secs(5), None);
        scene.engine = PowerEngine::new(&[Arc::clone(&marked)], polls, scene.engine.upstream);
        let begins = EngineEvent::TookOver { follows_another: false, is_told: true, is_after_loss: false };
        scene.tell("another term begins", begins);
        scene.tell("transitions are listed", found(Vec::new()));
    }
    scene.tell("T1 is abandoned", EngineEvent::Abandoned(marked));
    scene
}
