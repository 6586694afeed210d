//! The tenant and partition management service: which nodes a tenant has.

use serde_json::{Value, json};

use crate::{
    call::{SystemAnswer, SystemCall},
    state::MachineState,
};

pub(crate) const OPERATIONS: &[&str] = &["GET /tenants", "GET /tenants/{name}"];

/// Answers one request.
pub(crate) fn answer(state: &MachineState, call: &SystemCall) -> SystemAnswer {
    if call.operation == "GET /tenants" {
        let all = state.tenants.iter().map(|(name, xnames)| tenant(name, xnames, call));
        let list = json!({"metadata": {}, "items": all.collect::<Vec<_>>()});
        return SystemAnswer::json(&list).about(state.tenants.len());
    }
    match state.tenants.get(call.name()) {
        Some(xnames) => SystemAnswer::json(&tenant(call.name(), xnames, call)).about(1),
        None => SystemAnswer::not_found("the tenant does not exist"),
    }
}

fn tenant(name: &str, xnames: &[String], call: &SystemCall) -> Value {
    let xnames: Vec<_> = xnames.iter().filter(|xname| !call.omit.leaves_out(xname)).collect();
    let resources = json!([{
        "type": "compute",
        "xnames": xnames,
        "hsmgrouplabel": name,
        "enforceexclusivehsmgroups": true,
    }]);
    let spec = json!({"tenantname": name, "state": "Deployed", "childnamespaces": [], "tenantresources": &resources});
    json!({"spec": spec, "status": {"uuid": name, "childnamespaces": [], "tenantresources": resources}})
}
