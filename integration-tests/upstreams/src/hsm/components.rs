//! Components: all, some, one.

use proto::inventory::Hardware;
use serde::Serialize;

use super::no_such;
use crate::{
    call::{SystemAnswer, SystemCall},
    state::MachineState,
};

#[derive(Serialize)]
struct ComponentList<'a> {
    #[serde(rename = "Components")]
    components: Vec<ComponentView<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ComponentView<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    r#type: &'a str,
    state: &'static str,
    flag: &'static str,
    enabled: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_role: &'a str,
    #[serde(rename = "NID", skip_serializing_if = "is_zero")]
    nid: u32,
    net_type: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    arch: &'a str,
    class: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    locked: bool,
}

fn is_zero(nid: &u32) -> bool {
    *nid == 0
}

impl<'a> ComponentView<'a> {
    fn of(piece: &'a Hardware, state: &'static str) -> Self {
        Self {
            id: &piece.id,
            r#type: &piece.r#type,
            state,
            flag: "OK",
            enabled: piece.enabled,
            role: &piece.role,
            sub_role: &piece.sub_role,
            nid: piece.nid,
            net_type: "Sling",
            arch: &piece.arch,
            class: "Mountain",
            locked: piece.locked,
        }
    }

    /// Returns whether the component has one of the wanted values of every requested property.
    fn passes(&self, filters: &[(String, String)]) -> bool {
        let wanted = |name: &str, is: &dyn Fn(&str) -> bool| {
            let mut values = filters.iter().filter(|(key, _)| key == name).peekable();
            values.peek().is_none() || values.any(|(_, value)| is(value))
        };
        let text = |name: &str, own: &str| wanted(name, &|value| value.eq_ignore_ascii_case(own));
        text("type", self.r#type)
            && text("role", self.role)
            && text("subrole", self.sub_role)
            && text("state", self.state)
            && text("arch", self.arch)
            && text("class", self.class)
            && text("id", self.id)
            && wanted("enabled", &|value| truth(value) == Some(self.enabled))
    }
}

/// Parses the service's texts for true and false.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" => Some(true),
        "false" | "f" | "0" => Some(false),
        _ => None,
    }
}

impl MachineState {
    /// Returns the state of the node, in the words of the inventory.
    pub(crate) fn node_state(&self, position: usize) -> &'static str {
        let node = &self.machine.nodes()[position];
        match (node.is_on(), node.is_up()) {
            (false, _) => "Off",
            (true, false) => "On",
            (true, true) => "Ready",
        }
    }

    /// The position of a node that the inventory knows.
    pub(super) fn listed(&self, id: &str) -> Option<usize> {
        self.machine.position(id).filter(|position| !self.faults[*position].hsm_missing)
    }

    fn component(&self, position: usize) -> ComponentView<'_> {
        ComponentView::of(&self.inventory.nodes[position], self.node_state(position))
    }

    fn other(&self, id: &str) -> Option<ComponentView<'_>> {
        let other = self.inventory.others.iter().find(|piece| piece.id == id)?;
        Some(ComponentView::of(other, "Ready"))
    }
}

/// Components among `ids`, or all, that pass the filters, in the order of their ids.
pub(super) fn list(
    state: &MachineState,
    call: &SystemCall,
    filters: &[(String, String)],
    ids: Option<&Vec<String>>,
) -> SystemAnswer {
    let mut components: Vec<_> = match ids {
        Some(ids) => ids
            .iter()
            .filter_map(|id| match state.listed(id) {
                Some(position) => Some(state.component(position)),
                None => state.other(id),
            })
            .collect(),
        None => {
            let nodes = state.inventory.order.iter().filter(|position| !state.faults[**position].hsm_missing);
            let others = state.inventory.others.iter().map(|piece| ComponentView::of(piece, "Ready"));
            nodes.map(|position| state.component(*position)).chain(others).collect()
        }
    };
    components.retain(|component| component.passes(filters) && !call.omit.leaves_out(component.id));
    let items = ids.map_or(components.len(), Vec::len);
    SystemAnswer::json(&ComponentList { components }).about(items)
}

pub(super) fn one(state: &MachineState, id: &str) -> SystemAnswer {
    let component = match state.listed(id) {
        Some(position) => Some(state.component(position)),
        None => state.other(id),
    };
    component.map_or_else(|| no_such("xname"), |component| SystemAnswer::json(&component).about(1))
}
