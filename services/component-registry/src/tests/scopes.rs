//! Callers with a limited scope.

use chassis::Fault;
use expect_test::expect;
use proto::component::{
    Component, ComponentFilter, DeleteComponentRequest, GetComponentRequest, ListComponentsRequest,
    PatchComponentsRequest, PatchEach, PatchMany, PutComponentsRequest, Scope,
    patch_components_request::Selection,
};

use super::{Site, smd::Smd};

/// Returns a registry with five components, of which `a`, `b` and `d` have the session `s`.
async fn site() -> Site {
    let site = Site::with_smd(&Smd::start().await, |_| {}).await;
    let component = |(id, session): (&str, &str)| Component {
        id: id.into(),
        enabled: Some(false),
        session: Some(session.into()),
        ..Component::default()
    };
    let components = [("a", "s"), ("b", "s"), ("c", "other"), ("d", "s"), ("e", "")].map(component).into();
    site.components()
        .put_components(PutComponentsRequest { components, ..Default::default() })
        .await
        .unwrap();
    site
}

/// Scope of `a`, `b`, `c` and an id without a component.
fn own() -> Option<Scope> {
    Some(Scope { ids: ["a", "b", "c", "new"].map(str::to_owned).into() })
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Site {
    async fn list(&self, scope: Option<Scope>, filter: ComponentFilter, after: &str, most: u32) -> String {
        let request = ListComponentsRequest {
            filter: Some(filter),
            start_after_id: after.into(),
            page_size: most,
            scope,
        };
        let mut pages = self.components().list_components(request).await.unwrap().into_inner();
        let mut ids = Vec::new();
        while let Some(page) = pages.message().await.unwrap() {
            ids.extend(page.components.into_iter().map(|component| component.id));
        }
        ids.join(" ")
    }

    /// Patches an error and returns the ids of the patched components.
    async fn spoil(&self, selection: Selection, skip_bad_ids: bool, scope: Option<Scope>) -> String {
        let request = PatchComponentsRequest {
            selection: Some(selection),
            skip_bad_ids,
            scope,
            ..PatchComponentsRequest::default()
        };
        match self.components().patch_components(request).await {
            Ok(answer) => {
                let ids = answer.into_inner().components.into_iter().map(|component| component.id);
                ids.collect::<Vec<_>>().join(" ")
            }
            Err(status) => Fault::from(status).to_string(),
        }
    }

    /// Returns the ids of the components with that error.
    async fn spoilt(&self) -> String {
        let request = ListComponentsRequest::default();
        let mut pages = self.components().list_components(request).await.unwrap().into_inner();
        let mut ids = Vec::new();
        while let Some(page) = pages.message().await.unwrap() {
            let spoilt = page.components.into_iter().filter(|one| one.error.as_deref() == Some("spoilt"));
            ids.extend(spoilt.map(|component| component.id));
        }
        ids.join(" ")
    }
}

#[tokio::test]
async fn lists_show_visible_components() {
    let site = site().await;
    let all = ComponentFilter::default;
    let ids = |text: &str| ComponentFilter { ids: words(text), ..all() };
    let session = || ComponentFilter { session: Some("s".into()), ..all() };
    let nobody = || Some(Scope::default());
    let mut rows = String::new();
    for (case, scope, filter, after, most) in [
        ("everything", None, all(), "", 0),
        ("own", own(), all(), "", 0),
        ("own, paged", own(), all(), "a", 1),
        ("own, after the last", own(), all(), "c", 0),
        ("ids", own(), ids("d a x"), "", 0),
        ("foreign ids", own(), ids("d e"), "", 0),
        ("session", own(), session(), "", 0),
        ("none", nobody(), all(), "", 0),
        ("ids of none", nobody(), ids("a"), "", 0),
    ] {
        rows += &format!("{case}: {}\n", site.list(scope, filter, after, most).await);
    }
    expect![[r#"
        everything: a b c d e
        own: a b c
        own, paged: b
        own, after the last: 
        ids: a
        foreign ids: 
        session: a b
        none: 
        ids of none: 
    "#]]
    .assert_eq(&rows);
    site.stop().await;
}

#[tokio::test]
async fn foreign_components_look_absent() {
    let site = site().await;
    let mut rows = String::new();
    for id in ["a", "d", "new", "x"] {
        let request = GetComponentRequest { id: id.into(), scope: own() };
        let shown = site.components().get_component(request).await.map_err(Fault::from);
        rows += &format!("get {id}: {:?}\n", shown.map(|answer| answer.into_inner().component.unwrap().id));
        let request = DeleteComponentRequest { id: id.into(), scope: own() };
        let deleted = site.components().delete_component(request).await.map_err(Fault::from);
        rows += &format!("delete {id}: {:?}\n", deleted.map(|_| ()));
    }
    rows += &format!("left: {}\n", site.list(None, ComponentFilter::default(), "", 0).await);
    expect![[r#"
        get a: Ok("a")
        delete a: Ok(())
        get d: Err(NotFound { kind: "component", name: "d" })
        delete d: Err(NotFound { kind: "component", name: "d" })
        get new: Err(NotFound { kind: "component", name: "new" })
        delete new: Err(NotFound { kind: "component", name: "new" })
        get x: Err(NotFound { kind: "component", name: "x" })
        delete x: Err(NotFound { kind: "component", name: "x" })
        left: b c d e
    "#]]
    .assert_eq(&rows);
    site.stop().await;
}

#[tokio::test]
async fn patches_reach_no_foreign_component() {
    let site = site().await;
    let spoilt = || Component { error: Some("spoilt".into()), ..Component::default() };
    let each = |ids: &str| {
        let patches = words(ids).into_iter().map(|id| Component { id, ..spoilt() }).collect();
        Selection::Each(PatchEach { patches })
    };
    let many = |ids: &str, session: &str| {
        Selection::Many(PatchMany {
            patch: Some(spoilt()),
            ids: words(ids),
            session: session.into(),
            session_tenant: None,
        })
    };
    let mut rows = String::new();
    for (case, selection, skip, scope) in [
        ("each", each("a d"), false, own()),
        ("each, lenient", each("d a"), true, own()),
        ("ids", many("b d", ""), false, own()),
        ("ids, lenient", many("e d", ""), true, own()),
        ("session of nobody", many("", "s"), false, Some(Scope::default())),
        ("session", many("", "s"), false, own()),
        ("no session", many("", "gone"), false, own()),
        ("session of everybody", many("", "s"), false, None),
    ] {
        let told = site.spoil(selection, skip, scope).await;
        rows += &format!("{case}: {told}; spoilt {}\n", site.spoilt().await);
    }
    expect![[r#"
        each: component 'd' does not exist; spoilt 
        each, lenient: a; spoilt a
        ids: component 'd' does not exist; spoilt a
        ids, lenient: ; spoilt a
        session of nobody: ; spoilt a
        session: a b; spoilt a b
        no session: ; spoilt a b
        session of everybody: a b d; spoilt a b d
    "#]]
    .assert_eq(&rows);
    site.stop().await;
}

#[tokio::test]
async fn a_put_with_a_foreign_record_writes_nothing() {
    let site = site().await;
    let mut rows = String::new();
    for ids in ["a d", "new d x", "new a"] {
        let spoilt = |id| Component { id, error: Some("spoilt".into()), ..Component::default() };
        let components = words(ids).into_iter().map(spoilt).collect();
        let request = PutComponentsRequest { components, scope: own(), ..Default::default() };
        let outcome = site.components().put_components(request).await.map_err(Fault::from);
        let told = outcome.map(|_| "stored".to_owned()).unwrap_or_else(|fault| fault.to_string());
        rows += &format!("{ids}: {told}; spoilt {}\n", site.spoilt().await);
    }
    expect![[r#"
        a d: : components that the tenant does not have: d; spoilt 
        new d x: : components that the tenant does not have: d,x; spoilt 
        new a: stored; spoilt a new
    "#]]
    .assert_eq(&rows);
    site.stop().await;
}
