//! Thousands of simulated nodes in virtual time, controlled by the rules: every node ends in its wanted state.
//!
//! The world has a registry, the three services that watch it, an upstream for power and one for boot data and
//! configuration, and nodes with faults. Messages between them take random times, so services decide on records that
//! may be outdated, and readings arrive late. Only the domain's functions decide; the world carries their decisions out
//! and checks, at every step, that
//!
//! - an attempt reaches the power upstream once, within the retry limit, and never while the opposite one is under way;
//! - a node is switched on only with boot data and configuration that were taken for this very attempt;
//! - an action begins only on a component that is enabled and neither held nor failed, and rests on a reading
//!   of its generation that it would change;
//! - without a reading nothing is decided.
//!
//! At the end every node is stable and really runs the wanted artifacts, or has failed for a fault that warrants it.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod controller;
mod coordinator;
mod evaluator;
mod fault;
mod hardware;
mod mesh;
mod node;
mod registry;
mod two_minds;
mod world;

use fault::Fault;

/// Number of nodes: enough for every pair of fault and operation to occur many times, and quick without optimisation.
const NODES: usize = 2_500;

fn run(seed: u64) {
    let outcome = mesh::run(seed, NODES);
    for fault in Fault::ALL {
        let (stable, failed) = outcome.counts(fault);
        assert!(stable + failed > 0, "seed {seed}: no node has {fault:?}");
        // A fault that can defeat a node must do so now and then, or the world is too kind.
        assert_eq!(failed > 0, fault.defeats(), "seed {seed}: {fault:?} left {failed} nodes failed");
    }
}

#[test]
fn every_node_ends_where_it_should_1() {
    run(1);
}

#[test]
fn every_node_ends_where_it_should_2() {
    run(2);
}

#[test]
fn every_node_ends_where_it_should_3() {
    run(3);
}

#[test]
fn every_node_ends_where_it_should_4() {
    run(4);
}
