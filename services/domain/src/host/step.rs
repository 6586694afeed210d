//! Decision about a host. The order of its steps is the order of this file (host reference 1.2, 1.3).

use crate::host::{
    conditions, credentials,
    decision::HostDecision,
    deletion, detach,
    evidence::{HostEvidence, HostMoment, HostPolicy},
    pass::{Flow, HostPass, PassEnd},
    prelude,
    record::{Host, progress::HostWait, reason::WaitReason},
    registration,
    table::{self, RowConsequence, TableRow},
    transition, turn,
};

/// Steps that come before the rows of the state. A step that stops ends the decision.
const STEPS: &[fn(&mut HostPass<'_>) -> Flow] = &[
    prelude::pause,
    deletion::force,
    prelude::restore_status,
    prelude::fill_architecture,
    prelude::take_inventory,
    prelude::add_finalizer,
    prelude::yield_to_session,
    prelude::rest,
    credentials::check,
    prelude::claim_network_secret,
    prelude::await_driver,
    turn::check,
    begin_deletion,
    detach::check,
    registration::check,
    follow_state,
];

/// Decides about `host`: changes its record by one step at most, and names the call to its driver that is due.
///
/// The decision depends on the arguments alone. Where nothing is to be done, the record stays as it is, so deciding
/// again has no effect.
pub fn step(host: &Host, seen: &HostEvidence, policy: &HostPolicy, moment: HostMoment) -> HostDecision {
    let mut pass = HostPass::new(host.clone(), seen, policy, moment);
    turn::note_boot(&mut pass);
    let stop = run(&mut pass);
    if stop.reason != WaitReason::Paused {
        turn::note_interruption(&mut pass);
        conditions::refresh(&mut pass.host.status, &seen.driver, moment.now);
        end_trouble(&mut pass, stop.reason);
    }
    pass.host.progress.slot = turn::claim(&pass, stop.reason);
    note_wait(&mut pass, stop);
    if pass.host.status != host.status {
        pass.host.status.last_updated = Some(moment.now);
    }
    conclude(pass, stop)
}

fn run(pass: &mut HostPass<'_>) -> PassEnd {
    for step in STEPS {
        if let Err(stop) = step(pass) {
            return stop;
        }
    }
    HostPass::wait_for_change(WaitReason::Settled)
}

fn begin_deletion(pass: &mut HostPass<'_>) -> Flow {
    follow(pass, table::DELETION)
}

fn follow_state(pass: &mut HostPass<'_>) -> Flow {
    follow(pass, table::STATES)
}

/// Follows the first row that fits.
fn follow(pass: &mut HostPass<'_>, rows: &[TableRow]) -> Flow {
    let state = pass.state();
    for row in rows.iter().filter(|row| row.from.contains(&state)) {
        if !(row.when)(pass)? {
            continue;
        }
        pass.row = Some(row.number);
        match row.then {
            RowConsequence::Enter(to, effect) => return Err(transition::enter(pass, to, effect)),
            RowConsequence::Stay(work) => return work(pass),
            RowConsequence::GoOn(effect) => effect(pass),
        }
    }
    Ok(())
}

/// Forgets a trouble about no call once the host waits for something else.
fn end_trouble(pass: &mut HostPass<'_>, reason: WaitReason) {
    if matches!(
        reason,
        WaitReason::Continuing | WaitReason::AwaitingAnswer | WaitReason::AwaitingPowerController
    ) {
        return;
    }
    pass.host.progress.trouble.take_if(|trouble| trouble.number == 0 && trouble.reason != reason);
}

/// Records the wait. Looks at a host that needs nothing are no news, so their times are not recorded.
fn note_wait(pass: &mut HostPass<'_>, stop: PassEnd) {
    let until = stop.look.filter(|_| pass.host.progress.rest.is_some() || is_timed(stop.reason));
    let known = pass.host.progress.wait.filter(|wait| wait.reason == stop.reason);
    let since = known.map_or(pass.moment.now, |wait| wait.since);
    pass.host.progress.wait = Some(HostWait { reason: stop.reason, since, until });
}

/// Returns whether the time of the next decision follows from the record, so that it stays the same until then.
fn is_timed(reason: WaitReason) -> bool {
    matches!(reason, WaitReason::DriverWorking | WaitReason::DriverUnreachable | WaitReason::DriverBusy)
}

fn conclude(pass: HostPass<'_>, stop: PassEnd) -> HostDecision {
    HostDecision {
        host: pass.host,
        call: pass.call,
        events: pass.events,
        metrics: pass.metrics,
        companions: pass.companions,
        row: pass.row,
        reason: stop.reason,
        look: stop.look,
    }
}
