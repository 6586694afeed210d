//! State change notifications: who wants to hear of what, and what they are told.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::no_such;
use crate::{
    call::{Answer, Call, either},
    state::State,
};

/// What changed of some components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Enabled(bool),
    /// Shown as the flag of the component.
    Locked(bool),
    Role(String, String),
    State(&'static str),
}

/// A message on its way to a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) url: String,
    pub(crate) body: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Subscription {
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

impl Subscription {
    fn wants(&self, change: &Change) -> bool {
        let one_of = |wanted: &[String], own: &str| wanted.iter().any(|word| word.eq_ignore_ascii_case(own));
        match change {
            // Flags cannot be subscribed to; who wants to know of enabling is told of locks too.
            Change::Enabled(_) | Change::Locked(_) => self.enabled == Some(true),
            Change::Role(role, sub_role) => one_of(&self.roles, role) || one_of(&self.sub_roles, sub_role),
            Change::State(state) => one_of(&self.states, state),
        }
    }
}

impl Change {
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
pub(crate) struct Subscriptions {
    all: BTreeMap<u64, Subscription>,
    last: u64,
}

impl Subscriptions {
    /// What goes to whom when something changes of `components`.
    fn deliveries(&self, components: &[&str], change: &Change) -> Vec<Delivery> {
        let wanted = self.all.values().filter(|subscription| subscription.wants(change));
        let url = wanted.map(|subscription| subscription.url.clone());
        url.map(|url| Delivery { url, body: change.payload(components).to_string() }).collect()
    }

    fn add(&mut self, subscription: Subscription) -> Answer {
        let same = |other: &Subscription| {
            (&other.subscriber, &other.url) == (&subscription.subscriber, &subscription.url)
        };
        if self.all.values().any(same) {
            let detail = "this subscriber has a subscription for this url";
            return Answer::problem(StatusCode::CONFLICT, "Conflict", detail);
        }
        self.last += 1;
        let subscription = Subscription { id: self.last, ..subscription };
        let answer = Answer::json(&subscription);
        self.all.insert(self.last, subscription);
        answer
    }

    fn replace(&mut self, id: &str, subscription: Subscription) -> Answer {
        let Some(old) = id.parse().ok().and_then(|id| self.all.get_mut(&id)) else {
            return no_such("subscription");
        };
        *old = Subscription { id: old.id, ..subscription };
        Answer::empty(StatusCode::NO_CONTENT)
    }
}

pub(super) fn answer(subscriptions: &mut Subscriptions, call: &Call) -> Answer {
    let named = || call.name().parse::<u64>().ok();
    match call.operation {
        "GET /Subscriptions/SCN" => {
            Answer::json(&json!({"SubscriptionList": subscriptions.all.values().collect::<Vec<_>>()}))
        }
        "POST /Subscriptions/SCN" => either(call.json().map(|new| subscriptions.add(new))),
        "DELETE /Subscriptions/SCN" => {
            subscriptions.all.clear();
            Answer::json(&json!({"code": 0, "message": "deleted"}))
        }
        "GET /Subscriptions/SCN/{id}" => match named().and_then(|id| subscriptions.all.get(&id)) {
            Some(subscription) => Answer::json(subscription),
            None => no_such("subscription"),
        },
        "PUT /Subscriptions/SCN/{id}" => {
            either(call.json().map(|new| subscriptions.replace(call.name(), new)))
        }
        _ => match named().and_then(|id| subscriptions.all.remove(&id)) {
            Some(_) => Answer::json(&json!({"code": 0, "message": "deleted"})),
            None => no_such("subscription"),
        },
    }
}

impl State {
    /// Tells those who subscribed that something changed of the nodes at `positions`.
    pub(crate) fn notify(&mut self, positions: &[usize], change: Change) {
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
    fn a_subscriber_hears_of_what_it_subscribed_to() {
        let mut subscriptions = Subscriptions::default();
        for text in [
            r#"{"Subscriber":"all","Url":"http://all","Enabled":true,"Roles":["Compute"],"States":["Off","Ready"]}"#,
            r#"{"Subscriber":"states","Url":"http://states","States":["ready"]}"#,
        ] {
            subscriptions.add(serde_json::from_str(text).expect("the service's own form"));
        }
        let changes = [
            Change::Enabled(false),
            Change::Locked(true),
            Change::Role("Compute".into(), String::new()),
            Change::Role("Management".into(), "Worker".into()),
            Change::State("Ready"),
            Change::State("On"),
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
