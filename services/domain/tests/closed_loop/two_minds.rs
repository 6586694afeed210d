//! Two evaluators that disagree take turns over one node. However long that lasts, it leads to few power actions.

use domain::{
    boot::{
        bos::options::Options,
        component::{
            Action, ActualState, Component, ComponentPatch, DesiredState, InventoryPresence,
            artifacts::BootArtifacts,
            report::{self, ActionReport, PreparationReport},
            status::{ComponentStatus, computed_status},
            write,
        },
        configuration::{
            ConfigurationObservation,
            preparation::{self, PowerEvidence, PreparationDecision},
        },
        evaluation::{Evidence, RULES_VERSION, evaluate},
        power::{self, PowerDecision, PowerObservation},
    },
    core::{decision::DecisionVersion, id::ComponentId, time::Timestamp},
};

use crate::world::image;

/// Time between two turns, milliseconds.
const TURN: i64 = 5_000;
const TURNS: i64 = 400;

/// One node that follows every action at once, and its record.
struct Scene {
    record: Component,
    powered: bool,
    actions: u32,
    /// Number of the wanted image.
    image: u32,
    now: i64,
    options: Options,
}

/// Reader of the record by rules of its own: `inverted` wants the node off where the record wants it on.
#[derive(Clone, Copy)]
struct Mind {
    version: DecisionVersion,
    inverted: bool,
}

impl Scene {
    fn new() -> Self {
        let id = ComponentId::parse("x1").unwrap();
        let options = Options { disable_components_on_completion: false, ..Options::default() };
        let found = write::newly_discovered(id, Timestamp(0));
        let mut scene = Self { record: found, powered: false, actions: 0, image: 0, now: 0, options };
        scene.wish();
        scene
    }

    /// Enables the node as an operator does who wants another image.
    fn wish(&mut self) {
        self.image += 1;
        let boot_artifacts = Some(image(self.image).into());
        let desired = DesiredState { boot_artifacts, ..DesiredState::default() };
        let patch =
            ComponentPatch { enabled: Some(true), desired_state: Some(desired), ..ComponentPatch::default() };
        let changed = write::patch(&self.record, patch, |_| None, Timestamp(self.now));
        self.store(changed);
    }

    fn store(&mut self, changed: Component) {
        let revision = self.record.revision + 1;
        self.record = changed.with(|one| {
            one.inventory.presence = InventoryPresence::Listed;
            one.revision = revision;
        });
    }

    fn evidence(&self) -> Evidence {
        let power = if self.powered { PowerObservation::On } else { PowerObservation::Off };
        let desired = self.record.desired_configuration().map(str::to_owned);
        let configuration = ConfigurationObservation::Known { desired, status: "configured".to_owned() };
        let begun_actions = self.record.begun_actions();
        Evidence { power, begun_actions, configuration, power_trouble: None, configuration_trouble: None }
    }

    fn judged_by(&mut self, mind: Mind) {
        let mut seen = self.record.clone();
        if mind.inverted {
            seen.wish.desired_state.as_mut().unwrap().boot_artifacts = Some(BootArtifacts::empty().into());
        }
        let decision = evaluate(&seen, &self.evidence(), &self.options, Timestamp(self.now));
        let Some(report) = decision.report(&seen, mind.version) else { return };
        if let Ok(Some(changed)) = report::record(&self.record, &report, Timestamp(self.now)) {
            self.store(changed);
        }
    }

    fn act(&mut self) {
        let now = Timestamp(self.now);
        let observation = self.evidence().power;
        let power = PowerEvidence { observation, spent_power_ons: self.record.spent_power_ons() };
        if let PreparationDecision::Prepare(wanted) =
            preparation::decide(&self.record, &power, None, &self.options, now)
        {
            let (id, generation) = (self.record.id.clone(), self.record.generation);
            let attempt = wanted.attempt;
            let report = PreparationReport {
                id,
                generation,
                attempt,
                bss_token: "token".into(),
                token_number: self.record.revision + 1,
                trouble: None,
                refused: false,
            };
            let prepared = report::record(&self.record, &report, now).unwrap().unwrap();
            self.store(prepared);
        }
        let power = self.evidence().power;
        let PowerDecision::Act { action, attempt } = power::decide(&self.record, &power, &self.options, now)
        else {
            return;
        };
        let (id, generation) = (self.record.id.clone(), self.record.generation);
        let report = ActionReport { id, generation, action, attempt, trouble: None, failed: false };
        let begun = report::record(&self.record, &report, now).unwrap().unwrap();
        self.store(begun);
        self.actions += 1;
        self.powered = action == Action::PoweringOn;
        if self.powered {
            let boot_artifacts = Some(image(self.image).into());
            let actual = ActualState { boot_artifacts, ..ActualState::default() };
            let patch = ComponentPatch { actual_state: Some(actual), ..ComponentPatch::default() };
            let reported = write::patch(&self.record, patch, |_| None, now);
            self.store(reported);
        }
    }

    /// Takes turns and returns the number of power actions.
    fn play(&mut self, minds: [Mind; 2]) -> u32 {
        let before = self.actions;
        for turn in 0..TURNS {
            // Each evaluator decides as often as it has changes, until the turn of the other.
            for _ in 0..5 {
                self.judged_by(minds[usize::from(turn % 2 == 1)]);
                self.act();
            }
            self.now += TURN;
        }
        self.actions - before
    }
}

fn mind(rules: u32, inverted: bool) -> Mind {
    Mind { version: DecisionVersion { rules, options: 1 }, inverted }
}

#[test]
fn one_mind_boots_the_node_once() {
    let mut scene = Scene::new();
    assert_eq!(scene.play([mind(RULES_VERSION, false); 2]), 1);
    assert_eq!(computed_status(&scene.record), ComponentStatus::STABLE);
}

#[test]
fn newer_rules_prevail_over_older_ones() {
    for inverted in [false, true] {
        for versions in [(1, 2), (2, 1)] {
            let mut scene = Scene::new();
            let minds = [mind(versions.0, inverted), mind(versions.1, !inverted)];
            let actions = scene.play(minds);
            assert!(actions <= 2, "{versions:?} {inverted}: {actions}");
            let newer_wants_on = (versions.0 > versions.1) != inverted;
            assert_eq!(scene.powered, newer_wants_on, "{versions:?} {inverted}");
        }
    }
}

#[test]
fn minds_of_one_version_end_in_a_hold() {
    let mut scene = Scene::new();
    let minds = [mind(1, false), mind(1, true)];
    let limit = 2 * scene.options.default_retry_policy + 6;
    let actions = scene.play(minds);
    assert!((2..=limit + 1).contains(&actions), "{actions}");
    assert_eq!(scene.play(minds), 0, "{:?}", scene.record);
    assert_eq!(scene.record.error_text(), domain::boot::component::turns::ERROR_TURNED_TOO_OFTEN);
    assert_eq!(computed_status(&scene.record), ComponentStatus::OnHold);
    scene.wish();
    assert!(scene.play(minds) > 0, "a new wish releases the node");
}
