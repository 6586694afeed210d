use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

fn sight(state: State, begun: Option<Verb>) -> NodeSight {
    NodeSight { state, begun, was_forced: false, is_maintained: false, has_power_fault: false }
}

fn word(step: NodeStep) -> String {
    match step {
        NodeStep::Done => "done".to_owned(),
        NodeStep::Failed => "failed".to_owned(),
        NodeStep::NotRegistered => "not registered".to_owned(),
        NodeStep::Wait { is_short: true } => "wait briefly".to_owned(),
        NodeStep::Wait { is_short: false } => "wait".to_owned(),
        NodeStep::Begin(verb) => format!("BEGIN {}", verb.word()),
        NodeStep::Lead(verb) => format!("-> {}", verb.word()),
        NodeStep::Abandon(verb) => format!("abandon: {}", verb.word()),
        NodeStep::EndMaintenance => "end maintenance".to_owned(),
        NodeStep::BeginMaintenance => "begin maintenance".to_owned(),
        NodeStep::Remove => "remove".to_owned(),
        NodeStep::Stuck => "stuck".to_owned(),
        NodeStep::Faulty => "faulty".to_owned(),
    }
}

/// Prints the step in every state: before the operation has begun, and where it differs after each verb.
fn table(goal: NodeGoal, verbs: &[Verb], expected: Expect) {
    let mut table = String::new();
    for state in State::ALL.into_iter().chain([State::Foreign]) {
        let fresh = word(next_step(goal, sight(state, None)));
        write!(table, "{:<15} {fresh}", state.word()).unwrap();
        for verb in verbs {
            let begun = word(next_step(goal, sight(state, Some(*verb))));
            if begun != fresh {
                write!(table, "; after {}: {begun}", verb.word()).unwrap();
            }
        }
        table.push('\n');
    }
    expected.assert_eq(&table);
}

#[test]
fn registration_verifies_a_node_once() {
    table(
        NodeGoal::Register { is_leaving: false },
        &[Verb::Manage],
        expect![[r#"
        enroll          BEGIN manage; after manage: failed
        verifying       wait briefly
        manageable      done
        available       done
        active          done
        inspecting      wait; after manage: done
        inspect wait    wait; after manage: done
        inspect failed  done
        cleaning        wait; after manage: done
        clean wait      wait; after manage: done
        clean failed    done
        deploying       wait; after manage: done
        wait call-back  wait; after manage: done
        deploy failed   done
        deleting        wait; after manage: done
        error           done
        adopting        wait; after manage: done
        adopt failed    done
        servicing       wait; after manage: done
        service wait    wait; after manage: done
        service failed  done
        unknown         done
    "#]],
    );
}

#[test]
fn inspection_begins_once() {
    table(
        NodeGoal::Inspect { force: false },
        &[Verb::Inspect],
        expect![[r#"
        enroll          not registered
        verifying       wait briefly
        manageable      BEGIN inspect; after inspect: done
        available       -> manage; after inspect: done
        active          stuck
        inspecting      wait
        inspect wait    wait
        inspect failed  BEGIN inspect; after inspect: failed
        cleaning        wait
        clean wait      wait
        clean failed    -> manage
        deploying       wait
        wait call-back  wait
        deploy failed   stuck
        deleting        wait
        error           stuck
        adopting        wait
        adopt failed    -> manage
        servicing       wait
        service wait    wait
        service failed  stuck
        unknown         stuck
    "#]],
    );
}

#[test]
fn preparation_cleans_once() {
    table(
        NodeGoal::Prepare { has_steps: true },
        &[Verb::Clean],
        expect![[r#"
        enroll          not registered
        verifying       wait briefly
        manageable      BEGIN clean; after clean: done
        available       -> manage; after clean: done
        active          stuck
        inspecting      wait
        inspect wait    wait
        inspect failed  -> manage
        cleaning        wait
        clean wait      wait
        clean failed    -> manage; after clean: failed
        deploying       wait
        wait call-back  wait
        deploy failed   stuck
        deleting        wait
        error           stuck
        adopting        wait
        adopt failed    -> manage
        servicing       wait
        service wait    wait
        service failed  stuck
        unknown         stuck
    "#]],
    );
}

#[test]
fn servicing_begins_once() {
    table(
        NodeGoal::Service { has_steps: true },
        &[Verb::Service],
        expect![[r#"
        enroll          not registered
        verifying       wait briefly
        manageable      stuck
        available       stuck
        active          BEGIN service; after service: done
        inspecting      wait
        inspect wait    wait
        inspect failed  stuck
        cleaning        wait
        clean wait      wait
        clean failed    stuck
        deploying       wait
        wait call-back  wait
        deploy failed   stuck
        deleting        wait
        error           stuck
        adopting        wait
        adopt failed    stuck
        servicing       wait
        service wait    wait
        service failed  BEGIN service; after service: failed
        unknown         stuck
    "#]],
    );
}

#[test]
fn provisioning_deploys_once() {
    table(
        NodeGoal::Provision { force: false },
        &[Verb::Provide, Verb::Active],
        expect![[r#"
        enroll          not registered
        verifying       wait briefly
        manageable      BEGIN provide
        available       BEGIN active
        active          done
        inspecting      wait
        inspect wait    wait
        inspect failed  -> manage
        cleaning        wait
        clean wait      wait
        clean failed    -> manage; after provide: failed
        deploying       wait
        wait call-back  wait
        deploy failed   BEGIN active; after active: failed
        deleting        wait
        error           -> deleted
        adopting        wait
        adopt failed    -> manage
        servicing       wait
        service wait    wait
        service failed  stuck
        unknown         stuck
    "#]],
    );
}

#[test]
fn deprovisioning_removes_a_system_once() {
    table(
        NodeGoal::Deprovision,
        &[Verb::Provide, Verb::Deleted],
        expect![[r#"
        enroll          not registered
        verifying       wait briefly
        manageable      BEGIN provide
        available       done
        active          BEGIN deleted
        inspecting      wait
        inspect wait    wait
        inspect failed  -> manage
        cleaning        wait
        clean wait      wait
        clean failed    -> manage; after provide: failed; after deleted: failed
        deploying       wait
        wait call-back  -> deleted
        deploy failed   BEGIN deleted
        deleting        wait
        error           BEGIN deleted; after deleted: failed
        adopting        wait
        adopt failed    -> manage
        servicing       wait
        service wait    wait
        service failed  BEGIN deleted
        unknown         stuck
    "#]],
    );
}

#[test]
fn adoption_begins_once() {
    table(
        NodeGoal::Adopt { is_leaving: false },
        &[Verb::Adopt],
        expect![[r#"
        enroll          not registered
        verifying       wait briefly
        manageable      BEGIN adopt
        available       done
        active          done
        inspecting      done
        inspect wait    done
        inspect failed  done
        cleaning        done
        clean wait      done
        clean failed    done
        deploying       done
        wait call-back  done
        deploy failed   done
        deleting        done
        error           done
        adopting        wait briefly
        adopt failed    BEGIN adopt; after adopt: failed
        servicing       done
        service wait    done
        service failed  done
        unknown         done
    "#]],
    );
}

#[test]
fn a_released_node_is_interrupted_only_by_force() {
    table(
        NodeGoal::Release { force: false },
        &[],
        expect![[r#"
        enroll          remove
        verifying       wait briefly
        manageable      remove
        available       remove
        active          begin maintenance
        inspecting      wait
        inspect wait    wait
        inspect failed  begin maintenance
        cleaning        wait
        clean wait      wait
        clean failed    begin maintenance
        deploying       wait
        wait call-back  wait
        deploy failed   begin maintenance
        deleting        wait
        error           begin maintenance
        adopting        wait
        adopt failed    begin maintenance
        servicing       wait
        service wait    wait
        service failed  begin maintenance
        unknown         begin maintenance
    "#]],
    );
}

#[test]
fn flags_change_single_steps() {
    let forced = |sight: NodeSight| NodeSight { was_forced: true, ..sight };
    let maintained = |sight: NodeSight| NodeSight { is_maintained: true, ..sight };
    let faulty = |sight: NodeSight| NodeSight { has_power_fault: true, is_maintained: true, ..sight };
    let inspect_wait = sight(State::InspectWait, Some(Verb::Inspect));
    let deploy_wait = sight(State::DeployWait, Some(Verb::Active));
    let rows = [
        (NodeGoal::Inspect { force: true }, inspect_wait, "abandon: abort"),
        (NodeGoal::Inspect { force: true }, forced(inspect_wait), "wait"),
        (NodeGoal::Provision { force: true }, deploy_wait, "-> deleted"),
        (NodeGoal::Provision { force: true }, forced(deploy_wait), "wait"),
        (NodeGoal::Prepare { has_steps: false }, sight(State::Manageable, None), "done"),
        (NodeGoal::Service { has_steps: false }, sight(State::ServiceWait, None), "-> abort"),
        (NodeGoal::Adopt { is_leaving: true }, sight(State::Manageable, None), "done"),
        (NodeGoal::Register { is_leaving: true }, sight(State::CleanWait, None), "done"),
        (NodeGoal::Release { force: true }, sight(State::CleanWait, None), "begin maintenance"),
        (NodeGoal::Release { force: true }, maintained(sight(State::CleanWait, None)), "remove"),
        (NodeGoal::Release { force: false }, maintained(sight(State::Active, None)), "remove"),
        (
            NodeGoal::Provision { force: false },
            maintained(sight(State::CleanFailed, None)),
            "end maintenance",
        ),
        (NodeGoal::Provision { force: false }, faulty(sight(State::Available, None)), "faulty"),
        (NodeGoal::Provision { force: false }, faulty(sight(State::Active, None)), "done"),
        (NodeGoal::Adopt { is_leaving: false }, maintained(sight(State::Active, None)), "end maintenance"),
    ];
    for (goal, node, expected) in rows {
        assert_eq!(word(next_step(goal, node)), expected, "{goal:?} {node:?}");
    }
}
