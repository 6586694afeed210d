//! `reveille backup`.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use chassis::{Settings, mesh::tls::write_private, process::clock, store::backup::copy_database};
use domain::core::bos_time;

use super::{
    databases::{DatabasePlace, PartDatabase, databases},
    manifest::{BackupManifest, DatabaseEngine, MANIFEST, SavedDatabase},
    postgres,
    swap::make_private_directory,
};

/// Writes a backup to `directory`, which appears once everything is in it.
///
/// # Errors
/// `directory` exists, there is nothing to copy, or something cannot be read or written.
pub(super) async fn run(settings: &Settings, directory: &Path) -> anyhow::Result<()> {
    let shown = directory.display();
    ensure!(!directory.exists(), "{shown} exists already: name another directory");
    let draft = draft_of(directory)?;
    make_private_directory(&draft)?;
    if let Err(error) = fill(settings, &draft).await {
        if let Err(left) = fs::remove_dir_all(&draft) {
            eprintln!("{} is of no use, and cannot be removed: {left}", draft.display());
        }
        return Err(error);
    }
    fs::rename(&draft, directory).with_context(|| format!("cannot create {shown}"))?;
    // Where the directory around it cannot be synced, the backup may be missing after a power cut, and not wrong.
    let around = directory.parent().filter(|around| !around.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(around).and_then(|around| around.sync_all());
    println!("wrote {shown}: it has secrets and keys, so keep it where nobody else reads it");
    println!("Settings and the files that they name elsewhere are not in it.");
    Ok(())
}

/// Returns the directory beside `directory` that takes its content until all of it is there.
fn draft_of(directory: &Path) -> anyhow::Result<PathBuf> {
    let name = directory.file_name().context("the directory needs a name")?.to_string_lossy();
    Ok(directory.with_file_name(format!(".{name}.partial-{}", std::process::id())))
}

async fn fill(settings: &Settings, draft: &Path) -> anyhow::Result<()> {
    let made_at = format!("{}Z", bos_time::text(clock::now()));
    let databases = copy_databases(databases(settings)?, draft).await?;
    ensure!(
        !databases.is_empty(),
        "there is nothing to back up: no database in {}, and none in the settings",
        settings.data_dir.display()
    );
    let keys = copy_keys(&settings.data_dir, draft)?;
    let manifest = BackupManifest::new(draft, made_at, databases, &keys)?;
    for file in &manifest.files {
        let synced = File::open(draft.join(&file.name)).and_then(|file| file.sync_all());
        synced.with_context(|| format!("cannot sync {}", file.name))?;
        println!("{:>12}  {}", file.bytes, file.name);
    }
    let path = draft.join(MANIFEST);
    write_private(&path, &serde_json::to_string_pretty(&manifest)?)?;
    let synced = [path.as_path(), draft].iter().try_for_each(|path| File::open(path)?.sync_all());
    synced.context("cannot sync the manifest")
}

/// Copies each database.
async fn copy_databases(all: Vec<PartDatabase>, draft: &Path) -> anyhow::Result<Vec<SavedDatabase>> {
    let mut saved = Vec::new();
    for PartDatabase { part, place } in all {
        let (engine, file) = match &place {
            // A part that keeps nothing, or runs elsewhere.
            DatabasePlace::File(file) if !file.exists() => continue,
            DatabasePlace::File(file) => {
                let name = format!("{part}.sqlite");
                copy_database(file, &draft.join(&name)).await.with_context(|| part.to_owned())?;
                (DatabaseEngine::Sqlite, name)
            }
            DatabasePlace::Server(url) => {
                let name = format!("{part}.pgdump");
                postgres::dump(url, &draft.join(&name)).await.with_context(|| part.to_owned())?;
                (DatabaseEngine::Postgresql, name)
            }
        };
        saved.push(SavedDatabase { part: part.to_owned(), engine, file });
    }
    Ok(saved)
}

/// Copies keys and certificates that parts have made in the data directory. Returns their names.
fn copy_keys(data_dir: &Path, draft: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    if !data_dir.exists() {
        return Ok(names);
    }
    let unreadable = || format!("cannot read {}", data_dir.display());
    for entry in fs::read_dir(data_dir).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_file = entry.file_type().with_context(unreadable)?.is_file();
        if !is_file || !is_key(&name) {
            continue;
        }
        let copied = fs::copy(entry.path(), draft.join(&name));
        copied.with_context(|| format!("cannot copy {}", entry.path().display()))?;
        names.push(name);
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns whether a file holds keys or certificates, by its name.
fn is_key(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "pem" || extension == "key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_copied_beside_the_databases() {
        let [data, draft] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        for name in ["host-secrets.key", "device-authority.pem", "a.sqlite", "a.sqlite-wal", ".probe-1"] {
            fs::write(data.path().join(name), name).unwrap();
        }
        fs::create_dir(data.path().join("audit.pem")).unwrap();
        let names = copy_keys(data.path(), draft.path()).unwrap();
        assert_eq!(names, ["device-authority.pem", "host-secrets.key"]);
        assert_eq!(copy_keys(&data.path().join("missing"), draft.path()).unwrap(), [""; 0]);
    }

    #[tokio::test]
    async fn nothing_is_left_of_a_backup_that_fails() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings { data_dir: directory.path().join("data"), ..Settings::default() };
        let target = directory.path().join("backup");
        let error = run(&settings, &target).await.unwrap_err();
        assert!(error.to_string().starts_with("there is nothing to back up"), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        fs::create_dir(&target).unwrap();
        let error = run(&settings, &target).await.unwrap_err();
        assert!(error.to_string().contains("exists already"), "{error}");
    }
}
