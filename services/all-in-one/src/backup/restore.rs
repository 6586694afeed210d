//! `reveille restore`.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, bail, ensure};
use chassis::{
    RESTORE_MARK, Settings,
    process::clock,
    store::backup::{drop_other_tables, is_in_use, other_clients},
};
use domain::core::bos_time;
use reqwest::Url;
use tokio::{net::TcpStream, time::timeout};

use super::{
    databases::{DatabasePlace, PartDatabase, databases},
    manifest::{BackupManifest, DatabaseEngine, SavedDatabase},
    postgres,
    swap::{FileSwap, make_private_directory, swap_all},
};
use crate::parts::parts;

/// Time for a part to take a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);

/// Saved database, with the place that it has in the settings.
type PlacedDatabase<'a> = (&'a SavedDatabase, &'a DatabasePlace);

/// Puts the backup in `directory` in the place of what the mesh keeps, which is put aside. `keeps_dump`: what PostgreSQL has is
/// put aside too.
///
/// # Errors
/// The backup is damaged or does not fit the settings, a part runs, or something cannot be read or written.
pub(super) async fn run(settings: &Settings, directory: &Path, keeps_dump: bool) -> anyhow::Result<()> {
    let manifest = BackupManifest::checked(directory)?;
    let present = databases(settings)?;
    let placed = manifest.databases.iter().map(|saved| Ok((saved, place_of(saved, &present)?)));
    let placed = placed.collect::<anyhow::Result<Vec<_>>>()?;
    refuse_running_parts(settings, &present).await?;
    refuse_used_databases(&present).await?;
    let swaps = stage(settings, directory, &manifest, &present, &placed)?;
    let aside = format!("before-restore-{}Z", bos_time::text(clock::now()).replace(':', ""));
    let outcome = replace(settings, directory, &placed, &swaps, &aside, keeps_dump).await;
    swaps.iter().for_each(FileSwap::discard);
    outcome?;
    println!("This is what the mesh had at {}.", manifest.made_at);
    println!(
        "Start every part now. Nodes that have booted since then are booted again by sessions that run in the backup."
    );
    Ok(())
}

/// Returns the place of a saved database in the settings.
fn place_of<'a>(saved: &SavedDatabase, present: &'a [PartDatabase]) -> anyhow::Result<&'a DatabasePlace> {
    let part = &saved.part;
    let found = present.iter().find(|database| database.part == part);
    let found = found.with_context(|| format!("the backup is of a part '{part}', which is not known"))?;
    let engine = match found.place {
        DatabasePlace::File(_) => DatabaseEngine::Sqlite,
        DatabasePlace::Server(_) => DatabaseEngine::Postgresql,
    };
    let (theirs, ours) = (saved.engine.name(), engine.name());
    ensure!(saved.engine == engine, "{part}: the backup is of {theirs}, and the settings name {ours}");
    Ok(&found.place)
}

/// Refuses to go on while a part answers: it would decide by newer data than those of the others, or write over them.
async fn refuse_running_parts(settings: &Settings, present: &[PartDatabase]) -> anyhow::Result<()> {
    let has_database = |section: &str| present.iter().any(|one| one.part.replace('-', "_") == section);
    for part in parts(settings).into_iter().filter(|part| has_database(part.section)) {
        let Ok(url) = Url::parse(part.url) else { continue };
        let Some((host, port)) = url.host_str().zip(url.port_or_known_default()) else { continue };
        let host = host.trim_matches(['[', ']']);
        if let Ok(Ok(_)) = timeout(CONNECT_PATIENCE, TcpStream::connect((host, port))).await {
            let name = part.section.replace('_', " ");
            bail!("the {name} runs at {}: stop every part first", part.url);
        }
    }
    Ok(())
}

/// Refuses to go on while somebody uses a database, such as a part on another machine.
async fn refuse_used_databases(present: &[PartDatabase]) -> anyhow::Result<()> {
    for PartDatabase { part, place } in present {
        match place {
            DatabasePlace::File(file) if !file.exists() => {}
            DatabasePlace::File(file) => match is_in_use(file).await {
                Ok(is_in_use) => ensure!(!is_in_use, "{} is in use: stop every part first", file.display()),
                Err(error) => eprintln!("{} is damaged, and is put aside: {error}", file.display()),
            },
            DatabasePlace::Server(url) => {
                let others = other_clients(url).await.with_context(|| format!("database of {part}"))?;
                ensure!(
                    others == 0,
                    "the database of {part} has {others} other clients: stop every part first, and disconnect others"
                );
            }
        }
    }
    Ok(())
}

/// Copies every file of the backup beside its place. Databases of parts that the backup has nothing of are to be empty.
fn stage(
    settings: &Settings,
    directory: &Path,
    manifest: &BackupManifest,
    present: &[PartDatabase],
    placed: &[PlacedDatabase<'_>],
) -> anyhow::Result<Vec<FileSwap>> {
    let mut swaps = Vec::new();
    let files = present.iter().filter_map(|PartDatabase { part, place }| match place {
        DatabasePlace::File(file) => Some((format!("{part}.sqlite"), file, place)),
        DatabasePlace::Server(_) => None,
    });
    for (name, file, place) in files {
        let saved = placed.iter().find(|(_, taken)| *taken == place);
        swaps.push(match saved {
            Some((saved, _)) => FileSwap::stage(&directory.join(&saved.file), name, file.clone())?,
            None => FileSwap::empty(name, file.clone()),
        });
    }
    for name in manifest.keys() {
        swaps.push(FileSwap::stage(&directory.join(name), name.to_owned(), settings.data_dir.join(name))?);
    }
    Ok(swaps)
}

/// Replaces databases and files. No part starts meanwhile, or after an interruption that leaves databases of two times.
async fn replace(
    settings: &Settings,
    directory: &Path,
    placed: &[PlacedDatabase<'_>],
    swaps: &[FileSwap],
    aside: &str,
    keeps_dump: bool,
) -> anyhow::Result<()> {
    let mark = settings.data_dir.join(RESTORE_MARK);
    fs::create_dir_all(&settings.data_dir)
        .and_then(|()| fs::write(&mark, directory.to_string_lossy().as_bytes()))
        .with_context(|| format!("cannot write {}", mark.display()))?;
    let mut loaded = 0;
    let dumps = keeps_dump.then(|| settings.data_dir.join(aside));
    let mut outcome = load_all(directory, placed, dumps.as_deref(), &mut loaded).await;
    if outcome.is_ok() {
        outcome = swap_all(swaps, aside).map(|kept| {
            kept.iter()
                .for_each(|kept| println!("restored files; the former ones are in {}", kept.display()));
        });
    }
    if outcome.is_ok() || loaded == 0 {
        fs::remove_file(&mark).with_context(|| format!("cannot remove {}", mark.display()))?;
    }
    outcome
}

/// Loads every dump into its database, which is dumped to the directory `dumps` before. Counts the databases that have changed.
async fn load_all(
    directory: &Path,
    placed: &[PlacedDatabase<'_>],
    dumps: Option<&Path>,
    loaded: &mut usize,
) -> anyhow::Result<()> {
    for (saved, place) in placed {
        let DatabasePlace::Server(url) = place else { continue };
        let name = &saved.part;
        if let Some(dumps) = dumps {
            let kept = dumps.join(&saved.file);
            make_private_directory(dumps)?;
            let failed =
                || format!("the database of {name} cannot be put aside; --discard-database goes on without");
            postgres::dump(url, &kept).await.with_context(failed)?;
            println!("the former database of {name} is in {}", kept.display());
        }
        let tables = postgres::load(url, &directory.join(&saved.file)).await;
        let tables = tables.with_context(|| format!("database of {name}"))?;
        *loaded += 1;
        let failed = "cannot drop tables that the backup does not have";
        drop_other_tables(url, &tables).await.context(failed)?;
        println!("restored the database of {name}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backup_has_to_fit_the_settings() {
        use DatabaseEngine::{Postgresql, Sqlite};
        let present = [
            PartDatabase {
                part: "session-manager",
                place: DatabasePlace::Server("postgres://db/a".to_owned()),
            },
            PartDatabase { part: "component-registry", place: DatabasePlace::File("r.sqlite".into()) },
        ];
        let refusal = |part: &str, engine| {
            let saved = SavedDatabase { part: part.to_owned(), engine, file: "f".into() };
            place_of(&saved, &present).map_or_else(|error| error.to_string(), |_| String::new())
        };
        assert_eq!(refusal("session-manager", Postgresql), "");
        assert_eq!(refusal("component-registry", Sqlite), "");
        for (part, engine, expected) in [
            ("component-registry", Postgresql, "the backup is of PostgreSQL, and the settings name SQLite"),
            ("session-manager", Sqlite, "the backup is of SQLite, and the settings name PostgreSQL"),
            ("dreamer", Sqlite, "a part 'dreamer', which is not known"),
        ] {
            let refusal = refusal(part, engine);
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
