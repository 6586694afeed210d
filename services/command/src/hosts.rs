//! `reveille get hosts`: bare-metal hosts.

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Deserialize;

use crate::{
    client::segment,
    error::{CommandError, ExitReason},
    output::show,
    pages::{self, ListedMeta, PageFlags},
    record::age,
    table::{Cell, Table, Tone},
};

/// Path of the hosts of every namespace.
const PATH: &str = "/kubernetes/apis/metal3.io/v1alpha1/baremetalhosts";

/// Path of the namespaces, which hosts are below.
const NAMESPACES: &str = "/kubernetes/apis/metal3.io/v1alpha1/namespaces";

/// Flags of `reveille get hosts`.
#[derive(Debug, Args)]
pub struct HostsFlags {
    /// Only hosts of that namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    pages: PageFlags,
}

/// Host as the gateway lists it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HostRecord {
    metadata: ListedMeta,
    spec: HostSpec,
    status: HostStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HostSpec {
    consumer_ref: Option<ConsumerReference>,
    bmc: BmcAddress,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BmcAddress {
    address: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConsumerReference {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HostStatus {
    powered_on: Option<bool>,
    operational_status: String,
    error_message: String,
    provisioning: ProvisioningStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProvisioningStatus {
    state: String,
}

/// Lists hosts.
///
/// # Errors
/// The gateway does not answer or refuses.
pub(crate) async fn list(flags: &HostsFlags) -> Result<ExitReason, CommandError> {
    let path = match &flags.namespace {
        Some(namespace) => format!("{NAMESPACES}/{}/baremetalhosts", segment(namespace)),
        None => PATH.to_owned(),
    };
    let (document, hosts) = pages::whole::<HostRecord>(&flags.pages, &path, None).await?;
    let names = hosts.iter().map(|host| format!("{}/{}", host.metadata.namespace, host.metadata.name));
    show(&flags.pages.output, &document, names.collect(), |wide| table(&hosts, wide, Utc::now()))?;
    Ok(ExitReason::Done)
}

fn table(hosts: &[HostRecord], wide: bool, now: DateTime<Utc>) -> Table {
    let mut header = vec!["NAMESPACE", "HOST", "STATE", "POWER", "STATUS", "CONSUMER", "AGE", "ERROR"];
    header.extend(wide.then_some("BMC"));
    let mut table = Table::new(header);
    for HostRecord { metadata, spec, status } in hosts {
        let consumer = spec.consumer_ref.as_ref().map_or("", |consumer| &consumer.name);
        let tone = tone(status);
        let mut cells = vec![
            Cell::plain(&metadata.namespace),
            Cell::plain(&metadata.name),
            Cell::new(&status.provisioning.state, tone),
            Cell::plain(power(status.powered_on)),
            Cell::new(&status.operational_status, tone),
            Cell::plain(consumer),
            Cell::plain(age(&metadata.creation_timestamp, now)),
            Cell::plain(&status.error_message),
        ];
        cells.extend(wide.then(|| Cell::plain(&spec.bmc.address)));
        table.push(cells);
    }
    table
}

fn power(powered_on: Option<bool>) -> &'static str {
    match powered_on {
        Some(true) => "on",
        Some(false) => "off",
        None => "",
    }
}

fn tone(status: &HostStatus) -> Tone {
    match (status.operational_status.as_str(), status.provisioning.state.as_str()) {
        ("error", _) => Tone::Bad,
        ("OK", "available" | "provisioned" | "externally provisioned") => Tone::Good,
        _ => Tone::Busy,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::table::TableForm;

    #[test]
    fn hosts_tell_their_state_and_error() {
        let hosts: Vec<HostRecord> = serde_json::from_value(json!([
            {"metadata": {"namespace": "rack", "name": "h1", "creationTimestamp": "2026-01-01T00:00:00Z"},
             "spec": {"consumerRef": {"name": "m1"}, "bmc": {"address": "redfish://b1"}},
             "status": {"poweredOn": true, "operationalStatus": "OK", "provisioning": {"state": "provisioned"}}},
            {"metadata": {"namespace": "rack", "name": "h2"},
             "status": {"operationalStatus": "error", "errorMessage": "no\u{7} answer", "provisioning": {"state": "registering"}}},
            {"metadata": {"namespace": "rack", "name": "h3"}},
        ]))
        .unwrap();
        let form = TableForm { width: None, colours: false };
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        expect![[r#"
            NAMESPACE  HOST  STATE        POWER  STATUS  CONSUMER  AGE  ERROR       BMC
            rack       h1    provisioned  on     OK      m1        10m              redfish://b1
            rack       h2    registering         error                  no  answer
            rack       h3
        "#]]
        .assert_eq(&table(&hosts, true, now).render(form));
    }
}
