//! States and setting of configurations with the real service, or without any.

use chassis::{
    observe::{freshness::LAPSE, outage::LONGEST_SILENCE},
    settings::ConfigurationDriver,
};
use proto::power::PowerReading;

use super::{peers::PlayedTrouble, *};

impl CoordinatorSite {
    /// Waits for `more` further calls that read configurations.
    async fn looks(&self, what: &str, more: usize) {
        let wanted = self.peers.heard("GET /cfs") + more;
        eventually(what, async || {
            let heard = self.peers.heard("GET /cfs");
            if heard >= wanted { Ok(()) } else { Err(format!("{heard} of {wanted}")) }
        })
        .await;
    }
}

async fn with_cfs() -> CoordinatorSite {
    CoordinatorSite::start(Options::default(), |settings| {
        settings.configuration.driver = ConfigurationDriver::Cfs
    })
    .await
}

async fn audited_each_second() -> CoordinatorSite {
    let options = Options { polling_frequency: Some(1), ..Options::default() };
    CoordinatorSite::start(options, |settings| settings.configuration.driver = ConfigurationDriver::Cfs).await
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_followed_while_they_matter_and_not_afterwards() {
    let site = with_cfs().await;
    site.peers.configure(ids(1), "base", "pending");
    site.booted(["x000"], "base").await;
    site.shows("x000", "known Some(\"base\") \"pending\" of now \"\"").await;
    site.peers.configure(ids(1), "base", "configured");
    site.shows("x000", "known Some(\"base\") \"configured\" of now \"\"").await;

    // One node is settled; the other has not booted yet.
    site.registry.settle(["x000"]).await;
    site.peers.configure(["x001".to_owned()], "base", "pending");
    site.assign(["x001"], &wish("base"), Phase::PoweringOff).await;
    site.shows("x001", "known Some(\"base\") \"pending\" of now \"\"").await;
    let asked = site.peers.heard("GET /cfs");
    // The absence of calls shows only over time: several periods of it.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let more = site.peers.heard("GET /cfs") - asked;
    assert!(more <= 1, "{more} calls about nobody");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_configured_is_not_looked_at_while_something_else_is_awaited() {
    // The period is longer than the test, so only polls for changes happen. A handful is requested one by one.
    let options = Options { polling_frequency: Some(3600), ..Options::default() };
    let adjust = |settings: &mut Settings| settings.configuration.driver = ConfigurationDriver::Cfs;
    let site = CoordinatorSite::start(options, adjust).await;
    site.peers.configure(ids(3), "base", "pending");
    site.booted(ids(3), "base").await;
    for id in ids(3) {
        site.shows(&id, "known Some(\"base\") \"pending\" of now \"\"").await;
    }
    site.peers.configure(ids(2), "base", "configured");
    for id in ids(2) {
        site.shows(&id, "known Some(\"base\") \"configured\" of now \"\"").await;
    }
    eventually("looks at the last one only", async || {
        let heard = site.peers.state().heard.iter().rev().take(2).cloned().collect::<Vec<_>>();
        if heard == ["GET /cfs/v3/components/x002"; 2] { Ok(()) } else { Err(format!("{heard:?}")) }
    })
    .await;
    site.peers.configure(ids(3), "base", "configured");
    site.shows("x002", "known Some(\"base\") \"configured\" of now \"\"").await;
    let asked = site.peers.heard("GET /cfs");
    // The absence of calls shows only over time: several periods of it.
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
    // The nodes do not run yet, so the calls are not polls for changes.
    site.assign(ids(300), &wish("base"), Phase::PoweringOff).await;
    for id in ids(300) {
        site.shows(&id, "known Some(\"base\") \"pending\" of now \"\"").await;
    }
    let calls = site.peers.heard("GET /cfs");
    // Three pages, and as many if the changes from before the service listened had to be requested again.
    assert!(calls <= 6, "{calls} calls about 300 nodes");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_have_to_boot_are_asked_about_when_they_have() {
    let site = CoordinatorSite::start(Options::default(), |settings| {
        settings.configuration.driver = ConfigurationDriver::Cfs;
        settings.boot_parameters.driver = chassis::settings::BootParametersDriver::Bss;
    })
    .await;
    site.peers.configure(ids(10), "old", "configured");
    let all_show = async |expected: &str| {
        for id in ids(10) {
            site.shows(&id, expected).await;
        }
    };
    site.assign(ids(10), &wish("base"), Phase::PoweringOff).await;
    all_show("known Some(\"old\") \"configured\" of now \"\"").await;

    // The service has the nodes, which are off, and answers when it takes the configuration for their boot.
    ids(10).for_each(|id| site.power.set(&id, PowerReading::Off));
    let asked = site.peers.heard("GET /cfs");
    site.pending(ids(10), "base").await;
    all_show("known Some(\"base\") \"\" of now \"\"").await;
    assert_eq!(site.peers.heard("GET /cfs"), asked);

    // These nodes run the wanted artifacts without a preparation for that.
    site.booted(ids(10), "base").await;
    all_show("known Some(\"base\") \"pending\" of now \"\"").await;
    site.stop().await;
}

/// A runtime of one thread sleeps as a stopped process does.
#[tokio::test]
async fn a_state_of_before_a_sleep_is_withdrawn() {
    let options = Options { polling_frequency: Some(3600), cfs_read_timeout: Some(10), ..Options::default() };
    let adjust = |settings: &mut Settings| {
        settings.configuration.driver = ConfigurationDriver::Cfs;
        settings.configuration.poll_seconds = 3600.0;
    };
    let site = CoordinatorSite::start(options, adjust).await;
    site.peers.configure(ids(1), "base", "configured");
    site.booted(["x000"], "base").await;
    let known = "known Some(\"base\") \"configured\" of now \"\"";
    site.shows("x000", known).await;
    site.peers.state().trouble.insert("cfs", PlayedTrouble::Hang);
    std::thread::sleep(LAPSE + Duration::from_secs(1));
    // On a busy machine the request is given up first, and the state shows that.
    eventually("the state to be withdrawn", async || {
        let shown = site.shown("x000").await;
        if shown.starts_with("unknown None \"\" of now ") { Ok(()) } else { Err(shown) }
    })
    .await;
    site.peers.state().trouble.clear();
    site.shows("x000", known).await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_nobody_told_of_is_found() {
    let site = audited_each_second().await;
    // There are more nodes than a handful, and they lack the tag by which the nodes of a session are found.
    site.peers.configure(ids(10), "base", "pending");
    site.booted(ids(10), "base").await;
    for id in ids(10) {
        site.shows(&id, "known Some(\"base\") \"pending\" of now \"\"").await;
    }
    site.peers.configure(ids(10), "base", "configured");
    for id in ids(10) {
        site.shows(&id, "known Some(\"base\") \"configured\" of now \"\"").await;
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_counts_for_nothing_while_nobody_answers() {
    let site = audited_each_second().await;
    site.peers.configure(ids(1), "base", "pending");
    site.booted(["x000"], "base").await;
    site.shows("x000", "known Some(\"base\") \"pending\" of now \"\"").await;
    site.peers.state().trouble.insert("cfs", PlayedTrouble::Status(500));
    let text = "waiting for CFS at HOST (failing since TIME: 500 Internal Server Error: out of order)";
    site.shows("x000", &format!("unknown None \"\" of now {text:?}")).await;
    site.peers.configure(ids(1), "base", "configured");
    site.peers.state().trouble.clear();
    site.shows("x000", "known Some(\"base\") \"configured\" of now \"\"").await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_for_changes_that_are_refused_take_nothing_away() {
    // The period is longer than the test, so only polls for changes happen.
    let options = Options { polling_frequency: Some(3600), ..Options::default() };
    let adjust = |settings: &mut Settings| settings.configuration.driver = ConfigurationDriver::Cfs;
    let site = CoordinatorSite::start(options, adjust).await;
    site.peers.configure(ids(1), "base", "pending");
    site.booted(["x000"], "base").await;
    site.shows("x000", "known Some(\"base\") \"pending\" of now \"\"").await;
    eventually("looks for changes only", async || {
        let heard = site.peers.heard("GET /cfs");
        if heard > 10 { Ok(()) } else { Err(format!("{heard} looks")) }
    })
    .await;
    site.peers.state().trouble.insert("cfs", PlayedTrouble::Status(400));
    site.looks("a look that is refused", 1).await;
    tokio::time::sleep(LONGEST_SILENCE).await;
    // The last poll but one was refused after a longer silence than a request for states would be allowed. The pauses
    // between polls grow.
    site.looks("looks that are refused later", 3).await;
    assert_eq!(site.shown("x000").await, "known Some(\"base\") \"pending\" of now \"\"");
    site.peers.configure(ids(1), "base", "configured");
    site.peers.state().trouble.clear();
    site.shows("x000", "known Some(\"base\") \"configured\" of now \"\"").await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_complete_answer_says_that_a_node_is_missing() {
    let site = with_cfs().await;
    site.peers.state().page = 5;
    site.peers.configure(ids(10), "base", "pending");
    site.peers.state().trouble.insert("cfs", PlayedTrouble::SecondPage);
    site.booted(ids(12), "base").await;
    let text = "waiting for CFS at HOST (failing since TIME: 500 Internal Server Error)";
    site.shows("x011", &format!("unknown None \"\" of now {text:?}")).await;
    site.peers.state().trouble.clear();
    site.shows("x011", "missing None \"\" of now \"\"").await;
    site.shows("x009", "known Some(\"base\") \"pending\" of now \"\"").await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_missing_are_asked_about_together() {
    let site = audited_each_second().await;
    for id in ids(3) {
        site.booted([&id], "base").await;
        site.shows(&id, "missing None \"\" of now \"\"").await;
    }
    let alone = site.peers.heard("GET /cfs/v3/components/");
    site.looks("more questions", 3).await;
    assert_eq!(site.peers.heard("GET /cfs/v3/components/"), alone, "a node was asked about alone");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_node_is_told_its_configuration_once() {
    let site = with_cfs().await;
    site.peers.configure(ids(1), "old", "configured");
    site.booted(["x000"], "base").await;
    site.shows("x000", "known Some(\"base\") \"pending\" of now \"\"").await;
    {
        let state = site.peers.state();
        let component = &state.cfs["x000"];
        assert_eq!((&component["enabled"], component.get("state")), (&true.into(), None));
    }
    site.peers.configure(ids(1), "base", "configured");
    site.shows("x000", "known Some(\"base\") \"configured\" of now \"\"").await;
    assert_eq!(site.peers.heard("PATCH /cfs"), 1);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_configures_a_booted_node_is_configured() {
    let adjust = |settings: &mut Settings| settings.configuration.driver = ConfigurationDriver::None;
    let site = CoordinatorSite::start(Options::default(), adjust).await;
    site.booted(["x000"], "base").await;
    site.shows("x000", "known Some(\"base\") \"configured\" of now \"\"").await;
    site.booted(["x000"], "other").await;
    site.shows("x000", "known Some(\"other\") \"configured\" of now \"\"").await;
    assert_eq!(site.peers.heard(""), 0);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_last_boot_left_is_forgotten_even_if_it_is_read_while_the_next_is_prepared() {
    let site = CoordinatorSite::start(Options::default(), |settings| {
        settings.configuration.driver = ConfigurationDriver::Cfs;
        settings.boot_parameters.driver = chassis::settings::BootParametersDriver::Bss;
    })
    .await;
    site.peers.configure(ids(1), "base", "configured");
    // The node has reported this boot before, so its configuration is followed.
    site.booted(["x000"], "base").await;
    site.shows("x000", "known Some(\"base\") \"configured\" of now \"\"").await;
    site.peers.state().late_change = Some(Duration::from_millis(500));
    site.registry.report_phase(["x000"], Phase::PoweringOn).await;
    site.registry.until("x000", "a preparation", |one| one.preparation.outcome.is_some()).await;
    assert_eq!(site.shown("x000").await, "known Some(\"base\") \"\" of now \"\"");
    site.stop().await;
}
