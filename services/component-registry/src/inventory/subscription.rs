//! Subscription to state change notifications of the hardware state manager. The subscription is kept alive but never
//! relied on: the content of a notification is read from the inventory itself.

use std::{convert::Infallible, time::Duration};

use chassis::{process::pause::FailureStreak, settings::NotificationSettings};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use upstream::{Failure, FailureKind, Peer, Request};

use super::InventorySource;

const PATH: &str = "/Subscriptions/SCN";

/// Period of the check that the subscription still exists: other clients may have deleted it.
const CHECK: Duration = Duration::from_secs(60);

/// States of newly discovered hardware. The states of booting nodes are left out: they announce no change, thousands
/// of times. Roles are left out too, because an unknown role would make the whole subscription invalid.
const STATES: [&str; 3] = ["Off", "On", "Populated"];

/// Wanted subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct WantedSubscription {
    subscriber: String,
    url: String,
    enabled: bool,
    states: [&'static str; 3],
}

/// Answer to a list of all subscriptions.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SubscriptionList {
    /// `null` for an empty list.
    subscription_list: Option<Vec<SubscriptionEntry>>,
}

/// A subscription, or an entry of another shape, which belongs to another client.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum SubscriptionEntry {
    Subscription(HsmSubscription),
    Unreadable(IgnoredAny),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HsmSubscription {
    #[serde(rename = "ID")]
    id: i64,
    subscriber: String,
    url: String,
    enabled: Option<bool>,
    states: Option<Vec<String>>,
}

/// Changes that leave exactly the wanted subscription.
#[derive(Debug, PartialEq, Eq)]
struct SubscriptionChanges {
    /// Own subscriptions to delete. Deletions come first: some versions treat a new subscription as an update of an
    /// old one with the same address.
    delete: Vec<i64>,
    create: bool,
}

/// Returns the peer and the wanted subscription, if the settings ask for one and the source can notify.
pub(crate) fn wanted(
    driver: &InventorySource,
    settings: &NotificationSettings,
) -> Option<(Peer, WantedSubscription)> {
    let InventorySource::Hsm(hsm) = driver else { return None };
    settings.subscribe.then(|| (hsm.peer().clone(), WantedSubscription::new(settings)))
}

/// Keeps the subscription alive for ever.
pub(crate) async fn run(peer: Peer, wanted: WantedSubscription) -> anyhow::Result<Infallible> {
    let mut failures = FailureStreak::default();
    loop {
        let wait = match ensure(&peer, &wanted).await {
            Ok(plan) => {
                if plan.create {
                    tracing::info!(
                        peer = peer.name(),
                        url = wanted.url,
                        "subscribed to inventory notifications"
                    );
                }
                failures.end();
                CHECK
            }
            Err(failure) => {
                if failures.add() {
                    tracing::warn!(%failure, "cannot subscribe to inventory notifications, polling continues");
                }
                wait(&failure, &failures)
            }
        };
        tokio::time::sleep(wait).await;
    }
}

/// Returns the pause after a failure. A peer that refuses the call will still refuse it in a second.
fn wait(failure: &Failure, failures: &FailureStreak) -> Duration {
    match failure.kind {
        FailureKind::Refused | FailureKind::Denied => CHECK,
        FailureKind::Unreachable | FailureKind::Ambiguous => failures.pause(),
    }
}

/// Compares the existing subscriptions with the wanted one and changes them. An interruption at any point loses
/// nothing.
async fn ensure(peer: &Peer, wanted: &WantedSubscription) -> Result<SubscriptionChanges, Failure> {
    let existing: SubscriptionList = peer.json(Request::get("subscriptions", PATH)).await?;
    let plan = wanted.plan(existing);
    for id in &plan.delete {
        peer.call(Request::delete("subscriptions", format!("{PATH}/{id}"))).await?;
    }
    if plan.create {
        peer.call(Request::post("subscriptions", PATH).json(wanted)).await?;
    }
    Ok(plan)
}

impl WantedSubscription {
    fn new(settings: &NotificationSettings) -> Self {
        Self {
            subscriber: settings.subscriber.clone(),
            url: settings.webhook_url.clone(),
            enabled: true,
            states: STATES,
        }
    }

    /// Keeps the first own subscription that equals the wanted one, and deletes the other own ones.
    fn plan(&self, existing: SubscriptionList) -> SubscriptionChanges {
        let mut plan = SubscriptionChanges { delete: Vec::new(), create: true };
        for entry in existing.subscription_list.unwrap_or_default() {
            match entry {
                SubscriptionEntry::Subscription(one) if one.subscriber != self.subscriber => {}
                SubscriptionEntry::Subscription(one) if plan.create && self.is(&one) => plan.create = false,
                SubscriptionEntry::Subscription(one) => plan.delete.push(one.id),
                SubscriptionEntry::Unreadable(_) => {}
            }
        }
        plan
    }

    /// Compares ignoring case, since the peer may change the case of states.
    fn is(&self, one: &HsmSubscription) -> bool {
        let states = one.states.as_deref().unwrap_or_default();
        let has = |state: &&str| states.iter().any(|one| one.eq_ignore_ascii_case(state));
        one.url == self.url && one.enabled == Some(true) && self.states.iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn wanted() -> WantedSubscription {
        let settings = NotificationSettings {
            subscribe: true,
            subscriber: "reveille".into(),
            webhook_url: "http://gateway/scn".into(),
        };
        WantedSubscription::new(&settings)
    }

    #[test]
    fn exactly_one_own_subscription_is_kept() {
        let own = r#"{"ID": 1, "Subscriber": "reveille", "Url": "http://gateway/scn", "Enabled": true,
            "States": ["off", "on", "populated", "ready"]}"#;
        let rows = [
            r#"{"SubscriptionList": []}"#.to_owned(),
            r#"{"SubscriptionList": null}"#.to_owned(),
            format!(r#"{{"SubscriptionList": [{own}]}}"#),
            format!(r#"{{"SubscriptionList": [{own}, {}]}}"#, own.replace("1,", "2,")),
            format!(r#"{{"SubscriptionList": [{}]}}"#, own.replace("/scn", "/old")),
            format!(r#"{{"SubscriptionList": [{}]}}"#, own.replace("\"off\", ", "")),
            format!(r#"{{"SubscriptionList": [{}]}}"#, own.replace("true", "false")),
            format!(r#"{{"SubscriptionList": [{}]}}"#, own.replace("reveille", "hmnfd")),
            r#"{"SubscriptionList": ["?", {"ID": "7", "Subscriber": "reveille"}]}"#.to_owned(),
        ];
        let plans = rows.map(|row| {
            let SubscriptionChanges { delete, create } = wanted().plan(serde_json::from_str(&row).unwrap());
            format!("delete {delete:?}{}\n", if create { ", create" } else { "" })
        });
        expect![[r#"
            delete [], create
            delete [], create
            delete []
            delete [2]
            delete [1], create
            delete [1], create
            delete [1], create
            delete [], create
            delete [], create
        "#]]
        .assert_eq(&plans.concat());
    }

    #[test]
    fn the_wanted_subscription_is_written_for_the_peer() {
        expect![[
            r#"{"Subscriber":"reveille","Url":"http://gateway/scn","Enabled":true,"States":["Off","On","Populated"]}"#
        ]]
        .assert_eq(&serde_json::to_string(&wanted()).unwrap());
    }
}
