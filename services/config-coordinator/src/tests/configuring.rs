//! Knowing and setting configurations with the real service, or without any.

use chassis::settings::ConfigurationDriver;

use proto::power::PowerReading;

use super::{peers::Trouble, *};
use crate::silence;

impl Site {
    /// Waits for so many more calls that ask for configurations.
    async fn looks(&self, what: &str, more: usize) {
        let wanted = self.peers.heard("GET /cfs") + more;
        eventually(what, async || {
            let heard = self.peers.heard("GET /cfs");
            if heard >= wanted { Ok(()) } else { Err(format!("{heard} of {wanted}")) }
        })
        .await;
    }
}

async fn with_cfs() -> Site {
    Site::start(Options::default(), |settings| settings.configuration.driver = ConfigurationDriver::Cfs).await
}

async fn audited_each_second() -> Site {
    let options = Options { polling_frequency: 1, ..Options::default() };
    Site::start(options, |settings| settings.configuration.driver = ConfigurationDriver::Cfs).await
}

fn ids(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|index| format!("x{index:03}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_followed_while_they_matter_and_not_afterwards() {
    let site = with_cfs().await;
    site.peers.configure(ids(1), "base", "pending");
    site.registry.put(booted("x000", "base"));
    site.shows("x000", "known Some(\"base\") \"pending\" of 7 \"\"").await;
    site.peers.configure(ids(1), "base", "configured");
    site.shows("x000", "known Some(\"base\") \"configured\" of 7 \"\"").await;

    // Settled; and another that has not booted yet.
    site.registry.put(Component { enabled: Some(false), ..booted("x000", "base") });
    site.peers.configure(["x001".to_owned()], "base", "pending");
    site.registry.put(Component {
        status: Some(Status { phase: Some(Phase::PoweringOff), status_override: None }),
        ..pending("x001", "base")
    });
    site.shows("x001", "known Some(\"base\") \"pending\" of 7 \"\"").await;
    let asked = site.peers.heard("GET /cfs");
    // Nothing shows that nothing happens but time: several periods of it.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let more = site.peers.heard("GET /cfs") - asked;
    assert!(more <= 1, "{more} calls about nobody");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_configured_is_not_looked_at_while_something_else_is_awaited() {
    // Longer than the test, so nothing but looks for changes happens. A handful is asked about one by one.
    let options = Options { polling_frequency: 3600, ..Options::default() };
    let adjust = |settings: &mut Settings| settings.configuration.driver = ConfigurationDriver::Cfs;
    let site = Site::start(options, adjust).await;
    site.peers.configure(ids(3), "base", "pending");
    site.registry.put_all(ids(3).map(|id| booted(&id, "base")).collect());
    for id in ids(3) {
        site.shows(&id, "known Some(\"base\") \"pending\" of 7 \"\"").await;
    }
    site.peers.configure(ids(2), "base", "configured");
    for id in ids(2) {
        site.shows(&id, "known Some(\"base\") \"configured\" of 7 \"\"").await;
    }
    eventually("looks at the last one only", async || {
        let heard = site.peers.state().heard.iter().rev().take(2).cloned().collect::<Vec<_>>();
        if heard == ["GET /cfs/v3/components/x002"; 2] { Ok(()) } else { Err(format!("{heard:?}")) }
    })
    .await;
    site.peers.configure(ids(3), "base", "configured");
    site.shows("x002", "known Some(\"base\") \"configured\" of 7 \"\"").await;
    let asked = site.peers.heard("GET /cfs");
    // Nothing shows that nothing happens but time: several periods of it.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let more = site.peers.heard("GET /cfs") - asked;
    assert!(more <= 1, "{more} calls about those who are configured");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_fetch_answers_for_all_nodes() {
    let site = with_cfs().await;
    site.peers.state().page = 100;
    site.peers.configure(ids(300), "base", "pending");
    // They do not run yet, so whatever is heard is not about changes.
    let status = Some(Status { phase: Some(Phase::PoweringOff), status_override: None });
    site.registry
        .put_all(ids(300).map(|id| Component { status: status.clone(), ..pending(&id, "base") }).collect());
    for id in ids(300) {
        site.shows(&id, "known Some(\"base\") \"pending\" of 7 \"\"").await;
    }
    let calls = site.peers.heard("GET /cfs");
    // Three pages, and as many if what came before the service listened had to be asked for again.
    assert!(calls <= 6, "{calls} calls about 300 nodes");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_have_to_boot_are_asked_about_when_they_have() {
    let site = Site::start(Options::default(), |settings| {
        settings.configuration.driver = ConfigurationDriver::Cfs;
        settings.boot_parameters.driver = chassis::settings::BootParametersDriver::Bss;
    })
    .await;
    site.peers.configure(ids(10), "old", "configured");
    let put = |component: fn(&str, &str) -> Component, phase: Phase, generation: u64| {
        let status = Some(Status { phase: Some(phase), status_override: Some("".into()) });
        let component =
            |id: String| Component { generation, status: status.clone(), ..component(&id, "base") };
        site.registry.put_all(ids(10).map(component).collect());
    };
    let all_show = async |expected: &str| {
        for id in ids(10) {
            site.shows(&id, expected).await;
        }
    };
    put(pending, Phase::PoweringOff, 7);
    all_show("known Some(\"old\") \"configured\" of 7 \"\"").await;

    // The service has them, and answers when it takes what they are to boot with.
    let asked = site.peers.heard("GET /cfs");
    put(pending, Phase::PoweringOff, 8);
    put(pending, Phase::PoweringOn, 8);
    all_show("known Some(\"base\") \"\" of 8 \"\"").await;
    assert_eq!(site.peers.heard("GET /cfs"), asked);

    // These run what they should without having been prepared for it.
    put(booted, Phase::Configuring, 9);
    all_show("known Some(\"base\") \"pending\" of 9 \"\"").await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_nobody_told_of_is_found() {
    let site = audited_each_second().await;
    // More than a handful, and without the tag by which those of a session are found.
    site.peers.configure(ids(10), "base", "pending");
    site.registry.put_all(ids(10).map(|id| booted(&id, "base")).collect());
    for id in ids(10) {
        site.shows(&id, "known Some(\"base\") \"pending\" of 7 \"\"").await;
    }
    site.peers.configure(ids(10), "base", "configured");
    for id in ids(10) {
        site.shows(&id, "known Some(\"base\") \"configured\" of 7 \"\"").await;
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_counts_for_nothing_while_nobody_answers() {
    let site = audited_each_second().await;
    site.peers.configure(ids(1), "base", "pending");
    site.registry.put(booted("x000", "base"));
    site.shows("x000", "known Some(\"base\") \"pending\" of 7 \"\"").await;
    site.peers.state().trouble.insert("cfs", Trouble::Status(500));
    let text = "waiting for CFS at HOST (failing since TIME: 500 Internal Server Error: out of order)";
    site.shows("x000", &format!("unknown None \"\" of 7 {text:?}")).await;
    site.peers.configure(ids(1), "base", "configured");
    site.peers.state().trouble.clear();
    site.shows("x000", "known Some(\"base\") \"configured\" of 7 \"\"").await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_for_changes_that_are_refused_take_nothing_away() {
    // Longer than the test, so nothing but looks for changes happens.
    let options = Options { polling_frequency: 3600, ..Options::default() };
    let adjust = |settings: &mut Settings| settings.configuration.driver = ConfigurationDriver::Cfs;
    let site = Site::start(options, adjust).await;
    site.peers.configure(ids(1), "base", "pending");
    site.registry.put(booted("x000", "base"));
    site.shows("x000", "known Some(\"base\") \"pending\" of 7 \"\"").await;
    eventually("looks for changes only", async || {
        let heard = site.peers.heard("GET /cfs");
        if heard > 10 { Ok(()) } else { Err(format!("{heard} looks")) }
    })
    .await;
    site.peers.state().trouble.insert("cfs", Trouble::Status(400));
    site.looks("a look that is refused", 1).await;
    tokio::time::sleep(silence::LONGEST).await;
    // The one before the last of these was refused when nobody had answered for longer than anybody may who is asked
    // what is so. The pauses between looks grow.
    site.looks("looks that are refused later", 3).await;
    assert_eq!(site.shown("x000").await, "known Some(\"base\") \"pending\" of 7 \"\"");
    site.peers.configure(ids(1), "base", "configured");
    site.peers.state().trouble.clear();
    site.shows("x000", "known Some(\"base\") \"configured\" of 7 \"\"").await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_complete_answer_says_that_a_node_is_missing() {
    let site = with_cfs().await;
    site.peers.state().page = 5;
    site.peers.configure(ids(10), "base", "pending");
    site.peers.state().trouble.insert("cfs", Trouble::SecondPage);
    for id in ids(12) {
        site.registry.put(booted(&id, "base"));
    }
    let text = "waiting for CFS at HOST (failing since TIME: 500 Internal Server Error)";
    site.shows("x011", &format!("unknown None \"\" of 7 {text:?}")).await;
    site.peers.state().trouble.clear();
    site.shows("x011", "missing None \"\" of 7 \"\"").await;
    site.shows("x009", "known Some(\"base\") \"pending\" of 7 \"\"").await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_node_is_told_its_configuration_once() {
    let site = with_cfs().await;
    site.peers.configure(ids(1), "old", "configured");
    site.registry.put(booted("x000", "base"));
    site.shows("x000", "known Some(\"base\") \"pending\" of 7 \"\"").await;
    {
        let state = site.peers.state();
        let component = &state.cfs["x000"];
        assert_eq!((&component["enabled"], component.get("state")), (&true.into(), None));
    }
    site.peers.configure(ids(1), "base", "configured");
    site.shows("x000", "known Some(\"base\") \"configured\" of 7 \"\"").await;
    assert_eq!(site.peers.heard("PATCH /cfs"), 1);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_configures_a_booted_node_is_configured() {
    let adjust = |settings: &mut Settings| settings.configuration.driver = ConfigurationDriver::None;
    let site = Site::start(Options::default(), adjust).await;
    site.registry.put(booted("x000", "base"));
    site.shows("x000", "known Some(\"base\") \"configured\" of 7 \"\"").await;
    site.registry.put(Component { generation: 8, ..booted("x000", "other") });
    site.shows("x000", "known Some(\"other\") \"configured\" of 8 \"\"").await;
    assert_eq!(site.peers.heard(""), 0);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_last_boot_left_is_forgotten_even_if_it_is_read_while_the_next_is_prepared() {
    let site = Site::start(Options::default(), |settings| {
        settings.configuration.driver = ConfigurationDriver::Cfs;
        settings.boot_parameters.driver = chassis::settings::BootParametersDriver::Bss;
    })
    .await;
    site.peers.configure(ids(1), "base", "configured");
    // It has reported this boot before, so its configuration is followed.
    site.registry.put(booted("x000", "base"));
    site.shows("x000", "known Some(\"base\") \"configured\" of 7 \"\"").await;
    site.peers.state().late_change = Some(Duration::from_millis(500));
    let status = pending("x000", "base").status;
    site.registry.put(Component { status, ..booted("x000", "base") });
    eventually("a preparation", async || {
        site.registry.get("x000").preparation.map(drop).ok_or_else(|| "none".to_owned())
    })
    .await;
    assert_eq!(site.shown("x000").await, "known Some(\"base\") \"\" of 7 \"\"");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_node_is_asked_about_before_it_is_switched_off() {
    let site = with_cfs().await;
    site.peers.configure(ids(2), "base", "configured");
    site.registry.put_all(ids(2).map(|id| booted(&id, "base")).collect());
    for id in ids(2) {
        site.shows(&id, "known Some(\"base\") \"configured\" of 7 \"\"").await;
    }
    // Both are to boot something else, and one of them is off.
    site.registry.set_power("x001", PowerReading::Off);
    let to_boot = |id: String| Component { generation: 8, actual_state: None, ..booted(&id, "base") };
    site.registry.put_all(ids(2).map(to_boot).collect());
    site.shows("x000", "known Some(\"base\") \"configured\" of 8 \"\"").await;
    assert_eq!(site.shown("x001").await, "known Some(\"base\") \"configured\" of 7 \"\"");
    site.stop().await;
}
