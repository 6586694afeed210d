//! Lists of components, a page at a time.

use serde::Serialize;

use super::{ComponentView, PAGE, component};
use crate::{
    call::{SystemAnswer, SystemCall},
    state::MachineState,
};

/// Words of which a list may be filtered by one. The service has more, and does not take several.
const STATUSES: [&str; 4] = ["unconfigured", "failed", "pending", "configured"];

/// Query of a list. Each page repeats it as the parameters of the next page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct PageQuery {
    ids: String,
    status: String,
    enabled: Option<bool>,
    config_name: String,
    tags: String,
    state_details: bool,
    config_details: bool,
    limit: usize,
    after_id: Option<String>,
}

#[derive(Serialize)]
struct ComponentPage<'a> {
    components: Vec<ComponentView<'a>>,
    next: Option<PageQuery>,
}

impl PageQuery {
    fn read(call: &SystemCall) -> Result<Self, SystemAnswer> {
        let text = |name| call.parameter(name).unwrap_or_default().to_owned();
        let flag = |name: &str| match call.parameter(name) {
            None | Some("") => Ok(None),
            Some(word) if word.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(word) if word.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(word) => Err(SystemAnswer::bad_request(&format!("{name}: {word:?} is not of type boolean"))),
        };
        let limit = match call.parameter("limit") {
            None | Some("") => PAGE,
            Some(number) => number.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| {
                SystemAnswer::bad_request(&format!("limit: {number:?} is not a positive integer"))
            })?,
        };
        let status = text("status");
        if !status.is_empty() && !STATUSES.contains(&status.as_str()) {
            return Err(SystemAnswer::bad_request(&format!("status: {status:?} is not one of {STATUSES:?}")));
        }
        Ok(Self {
            ids: text("ids"),
            status,
            enabled: flag("enabled")?,
            config_name: text("config_name"),
            tags: text("tags"),
            state_details: flag("state_details")?.unwrap_or_default(),
            config_details: flag("config_details")?.unwrap_or_default(),
            limit,
            after_id: Some(text("after_id")).filter(|id| !id.is_empty()),
        })
    }

    fn passes(&self, component: &ComponentView) -> bool {
        let tagged = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            component.tags.get(name).and_then(|own| own.as_str()) == Some(value)
        };
        (self.status.is_empty() || self.status == component.configuration_status)
            && (self.config_name.is_empty()
                || self.config_name.split(',').any(|name| name == component.desired_config))
            && (self.tags.is_empty() || self.tags.split(',').all(tagged))
            && self.enabled.is_none_or(|enabled| enabled == component.enabled)
    }
}

/// The components that a request wants, in the order of their ids.
pub(super) fn list(state: &MachineState, call: &SystemCall) -> Result<SystemAnswer, SystemAnswer> {
    let wanted = PageQuery::read(call)?;
    let positions = positions(state, &wanted);
    let items = if wanted.ids.is_empty() { 0 } else { wanted.ids.split(',').count() };
    let mut matching = positions
        .into_iter()
        .filter(|position| !state.faults[*position].cfs_missing)
        .map(|position| component(state, position))
        .filter(|component| wanted.passes(component) && !call.omit.leaves_out(component.id));
    let components: Vec<_> = matching.by_ref().take(wanted.limit).collect();
    let last = components.last().map(|component| component.id.to_owned());
    let next = matching.next().is_some().then(|| PageQuery { after_id: last, ..wanted.clone() });
    let items = items.max(components.len());
    Ok(SystemAnswer::json(&ComponentPage { components, next }).about(items))
}

/// Returns the positions of the candidates after `after_id`.
fn positions(state: &MachineState, wanted: &PageQuery) -> Vec<usize> {
    let id = |position: &usize| state.inventory.nodes[*position].id.as_str();
    let after = wanted.after_id.as_deref().unwrap_or_default();
    let mut positions: Vec<_> = match wanted.ids.as_str() {
        "" => state.inventory.order.clone(),
        ids => ids.split(',').filter_map(|id| state.machine.position(id)).collect(),
    };
    if !wanted.ids.is_empty() {
        positions.sort_by(|a, b| id(a).cmp(id(b)));
        positions.dedup();
    }
    let behind = positions.partition_point(|position| id(position) <= after);
    positions.split_off(behind)
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write, time::SystemTime};

    use axum::http::{Method, StatusCode};
    use expect_test::expect;
    use serde_json::Value;

    use super::*;
    use crate::{
        call::{OmittedShare, either},
        plan::MachinePlan,
        service::Service,
    };

    fn get(state: &mut MachineState, query: Vec<(String, String)>) -> SystemAnswer {
        let (operation, names) = Service::Cfs.operation(&Method::GET, "/components").expect("known");
        let call = SystemCall {
            operation,
            names,
            query,
            body: b"",
            omit: OmittedShare::default(),
            worker_dies: false,
        };
        either(list(state, &call))
    }

    /// Follows the pages to the end, a line a page.
    fn pages(state: &mut MachineState, first: &[(&str, &str)]) -> String {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut query: Vec<_> = first.iter().map(own).collect();
        let mut lines = String::new();
        loop {
            let answer = get(state, query);
            if answer.status != StatusCode::OK {
                return lines + &String::from_utf8_lossy(&answer.body);
            }
            let page: Value = serde_json::from_slice(&answer.body).expect("a page");
            let ids: Vec<_> =
                page["components"].as_array().expect("a list").iter().map(|c| &c["id"]).collect();
            writeln!(lines, "{ids:?} then {}", page["next"]["after_id"]).expect("a string");
            let Some(next) = page["next"].as_object() else { return lines };
            let given = next.iter().filter(|(_, value)| !value.is_null());
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            query = given.map(|(name, value)| (name.clone(), text(value))).collect();
        }
    }

    #[test]
    fn pages_follow_one_another_in_the_order_of_ids() {
        let mut state = MachineState::new(MachinePlan::quick(6), SystemTime::UNIX_EPOCH).expect("a plan");
        state.faults[1].cfs_missing = true;
        let wanted: [&[(&str, &str)]; 9] = [
            &[],
            &[("limit", "2")],
            &[("limit", "5")],
            &[("ids", "x1000c0s1b0n0,x1000c0s0b0n0,x1000c0s0b1n1,x9c0s0b0n0"), ("limit", "2")],
            &[("status", "unconfigured"), ("enabled", "false"), ("limit", "3")],
            &[("status", "configured")],
            &[("status", "configured,failed")],
            &[("limit", "none")],
            &[("enabled", "perhaps")],
        ];
        let seen = wanted.map(|query| format!("{query:?}\n{}", pages(&mut state, query)));
        expect![[r#"
            []
            [String("x1000c0s0b0n0"), String("x1000c0s0b1n0"), String("x1000c0s0b1n1"), String("x1000c0s1b0n0"), String("x1000c0s1b0n1")] then null

            [("limit", "2")]
            [String("x1000c0s0b0n0"), String("x1000c0s0b1n0")] then "x1000c0s0b1n0"
            [String("x1000c0s0b1n1"), String("x1000c0s1b0n0")] then "x1000c0s1b0n0"
            [String("x1000c0s1b0n1")] then null

            [("limit", "5")]
            [String("x1000c0s0b0n0"), String("x1000c0s0b1n0"), String("x1000c0s0b1n1"), String("x1000c0s1b0n0"), String("x1000c0s1b0n1")] then null

            [("ids", "x1000c0s1b0n0,x1000c0s0b0n0,x1000c0s0b1n1,x9c0s0b0n0"), ("limit", "2")]
            [String("x1000c0s0b0n0"), String("x1000c0s0b1n1")] then "x1000c0s0b1n1"
            [String("x1000c0s1b0n0")] then null

            [("status", "unconfigured"), ("enabled", "false"), ("limit", "3")]
            [String("x1000c0s0b0n0"), String("x1000c0s0b1n0"), String("x1000c0s0b1n1")] then "x1000c0s0b1n1"
            [String("x1000c0s1b0n0"), String("x1000c0s1b0n1")] then null

            [("status", "configured")]
            [] then null

            [("status", "configured,failed")]
            {"detail":"status: \"configured,failed\" is not one of [\"unconfigured\", \"failed\", \"pending\", \"configured\"]","status":400,"title":"Bad Request","type":"about:blank"}
            [("limit", "none")]
            {"detail":"limit: \"none\" is not a positive integer","status":400,"title":"Bad Request","type":"about:blank"}
            [("enabled", "perhaps")]
            {"detail":"enabled: \"perhaps\" is not of type boolean","status":400,"title":"Bad Request","type":"about:blank"}"#]].assert_eq(&seen.join("\n"));
    }
}
