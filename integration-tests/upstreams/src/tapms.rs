//! The tenant and partition management service: which nodes a tenant has.

use serde_json::{Value, json};

use crate::{
    call::{Answer, Call},
    state::State,
};

pub(crate) const OPERATIONS: &[&str] = &["GET /tenants", "GET /tenants/{name}"];

/// Answers one request.
pub(crate) fn answer(state: &State, call: &Call) -> Answer {
    if call.operation == "GET /tenants" {
        let all = state.tenants.iter().map(|(name, xnames)| tenant(name, xnames, call));
        return Answer::json(&all.collect::<Vec<_>>()).about(state.tenants.len());
    }
    match state.tenants.get(call.name()) {
        Some(xnames) => Answer::json(&tenant(call.name(), xnames, call)).about(1),
        None => Answer::not_found("the tenant does not exist"),
    }
}

fn tenant(name: &str, xnames: &[String], call: &Call) -> Value {
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
