//! Databases of the parts.

use std::path::PathBuf;

use anyhow::Context as _;
use chassis::{Settings, store::backup::file_of};

use crate::parts::parts;

/// Order in which databases are copied: records of the later ones are what those of the earlier ones refer to. A session that
/// begins between two copies is unknown to the session manager, and its nodes go on; the other way round it would have lost
/// its nodes.
const ORDER: [&str; 7] = [
    "session-manager",
    "config-coordinator",
    "power-controller",
    "host-provisioner",
    "fleet-manager",
    "status-evaluator",
    "component-registry",
];

/// Database of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartDatabase {
    /// Name of the part, such as `component-registry`.
    pub part: &'static str,
    pub place: DatabasePlace,
}

/// Place of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DatabasePlace {
    /// File of SQLite, which need not exist.
    File(PathBuf),
    /// Address of a database of PostgreSQL, with its password.
    Server(String),
}

/// Returns the databases of all parts, in the order in which they are copied.
///
/// # Errors
/// Names the setting with an address that cannot be read.
pub(super) fn databases(settings: &Settings) -> anyhow::Result<Vec<PartDatabase>> {
    let parts = parts(settings);
    let of_part = |part: &'static str| {
        let section = part.replace('-', "_");
        let set = parts.iter().find(|one| one.section == section).map_or("", |one| one.database_url);
        let place = match set {
            "" => DatabasePlace::File(settings.data_dir.join(format!("{part}.sqlite"))),
            url if url.starts_with("sqlite:") => {
                DatabasePlace::File(file_of(url).with_context(|| format!("{section}.database_url"))?)
            }
            url => DatabasePlace::Server(url.to_owned()),
        };
        Ok(PartDatabase { part, place })
    };
    ORDER.into_iter().map(of_part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_with_a_database_has_its_place() {
        let mut settings = Settings { data_dir: "/data".into(), ..Settings::default() };
        settings.session_manager.database_url = "postgres://u:p@db/boot".into();
        settings.power_controller.database_url = "sqlite:///fast/power.sqlite?mode=rwc".into();
        let places: Vec<_> = databases(&settings)
            .unwrap()
            .into_iter()
            .map(|database| match database.place {
                DatabasePlace::File(file) => (database.part, file.display().to_string()),
                DatabasePlace::Server(url) => (database.part, url),
            })
            .collect();
        assert_eq!(places.len(), 7);
        for (part, place) in [
            ("session-manager", "postgres://u:p@db/boot"),
            ("power-controller", "/fast/power.sqlite"),
            ("component-registry", "/data/component-registry.sqlite"),
        ] {
            assert!(places.contains(&(part, place.to_owned())), "{part} in {places:?}");
        }
        assert_eq!(places.last().unwrap().0, "component-registry");
    }
}
