//! The driver against the service as it is on the wire.

use expect_test::expect;
use serde_json::json;

use super::*;
use crate::{
    tests::peers::{PlayedPeers, PlayedTrouble},
    upstream::configuration::ConfigurationMode,
};

fn query(id: &str, session: &str) -> ConfigurationQuery {
    let id = ComponentId::parse(id).unwrap();
    ConfigurationQuery { id, generation: 1, wanted: None, session: session.to_owned(), missing: false }
}

#[test]
fn a_change_names_all_components_in_its_body() {
    let ids = ["x1", "x2"].map(|id| ComponentId::parse(id).unwrap());
    let order = |configuration, mode| ConfigurationOrder { configuration, session: "s1", mode };
    let told = [order("base", ConfigurationMode::BeforeBoot), order("", ConfigurationMode::Running)]
        .map(|order| format!("{}\n", change(&ids, order)));
    expect![[r#"
        {"filters":{"ids":"x1,x2"},"patch":{"desired_config":"base","enabled":false,"state":[],"tags":{"bos_session":"s1"}}}
        {"filters":{"ids":"x1,x2"},"patch":{"desired_config":"","enabled":true,"tags":{"bos_session":"s1"}}}
    "#]].assert_eq(&told.concat());
}

#[test]
fn the_next_page_is_asked_for_as_the_service_says() {
    let rows = [
        json!({"ids": "", "enabled": null, "state_details": false, "limit": 1000, "after_id": "x1 & x2"}),
        json!({}),
        json!({"after_id": null}),
        json!({"after_id": ["x1"]}),
    ];
    let told: String = rows
        .into_iter()
        .map(|row| format!("{row}\n    {:?}\n", next_query(row.as_object().unwrap().clone())))
        .collect();
    expect![[r#"
        {"after_id":"x1 & x2","enabled":null,"ids":"","limit":1000,"state_details":false}
            Some([("after_id", "x1 & x2"), ("ids", ""), ("limit", "1000"), ("state_details", "false")])
        {}
            Some([])
        {"after_id":null}
            Some([])
        {"after_id":["x1"]}
            None
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_component_that_cannot_be_read_is_not_missing() {
    let rows = [
        json!({"id": "x1", "desired_config": "base", "configuration_status": "pending", "tags": {}}),
        json!({"id": "x1", "desired_config": null, "configuration_status": null}),
        json!({"id": "x1"}),
        json!({"id": "x1", "desired_config": ["base"], "configuration_status": "pending"}),
        json!({"id": "x1", "desired_config": "base", "configuration_status": 7}),
        json!({"id": 7, "desired_config": "base", "configuration_status": "pending"}),
        json!("x1"),
    ];
    let told: String = rows.into_iter().map(|row| format!("{row}\n    {:?}\n", said(row.clone()))).collect();
    expect![[r#"
        {"configuration_status":"pending","desired_config":"base","id":"x1","tags":{}}
            Some(("x1", Known { desired: Some("base"), status: "pending" }))
        {"configuration_status":null,"desired_config":null,"id":"x1"}
            Some(("x1", Known { desired: None, status: "" }))
        {"id":"x1"}
            Some(("x1", Known { desired: None, status: "" }))
        {"configuration_status":"pending","desired_config":["base"],"id":"x1"}
            Some(("x1", Unknown))
        {"configuration_status":7,"desired_config":"base","id":"x1"}
            Some(("x1", Unknown))
        {"configuration_status":"pending","desired_config":"base","id":7}
            None
        "x1"
            None
    "#]]
    .assert_eq(&told);
}

#[test]
fn few_sessions_with_plain_names_can_be_listed_by_their_tag() {
    let about = |sessions: &[&str]| -> Vec<_> {
        let each = sessions.iter().enumerate();
        each.map(|(index, session)| query(&format!("x{index}"), session)).collect()
    };
    for (names, listed) in [
        (&["s1"][..], Some(1)),
        (&["s1", "s2", "s1"], Some(2)),
        (&["s1", "s2", "s3", "s4"], Some(4)),
        (&["s1", "s2", "s3", "s4", "s5"], None),
        (&["s1", ""], None),
        (&["s1,s2"], None),
        (&["s1=s2"], None),
    ] {
        assert_eq!(sessions(&about(names)).map(|sessions| sessions.len()), listed, "{names:?}");
    }
}

#[test]
fn ids_stand_in_a_path_only_if_they_mean_nothing_there() {
    for (id, fits) in [
        ("x3000c0s1b0n0", true),
        ("a-b_c.d~", true),
        ("..", false),
        (".", false),
        ("a/b", false),
        ("a?b", false),
    ] {
        assert_eq!(fits_into_path(id), fits, "{id}");
    }
}

#[test]
fn ids_are_listed_where_that_saves_many_pages() {
    for (count, pages, expected) in [
        (1, 0, None),
        (1, 3, None),
        (200, 4, Some(1)),
        (201, 4, None),
        (201, 8, Some(2)),
        (400, 11, Some(2)),
        (2_000, 10, None),
    ] {
        let lists = lists(&queries(count), pages);
        assert_eq!(lists.map(|lists| lists.len()), expected, "{count} or {pages}");
    }
    let odd = [query("x0", "s1"), query("x1,x2", "s1")];
    assert_eq!(lists(&odd, 100), None, "a comma separates ids");
}

const SOON: Duration = Duration::from_millis(300);

/// Returns queries about the first `count` components, from `x0` on.
fn queries(count: usize) -> Vec<ConfigurationQuery> {
    (0..count).map(|index| query(&format!("x{index}"), "s1")).collect()
}

/// Returns the answers about these as one text.
async fn asked(peers: &PlayedPeers, cfs: &CfsDriver, about: &[ConfigurationQuery]) -> String {
    match cfs.ask(about, SOON).await {
        Ok(said) => said.iter().map(|(id, said)| format!("{id} {said:?}\n")).collect(),
        Err(failure) => format!("{}: {}\n", failure.kind.word(), peers.plain(&failure.text)),
    }
}

async fn played(count: usize, page: usize) -> (PlayedPeers, CfsDriver) {
    let peers = PlayedPeers::play().await;
    peers.configure((0..count).map(|index| format!("x{index}")), "base", "pending");
    peers.state().page = page;
    let cfs = CfsDriver::new(&peers.settings().configuration.cfs).unwrap();
    (peers, cfs)
}

#[tokio::test]
async fn everything_is_fetched_page_by_page_and_who_is_on_none_is_missing() {
    let (peers, cfs) = played(7, 3).await;
    peers.state().cfs.insert("x3".to_owned(), json!({"id": "x3", "desired_config": 7}));
    peers.state().cfs.remove("x5");
    let mut about = queries(8);
    // This id cannot stand in a list of ids.
    about.push(query("x8,x9", "s1"));
    let mut told = asked(&peers, &cfs, &about).await;
    told += &peers.state().heard.join("\n");
    expect![[r#"
        x0 Known { desired: Some("base"), status: "pending" }
        x1 Known { desired: Some("base"), status: "pending" }
        x2 Known { desired: Some("base"), status: "pending" }
        x3 Unknown
        x4 Known { desired: Some("base"), status: "pending" }
        x5 Missing
        x6 Known { desired: Some("base"), status: "pending" }
        x7 Missing
        x8,x9 Missing
        GET /cfs/v3/components
        GET /cfs/v3/components?after_id=x2&config_name=&limit=3&state_details=false"#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn missing_nodes_are_asked_about_together() {
    let (peers, cfs) = played(2, 1000).await;
    let missing = |mut about: Vec<ConfigurationQuery>| {
        about.iter_mut().for_each(|one| one.missing = true);
        about
    };
    let mut told = asked(&peers, &cfs, &missing(queries(3))).await;
    told += &peers.state().heard.join("\n");
    expect![[r#"
        x0 Known { desired: Some("base"), status: "pending" }
        x1 Known { desired: Some("base"), status: "pending" }
        x2 Missing
        GET /cfs/v3/components"#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn a_handful_is_asked_about_one_by_one_until_one_is_not_there() {
    let (peers, cfs) = played(3, 1000).await;
    let mut told = asked(&peers, &cfs, &queries(2)).await;
    told += &asked(&peers, &cfs, &queries(4)).await;
    // Several are requested concurrently.
    let mut heard = peers.state().heard.clone();
    heard.sort_unstable();
    told += &heard.join("\n");
    expect![[r#"
        x0 Known { desired: Some("base"), status: "pending" }
        x1 Known { desired: Some("base"), status: "pending" }
        x0 Known { desired: Some("base"), status: "pending" }
        x1 Known { desired: Some("base"), status: "pending" }
        x2 Known { desired: Some("base"), status: "pending" }
        x3 Missing
        GET /cfs/v3/components
        GET /cfs/v3/components/x0
        GET /cfs/v3/components/x0
        GET /cfs/v3/components/x1
        GET /cfs/v3/components/x1
        GET /cfs/v3/components/x2
        GET /cfs/v3/components/x3"#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn few_of_many_are_asked_about_by_their_ids_and_who_is_left_out_is_missing() {
    let (peers, cfs) = played(5, 3).await;
    cfs.pages.store(4, Ordering::Relaxed);
    let mut told = asked(&peers, &cfs, &queries(6)).await;
    told += &peers.state().heard.join("\n");
    expect![[r#"
        x0 Known { desired: Some("base"), status: "pending" }
        x1 Known { desired: Some("base"), status: "pending" }
        x2 Known { desired: Some("base"), status: "pending" }
        x3 Known { desired: Some("base"), status: "pending" }
        x4 Known { desired: Some("base"), status: "pending" }
        x5 Missing
        GET /cfs/v3/components?ids=x0%2Cx1%2Cx2%2Cx3%2Cx4%2Cx5
        GET /cfs/v3/components?after_id=x2&config_name=&ids=x0%2Cx1%2Cx2%2Cx3%2Cx4%2Cx5&limit=3&state_details=false"#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn more_ids_than_fit_into_a_url_are_listed_in_parts() {
    let about = |before: &str| -> Vec<_> {
        (100..550).map(|index| query(&format!("{before}{index}"), "s1")).collect()
    };
    let mut told = String::new();
    for letter in ["x", "/", "ä"] {
        for count in [1, 60] {
            let (peers, cfs) = played(0, 1000).await;
            let about = about(&letter.repeat(count));
            peers.configure(about.iter().map(|one| one.id.as_str().to_owned()), "base", "pending");
            cfs.pages.store(1000, Ordering::Relaxed);
            let known = asked(&peers, &cfs, &about).await.matches("Known").count();
            let heard = peers.state().heard.clone();
            let longest = heard.iter().map(String::len).max().unwrap();
            assert!(longest < 8 * 1024, "{longest} bytes");
            told += &format!("{letter} {count} times: {known} in {} lists\n", heard.len());
        }
    }
    expect![[r#"
        x 1 times: 450 in 3 lists
        x 60 times: 450 in 5 lists
        / 1 times: 450 in 3 lists
        / 60 times: 450 in 12 lists
        ä 1 times: 450 in 3 lists
        ä 60 times: 450 in 24 lists
    "#]]
    .assert_eq(&told);
    let far = about(&"x".repeat(60));
    assert_eq!(lists(&far, 3 * WORTH), None, "as many lists as of short ids are not enough");
}

#[tokio::test]
async fn an_answer_that_is_not_whole_is_none() {
    let mut told = String::new();
    for trouble in [
        PlayedTrouble::Hang,
        PlayedTrouble::Malformed,
        PlayedTrouble::SecondPage,
        PlayedTrouble::Endless,
        PlayedTrouble::Status(400),
        PlayedTrouble::Status(401),
        PlayedTrouble::Status(404),
        PlayedTrouble::Status(500),
    ] {
        let (peers, cfs) = played(9, 4).await;
        peers.state().trouble.insert("cfs", trouble);
        told += &format!("{trouble:?}\n    {}", asked(&peers, &cfs, &queries(9)).await);
    }
    expect![[r#"
        Hang
            ambiguous: CFS at HOST (failing since TIME: no answer within 300ms)
        Malformed
            ambiguous: CFS at HOST (failing since TIME: not the JSON that was expected: EOF while parsing a list at line 1 column 16)
        SecondPage
            ambiguous: CFS at HOST (failing since TIME: 500 Internal Server Error)
        Endless
            ambiguous: CFS at http://HOST/cfs/v3: pages of components do not come to an end
        Status(400)
            refused: CFS at HOST (refused GET /components: 400 Bad Request: out of order)
        Status(401)
            denied: CFS at HOST (refused GET /components since TIME: 401 Unauthorized: out of order)
        Status(404)
            denied: CFS at HOST (refused GET /components: 404 Not Found: out of order)
        Status(500)
            ambiguous: CFS at HOST (failing since TIME: 500 Internal Server Error: out of order)
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn news_are_looked_for_where_they_take_few_calls() {
    let (peers, cfs) = played(2600, 1000).await;
    let ids: Vec<_> = (0..2500).map(|index| ComponentId::parse(&format!("x{index}")).unwrap()).collect();
    let order = ConfigurationOrder { configuration: "base", session: "s1", mode: ConfigurationMode::Running };
    cfs.set(&ids, order, SOON).await.unwrap();
    for (id, status) in
        [("x7", "configured"), ("x8", "failed"), ("x9", "config_deprecated"), ("x2599", "configured")]
    {
        peers.state().cfs.get_mut(id).unwrap()["configuration_status"] = json!(status);
    }
    let changes = async |count: usize, session: &str| {
        peers.state().heard.clear();
        let about: Vec<_> = (0..count).map(|index| query(&format!("x{index}"), session)).collect();
        let PolledChanges { mut said, pages } = cfs.changes(&about, SOON).await.unwrap();
        said.sort_by(|(one, _), (other, _)| one.cmp(other));
        let heard = peers.state().heard.join("\n    ");
        let told = if said.len() > 5 { format!("{} of them", said.len()) } else { format!("{said:?}") };
        format!("{count} of {session:?}, {pages} pages: {told}\n    {heard}\n")
    };
    let mut told = changes(2, "s1").await;
    for (count, session) in [(600, "s1"), (2500, "s1"), (2500, "s1"), (600, "s2"), (2600, "")] {
        told += &changes(count, session).await;
    }
    peers.configure(ids.iter().map(|id| id.as_str().to_owned()), "base", "configured");
    for id in &ids {
        peers.state().cfs.get_mut(id.as_str()).unwrap()["tags"] = json!({"bos_session": "s1"});
    }
    told += &changes(2500, "s1").await;
    expect![[r#"
        2 of "s1", 0 pages: [("x0", Known { desired: Some("base"), status: "pending" }), ("x1", Known { desired: Some("base"), status: "pending" })]
            GET /cfs/v3/components/x0
            GET /cfs/v3/components/x1
        600 of "s1", 3 pages: 600 of them
            GET /cfs/v3/components?tags=bos_session%3Ds1
            GET /cfs/v3/components?after_id=x1898&config_name=&limit=1000&state_details=false&tags=bos_session%3Ds1
            GET /cfs/v3/components?after_id=x548&config_name=&limit=1000&state_details=false&tags=bos_session%3Ds1
        2500 of "s1", 2 pages: [("x7", Known { desired: Some("base"), status: "configured" }), ("x8", Known { desired: Some("base"), status: "failed" })]
            GET /cfs/v3/components?tags=bos_session%3Ds1&status=configured
            GET /cfs/v3/components?tags=bos_session%3Ds1&status=failed
        2500 of "s1", 1 pages: [("x7", Known { desired: Some("base"), status: "configured" })]
            GET /cfs/v3/components?tags=bos_session%3Ds1&status=configured
        600 of "s2", 1 pages: []
            GET /cfs/v3/components?tags=bos_session%3Ds2
        2600 of "", 3 pages: 2600 of them
            GET /cfs/v3/components
            GET /cfs/v3/components?after_id=x1898&config_name=&limit=1000&state_details=false
            GET /cfs/v3/components?after_id=x458&config_name=&limit=1000&state_details=false
        2500 of "s1", 3 pages: 2500 of them
            GET /cfs/v3/components?tags=bos_session%3Ds1&status=configured
            GET /cfs/v3/components?after_id=x1898&config_name=&limit=1000&state_details=false&status=configured&tags=bos_session%3Ds1
            GET /cfs/v3/components?after_id=x548&config_name=&limit=1000&state_details=false&status=configured&tags=bos_session%3Ds1
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn only_what_is_confirmed_is_known() {
    let (peers, cfs) = played(2, 1000).await;
    let ids = ["x0", "x1", "x9"].map(|id| ComponentId::parse(id).unwrap());
    let order =
        ConfigurationOrder { configuration: "new", session: "s1", mode: ConfigurationMode::BeforeBoot };
    let mut told = format!("{:?}\n", cfs.set(&ids, order, SOON).await.unwrap());
    peers.state().trouble.insert("cfs", PlayedTrouble::Bare);
    told += &format!("{:?}\n", cfs.set(&ids, order, SOON).await.unwrap());
    told += &format!("{:?}\n", cfs.set(&[], order, SOON).await.unwrap());
    for trouble in [
        PlayedTrouble::Malformed,
        PlayedTrouble::Hang,
        PlayedTrouble::Status(404),
        PlayedTrouble::Status(409),
    ] {
        peers.state().trouble.insert("cfs", trouble);
        let failure = cfs.set(&ids, order, SOON).await.unwrap_err();
        told += &format!("{}: {}\n", failure.kind.word(), peers.plain(&failure.text));
    }
    let two = ComponentId::parse("x0,x1").unwrap();
    told += &format!("{:?}\n", cfs.set(&[two], order, SOON).await.unwrap_err().kind);
    told += &format!("{} calls", peers.heard("PATCH"));
    expect![[r#"
        [("x0", Known { desired: Some("new"), status: "" }), ("x1", Known { desired: Some("new"), status: "" })]
        []
        []
        ambiguous: CFS at HOST (failing since TIME: not the JSON that was expected: EOF while parsing a list at line 1 column 16)
        ambiguous: CFS at HOST (failing since TIME: no answer within 300ms)
        denied: CFS at HOST (refused PATCH /components: 404 Not Found: out of order)
        refused: CFS at HOST (refused PATCH /components: 409 Conflict: out of order)
        Refused
        6 calls"#]].assert_eq(&told);
}
