//! Number of components that the status rules judge in a second on one core.

use std::{hint::black_box, sync::Arc, time::Instant};

use domain::{
    boot::{
        bos::options::Options,
        component::{
            Action, ActualState, Component, ComponentEvaluation, ComponentPower, ComponentWish, DesiredState,
            EventStats, LastAction, Phase, ReportedBoots, Status, artifacts::BootArtifacts,
        },
        configuration::ConfigurationObservation,
        evaluation::{Evidence, evaluate},
        power::PowerObservation,
    },
    core::{id::ComponentId, time::Timestamp},
};

use crate::{command::BenchCommand, report::BenchReport, targets::target};

const COMPONENTS: usize = 10_000;
const ROUNDS: usize = 100;

/// Evaluates components in the middle of a boot in their stored form: on, with a kilobyte of kernel parameters as
/// shared text.
pub fn measure(command: &BenchCommand, report: &mut BenchReport) {
    if !target("T8").is_picked(&command.only) {
        return;
    }
    let options = Options::default();
    let evidence = Evidence {
        power: PowerObservation::On,
        begun_actions: u32::MAX,
        configuration: ConfigurationObservation::Known {
            desired: Some("compute".into()),
            status: "pending".into(),
        },
        power_trouble: None,
        configuration_trouble: None,
    };
    let shared = artifacts();
    let components: Vec<_> = (0..COMPONENTS).map(|n| component(n, &shared)).collect();
    let began = Instant::now();
    for _ in 0..command.runs {
        report.note("T8", None, COMPONENTS, judged_in_a_second(&components, &evidence, &options));
    }
    report.close("status decisions", &["T8"], None, began.elapsed());
}

fn judged_in_a_second(components: &[Component], evidence: &Evidence, options: &Options) -> f64 {
    let began = Instant::now();
    for round in 0..ROUNDS {
        for component in components {
            black_box(evaluate(black_box(component), evidence, options, Timestamp(round as i64)));
        }
    }
    (components.len() * ROUNDS) as f64 / began.elapsed().as_secs_f64()
}

fn component(n: usize, artifacts: &BootArtifacts) -> Component {
    let (wanted, booted) = (artifacts.clone(), artifacts.clone());
    Component {
        generation: 1,
        wish: ComponentWish {
            enabled: Some(true),
            desired_state: Some(DesiredState {
                boot_artifacts: Some(wanted.into()),
                configuration: Some("compute".into()),
                ..DesiredState::default()
            }),
            ..ComponentWish::default()
        }
        .into(),
        reported: ReportedBoots {
            actual_state: Some(ActualState { boot_artifacts: Some(booted.into()), ..ActualState::default() }),
            ..ReportedBoots::default()
        },
        power: ComponentPower {
            last_action: Some(LastAction {
                action: Some(Action::PoweringOn),
                failed: Some(false),
                last_updated: Some(Timestamp(0)),
            }),
            event_stats: Some(EventStats::zeros()),
            ..ComponentPower::default()
        }
        .into(),
        evaluation: ComponentEvaluation {
            status: Some(Status { phase: Some(Phase::Configuring), status_override: Some(Arc::default()) }),
            ..ComponentEvaluation::default()
        }
        .into(),
        ..Component::new(ComponentId::parse(&format!("x{n}c0s0b0n0")).expect("a name"))
    }
}

fn artifacts() -> BootArtifacts {
    BootArtifacts {
        kernel: Some(Arc::from("s3://boot-images/5c8d9f3e/kernel")),
        kernel_parameters: Some(Arc::from("console=ttyS0,115200 ".repeat(57))),
        initrd: Some(Arc::from("s3://boot-images/5c8d9f3e/initrd")),
        timestamp: None,
    }
}
