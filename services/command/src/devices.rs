//! `reveille get devices`: edge devices.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Deserialize;

use crate::{
    error::{CommandError, ExitReason},
    output::show,
    pages::{self, ListedMeta, PageFlags},
    record::age,
    table::{Cell, Table, Tone},
};

/// Path of the devices.
const PATH: &str = "/flightctl/api/v1/devices";

/// Begin of the owner of a device that a fleet owns.
const FLEET: &str = "Fleet/";

/// Flags of `reveille get devices`.
#[derive(Debug, Args)]
pub struct DevicesFlags {
    /// Only devices of that fleet
    #[arg(long, value_name = "FLEET")]
    fleet: Option<String>,
    #[command(flatten)]
    pages: PageFlags,
}

/// Device as the gateway lists it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeviceRecord {
    metadata: ListedMeta,
    status: Option<DeviceStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeviceStatus {
    summary: StatusWord,
    updated: StatusWord,
    applications_summary: StatusWord,
    last_seen: Option<String>,
}

/// Word of a status with its meaning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusWord {
    status: String,
    info: Option<String>,
}

/// Lists devices.
///
/// # Errors
/// The gateway does not answer or refuses.
pub(crate) async fn list(flags: &DevicesFlags) -> Result<ExitReason, CommandError> {
    let owner = flags.fleet.as_ref().map(|fleet| format!("metadata.owner={FLEET}{fleet}"));
    let (document, devices) = pages::whole::<DeviceRecord>(&flags.pages, PATH, owner).await?;
    let names = devices.iter().map(|device| device.metadata.name.clone()).collect();
    show(&flags.pages.output, &document, names, |wide| table(&devices, wide, Utc::now()))?;
    Ok(ExitReason::Done)
}

fn table(devices: &[DeviceRecord], wide: bool, now: DateTime<Utc>) -> Table {
    let mut header = vec!["DEVICE", "ALIAS", "FLEET", "STATUS", "UPDATED", "APPLICATIONS", "SEEN"];
    if wide {
        header.extend(["LABELS", "INFO"]);
    }
    let mut table = Table::new(header);
    for DeviceRecord { metadata, status } in devices {
        let none = DeviceStatus::default();
        let status = status.as_ref().unwrap_or(&none);
        let labels = metadata.labels.clone().unwrap_or_default();
        let owner = metadata.owner.as_deref().unwrap_or_default();
        let seen = status.last_seen.as_deref().map(|seen| age(seen, now)).unwrap_or_default();
        let mut cells = vec![
            Cell::plain(&metadata.name),
            Cell::plain(labels.get("alias").map_or("", String::as_str)),
            Cell::plain(owner.strip_prefix(FLEET).unwrap_or(owner)),
            Cell::new(&status.summary.status, tone(&status.summary.status)),
            Cell::new(&status.updated.status, tone(&status.updated.status)),
            Cell::new(&status.applications_summary.status, tone(&status.applications_summary.status)),
            Cell::plain(seen),
        ];
        if wide {
            let info = status.summary.info.as_deref().unwrap_or_default();
            cells.extend([Cell::plain(shown(&labels)), Cell::plain(info)]);
        }
        table.push(cells);
    }
    table
}

fn shown(labels: &BTreeMap<String, String>) -> String {
    let shown =
        labels.iter().filter(|(name, _)| *name != "alias").map(|(name, value)| format!("{name}={value}"));
    shown.collect::<Vec<_>>().join(",")
}

fn tone(word: &str) -> Tone {
    match word {
        "Online" | "UpToDate" | "Healthy" => Tone::Good,
        "Error" | "Degraded" | "Unknown" | "ConflictPaused" => Tone::Bad,
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
    fn devices_tell_their_fleet_and_status() {
        let devices: Vec<DeviceRecord> = serde_json::from_value(json!([
            {"metadata": {"name": "d1", "owner": "Fleet/shops", "labels": {"alias": "till-1", "site": "madrid"}},
             "status": {"summary": {"status": "Online"}, "updated": {"status": "UpToDate"},
                        "applicationsSummary": {"status": "Healthy"}, "lastSeen": "2026-01-01T00:09:50Z"}},
            {"metadata": {"name": "d2"},
             "status": {"summary": {"status": "Error", "info": "disk\u{7} full"}, "lastSeen": null}},
            {"metadata": {"name": "d3", "labels": null}, "status": null},
        ]))
        .unwrap();
        let form = TableForm { width: None, colours: false };
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        expect![[r#"
            DEVICE  ALIAS   FLEET  STATUS  UPDATED   APPLICATIONS  SEEN  LABELS       INFO
            d1      till-1  shops  Online  UpToDate  Healthy       10s   site=madrid
            d2                     Error                                              disk  full
            d3
        "#]]
        .assert_eq(&table(&devices, true, now).render(form));
    }
}
