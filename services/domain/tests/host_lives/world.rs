//! The world: messages that take time, timers, and the bookkeeping of calls and slots.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    ops::Range,
};

use domain::{
    core::{backoff::Jitter, time::Timestamp},
    host::{
        decision::HostDecision,
        evidence::{
            DriverSight, FirmwareWish, HostEvidence, HostMoment, HostPolicy, SlotOffer, UpdatePolicy,
        },
        record::{
            Host, HostDeletion, HostKey,
            call::DriverReport,
            operation::OperationKind,
            progress::{CallCarrier, HostWork},
            reason::WaitReason,
            state::HostState,
        },
        slots::HostSlots,
        step,
    },
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::{checks, machine::Machine, people, tamper::Tamper};

const MINUTE: i64 = 60_000;
/// End of faults and of meddling.
const PEACE: i64 = 5 * 60 * MINUTE;
/// Latest end of the world: the longest back-off, twice, and the work after it.
const END: i64 = PEACE + 20 * 60 * MINUTE;
/// Time between two listings of the driver.
const LISTING: i64 = 30_000;
/// Time that a message takes, milliseconds.
const MESSAGE: Range<i64> = 1..2_000;
/// Decisions in a row without any time between them that are too many.
const ENDLESS: u32 = 40;

enum Event {
    /// The time that the last decision asked for; an earlier decision's time is skipped.
    Timer,
    /// The turn of the host has come.
    Turn,
    Call(HostWork),
    Report(CallCarrier, DriverReport),
    List,
    Listed(DriverSight, FirmwareWish),
    Meddle,
    LoseRecord,
    LetGo,
}

struct Player {
    host: Host,
    seen: HostEvidence,
    machine: Machine,
    /// Last call, and whether its answer has arrived.
    last: Option<(OperationKind, bool)>,
    is_gone: bool,
    timer: Option<i64>,
    /// Whether the host was installed by other means, as far as its record goes.
    took_over: bool,
    /// Decisions in a row at the same time.
    haste: (i64, u32),
}

/// Counts of what happened, to show that the world is not too kind.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rows: BTreeMap<u8, u32>,
    reasons: BTreeSet<WaitReason>,
    calls: BTreeMap<OperationKind, u32>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        for (row, count) in &other.rows {
            *self.rows.entry(*row).or_default() += count;
        }
        for (kind, count) in &other.calls {
            *self.calls.entry(*kind).or_default() += count;
        }
        self.reasons.extend(&other.reasons);
    }

    /// Checks that nearly every row, wait and operation occurred.
    pub(crate) fn assert_broad(&self) {
        // Legacy states and firmware records do not occur here, and some rows take several rare faults one after the
        // other. The table tests of the crate have every row.
        let missing: Vec<_> = (1..=40).filter(|row| !self.rows.contains_key(row)).collect();
        assert!(missing.len() <= 9, "rows that no host has followed: {missing:?}");
        assert!(self.reasons.len() >= 15, "{:?}", self.reasons);
        assert!(self.calls.len() >= 9, "{:?}", self.calls);
    }
}

pub(crate) struct World {
    now: i64,
    rng: SmallRng,
    tamper: Tamper,
    limit: usize,
    slots: HostSlots,
    players: Vec<Player>,
    places: BTreeMap<HostKey, usize>,
    queue: BinaryHeap<Reverse<(i64, u64, usize)>>,
    events: BTreeMap<u64, Event>,
    serial: u64,
    tally: Tally,
}

impl World {
    pub(crate) fn new(seed: u64, count: usize, tamper: Tamper) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let limit = (count / 8).max(1);
        let players: Vec<_> = (0..count).map(|index| player(index, &mut rng)).collect();
        let places =
            players.iter().enumerate().map(|(at, player)| (player.host.meta.key.clone(), at)).collect();
        let mut world = Self {
            now: 0,
            rng,
            tamper,
            limit,
            slots: HostSlots::new(limit),
            players,
            places,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            serial: 0,
            tally: Tally::default(),
        };
        for at in 0..count {
            world.after(at, 0..MINUTE, Event::List);
            for _ in 0..world.rng.random_range(0..60) {
                world.after(at, 0..PEACE, Event::Meddle);
            }
            for _ in 0..world.rng.random_range(0..4) {
                world.after(at, 0..PEACE, Event::LoseRecord);
            }
            world.after(at, PEACE..PEACE + MINUTE, Event::LetGo);
        }
        world
    }

    /// Runs to the end, and returns the first rule that was broken.
    pub(crate) fn run(mut self) -> Result<Tally, String> {
        while let Some(Reverse((at, serial, place))) = self.queue.pop() {
            if at > END {
                break;
            }
            self.now = at;
            let event = self.events.remove(&serial).unwrap();
            if !self.players[place].is_gone {
                self.handle(place, event)?;
            }
        }
        for player in &self.players {
            let is_deleted = player.host.is_deleted();
            if !player.is_gone {
                checks::ensure(!is_deleted, "a host is not done: it is deleted and not gone", &player.host)?;
                checks::end(&player.host, &player.machine, player.took_over)?;
            }
        }
        Ok(self.tally)
    }

    fn after(&mut self, place: usize, delay: Range<i64>, event: Event) {
        let at = self.now + self.rng.random_range(delay);
        self.at(place, at, event);
    }

    fn at(&mut self, place: usize, at: i64, event: Event) {
        self.serial += 1;
        self.queue.push(Reverse((at.max(self.now), self.serial, place)));
        self.events.insert(self.serial, event);
    }

    fn time(&self) -> Timestamp {
        Timestamp(self.now)
    }

    fn is_faulty(&self) -> bool {
        self.now < PEACE
    }

    fn handle(&mut self, place: usize, event: Event) -> Result<(), String> {
        let now = self.time();
        let is_faulty = self.is_faulty();
        let player = &mut self.players[place];
        match event {
            Event::Timer if player.timer != Some(now.0) => return Ok(()),
            Event::Timer | Event::Turn => {}
            Event::Call(work) => return self.serve(place, &work),
            Event::Report(carrier, report) => {
                player.last = player.last.map(|(kind, _)| (kind, true));
                let reports = &mut player.seen.reports;
                match carrier {
                    CallCarrier::HostProvisioner => reports.host_provisioner = Some(report),
                    CallCarrier::PowerController => reports.power_controller = Some(report),
                }
            }
            Event::List => {
                let sight = player.machine.look(now);
                let is_down = is_faulty && self.rng.random_bool(0.03);
                let sight = if is_down { DriverSight::NotReady } else { sight };
                let firmware = player.machine.firmware(now);
                self.after(place, MESSAGE, Event::Listed(sight, firmware));
                let listing = if is_faulty { LISTING } else { 5 * LISTING };
                self.at(place, self.now + listing, Event::List);
                return Ok(());
            }
            Event::Listed(sight, firmware) => {
                player.seen.driver = sight;
                player.seen.settings = Some(firmware);
            }
            Event::Meddle => {
                player.machine.firmware_differs |= self.rng.random_bool(0.1);
                people::meddle(&mut player.host, &mut player.seen.credentials, &mut self.rng);
            }
            Event::LoseRecord => {
                player.machine.lose_record();
                self.restart();
            }
            Event::LetGo => people::let_go(&mut player.host, &mut player.seen.credentials, &mut self.rng),
        }
        self.decide(place)
    }

    /// Builds the table of slots anew from the records, as a process does that starts.
    fn restart(&mut self) {
        self.slots = HostSlots::new(self.limit);
        for player in self.players.iter().filter(|player| !player.is_gone) {
            self.slots.settle(&player.host.meta.key, player.host.progress.slot);
        }
    }

    /// Lets the driver serve a call, once all checks of slots hold.
    fn serve(&mut self, place: usize, work: &HostWork) -> Result<(), String> {
        let (now, is_faulty) = (self.time(), self.is_faulty());
        let Player { host, seen, machine, .. } = &mut self.players[place];
        let login_works = people::is_good(&seen.credentials);
        let answer = machine.serve(&work.call, login_works, is_faulty, now, &mut self.rng);
        let name = host.meta.key.clone();
        self.check_slots(&name)?;
        let report = DriverReport { number: work.number, at: now, answer };
        self.after(place, MESSAGE, Event::Report(work.carrier, report));
        Ok(())
    }

    fn check_slots(&self, name: &HostKey) -> Result<(), String> {
        let is_counted = |player: &&Player| {
            let is_forced = player.host.meta.deletion == Some(HostDeletion::Forced);
            player.machine.is_busy() && !player.machine.boots_without_slot && !is_forced
        };
        let busy = self.players.iter().filter(is_counted).count();
        if busy <= self.limit && self.slots.taken() <= self.limit {
            return Ok(());
        }
        let taken = self.slots.taken();
        Err(format!("{}: more slots are used than there are: {busy} busy, {taken} taken", name.name))
    }

    fn decide(&mut self, place: usize) -> Result<(), String> {
        let moment = HostMoment { now: self.time(), jitter: Jitter(self.rng.random()) };
        let policy = HostPolicy { max_provisioning_retries: 2, ..HostPolicy::default() };
        let player = &mut self.players[place];
        player.seen.slot = self.slots.offer(&player.host.meta.key);
        if self.tamper == Tamper::OffersSlotsToAll {
            player.seen.slot = SlotOffer::Open;
        }
        let mut decision = step(&player.host, &player.seen, &policy, moment);
        self.tamper.apply(&player.host, &mut decision);
        checks::decision(&decision, &player.machine, moment.now)?;
        let mut again = step(&decision.host, &player.seen, &policy, moment);
        self.tamper.apply(&decision.host, &mut again);
        let took_slot = again.slot() != decision.slot();
        if !took_slot && matches!(self.tamper, Tamper::None | Tamper::NeverSettles) {
            checks::rests(&decision, &again)?;
        }
        if decision.call.is_some() {
            checks::call(&decision.host, player.last)?;
        }
        player.haste.1 = if player.haste.0 == self.now { player.haste.1 + 1 } else { 0 };
        player.haste.0 = self.now;
        checks::ensure(
            player.haste.1 < ENDLESS,
            "a host is not done: it is decided about without end",
            &player.host,
        )?;
        self.follow(place, decision)
    }

    /// Stores the record, then carries the decision out.
    fn follow(&mut self, place: usize, decision: HostDecision) -> Result<(), String> {
        self.slots.settle(&decision.host.meta.key, decision.slot());
        if let Some(row) = decision.row {
            *self.tally.rows.entry(row).or_default() += 1;
        }
        self.tally.reasons.insert(decision.reason);
        if let Some(work) = decision.call.clone() {
            *self.tally.calls.entry(work.call.kind()).or_default() += 1;
            self.players[place].last = Some((work.call.kind(), false));
            self.after(place, MESSAGE, Event::Call(work));
        }
        if let Some(look) = decision.look {
            self.at(place, look.0, Event::Timer);
        }
        let player = &mut self.players[place];
        player.took_over = match decision.row {
            Some(29) => true,
            Some(26) => false,
            _ => player.took_over,
        };
        player.is_gone = decision.is_gone();
        player.timer = decision.look.map(|look| look.0);
        player.host = decision.host;
        let due: Vec<_> = self.slots.due().map(|key| self.places[key]).collect();
        for other in due {
            self.at(other, self.now, Event::Turn);
        }
        let name = self.players[place].host.meta.key.clone();
        self.check_slots(&name)
    }
}

fn player(index: usize, rng: &mut SmallRng) -> Player {
    let host = people::create(index, rng);
    let fails = if rng.random_bool(0.2) { 0.95 } else { 0.25 };
    let boots_without_slot = rng.random_bool(0.2);
    let machine = Machine { boots_without_slot, fails, ..Machine::default() };
    let on_reboot = UpdatePolicy { settings: rng.random_bool(0.5), components: false };
    let seen = HostEvidence { credentials: people::good_secret(rng), on_reboot, ..HostEvidence::default() };
    debug_assert_eq!(host.state(), HostState::Unset);
    Player { host, seen, machine, last: None, is_gone: false, timer: None, took_over: false, haste: (-1, 0) }
}
