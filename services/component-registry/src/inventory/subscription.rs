//! The subscription to state change notifications of the hardware state manager. It is kept alive and never
//! relied on: what a notification says is read from the inventory itself.

use std::{convert::Infallible, time::Duration};

use chassis::{pause, settings::Notifications};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use upstream::{Failure, FailureKind, Peer, Request};

use super::Driver;

const PATH: &str = "/Subscriptions/SCN";

/// Time between looks whether the subscription still exists: somebody may have deleted all of them.
const CHECK: Duration = Duration::from_secs(60);

/// States that hardware has when it is found. Those that nodes go through while they boot are left out: they
/// tell nothing new, thousands of times. Roles are left out too, because a name that the site does not have
/// would make the whole subscription invalid.
const STATES: [&str; 3] = ["Off", "On", "Populated"];

/// What is subscribed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Wanted {
    subscriber: String,
    url: String,
    enabled: bool,
    states: [&'static str; 3],
}

/// The answer to a list of all subscriptions.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Subscriptions {
    /// `null` when there are none.
    subscription_list: Option<Vec<Entry>>,
}

/// A subscription, or something else, which is somebody else's.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    Subscription(Subscription),
    Unreadable(IgnoredAny),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Subscription {
    #[serde(rename = "ID")]
    id: i64,
    subscriber: String,
    url: String,
    enabled: Option<bool>,
    states: Option<Vec<String>>,
}

/// What has to be done so that exactly what is wanted is subscribed to.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// Own subscriptions that are not what is wanted. They go first: some versions take the new one for a change
    /// of an old one with the same address.
    delete: Vec<i64>,
    create: bool,
}

/// Whom to subscribe with to what, if the settings say so and the inventory can notify.
pub(crate) fn wanted(driver: &Driver, settings: &Notifications) -> Option<(Peer, Wanted)> {
    let Driver::Hsm(hsm) = driver else { return None };
    settings.subscribe.then(|| (hsm.peer().clone(), Wanted::new(settings)))
}

/// Keeps the subscription alive for ever.
pub(crate) async fn run(peer: Peer, wanted: Wanted) -> anyhow::Result<Infallible> {
    let mut failures = 0;
    loop {
        let wait = match ensure(&peer, &wanted).await {
            Ok(plan) => {
                if plan.create {
                    tracing::info!(peer = peer.name(), url = wanted.url, "subscribed to notifications");
                }
                failures = 0;
                CHECK
            }
            Err(failure) => {
                failures += 1;
                if failures == 1 {
                    tracing::warn!(%failure, "cannot subscribe to notifications; the inventory is looked at anyway");
                }
                wait(&failure, failures)
            }
        };
        tokio::time::sleep(wait).await;
    }
}

/// How long to wait after a failure. A peer that says no will not say yes in a second.
fn wait(failure: &Failure, failures: u32) -> Duration {
    match failure.kind {
        FailureKind::Refused | FailureKind::Denied => CHECK,
        FailureKind::Unreachable | FailureKind::Ambiguous => pause::after(failures),
    }
}

/// Looks what is subscribed to and mends it. Nothing is lost if it breaks off anywhere.
async fn ensure(peer: &Peer, wanted: &Wanted) -> Result<Plan, Failure> {
    let existing: Subscriptions = peer.json(Request::get("subscriptions", PATH)).await?;
    let plan = wanted.plan(existing);
    for id in &plan.delete {
        peer.call(Request::delete("subscriptions", format!("{PATH}/{id}"))).await?;
    }
    if plan.create {
        peer.call(Request::post("subscriptions", PATH).json(wanted)).await?;
    }
    Ok(plan)
}

impl Wanted {
    fn new(settings: &Notifications) -> Self {
        Self {
            subscriber: settings.subscriber.clone(),
            url: settings.webhook_url.clone(),
            enabled: true,
            states: STATES,
        }
    }

    /// Keeps the first own subscription that is what is wanted, if there is one, and none else of its own.
    fn plan(&self, existing: Subscriptions) -> Plan {
        let mut plan = Plan { delete: Vec::new(), create: true };
        for entry in existing.subscription_list.unwrap_or_default() {
            match entry {
                Entry::Subscription(one) if one.subscriber != self.subscriber => {}
                Entry::Subscription(one) if plan.create && self.is(&one) => plan.create = false,
                Entry::Subscription(one) => plan.delete.push(one.id),
                Entry::Unreadable(_) => {}
            }
        }
        plan
    }

    /// Words come back in the letter case that the peer likes.
    fn is(&self, one: &Subscription) -> bool {
        let states = one.states.as_deref().unwrap_or_default();
        let has = |state: &&str| states.iter().any(|one| one.eq_ignore_ascii_case(state));
        one.url == self.url && one.enabled == Some(true) && self.states.iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn wanted() -> Wanted {
        let settings = Notifications {
            subscribe: true,
            subscriber: "reveille".into(),
            webhook_url: "http://gateway/scn".into(),
        };
        Wanted::new(&settings)
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
            let Plan { delete, create } = wanted().plan(serde_json::from_str(&row).unwrap());
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
    fn what_is_wanted_is_written_as_the_peer_reads_it() {
        expect![[
            r#"{"Subscriber":"reveille","Url":"http://gateway/scn","Enabled":true,"States":["Off","On","Populated"]}"#
        ]]
        .assert_eq(&serde_json::to_string(&wanted()).unwrap());
    }
}
