//! State change notifications: subscriptions and the notices sent to them.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::no_such;
use crate::{
    call::{SystemAnswer, SystemCall, either},
    state::MachineState,
};

/// A changed attribute of some components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ComponentChange {
    Enabled(bool),
    /// Shown as the flag of the component.
    Locked(bool),
    Role(String, String),
    State(&'static str),
}

/// A message on its way to a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoticeDelivery {
    pub(crate) url: String,
    pub(crate) body: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NoticeSubscription {
    #[serde(rename = "ID", default)]
    id: u64,
    subscriber: String,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sub_roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    software_status: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    states: Vec<String>,
}

impl NoticeSubscription {
    fn wants(&self, change: &ComponentChange) -> bool {
        let one_of = |wanted: &[String], own: &str| wanted.iter().any(|word| word.eq_ignore_ascii_case(own));
        match change {
            // Flags cannot be subscribed to: subscribers to `enabled` get notices of locks too.
            ComponentChange::Enabled(_) | ComponentChange::Locked(_) => self.enabled == Some(true),
            ComponentChange::Role(role, sub_role) => {
                one_of(&self.roles, role) || one_of(&self.sub_roles, sub_role)
            }
            ComponentChange::State(state) => one_of(&self.states, state),
        }
    }
}

impl ComponentChange {
    fn payload(&self, components: &[&str]) -> Value {
        let (name, value) = match self {
            Self::Enabled(enabled) => ("Enabled", json!(enabled)),
            Self::Locked(locked) => ("Flag", json!(if *locked { "Locked" } else { "OK" })),
            Self::State(state) => ("State", json!(state)),
            Self::Role(role, sub_role) => {
                return json!({"Components": components, "Role": role, "SubRole": sub_role});
            }
        };
        json!({"Components": components, name: value})
    }
}

/// All subscriptions, by number.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionTable {
    all: BTreeMap<u64, NoticeSubscription>,
    last: u64,
}

impl SubscriptionTable {
    /// Notices that a change of `components` sends, one for each matching subscription.
    fn deliveries(&self, components: &[&str], change: &ComponentChange) -> Vec<NoticeDelivery> {
        let wanted = self.all.values().filter(|subscription| subscription.wants(change));
        let url = wanted.map(|subscription| subscription.url.clone());
        url.map(|url| NoticeDelivery { url, body: change.payload(components).to_string() }).collect()
    }

    fn add(&mut self, subscription: NoticeSubscription) -> SystemAnswer {
        let same = |other: &NoticeSubscription| {
            (&other.subscriber, &other.url) == (&subscription.subscriber, &subscription.url)
        };
        if self.all.values().any(same) {
            let detail = "this subscriber has a subscription for this url";
            return SystemAnswer::problem(StatusCode::CONFLICT, "Conflict", detail);
        }
        self.last += 1;
        let subscription = NoticeSubscription { id: self.last, ..subscription };
        let answer = SystemAnswer::json(&subscription);
        self.all.insert(self.last, subscription);
        answer
    }

    fn replace(&mut self, id: &str, subscription: NoticeSubscription) -> SystemAnswer {
        let Some(old) = id.parse().ok().and_then(|id| self.all.get_mut(&id)) else {
            return no_such("subscription");
        };
        *old = NoticeSubscription { id: old.id, ..subscription };
        SystemAnswer::empty(StatusCode::NO_CONTENT)
    }
}

pub(super) fn answer(subscriptions: &mut SubscriptionTable, call: &SystemCall) -> SystemAnswer {
    let named = || call.name().parse::<u64>().ok();
    match call.operation {
        "GET /Subscriptions/SCN" => {
            SystemAnswer::json(&json!({"SubscriptionList": subscriptions.all.values().collect::<Vec<_>>()}))
        }
        "POST /Subscriptions/SCN" => either(call.json().map(|new| subscriptions.add(new))),
        "DELETE /Subscriptions/SCN" => {
            subscriptions.all.clear();
            SystemAnswer::json(&json!({"code": 0, "message": "deleted"}))
        }
        "GET /Subscriptions/SCN/{id}" => match named().and_then(|id| subscriptions.all.get(&id)) {
            Some(subscription) => SystemAnswer::json(subscription),
            None => no_such("subscription"),
        },
        "PUT /Subscriptions/SCN/{id}" => {
            either(call.json().map(|new| subscriptions.replace(call.name(), new)))
        }
        _ => match named().and_then(|id| subscriptions.all.remove(&id)) {
            Some(_) => SystemAnswer::json(&json!({"code": 0, "message": "deleted"})),
            None => no_such("subscription"),
        },
    }
}

impl MachineState {
    /// Queues notices of a change of the nodes at `positions`.
    pub(crate) fn notify(&mut self, positions: &[usize], change: ComponentChange) {
        if positions.is_empty() || self.inventory.subscriptions.all.is_empty() {
            return;
        }
        let ids: Vec<_> =
            positions.iter().map(|position| self.inventory.nodes[*position].id.as_str()).collect();
        let deliveries = self.inventory.subscriptions.deliveries(&ids, &change);
        self.outbox.deliveries.extend(deliveries);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn subscriber_gets_the_notices_it_asked_for() {
        let mut subscriptions = SubscriptionTable::default();
        for text in [
            r#"{"Subscriber":"all","Url":"http://all","Enabled":true,"Roles":["Compute"],"States":["Off","Ready"]}"#,
            r#"{"Subscriber":"states","Url":"http://states","States":["ready"]}"#,
        ] {
            subscriptions.add(serde_json::from_str(text).expect("the service's own form"));
        }
        let changes = [
            ComponentChange::Enabled(false),
            ComponentChange::Locked(true),
            ComponentChange::Role("Compute".into(), String::new()),
            ComponentChange::Role("Management".into(), "Worker".into()),
            ComponentChange::State("Ready"),
            ComponentChange::State("On"),
        ];
        let told = changes.map(|change| {
            let deliveries = subscriptions.deliveries(&["x1000c0s0b0n0"], &change);
            let lines = deliveries.iter().map(|delivery| format!("  {} {}\n", delivery.url, delivery.body));
            format!("{change:?}\n{}", lines.collect::<String>())
        });
        expect![[r#"
            Enabled(false)
              http://all {"Components":["x1000c0s0b0n0"],"Enabled":false}
            Locked(true)
              http://all {"Components":["x1000c0s0b0n0"],"Flag":"Locked"}
            Role("Compute", "")
              http://all {"Components":["x1000c0s0b0n0"],"Role":"Compute","SubRole":""}
            Role("Management", "Worker")
            State("Ready")
              http://all {"Components":["x1000c0s0b0n0"],"State":"Ready"}
              http://states {"Components":["x1000c0s0b0n0"],"State":"Ready"}
            State("On")
        "#]]
        .assert_eq(&told.concat());
    }
}
