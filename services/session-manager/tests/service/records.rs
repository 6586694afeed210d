//! Names, tenants, filters and refusals.

use expect_test::expect;
use proto::{
    session::{Operation, *},
    template::{BootSet, Cfs, *},
};

use crate::world::{World, asked, template, wish};

fn owned(tenant: &str, name: &str) -> CreateSessionRequest {
    CreateSessionRequest { tenant: tenant.to_owned(), ..wish(Operation::Shutdown, name, "t") }
}

/// A world where three tenants and no tenant have a template `t`, and sessions cannot run.
async fn tenants() -> World {
    let world = World::start().await;
    world.fleet.inventory_answers(false);
    for tenant in ["", "a", "a-b", "b"] {
        world.put_template(template(tenant, "t", &["n1"])).await.unwrap();
    }
    for (tenant, name) in [("b", "s"), ("a-b", "s"), ("a", "s"), ("", "s"), ("a", "r"), ("", "z")] {
        world.create(owned(tenant, name)).await.unwrap();
    }
    world
}

#[tokio::test]
async fn names_are_kept_apart_by_tenant() {
    let world = tenants().await;
    let all = ["/s", "/z", "a/r", "a/s", "a-b/s", "b/s"];
    assert_eq!(world.list(SessionFilter::default()).await, all);
    let of = |tenant: &str| SessionFilter { tenant: Some(tenant.to_owned()), ..SessionFilter::default() };
    assert_eq!(world.list(of("a")).await, ["a/r", "a/s"]);
    assert_eq!(world.list(of("")).await, ["/s", "/z"]);
    assert!(world.list(of("nobody")).await.is_empty());

    let one = DeleteSessionRequest { name: "s".to_owned(), tenant: "a".to_owned() };
    asked(world.sessions.clone().delete_session(one.clone())).await.unwrap();
    assert_eq!(world.list(SessionFilter::default()).await, ["/s", "/z", "a/r", "a-b/s", "b/s"]);
    let gone = asked(world.sessions.clone().delete_session(one)).await.unwrap_err();
    assert_eq!(gone, chassis::Fault::not_found("session", "s"));
}

#[tokio::test]
async fn sessions_of_all_tenants_are_deleted_by_filter() {
    let world = tenants().await;
    for (tenant, name) in [("b", "s"), ("", "z")] {
        let complete = UpdateSessionRequest {
            name: name.to_owned(),
            tenant: tenant.to_owned(),
            progress: Progress::Complete.into(),
            ..UpdateSessionRequest::default()
        };
        world.update(complete).await.unwrap();
    }
    let filter = SessionFilter { progress: Progress::Complete.into(), ..SessionFilter::default() };
    let request = DeleteSessionsRequest { filter: Some(filter) };
    let answer = asked(world.sessions.clone().delete_sessions(request)).await.unwrap();
    assert_eq!(answer.deleted, 2);
    assert_eq!(world.list(SessionFilter::default()).await, ["/s", "a/r", "a/s", "a-b/s"]);
    let ages = SessionFilter { min_age: "1h".to_owned(), ..SessionFilter::default() };
    assert!(world.list(ages).await.is_empty());
    let ages = SessionFilter { max_age: "1h".to_owned(), ..SessionFilter::default() };
    assert_eq!(world.list(ages).await.len(), 4);
}

#[tokio::test]
async fn impossible_sessions_are_refused_with_a_reason() {
    let world = World::start().await;
    world.put_template(template("", "t", &["n1"])).await.unwrap();
    world.fleet.inventory_answers(false);
    world.boot("taken", "t").await.unwrap();
    let limited =
        |limit: &str| CreateSessionRequest { limit: limit.to_owned(), ..wish(Operation::Boot, "s", "t") };
    let mut refusals = String::new();
    for request in [
        wish(Operation::Boot, "s", "gone"),
        CreateSessionRequest { tenant: "a".to_owned(), ..wish(Operation::Boot, "s", "t") },
        wish(Operation::Boot, "taken", "t"),
        wish(Operation::Boot, "-s", "t"),
        wish(Operation::Unspecified, "s", "t"),
        limited("a,,b"),
    ] {
        refusals += &format!("{:?}\n", world.create(request).await.unwrap_err());
    }
    expect![[r#"
        NotFound { kind: "session_template", name: "gone" }
        NotFound { kind: "session_template", name: "t" }
        AlreadyExists { kind: "session", name: "taken" }
        Invalid(Invalid { field: "name", reason: "'-s' must begin and end with a letter or a digit" })
        Invalid(Invalid { field: "operation", reason: "is not specified" })
        Invalid(Invalid { field: "limit", reason: "item 2 is empty" })
    "#]]
    .assert_eq(&refusals);
    let unnamed = world.create(wish(Operation::Boot, "", "t")).await.unwrap();
    assert_eq!((unnamed.name.len(), &unnamed.id), (36, &unnamed.name));
}

#[tokio::test]
async fn a_template_is_stored_in_its_one_form() {
    let world = World::start().await;
    let mut sent = template("", "t", &["X1000C0S0B0N0"]);
    sent.cfs = Some(Cfs::default());
    let stored = world.put_template(sent).await.unwrap();
    let boot_set = &stored.boot_sets["compute"];
    assert_eq!((boot_set.arch.as_deref(), &stored.cfs), (Some("X86"), &None));
    assert_eq!(boot_set.node_list.as_ref().unwrap().values, ["x1000c0s0b0n0"]);

    let patch = SessionTemplate {
        name: "t".to_owned(),
        description: Some("later".to_owned()),
        ..SessionTemplate::default()
    };
    let request = UpdateSessionTemplateRequest { session_template: Some(patch) };
    let patched = asked(world.templates.clone().update_session_template(request)).await.unwrap();
    let patched = patched.session_template.unwrap();
    assert!(patched.revision > stored.revision);
    let expected =
        SessionTemplate { description: Some("later".to_owned()), revision: patched.revision, ..stored };
    assert_eq!(patched, expected);
    let world = world.restart(async |_| {}).await;
    let request = GetSessionTemplateRequest { name: "t".to_owned(), tenant: String::new() };
    let kept = asked(world.templates.clone().get_session_template(request)).await.unwrap();
    assert_eq!(kept.session_template, Some(expected));
}

#[tokio::test]
async fn templates_are_refused_with_the_field_that_is_wrong() {
    let world = World::start().await;
    let with = |change: fn(&mut BootSet)| {
        let mut template = template("", "t", &["n1"]);
        template.boot_sets.values_mut().for_each(change);
        template
    };
    let mut refusals = String::new();
    for template in [
        template("", "-t", &["n1"]),
        template("", "t", &[]),
        SessionTemplate { boot_sets: [].into(), ..template("", "t", &[]) },
        with(|set| set.arch = Some("SPARC".to_owned())),
        with(|set| set.name = Some("other".to_owned())),
        with(|set| set.path = String::new()),
    ] {
        refusals += &format!("{}\n", world.put_template(template).await.unwrap_err());
    }
    expect![[r#"
        name: '-t' must begin and end with a letter or a digit
        boot_sets.compute.node_list: has no entry but needs at least one
        boot_sets: has no boot set but needs at least one
        boot_sets.compute.arch: 'SPARC' is not one of X86, ARM, Other, Unknown
        boot_sets.compute.name: 'other' is not the key of the boot set
        boot_sets.compute.path: has 0 characters but needs at least 1
    "#]]
    .assert_eq(&refusals);
}

#[tokio::test]
async fn a_template_can_be_validated() {
    let world = World::start().await;
    world.template("good", &["n1"]).await;
    world.template("nids", &["nid000001"]).await;
    let validate = async |name: &str| {
        let request = ValidateSessionTemplateRequest { name: name.to_owned(), tenant: String::new() };
        asked(world.templates.clone().validate_session_template(request)).await.map(|answer| answer.findings)
    };
    assert_eq!(validate("good").await.unwrap(), "Valid");
    assert_eq!(
        validate("nids").await.unwrap(),
        "Session template: 'nids' boot set: 'compute': Has NID in 'node_list'"
    );
    assert_eq!(validate("gone").await.unwrap_err(), chassis::Fault::not_found("session_template", "gone"));
}
