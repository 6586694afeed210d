//! The nodes at the start of a run, and the wishes of sessions for them.

use std::{collections::HashSet, rc::Rc};

use domain::{
    boot::{
        component::{
            Action, Component,
            artifacts::BootArtifacts,
            report::{Assignment, PreparationReport, StatusReport},
            write,
        },
        configuration::ConfigurationObservation,
        power::PowerReading,
    },
    core::{
        id::{ComponentId, Tenant},
        time::Timestamp,
    },
};
use rand::{Rng, rngs::SmallRng};

use crate::{fault::Fault, hardware::Hardware};

/// Power action on its way, in the memory of the power controller.
#[derive(Debug, Clone)]
pub(crate) struct Transition {
    pub(crate) generation: u64,
    pub(crate) action: Action,
    pub(crate) attempt: u32,
    /// Reading on which the controller decided.
    pub(crate) rests_on: Option<Power>,
}

impl Transition {
    pub(crate) fn key(&self) -> (u64, Action, u32) {
        (self.generation, self.action, self.attempt)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Evaluator,
    Controller,
    Coordinator,
}

/// Reading, error, generation, and power-on attempts that were over at the time of the request.
pub(crate) type Power = (PowerReading, &'static str, u64, u32, u32);
pub(crate) type Configuration = (ConfigurationObservation, u64);

/// Event of one node.
#[derive(Debug)]
pub(crate) enum Event {
    Assign(Assignment),
    /// A watch delivers a record.
    Seen(Service, Rc<Component>),
    PowerSeen(Power),
    ConfigurationSeen(Configuration),
    StatusReported(StatusReport),
    ActionReported(Transition),
    PreparationReported(PreparationReport),
    /// A service decides again without news.
    Decide(Service),
    /// Both upstreams are polled.
    Poll,
    PowerAnswer {
        asked_at: i64,
        answer: Power,
    },
    ConfigurationAnswer {
        asked_at: i64,
        answer: Configuration,
    },
    /// The coordinator sends boot data and configuration to the upstreams.
    Prepare {
        generation: u64,
    },
    SetConfiguration,
    /// A power action reaches the upstream.
    Deliver(Transition),
    /// The power controller learns the outcome of its action.
    Resolved(Transition),
    PowerChanges {
        cycle: u32,
    },
    Boots {
        cycle: u32,
    },
    Reports {
        cycle: u32,
        token: String,
    },
    /// A copy of an earlier report arrives, from any boot.
    ReportsAgain {
        token: String,
    },
    ConfigurationRuns {
        run: u32,
    },
}

/// Node, with the knowledge of each part about it.
pub(crate) struct Node {
    pub(crate) hardware: Hardware,
    /// Record in the registry.
    pub(crate) stored: Component,
    pub(crate) evaluator: Rc<Component>,
    pub(crate) controller: Rc<Component>,
    pub(crate) coordinator: Rc<Component>,
    /// Knowledge of the evaluator from the watches of the other two.
    pub(crate) power_seen: Option<Power>,
    pub(crate) configuration_seen: Option<Configuration>,
    /// Last answers that the controller and the coordinator published, with the times of their requests.
    pub(crate) power: Option<Power>,
    pub(crate) power_asked_at: i64,
    pub(crate) configuration: Option<Configuration>,
    pub(crate) configuration_asked_at: i64,
    pub(crate) polling: bool,
    /// The one action that is not resolved yet, and every action that was ever begun or taken upstream.
    pub(crate) transition: Option<Transition>,
    pub(crate) begun: HashSet<(u64, Action, u32)>,
    pub(crate) taken: HashSet<(u64, Action, u32)>,
    pub(crate) preparing: bool,
    pub(crate) prepared: HashSet<(u64, u32)>,
    pub(crate) setting: bool,
    /// Assignment of the last session, and the number of boots before it.
    pub(crate) assigned: Option<Assignment>,
    pub(crate) boots_before: u32,
}

impl Node {
    pub(crate) fn new(index: usize, rng: &mut SmallRng) -> Self {
        let id = ComponentId::parse(&format!("x{index}")).expect("not empty");
        let mut stored = write::newly_discovered(id, Timestamp(0));
        let hardware = hardware(Fault::ALL[pick_fault(index)], rng);
        if let Some(running) = &hardware.running {
            let actual = stored.reported.actual_state.get_or_insert_default();
            actual.boot_artifacts = Some(running.clone().into());
        }
        let seen = Rc::new(stored.clone());
        Self {
            hardware,
            stored,
            evaluator: seen.clone(),
            controller: seen.clone(),
            coordinator: seen,
            power_seen: None,
            configuration_seen: None,
            power: None,
            power_asked_at: -1,
            configuration: None,
            configuration_asked_at: -1,
            polling: false,
            transition: None,
            begun: HashSet::new(),
            taken: HashSet::new(),
            preparing: false,
            prepared: HashSet::new(),
            setting: false,
            assigned: None,
            boots_before: 0,
        }
    }
}

/// Returns the index of a fault: every other node is healthy, the rest share the faults evenly.
fn pick_fault(index: usize) -> usize {
    if index.is_multiple_of(2) { 0 } else { (index / 2) % Fault::ALL.len() }
}

fn hardware(fault: Fault, rng: &mut SmallRng) -> Hardware {
    let begins = rng.random_range(0..300_000);
    // A node that never boots is off at the start.
    let powered = fault != Fault::StuckOff && rng.random_bool(0.6);
    let configured = rng.random_bool(0.5);
    Hardware {
        fault,
        trouble: begins..begins + rng.random_range(60_000..900_000),
        powered,
        cycle: 0,
        boots: 0,
        running: powered.then(|| image(rng.random_range(1..=2))),
        boot_data: None,
        loaded: None,
        changing: None,
        force_offs: 0,
        refusals: 0,
        configuration: configured.then(|| "one".to_owned()),
        configuration_status: if configured { "configured" } else { "unconfigured" }.to_owned(),
        configuration_run: 0,
    }
}

pub(crate) fn image(number: u32) -> BootArtifacts {
    BootArtifacts {
        kernel: Some(format!("s3://boot-images/{number}/kernel").into()),
        kernel_parameters: Some("console=ttyS0 quiet".into()),
        initrd: Some(format!("s3://boot-images/{number}/initrd").into()),
        timestamp: None,
    }
}

/// Returns a session of a random kind.
pub(crate) fn session(name: &str, rng: &mut SmallRng) -> Assignment {
    let operation = rng.random_range(0..10);
    let shutdown = operation == 0;
    let configuration = if shutdown || rng.random_bool(0.3) { "" } else { "one" };
    Assignment {
        assignment_id: name.into(),
        session: name.into(),
        tenant: Tenant::none(),
        boot_artifacts: if shutdown {
            BootArtifacts::empty().into()
        } else {
            image(rng.random_range(1..=2)).into()
        },
        configuration: configuration.into(),
        clear_actual_state: operation > 5,
        clear_bss_token: shutdown,
        stage: false,
        pause: None,
        trace: "".into(),
    }
}
