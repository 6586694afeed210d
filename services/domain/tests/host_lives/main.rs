//! Random hosts in virtual time, decided about by the rules and carried out by a played driver: every host ends as
//! wished once faults stop.
//!
//! The world has people who change their minds, a driver that fails, stalls, refuses and loses its records, and
//! messages that take random times. Only the domain's functions decide; the world carries their decisions out and
//! checks after every one of them the rules of `checks`. Then it plants faults into decisions and shows that the checks
//! find them.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod checks;
mod machine;
mod people;
mod tamper;
mod world;

use tamper::Tamper;
use world::World;

/// Runs a world of `count` hosts to its end, and returns the first rule that was broken.
fn run(seed: u64, count: usize, tamper: Tamper) -> Result<world::Tally, String> {
    World::new(seed, count, tamper).run()
}

#[test]
fn every_host_ends_as_wished() {
    let mut tally = world::Tally::default();
    for seed in 1..=4 {
        match run(seed, 40, Tamper::None) {
            Ok(more) => tally.add(&more),
            Err(broken) => panic!("seed {seed}: {broken}"),
        }
    }
    tally.assert_broad();
}

#[test]
fn planted_faults_are_found() {
    for (tamper, found) in Tamper::ALL {
        let mut broken = (1..=20).filter_map(|seed| run(seed, 24, tamper).err());
        assert!(broken.any(|text| text.contains(found)), "{tamper:?} is not found");
    }
}
