use domain::boot::component::{
    Action, ComponentEvaluation, ComponentPower, ComponentWish, LastAction, Status,
};
use expect_test::expect;

use super::*;

/// A component of session `s` with this phase, override and error; settled ones are disabled.
pub(crate) fn component(id: &str, phase: Phase, word: &str, error: &str, enabled: bool) -> Component {
    let action = (phase == Phase::PoweringOn).then_some(Action::PoweringOn);
    Component {
        evaluation: ComponentEvaluation {
            status: Some(Status { phase: Some(phase), status_override: Some(word.into()) }),
            error: Some(error.into()),
            ..ComponentEvaluation::default()
        }
        .into(),
        power: ComponentPower {
            last_action: Some(LastAction { action, failed: None, last_updated: None }),
            ..ComponentPower::default()
        }
        .into(),
        wish: ComponentWish { session: Some("s".into()), enabled: Some(enabled), ..ComponentWish::default() }
            .into(),
        ..Component::new(ComponentId::parse(id).expect("valid"))
    }
}

/// A tally of session `s` from rows: id, second, phase, override, error, enabled.
pub(crate) fn tally(rows: &[(&str, u64, Phase, &str, &str, bool)]) -> SessionTally {
    let mut tally = SessionTally::default();
    let began = Instant::now();
    tally.begin("s", began);
    for (id, second, phase, word, error, enabled) in rows {
        let at = began + Duration::from_secs(*second);
        tally.note(&component(id, *phase, word, error, *enabled), at);
    }
    tally
}

#[test]
fn time_is_counted_per_phase_over_all_attempts() {
    let tally = tally(&[
        ("n0", 1, Phase::None, "on_hold", "", true),
        ("n0", 2, Phase::PoweringOff, "", "", true),
        ("n0", 4, Phase::PoweringOn, "", "", true),
        ("n0", 5, Phase::PoweringOn, "", "refused", true),
        ("n0", 7, Phase::PoweringOff, "", "", true),
        ("n0", 8, Phase::PoweringOn, "", "", true),
        ("n0", 20, Phase::Configuring, "", "", true),
        ("n0", 25, Phase::None, "", "", false),
        ("n0", 90, Phase::None, "", "", false),
    ]);
    let node = tally.nodes().next().expect("one node").1;
    let spent = [0, 1, 2].map(|phase| node.spent(phase).map(|time| time.as_secs()));
    assert_eq!(spent, [Some(3), Some(15), Some(5)]);
    assert_eq!((node.settled, node.status), (Some(Duration::from_secs(25)), ComponentStatus::STABLE));
}

#[test]
fn a_failed_node_ends_in_its_last_phase() {
    let tally = tally(&[
        ("n0", 1, Phase::PoweringOn, "", "", true),
        ("n0", 9, Phase::PoweringOn, "failed", "stuck", false),
    ]);
    let node = tally.nodes().next().expect("one node").1;
    assert_eq!(node.spent(1), Some(Duration::from_secs(8)));
    assert_eq!((node.settled, node.spent(0)), (Some(Duration::from_secs(9)), None));
}

#[test]
fn counts_and_trouble_follow_the_last_record_of_each_member() {
    let mut tally = tally(&[
        ("n3", 1, Phase::PoweringOn, "", "", true),
        ("n1", 1, Phase::PoweringOn, "", "not reached", true),
        ("n0", 1, Phase::None, "on_hold", "", true),
        ("n0", 2, Phase::None, "failed", "gone", false),
        ("n2", 2, Phase::None, "", "was slow", false),
        ("n4", 2, Phase::None, "Gone fishing", "", false),
        ("n5", 2, Phase::Configuring, "", "", true),
    ]);
    let mut taken = component("n5", Phase::None, "", "", true);
    taken.wish.session = Some("another".into());
    tally.note(&taken, Instant::now());

    let trouble: Vec<_> = tally.trouble().into_iter().map(|(id, node)| (id.as_str(), &*node.error)).collect();
    expect![[r#"
        [("power_on_called", 2), ("stable", 1), ("other", 1), ("failed", 1)]
        [("n0", "gone"), ("n1", "not reached")]
        3 settled"#]]
    .assert_eq(&format!("{:?}\n{trouble:?}\n{} settled", tally.counts(), tally.settled()));
}

#[test]
fn a_fleet_is_discovered_when_no_node_is_missing() {
    let ids = ["n0", "n1"].map(|id| ComponentId::parse(id).expect("valid"));
    let mut tally = SessionTally::new(ids.to_vec());
    for (id, discovered) in [("n0", false), ("n0", false), ("other", false), ("n1", true)] {
        tally.note(&component(id, Phase::None, "", "", false), Instant::now());
        assert_eq!(tally.is_discovered(), discovered, "{id}");
    }
    assert_eq!(tally.nodes().count(), 0, "there is no session yet");
}
