use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::port::description_at;

/// Returns every path of the document, with its methods.
fn paths(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let items = document["paths"].as_object().unwrap().iter();
    let methods = |item: &Value| {
        let names = item.as_object().unwrap().keys().filter(|name| *name != "servers");
        names.map(|name| name.to_ascii_uppercase()).collect()
    };
    items.map(|(path, item)| (path.clone(), methods(item))).collect()
}

#[tokio::test]
async fn the_document_has_every_path_and_method_that_is_served() {
    let app = super::app(&chassis::Settings::default());
    for (path, described) in paths(&description_at("")) {
        let request = Request::options(path.replace(['{', '}'], "")).body(axum::body::Body::empty()).unwrap();
        let Ok(answer) = app.clone().oneshot(request).await;
        let allowed = answer.headers()["allow"].to_str().unwrap();
        let served: BTreeSet<_> =
            allowed.split(',').filter(|name| !["HEAD", "OPTIONS"].contains(name)).collect();
        assert_eq!(described.iter().map(String::as_str).collect::<BTreeSet<_>>(), served, "{path}");
    }
}

/// The document has the endpoint index of the contract (BOS reference 2.4), and the paths beside it.
#[test]
fn the_document_lists_the_contract() {
    let lines = paths(&description_at(""))
        .into_iter()
        .map(|(path, methods)| format!("{path} {}\n", methods.into_iter().collect::<Vec<_>>().join(" ")));
    expect![[r#"
        / GET
        /boot/v1/bootscript GET
        /livez GET
        /metrics GET
        /openapi.json GET
        /readyz GET
        /reveille/v1/events GET
        /scn POST
        /startz GET
        /ui GET
        /ui/ GET
        /v2 GET
        /v2/applystaged POST
        /v2/components GET PATCH PUT
        /v2/components/{id} DELETE GET PATCH PUT
        /v2/dryrun/components PUT
        /v2/dryrun/options PATCH
        /v2/dryrun/sessiontemplates/{name} PUT
        /v2/healthz GET
        /v2/options GET PATCH
        /v2/sessions DELETE GET POST
        /v2/sessions/{name} DELETE GET PATCH
        /v2/sessions/{name}/left_out GET
        /v2/sessions/{name}/status GET POST
        /v2/sessiontemplates GET
        /v2/sessiontemplates/{name} DELETE GET PATCH PUT
        /v2/sessiontemplatesvalid/{name} GET
        /v2/sessiontemplatetemplate GET
        /v2/version GET
    "#]]
    .assert_eq(&lines.collect::<String>());
}

/// Each operation has its inputs and its possible answers.
#[test]
fn operations_say_what_they_take_and_may_answer() {
    let document = description_at("");
    let mut lines = String::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let statuses: Vec<_> = operation["responses"].as_object().unwrap().keys().cloned().collect();
            let named = operation["parameters"].as_array().into_iter().flatten();
            let parameters: Vec<_> = named.map(|one| one["name"].as_str().unwrap()).collect();
            let body = operation["requestBody"]["content"]["application/json"]["schema"].to_string();
            let body = if body == "null" { String::new() } else { format!(" {body}") };
            lines += &format!("{method} {path} ({}) -> {}{body}\n", parameters.join(" "), statuses.join(" "));
        }
    }
    expect![[r##"
        get / () -> 200
        get /boot/v1/bootscript (mac name nid) -> 200 400 404 414 431 500 503
        get /livez () -> 200
        get /metrics () -> 200
        get /openapi.json () -> 200
        get /readyz () -> 200 500 503
        get /reveille/v1/events (component session tenant host transition resource kind reason since limit order before) -> 200 400 403 414 431 500 503
        post /scn () -> 200 400 408 413 415 500 503 {"$ref":"#/components/schemas/Notification"}
        get /startz () -> 200 500 503
        get /ui () -> 200
        get /ui/ () -> 200
        get /v2 () -> 200
        post /v2/applystaged (Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"$ref":"#/components/schemas/StagedNodes"}
        get /v2/components (ids enabled session staged_session phase status start_after_id page_size Cray-Tenant-Name) -> 200 400 414 431 500 503
        patch /v2/components (skip_bad_ids Cray-Tenant-Name) -> 200 400 404 408 413 414 415 431 500 503 {"$ref":"#/components/schemas/BulkPatch"}
        put /v2/components (Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"allOf":[{"items":{"$ref":"#/components/schemas/ComponentInput"},"type":"array"},{"items":{"required":["id"]}}]}
        delete /v2/components/{id} (id Cray-Tenant-Name) -> 204 400 404 500 503
        get /v2/components/{id} (id Cray-Tenant-Name) -> 200 400 404 500 503
        patch /v2/components/{id} (id Cray-Tenant-Name) -> 200 400 404 408 409 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/ComponentInput"},{"minProperties":1}]}
        put /v2/components/{id} (id Cray-Tenant-Name) -> 200 400 404 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/ComponentInput"},{"minProperties":1}]}
        put /v2/dryrun/components (Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"allOf":[{"items":{"$ref":"#/components/schemas/ComponentInput"},"type":"array"},{"items":{"required":["id"]}}]}
        patch /v2/dryrun/options () -> 200 400 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/Options"},{"maxProperties":1024,"minProperties":1}]}
        put /v2/dryrun/sessiontemplates/{name} (name Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/SessionTemplateInput"},{"required":["boot_sets"]}]}
        get /v2/healthz () -> 200 500 503
        get /v2/options () -> 200 500 503
        patch /v2/options () -> 200 400 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/Options"},{"maxProperties":1024,"minProperties":1}]}
        delete /v2/sessions (min_age max_age status Cray-Tenant-Name) -> 204 400 414 431 500 503
        get /v2/sessions (min_age max_age status Cray-Tenant-Name) -> 200 400 414 431 500 503
        post /v2/sessions (Cray-Tenant-Name) -> 201 400 408 409 413 415 500 503 {"$ref":"#/components/schemas/NewSession"}
        delete /v2/sessions/{name} (name Cray-Tenant-Name) -> 204 400 404 500 503
        get /v2/sessions/{name} (name Cray-Tenant-Name) -> 200 400 404 500 503
        patch /v2/sessions/{name} (name Cray-Tenant-Name) -> 200 400 404 408 413 415 500 503 {"$ref":"#/components/schemas/SessionPatch"}
        get /v2/sessions/{name}/left_out (name Cray-Tenant-Name) -> 200 400 404 500 503
        get /v2/sessions/{name}/status (name Cray-Tenant-Name) -> 200 400 404 500 503
        post /v2/sessions/{name}/status (name Cray-Tenant-Name) -> 200 400 404 500 503
        get /v2/sessiontemplates (Cray-Tenant-Name) -> 200 400 500 503
        delete /v2/sessiontemplates/{name} (name Cray-Tenant-Name) -> 204 400 404 500 503
        get /v2/sessiontemplates/{name} (name Cray-Tenant-Name) -> 200 400 404 500 503
        patch /v2/sessiontemplates/{name} (name Cray-Tenant-Name) -> 200 400 404 408 413 415 500 503 {"$ref":"#/components/schemas/SessionTemplateInput"}
        put /v2/sessiontemplates/{name} (name Cray-Tenant-Name) -> 200 400 408 413 415 500 503 {"allOf":[{"$ref":"#/components/schemas/SessionTemplateInput"},{"required":["boot_sets"]}]}
        get /v2/sessiontemplatesvalid/{name} (name Cray-Tenant-Name) -> 200 400 404 500 503
        get /v2/sessiontemplatetemplate () -> 200
        get /v2/version () -> 200
    "##]].assert_eq(&lines);
}

/// Schemas have the limits of the contract (BOS reference 2.3, 4), and their nullable and read-only members.
#[test]
fn schemas_have_the_limits_of_the_contract() {
    let document = description_at("");
    let mut lines = String::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let mut rest = schema.clone();
        rest["properties"].take();
        lines += &format!("{name} {}\n", plain(&rest));
        for (member, schema) in schema["properties"].as_object().into_iter().flatten() {
            lines += &format!("    {member} {}\n", plain(schema));
        }
    }
    expect![[r##"
        ActualState {"additionalProperties":false,"type":"object"}
            boot_artifacts {"allOf":[{"$ref":"#/components/schemas/BootArtifacts"}]}
            bss_token {"maxLength":65535,"minLength":0,"type":"string"}
            last_updated {"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$","readOnly":true,"type":"string"}
        ActualStateInput {"additionalProperties":false,"type":"object"}
            boot_artifacts {"allOf":[{"$ref":"#/components/schemas/BootArtifactsInput"}]}
            bss_token {"maxLength":65535,"minLength":0,"type":"string"}
        Applied {"required":["failed","ignored","succeeded"],"type":"object"}
            failed {"items":{"type":"string"},"type":"array"}
            ignored {"items":{"type":"string"},"type":"array"}
            succeeded {"items":{"type":"string"},"type":"array"}
        BootArtifacts {"additionalProperties":false,"type":"object"}
            initrd {"maxLength":4095,"minLength":0,"type":"string"}
            kernel {"maxLength":4095,"minLength":0,"type":"string"}
            kernel_parameters {"maxLength":4096,"minLength":0,"type":"string"}
            timestamp {"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$","readOnly":true,"type":"string"}
        BootArtifactsInput {"additionalProperties":false,"type":"object"}
            initrd {"maxLength":4095,"minLength":0,"type":"string"}
            kernel {"maxLength":4095,"minLength":0,"type":"string"}
            kernel_parameters {"maxLength":4096,"minLength":0,"type":"string"}
        BootSet {"additionalProperties":false,"anyOf":[{"required":["node_list"]},{"required":["node_roles_groups"]},{"required":["node_groups"]}],"required":["path","type"],"type":"object"}
            arch {"enum":["X86","ARM","Other","Unknown"],"type":"string"}
            cfs {"allOf":[{"$ref":"#/components/schemas/Cfs"}]}
            etag {"maxLength":65536,"minLength":0,"type":"string"}
            kernel_parameters {"maxLength":4096,"minLength":0,"type":"string"}
            node_groups {"items":{"maxLength":127,"minLength":1,"type":"string"},"maxItems":4095,"minItems":1,"type":"array"}
            node_list {"items":{"maxLength":127,"minLength":1,"type":"string"},"maxItems":65535,"minItems":1,"type":"array"}
            node_roles_groups {"items":{"maxLength":127,"minLength":1,"type":"string"},"maxItems":1023,"minItems":1,"type":"array"}
            path {"maxLength":4095,"minLength":1,"type":"string"}
            rootfs_provider {"maxLength":511,"minLength":1,"type":"string"}
            rootfs_provider_passthrough {"maxLength":4096,"minLength":0,"type":"string"}
            type {"maxLength":127,"minLength":1,"type":"string"}
        BootSetInput {"additionalProperties":false,"anyOf":[{"required":["node_list"]},{"required":["node_roles_groups"]},{"required":["node_groups"]}],"required":["path","type"],"type":"object"}
            arch {"enum":["X86","ARM","Other","Unknown"],"type":"string"}
            cfs {"allOf":[{"$ref":"#/components/schemas/Cfs"}]}
            etag {"maxLength":65536,"minLength":0,"type":"string"}
            kernel_parameters {"maxLength":4096,"minLength":0,"type":"string"}
            name {"maxLength":127,"minLength":1,"pattern":"^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$","type":"string","writeOnly":true}
            node_groups {"items":{"maxLength":127,"minLength":1,"type":"string"},"maxItems":4095,"minItems":1,"type":"array"}
            node_list {"items":{"maxLength":127,"minLength":1,"type":"string"},"maxItems":65535,"minItems":1,"type":"array"}
            node_roles_groups {"items":{"maxLength":127,"minLength":1,"type":"string"},"maxItems":1023,"minItems":1,"type":"array"}
            path {"maxLength":4095,"minLength":1,"type":"string"}
            rootfs_provider {"maxLength":511,"minLength":1,"type":"string"}
            rootfs_provider_passthrough {"maxLength":4096,"minLength":0,"type":"string"}
            type {"maxLength":127,"minLength":1,"type":"string"}
        BulkPatch {"oneOf":[{"allOf":[{"items":{"$ref":"#/components/schemas/ComponentInput"},"type":"array"},{"items":{"required":["id"]}}]},{"$ref":"#/components/schemas/Filtered"}]}
        Cfs {"additionalProperties":false,"type":"object"}
            configuration {"maxLength":127,"minLength":0,"type":"string"}
        Component {"additionalProperties":false,"type":"object"}
            actual_state {"allOf":[{"$ref":"#/components/schemas/ActualState"}]}
            desired_state {"allOf":[{"$ref":"#/components/schemas/DesiredState"}]}
            enabled {"type":"boolean"}
            error {"maxLength":65536,"minLength":0,"type":"string"}
            event_stats {"allOf":[{"$ref":"#/components/schemas/EventStats"}]}
            id {"maxLength":127,"minLength":1,"type":"string"}
            last_action {"allOf":[{"$ref":"#/components/schemas/LastAction"}]}
            retry_policy {"maximum":1048576,"minimum":0,"type":"integer"}
            session {"maxLength":127,"minLength":0,"pattern":"^$|^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$","type":"string"}
            staged_state {"allOf":[{"$ref":"#/components/schemas/StagedState"}]}
            status {"allOf":[{"$ref":"#/components/schemas/Status"}]}
        ComponentInput {"additionalProperties":false,"type":"object"}
            actual_state {"allOf":[{"$ref":"#/components/schemas/ActualStateInput"}]}
            desired_state {"allOf":[{"$ref":"#/components/schemas/DesiredStateInput"}]}
            enabled {"type":"boolean"}
            error {"maxLength":65536,"minLength":0,"type":"string"}
            event_stats {"allOf":[{"$ref":"#/components/schemas/EventStats"}]}
            id {"maxLength":127,"minLength":1,"type":"string"}
            last_action {"allOf":[{"$ref":"#/components/schemas/LastActionInput"}]}
            retry_policy {"maximum":1048576,"minimum":0,"type":"integer"}
            session {"maxLength":127,"minLength":0,"pattern":"^$|^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$","type":"string"}
            staged_state {"allOf":[{"$ref":"#/components/schemas/StagedStateInput"}]}
            status {"allOf":[{"$ref":"#/components/schemas/StatusInput"}]}
        DesiredState {"additionalProperties":false,"type":"object"}
            boot_artifacts {"allOf":[{"$ref":"#/components/schemas/BootArtifacts"}]}
            bss_token {"maxLength":65535,"minLength":0,"type":"string"}
            configuration {"maxLength":127,"minLength":0,"type":"string"}
            last_updated {"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$","readOnly":true,"type":"string"}
        DesiredStateInput {"additionalProperties":false,"type":"object"}
            boot_artifacts {"allOf":[{"$ref":"#/components/schemas/BootArtifactsInput"}]}
            bss_token {"maxLength":65535,"minLength":0,"type":"string"}
            configuration {"maxLength":127,"minLength":0,"type":"string"}
        ErrorSummary {"required":["count","list"],"type":"object"}
            count {"minimum":0,"type":"integer"}
            list {"type":"string"}
        EventList {"required":["events"],"type":"object"}
            events {"items":{"$ref":"#/components/schemas/ShownEvent"},"type":"array"}
            older {"nullable":true,"type":"string"}
        EventStats {"additionalProperties":false,"type":"object"}
            power_off_forceful_attempts {"maximum":1048576,"minimum":0,"type":"integer"}
            power_off_graceful_attempts {"maximum":1048576,"minimum":0,"type":"integer"}
            power_on_attempts {"maximum":1048576,"minimum":0,"type":"integer"}
        Filtered {"additionalProperties":false,"required":["filters","patch"],"type":"object"}
            filters {"allOf":[{"$ref":"#/components/schemas/Filters"}]}
            patch {"allOf":[{"$ref":"#/components/schemas/ComponentInput"}],"minProperties":1}
        Filters {"oneOf":[{"additionalProperties":false,"properties":{"ids":{"maxLength":65535,"minLength":1,"type":"string"},"session":{"enum":["",null],"nullable":true,"type":"string"}},"required":["ids"],"type":"object"},{"additionalProperties":false,"properties":{"ids":{"enum":["",null],"nullable":true,"type":"string"},"session":{"maxLength":127,"minLength":1,"pattern":"^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$","type":"string"}},"required":["session"],"type":"object"}]}
        Health {"required":["apiStatus","dbStatus"],"type":"object"}
            apiStatus {"type":"string"}
            dbStatus {"type":"string"}
        LastAction {"additionalProperties":false,"type":"object"}
            action {"enum":["actual_state_cleanup","apply_staged","newly_discovered","powering_off_forcefully","powering_off_gracefully","powering_on","session_setup"],"type":"string"}
            failed {"type":"boolean"}
            last_updated {"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$","readOnly":true,"type":"string"}
        LastActionInput {"additionalProperties":false,"type":"object"}
            action {"enum":["actual_state_cleanup","apply_staged","newly_discovered","powering_off_forcefully","powering_off_gracefully","powering_on","session_setup"],"type":"string"}
            failed {"type":"boolean"}
        LeftOutMember {"required":["boot_set","id","reason"],"type":"object"}
            boot_set {"type":"string"}
            id {"type":"string"}
            reason {"enum":["not_in_limit","locked","foreign_tenant","unknown_to_inventory","wrong_architecture","disabled","not_a_component","unknown_group","unknown_role","in_later_boot_set"],"type":"string"}
        Link {"required":["href","rel"],"type":"object"}
            href {"type":"string"}
            rel {"type":"string"}
        NewSession {"additionalProperties":false,"required":["operation","template_name"],"type":"object"}
            include_disabled {"default":false,"type":"boolean"}
            limit {"maxLength":524288,"minLength":0,"nullable":true,"type":"string"}
            name {"maxLength":127,"minLength":1,"pattern":"^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$","type":"string"}
            operation {"enum":["boot","reboot","shutdown"],"type":"string"}
            stage {"default":false,"type":"boolean"}
            template_name {"maxLength":127,"minLength":1,"pattern":"^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$","type":"string"}
        Notification {"required":["Components"],"type":"object"}
            Components {"items":{"type":"string"},"type":"array"}
        Options {"additionalProperties":true,"type":"object"}
            bss_read_timeout {"maximum":86400,"minimum":10,"type":"integer"}
            cfs_read_timeout {"maximum":86400,"minimum":10,"type":"integer"}
            cleanup_completed_session_ttl {"maxLength":8,"minLength":1,"pattern":"^(0|0[mMhHdDwW]|[1-9][0-9]*[mMhHdDwW])$","type":"string"}
            clear_stage {"type":"boolean"}
            component_actual_state_ttl {"maxLength":8,"minLength":2,"pattern":"^[1-9][0-9]*[hHdDwW]$","type":"string"}
            default_retry_policy {"maximum":1048576,"minimum":0,"type":"integer"}
            disable_components_on_completion {"type":"boolean"}
            discovery_frequency {"maximum":33554432,"minimum":0,"type":"integer"}
            hsm_read_timeout {"maximum":86400,"minimum":10,"type":"integer"}
            ims_errors_fatal {"type":"boolean"}
            ims_images_must_exist {"type":"boolean"}
            ims_read_timeout {"maximum":86400,"minimum":10,"type":"integer"}
            logging_level {"pattern":"^([dD][eE][bB][uU][gG]|[iI][nN][fF][oO]|[wW][aA][rR][nN][iI][nN][gG]|[eE][rR][rR][oO][rR]|[cC][rR][iI][tT][iI][cC][aA][lL])$","type":"string"}
            max_boot_wait_time {"maximum":1048576,"minimum":0,"type":"integer"}
            max_component_batch_size {"maximum":131071,"minimum":0,"type":"integer"}
            max_power_off_wait_time {"maximum":1048576,"minimum":0,"type":"integer"}
            max_power_on_wait_time {"maximum":1048576,"minimum":0,"type":"integer"}
            pcs_read_timeout {"maximum":86400,"minimum":10,"type":"integer"}
            polling_frequency {"maximum":1048576,"minimum":0,"type":"integer"}
            reject_nids {"type":"boolean"}
            session_limit_required {"type":"boolean"}
        Phases {"required":["percent_complete","percent_configuring","percent_powering_off","percent_powering_on"],"type":"object"}
            percent_complete {"type":"number"}
            percent_configuring {"type":"number"}
            percent_powering_off {"type":"number"}
            percent_powering_on {"type":"number"}
        Problem {"required":["detail","status","title","type"],"type":"object"}
            detail {"type":"string"}
            status {"maximum":65535,"minimum":0,"type":"integer"}
            title {"type":"string"}
            type {"type":"string"}
        ProgressPatch {"additionalProperties":false,"type":"object"}
            end_time {"maxLength":127,"minLength":0,"nullable":true,"type":"string"}
            error {"maxLength":65536,"minLength":0,"nullable":true,"type":"string"}
            start_time {"maxLength":127,"minLength":0,"type":"string"}
            status {"enum":["pending","running","complete"],"type":"string"}
        Session {"required":["components","include_disabled","limit","name","operation","stage","status","template_name","tenant"],"type":"object"}
            components {"type":"string"}
            include_disabled {"type":"boolean"}
            limit {"type":"string"}
            name {"type":"string"}
            operation {"enum":["boot","reboot","shutdown"],"type":"string"}
            stage {"type":"boolean"}
            status {"allOf":[{"$ref":"#/components/schemas/SessionProgress"}]}
            template_name {"type":"string"}
            tenant {"nullable":true,"type":"string"}
        SessionPatch {"additionalProperties":false,"type":"object"}
            components {"maxLength":524288,"minLength":0,"type":"string"}
            status {"allOf":[{"$ref":"#/components/schemas/ProgressPatch"}]}
        SessionProgress {"required":["end_time","error","start_time","status"],"type":"object"}
            end_time {"nullable":true,"type":"string"}
            error {"nullable":true,"type":"string"}
            start_time {"type":"string"}
            status {"enum":["pending","running","complete"],"type":"string"}
            waiting_for {"type":"string"}
        SessionStatus {"required":["error_summary","managed_components_count","percent_failed","percent_staged","percent_successful","phases","status","timing"],"type":"object"}
            error_summary {"additionalProperties":{"$ref":"#/components/schemas/ErrorSummary"},"type":"object"}
            managed_components_count {"minimum":0,"type":"integer"}
            members_in_doubt_since {"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$","type":"string"}
            percent_failed {"type":"number"}
            percent_staged {"type":"number"}
            percent_successful {"type":"number"}
            phases {"allOf":[{"$ref":"#/components/schemas/Phases"}]}
            status {"enum":["pending","running","complete"],"type":"string"}
            timing {"allOf":[{"$ref":"#/components/schemas/Timing"}]}
        SessionTemplate {"additionalProperties":false,"required":["name","tenant"],"type":"object"}
            boot_sets {"additionalProperties":{"$ref":"#/components/schemas/BootSet"},"maxProperties":127,"minProperties":1,"type":"object"}
            cfs {"allOf":[{"$ref":"#/components/schemas/Cfs"}]}
            description {"maxLength":1023,"minLength":1,"type":"string"}
            enable_cfs {"type":"boolean"}
            name {"maxLength":127,"minLength":1,"pattern":"^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$","readOnly":true,"type":"string"}
            tenant {"maxLength":127,"minLength":0,"nullable":true,"readOnly":true,"type":"string"}
        SessionTemplateInput {"additionalProperties":false,"type":"object"}
            boot_sets {"additionalProperties":{"$ref":"#/components/schemas/BootSetInput"},"maxProperties":127,"minProperties":1,"type":"object"}
            cfs {"allOf":[{"$ref":"#/components/schemas/Cfs"}]}
            description {"maxLength":1023,"minLength":1,"type":"string"}
            enable_cfs {"type":"boolean"}
        ShownEvent {"required":["time","resource","name","kind","actor"],"type":"object"}
            actor {"type":"string"}
            details {"additionalProperties":{"type":"string"},"type":"object"}
            kind {"type":"string"}
            name {"type":"string"}
            reason {"type":"string"}
            request_id {"type":"string"}
            resource {"type":"string"}
            tenant {"type":"string"}
            text {"type":"string"}
            time {"type":"string"}
        StagedNodes {"additionalProperties":false,"type":"object"}
            xnames {"items":{"maxLength":127,"minLength":1,"type":"string"},"maxItems":32768,"type":"array"}
        StagedState {"additionalProperties":false,"type":"object"}
            boot_artifacts {"allOf":[{"$ref":"#/components/schemas/BootArtifacts"}]}
            configuration {"maxLength":127,"minLength":0,"type":"string"}
            last_updated {"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$","readOnly":true,"type":"string"}
            session {"maxLength":127,"minLength":0,"pattern":"^$|^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$","type":"string"}
        StagedStateInput {"additionalProperties":false,"type":"object"}
            boot_artifacts {"allOf":[{"$ref":"#/components/schemas/BootArtifactsInput"}]}
            configuration {"maxLength":127,"minLength":0,"type":"string"}
            session {"maxLength":127,"minLength":0,"pattern":"^$|^[a-zA-Z0-9](?:[-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?$","type":"string"}
        Status {"additionalProperties":false,"type":"object"}
            phase {"enum":["","configuring","powering_off","powering_on"],"type":"string"}
            status {"readOnly":true,"type":"string"}
            status_override {"maxLength":65536,"minLength":0,"type":"string"}
        StatusInput {"additionalProperties":false,"type":"object"}
            phase {"enum":["","configuring","powering_off","powering_on"],"type":"string"}
            status_override {"maxLength":65536,"minLength":0,"type":"string"}
        Timing {"required":["duration","end_time","start_time"],"type":"object"}
            duration {"type":"string"}
            end_time {"nullable":true,"type":"string"}
            start_time {"type":"string"}
        Version {"required":["links","major","minor","patch"],"type":"object"}
            links {"items":{"$ref":"#/components/schemas/Link"},"type":"array"}
            major {"type":"string"}
            minor {"type":"string"}
            patch {"type":"string"}
    "##]].assert_eq(&lines);
}

/// Returns a schema without the members for readers.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| {
                !["description", "title", "format"].contains(&name.as_str()) && !value.is_null()
            });
            kept.map(|(name, value)| (name.clone(), plain(value))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = description_at("");
    let mut wanted = BTreeSet::new();
    references(&document, &mut wanted);
    for reference in wanted {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn the_document_says_where_it_was_found() {
    let root = description_at("");
    let prefixed = description_at("/apis/bos");
    assert_eq!(root["servers"], json!([{ "url": "/" }]));
    assert_eq!(prefixed["servers"], json!([{ "url": "/apis/bos" }]));
    assert_eq!(prefixed["paths"]["/livez"]["servers"], json!([{ "url": "/" }]));
    assert_eq!(prefixed["paths"]["/v2"]["servers"], Value::Null);
}
