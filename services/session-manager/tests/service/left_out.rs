//! Nodes that sessions leave out, with their reasons.

use std::fmt::Write as _;

use chassis::Fault;
use expect_test::expect;
use futures_util::TryStreamExt;
use proto::{
    session::*,
    template::{BootSet, StringList},
};

use crate::world::{World, asked, template, wish};

async fn left_out(world: &World, name: &str) -> Result<Vec<LeftOutMember>, Fault> {
    let request = ListLeftOutMembersRequest { name: name.to_owned(), ..Default::default() };
    let messages = world.sessions.clone().list_left_out_members(request).await?.into_inner();
    let messages: Vec<_> = messages.try_collect().await?;
    Ok(messages.into_iter().flat_map(|message| message.members).collect())
}

fn shown(members: &[LeftOutMember]) -> String {
    let mut rows = String::new();
    for member in members {
        writeln!(rows, "{} {} {}", member.boot_set, member.reason().as_str_name(), member.id).unwrap();
    }
    rows
}

fn list(values: &[&str]) -> Option<StringList> {
    Some(StringList { values: values.iter().map(|&value| value.to_owned()).collect() })
}

#[tokio::test]
async fn left_out_nodes_are_deleted_with_their_session() {
    let world = World::start().await;
    let mut mixed = template("", "t", &["n1", "n2", "gone", "stranger"]);
    let arm = BootSet { arch: Some("ARM".to_owned()), ..mixed.boot_sets["compute"].clone() };
    let groups = list(&["blue", "unheard"]);
    let roles = list(&["Nobody"]);
    let compute = mixed.boot_sets.get_mut("compute").unwrap();
    (compute.node_groups, compute.node_roles_groups) = (groups, roles);
    mixed.boot_sets.insert("arm".to_owned(), BootSet { node_list: list(&["n1", "n5"]), ..arm });
    world.put_template(mixed).await.unwrap();
    let limited =
        |name| CreateSessionRequest { limit: "all,!n2".to_owned(), ..wish(Operation::Shutdown, name, "t") };
    world.create(limited("s")).await.unwrap();
    assert_eq!(world.running("s").await.components, ["n0", "n1"]);
    let expected = expect![[r#"
        arm LEFT_OUT_REASON_WRONG_ARCHITECTURE n5
        compute LEFT_OUT_REASON_NOT_IN_LIMIT n2
        compute LEFT_OUT_REASON_UNKNOWN_TO_INVENTORY gone
        compute LEFT_OUT_REASON_UNKNOWN_GROUP unheard
        compute LEFT_OUT_REASON_UNKNOWN_ROLE Nobody
        compute LEFT_OUT_REASON_NOT_A_COMPONENT stranger
    "#]];
    let before = shown(&left_out(&world, "s").await.unwrap());
    expected.assert_eq(&before);

    let world = world.restart(async |_| {}).await;
    assert_eq!(shown(&left_out(&world, "s").await.unwrap()), before);
    let gone = DeleteSessionRequest { name: "s".to_owned(), tenant: String::new() };
    asked(world.sessions.clone().delete_session(gone)).await.unwrap();
    assert_eq!(left_out(&world, "s").await, Err(Fault::not_found("session", "s")));

    world.fleet.inventory_answers(false);
    world.create(limited("s")).await.unwrap();
    world.waiting("s").await;
    assert_eq!(left_out(&world, "s").await, Ok(Vec::new()), "an earlier session of that name has left some");
}

#[tokio::test]
async fn a_session_without_members_lists_all_left_out_nodes() {
    let world = World::start().await;
    world.template("t", &["n1", "gone"]).await;
    let nobody = CreateSessionRequest { limit: "n7".to_owned(), ..wish(Operation::Shutdown, "nobody", "t") };
    world.create(nobody).await.unwrap();
    let failed = world.complete("nobody").await;
    assert_eq!(failed.error.as_deref(), Some("No nodes were found to act upon."));
    expect![[r#"
        compute LEFT_OUT_REASON_NOT_IN_LIMIT gone
        compute LEFT_OUT_REASON_NOT_IN_LIMIT n1
    "#]]
    .assert_eq(&shown(&left_out(&world, "nobody").await.unwrap()));
}

#[tokio::test]
async fn a_whole_machine_can_be_left_out() {
    let world = World::start().await;
    let ids: Vec<_> = (0..30_000).map(|number| format!("x{number:06}")).collect();
    world.fleet.paint_blue(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let mut template = template("", "t", &["n1"]);
    template.boot_sets.values_mut().for_each(|set| set.node_groups = list(&["blue"]));
    world.put_template(template).await.unwrap();
    world.create(wish(Operation::Shutdown, "s", "t")).await.unwrap();
    assert_eq!(world.running("s").await.components, ["n1"]);
    let members = left_out(&world, "s").await.unwrap();
    assert!(members.iter().all(|one| one.reason() == LeftOutReason::UnknownToInventory));
    assert_eq!(members.into_iter().map(|one| one.id).collect::<Vec<_>>(), ids);
}
