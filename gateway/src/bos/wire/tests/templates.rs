use expect_test::expect;

use super::check;
use crate::bos::wire::{strict::JsonObject, template::SessionTemplate};

#[test]
fn templates_of_another_shape_are_refused() {
    check::<JsonObject<SessionTemplate>>(
        &[
            r#"{"boot_sets": null}"#,
            r#"{"boot_sets": []}"#,
            r#"{"boot_sets": {"c": null}}"#,
            r#"{"boot_sets": {"c": []}}"#,
            r#"{"boot_sets": {"c": {}}}"#,
            r#"{"boot_sets": {"c": {"path": "p", "node_list": ["x1"]}}}"#,
            r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "node_list": "x1"}}}"#,
            r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "node_list": [null]}}}"#,
            r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "bogus": 1}}}"#,
            r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "cfs": {"config": "x"}}}}"#,
            r#"{"boot_sets": {"c": {"path": "p", "type": "s3", "name": "c", "cfs": {}}}}"#,
            r#"{"bogus": 1}"#,
            r#"{"name": "n"}"#,
            r#"{"tenant": "t"}"#,
            r#"{"links": []}"#,
            r#"{"description": null}"#,
            r#"{"enable_cfs": "yes"}"#,
            r#"{"enable_cfs": null}"#,
            r#"{"cfs": null}"#,
            "[]",
            r#""x""#,
            "{}",
        ],
        expect![[r#"
            {"boot_sets": null} -> invalid type: null, expected a map - 'boot_sets'
            {"boot_sets": []} -> invalid type: sequence, expected a map - 'boot_sets'
            {"boot_sets": {"c": null}} -> invalid type: null, expected an object - 'boot_sets.c'
            {"boot_sets": {"c": []}} -> invalid type: sequence, expected an object - 'boot_sets.c'
            {"boot_sets": {"c": {}}} -> missing field `path` - 'boot_sets.c'
            {"boot_sets": {"c": {"path": "p", "node_list": ["x1"]}}} -> missing field `type` - 'boot_sets.c'
            {"boot_sets": {"c": {"path": "p", "type": "s3", "node_list": "x1"}}} -> invalid type: string "x1", expected a sequence - 'boot_sets.c.node_list'
            {"boot_sets": {"c": {"path": "p", "type": "s3", "node_list": [null]}}} -> invalid type: null, expected a string - 'boot_sets.c.node_list[0]'
            {"boot_sets": {"c": {"path": "p", "type": "s3", "bogus": 1}}} -> unknown field `bogus`, expected one of `arch`, `cfs`, `etag`, `kernel_parameters`, `name`, `node_groups`, `node_list`, `node_roles_groups`, `path`, `rootfs_provider`, `rootfs_provider_passthrough`, `type` - 'boot_sets.c.bogus'
            {"boot_sets": {"c": {"path": "p", "type": "s3", "cfs": {"config": "x"}}}} -> unknown field `config`, expected `configuration` - 'boot_sets.c.cfs.config'
            {"boot_sets": {"c": {"path": "p", "type": "s3", "name": "c", "cfs": {}}}} -> fits
            {"bogus": 1} -> unknown field `bogus`, expected one of `boot_sets`, `cfs`, `description`, `enable_cfs` - 'bogus'
            {"name": "n"} -> unknown field `name`, expected one of `boot_sets`, `cfs`, `description`, `enable_cfs` - 'name'
            {"tenant": "t"} -> unknown field `tenant`, expected one of `boot_sets`, `cfs`, `description`, `enable_cfs` - 'tenant'
            {"links": []} -> unknown field `links`, expected one of `boot_sets`, `cfs`, `description`, `enable_cfs` - 'links'
            {"description": null} -> invalid type: null, expected a string - 'description'
            {"enable_cfs": "yes"} -> invalid type: string "yes", expected a boolean - 'enable_cfs'
            {"enable_cfs": null} -> invalid type: null, expected a boolean - 'enable_cfs'
            {"cfs": null} -> invalid type: null, expected an object - 'cfs'
            [] -> invalid type: sequence, expected an object
            "x" -> invalid type: string "x", expected an object
            {} -> fits
        "#]],
    );
}
