//! Nodes that a session excludes although its template names them.

use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{MeshScene, TEMPLATE};

#[tokio::test(flavor = "multi_thread")]
async fn session_lists_the_nodes_it_excludes() {
    let scene = MeshScene::new(4).await;
    let (bos, ids) = (&scene.mesh.bos, scene.upstreams.ids());
    bos.template_with(TEMPLATE, |template| {
        let compute = &mut template["boot_sets"]["compute"];
        (compute["node_list"], compute["node_groups"]) = (json!(ids), json!(["unheard"]));
        compute.as_object_mut().unwrap().remove("node_roles_groups");
    })
    .await;
    let name = scene.begin("shutdown", &ids[..1]).await;
    let path = format!("/v2/sessions/{name}/left_out");
    let mut expected: Vec<_> = ids[1..]
        .iter()
        .map(|id| json!({"boot_set": "compute", "id": id, "reason": "not_in_limit"}))
        .collect();
    expected.push(json!({"boot_set": "compute", "id": "unheard", "reason": "unknown_group"}));
    assert_eq!(bos.get(&path).await, Value::from(expected));
    bos.complete(&name).await;
    bos.expect(Method::DELETE, &format!("/v2/sessions/{name}"), None).await;
    assert_eq!(bos.send(Method::GET, &path, None).await.status, 404);
    scene.end().await;
}
