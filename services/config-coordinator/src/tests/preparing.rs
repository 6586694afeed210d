//! Preparation of power-ons with real peers.

use chassis::settings::{BootParametersDriver, CatalogueDriver, ConfigurationDriver};

use proto::{component::ReportPreparationsRequest, power::PowerReading};

use super::{peers::PlayedTrouble, *};

async fn with_bss_and_cfs(options: Options) -> CoordinatorSite {
    CoordinatorSite::start(options, |settings| {
        settings.boot_parameters.driver = BootParametersDriver::Bss;
        settings.configuration.driver = ConfigurationDriver::Cfs;
    })
    .await
}

fn is_prepared(component: &Component) -> bool {
    component.preparation.outcome.as_ref().is_some_and(|preparation| preparation.trouble.is_none())
}

async fn prepared(site: &CoordinatorSite, count: usize) {
    eventually("preparations", async || {
        let all = site.registry.all().await;
        let ready = all.iter().filter(|component| is_prepared(component)).count();
        if ready == count { Ok(()) } else { Err(format!("{ready} of {count}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_peer_is_asked_at_the_start() {
    let site = with_bss_and_cfs(Options::default()).await;
    for question in ["GET /bss/boot/v1/service/status", "GET /cfs/v3/components?limit=1"] {
        eventually(question, async || match site.peers.heard(question) {
            1 => Ok(()),
            times => Err(format!("{times} times")),
        })
        .await;
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_to_each_peer_prepares_all_that_boot_the_same() {
    let site = with_bss_and_cfs(Options::default()).await;
    site.peers.configure(ids(100), "old", "configured");
    site.pending(ids(100), "base").await;
    prepared(&site, 100).await;
    let reports = site.registry.proxy.requests::<ReportPreparationsRequest>("ReportPreparations");
    let tokens: Vec<_> = reports.into_iter().flat_map(|report| report.tokens).collect();
    assert!(tokens.iter().all(|token| token.boot_artifacts.is_some()), "{tokens:?}");
    for id in ids(100) {
        let token = site.token(&id).await;
        let state = site.peers.state();
        let component = &state.cfs[&id];
        assert_eq!(
            (&component["desired_config"], &component["enabled"], &component["tags"]["bos_session"]),
            (&"base".into(), &false.into(), &"s1".into())
        );
        assert_eq!(token.as_deref(), Some(state.bss[&id].0.as_str()));
    }
    // The registry shows the components in several pieces, each of which may begin a round.
    let (bss, cfs) = (site.peers.heard("PUT /bss"), site.peers.heard("PATCH /cfs"));
    assert!(bss <= 20 && cfs <= 20, "{bss} {cfs}");
    site.shows("x042", "known Some(\"base\") \"\" of now \"\"").await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_runs_is_not_prepared() {
    let site = with_bss_and_cfs(Options::default()).await;
    site.peers.configure(ids(3), "base", "configured");
    site.power.set("x000", PowerReading::On);
    site.power.set("x001", PowerReading::Unspecified);
    site.pending(ids(3), "base").await;
    prepared(&site, 1).await;
    assert!(site.registry.get("x002").await.preparation.outcome.is_some());
    // A round that has begun ends before the shutdown.
    assert_eq!((site.peers.heard("PUT /bss"), site.peers.heard("PATCH /cfs")), (1, 1));
    assert_eq!(site.peers.state().cfs["x000"]["configuration_status"], "configured");
    site.power.set("x000", PowerReading::Off);
    prepared(&site, 2).await;
    assert!(site.registry.get("x001").await.preparation.outcome.is_none());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_refused_spends_its_attempts_and_all_others_go_on() {
    // The pause after a refusal is at most this long.
    let options = Options { max_power_on_wait_time: Some(1), ..Options::default() };
    let site = with_bss_and_cfs(options).await;
    site.peers.configure(ids(100), "", "unconfigured");
    site.peers.state().refused.insert("x042".to_owned());
    site.pending(ids(100), "base").await;
    prepared(&site, 99).await;
    let is_last = |one: &Component| {
        one.power.event_stats.as_ref().is_some_and(|stats| stats.power_on_attempts == Some(3))
    };
    let last = site.registry.until("x042", "the last attempt", is_last).await;
    assert_eq!(
        site.peers.plain(&preparation(&last)),
        "3 \"Error encountered setting BSS information: BSS at HOST (refused PUT /bootparameters: 400 Bad \
         Request: x042 is not known)\" token None, Some(3) spent"
    );
    let others: Vec<_> =
        site.registry.all().await.into_iter().filter(|one| one.id.as_str() != "x042").collect();
    assert!(others.iter().all(|one| one.power.event_stats.as_ref().unwrap().power_on_attempts == Some(0)));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_is_refused_for_one_node_spends_its_attempt_only() {
    let site = with_bss_and_cfs(Options::default()).await;
    site.peers.configure(ids(30), "", "unconfigured");
    site.peers.state().trouble.insert("bss", PlayedTrouble::Status(500));
    site.pending(ids(30), "base").await;
    site.registry.proxy.called("ReportPreparations", 1).await;
    {
        let mut state = site.peers.state();
        state.refused.insert("x017".to_owned());
        state.trouble.clear();
    }
    // Only CFS refuses the node.
    let is_refused = |one: &Component| {
        one.preparation.outcome.as_ref().is_some_and(|outcome| outcome.error().starts_with("Error"))
    };
    site.registry.until("x017", "boot data", is_refused).await;
    prepared(&site, 29).await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_peer_is_out_of_order_nothing_is_spent_and_the_text_says_who_is_waited_for() {
    let site = with_bss_and_cfs(Options::default()).await;
    site.peers.configure(ids(6), "", "unconfigured");
    for (peer, nodes, text) in [
        (
            "bss",
            ["x000", "x001", "x002"],
            "waiting for BSS at HOST (failing since TIME: 503 Service Unavailable: out of order)",
        ),
        (
            "cfs",
            ["x003", "x004", "x005"],
            "waiting for CFS at HOST (failing since TIME: 503 Service Unavailable: out of order)",
        ),
    ] {
        site.peers.state().trouble.insert(peer, PlayedTrouble::Status(503));
        site.pending(nodes, "base").await;
        for id in nodes {
            let shown = eventually(text, async || {
                let shown = site.preparation(id).await;
                if shown.contains("waiting for") { Ok(shown) } else { Err(shown) }
            });
            assert_eq!(shown.await, format!("1 {text:?} token None, Some(0) spent"));
        }
        site.peers.state().trouble.clear();
        for id in nodes {
            site.registry.until(id, "a preparation", is_prepared).await;
        }
    }
    site.stop().await;
}

/// Waits until `times` requests of a kind were made.
async fn heard(site: &CoordinatorSite, like: &str, times: usize) {
    eventually(like, async || match site.peers.heard(like) {
        heard if heard >= times => Ok(()),
        heard => Err(heard.to_string()),
    })
    .await;
}

/// Waits until the registry shows that a component waits for an upstream.
async fn waits(site: &CoordinatorSite, id: &str, expected: &str) {
    eventually(expected, async || {
        let shown = site.preparation(id).await;
        if shown == format!("1 {expected:?} token None, Some(0) spent") { Ok(()) } else { Err(shown) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_repeats_only_the_step_that_waits() {
    let site = with_bss_and_cfs(Options::default()).await;
    site.peers.configure(ids(4), "", "unconfigured");
    site.peers.state().trouble.insert("cfs", PlayedTrouble::Status(503));
    site.pending(ids(3), "base").await;
    for id in ids(3) {
        waits(
            &site,
            &id,
            "waiting for CFS at HOST (failing since TIME: 503 Service Unavailable: out of order)",
        )
        .await;
    }
    let (puts, changes) = (site.peers.heard("PUT /bss"), site.peers.heard("PATCH /cfs"));
    heard(&site, "PATCH /cfs", changes + 4).await;
    assert_eq!(site.peers.heard("PUT /bss"), puts, "the accepted boot data were put again");
    // A call for another node meets the trouble of BSS, which may have lost its earlier data.
    site.peers.state().trouble.insert("bss", PlayedTrouble::Status(503));
    site.pending(["x003"], "base").await;
    heard(&site, "PUT /bss", puts + 1).await;
    site.peers.state().trouble.clear();
    prepared(&site, 4).await;
    for id in ids(4) {
        let token = site.token(&id).await;
        assert_eq!(token.as_deref(), Some(site.peers.state().bss[&id].0.as_str()), "{id}");
    }
    assert!(site.peers.heard("PUT /bss") > puts + 1, "boot data that may be lost were not put again");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_during_an_outage_is_not_repeated_while_others_fail() {
    let site = with_bss_and_cfs(Options::default()).await;
    site.peers.configure(ids(4), "", "unconfigured");
    site.peers.state().failing.insert("x003".to_owned());
    site.peers.state().trouble.insert("cfs", PlayedTrouble::Status(503));
    let boot_artifacts = BootArtifacts { kernel: Some("k2".into()), ..BootArtifacts::default() };
    let other = SessionWish { boot_artifacts, ..wish("base") };
    site.assign(["x003"], &other, Phase::PoweringOn).await;
    heard(&site, "PUT /bss", 1).await;
    site.pending(ids(3), "base").await;
    for id in ids(3) {
        let text = "waiting for CFS at HOST (failing since TIME: 503 Service Unavailable: out of order)";
        waits(&site, &id, text).await;
    }
    let tokens = || ids(3).map(|id| site.peers.state().bss[&id].0.clone()).collect::<Vec<_>>();
    let (accepted, puts) = (tokens(), site.peers.heard("PUT /bss"));
    heard(&site, "PUT /bss", puts + 4).await;
    assert_eq!(tokens(), accepted, "the accepted boot data were put again");
    site.peers.state().failing.clear();
    site.peers.state().trouble.clear();
    prepared(&site, 4).await;
    assert_eq!(tokens(), accepted, "the accepted boot data were put again");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_refuses_everybody_is_waited_for() {
    for (peer, call, text) in [
        ("bss", "PUT /bss", "BSS at HOST (refused PUT /bootparameters: 400 Bad Request: out of order)"),
        ("cfs", "PATCH /cfs", "CFS at HOST (refused PATCH /components: 400 Bad Request: out of order)"),
    ] {
        let site = with_bss_and_cfs(Options { default_retry_policy: Some(1), ..Options::default() }).await;
        site.peers.configure(ids(40), "", "unconfigured");
        site.peers.state().trouble.insert(peer, PlayedTrouble::Status(400));
        site.pending(ids(40), "base").await;
        for id in ids(40) {
            waits(&site, &id, &format!("waiting for {text}")).await;
        }
        let before = site.peers.heard(call);
        heard(&site, call, before + 1).await;
        site.peers.state().trouble.clear();
        prepared(&site, 40).await;
        let all = site.registry.all().await;
        let spent = all.into_iter().filter_map(|one| one.power.event_stats.as_ref()?.power_on_attempts);
        assert_eq!(spent.max(), Some(0));
        site.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_no_longer_known_when_its_configuration_is_set_does_not_boot_until_it_is() {
    let site = with_bss_and_cfs(Options::default()).await;
    site.peers.configure(ids(3), "old", "configured");
    site.assign(ids(3), &wish("base"), Phase::PoweringOff).await;
    for id in ids(3) {
        site.shows(&id, "known Some(\"old\") \"configured\" of now \"\"").await;
    }
    let gone = ["x001", "x002"];
    site.peers.state().cfs.retain(|id, _| !gone.contains(&id.as_str()));
    for (id, configuration) in ids(3).zip(["base", "base", ""]) {
        site.pending([id], configuration).await;
    }
    prepared(&site, 1).await;
    for id in gone {
        site.shows(id, "missing None \"\" of now \"\"").await;
        let shown = eventually("why it is not prepared", async || {
            let shown = site.preparation(id).await;
            if shown.starts_with("none") { Err(shown) } else { Ok(shown) }
        });
        let expected = "1 \"Component information was not returned by cfs\" token None, Some(0) spent";
        assert_eq!(shown.await, expected);
    }
    site.peers.configure(gone.map(str::to_owned), "old", "configured");
    prepared(&site, 3).await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_no_configuration_is_prepared_without_the_service() {
    let site = with_bss_and_cfs(Options::default()).await;
    site.peers.configure(ids(2), "", "unconfigured");
    site.peers.state().trouble.insert("cfs", PlayedTrouble::Status(500));
    site.pending(["x000"], "").await;
    site.pending(["x001"], "base").await;
    prepared(&site, 1).await;
    assert_eq!(site.registry.get("x000").await.preparation.outcome.clone().unwrap().trouble, None);
    site.stop().await;
}

/// Returns a site with five nodes of which the last two have images that cannot be projected.
async fn with_images(must_exist: bool, trouble: Option<PlayedTrouble>) -> CoordinatorSite {
    let options = Options { ims_images_must_exist: Some(must_exist), ..Options::default() };
    let site = CoordinatorSite::start(options, |settings| {
        settings.boot_parameters.driver = BootParametersDriver::Bss;
        settings.configuration.driver = ConfigurationDriver::None;
        settings.images.catalogue = CatalogueDriver::Ims;
    })
    .await;
    site.peers.state().refused.insert("gone".to_owned());
    site.peers.state().trouble.extend(trouble.map(|trouble| ("ims", trouble)));
    let with = |image: &str, parameters: &str| {
        let kernel = format!("s3://boot-images/{image}/kernel");
        SessionWish { boot_artifacts: artifacts(&kernel, parameters), ..wish("base") }
    };
    let projected = "root=sbps-s3:s3://boot-images/i1/rootfs";
    for (id, wish) in [
        ("x1", with("i1", projected)),
        ("x2", with("i1", &format!("{projected} quiet"))),
        ("x3", with("i2", "root=live")),
        ("x4", with("gone", projected)),
        ("x5", with("deleted/i1", projected)),
    ] {
        site.assign([id], &wish, Phase::PoweringOn).await;
    }
    site
}

#[tokio::test(flavor = "multi_thread")]
async fn image_that_cannot_be_projected_boots_as_in_bos() {
    for trouble in [
        None,
        Some(PlayedTrouble::Status(400)),
        Some(PlayedTrouble::Status(401)),
        Some(PlayedTrouble::Status(403)),
    ] {
        let site = with_images(false, trouble).await;
        prepared(&site, 5).await;
        let heard = site.peers.state().bss.keys().cloned().collect::<Vec<_>>();
        assert_eq!(heard, ["x1", "x2", "x3", "x4", "x5"], "{trouble:?}");
        site.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn catalogue_that_denies_calls_is_waited_for_where_images_must_exist() {
    let site = with_images(true, Some(PlayedTrouble::Status(403))).await;
    prepared(&site, 1).await;
    let text = "waiting for IMS at HOST (refused PATCH /images/i1 since TIME: 403 Forbidden: out of order)";
    for id in ["x1", "x2"] {
        waits(&site, id, text).await;
    }
    site.peers.state().trouble.clear();
    prepared(&site, 3).await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_node_boots_from_an_unprojected_image_where_images_must_exist() {
    let site = with_images(true, None).await;
    prepared(&site, 3).await;
    let mut told = String::new();
    for id in ["x4", "x5"] {
        let shown = eventually("a refusal", async || {
            let shown = site.preparation(id).await;
            if shown.contains("Error") { Ok(shown) } else { Err(shown) }
        });
        told += &format!("{id}: {}\n", shown.await);
    }
    expect_test::expect![[r#"
        x4: 1 "Error encountered tagging images IMS at HOST (refused PATCH /images/gone: 404 Not Found: image does not exist)" token None, Some(1) spent
        x5: 1 "Error encountered tagging images the image of the kernel 's3://boot-images/deleted/i1/kernel' is deleted" token None, Some(1) spent
    "#]].assert_eq(&told);
    let heard = site.peers.state().bss.keys().cloned().collect::<Vec<_>>();
    assert_eq!(heard, ["x1", "x2", "x3"]);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_missing_is_no_acceptance() {
    let site = with_bss_and_cfs(Options::default()).await;
    site.peers.configure(ids(1), "", "unconfigured");
    site.peers.state().trouble.insert("bss", PlayedTrouble::Bare);
    site.pending(["x000"], "base").await;
    let shown = eventually("trouble", async || {
        let shown = site.preparation("x000").await;
        if shown.contains("waiting") { Ok(shown) } else { Err(shown) }
    });
    assert_eq!(
        shown.await,
        "1 \"waiting for BSS at http://HOST/bss/boot/v1: the answer has no header BSS-Referral-Token\" \
         token None, Some(0) spent"
    );
    assert_eq!(site.peers.heard("PATCH /cfs"), 0, "the next step is not taken");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_attempts_are_prepared_as_soon_as_the_options_allow_them() {
    let site = with_bss_and_cfs(Options { default_retry_policy: Some(0), ..Options::default() }).await;
    site.peers.configure(ids(2), "", "unconfigured");
    site.pending(["x000"], "base").await;
    // This component is handled after the first.
    site.registry.list(["x001"]).await;
    let policy =
        proto::component::Component { id: "x001".to_owned(), retry_policy: Some(1), ..Default::default() };
    site.registry.patch(vec![policy]).await;
    site.pending(["x001"], "base").await;
    prepared(&site, 1).await;
    site.registry.set_options(Options { default_retry_policy: Some(3), ..Options::default() }).await;
    prepared(&site, 2).await;
    site.stop().await;
}
