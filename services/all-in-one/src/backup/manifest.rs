//! Manifest of a backup.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// File of the manifest.
pub(super) const MANIFEST: &str = "backup.json";

/// Form of manifests that this program writes, and the only one that it reads.
const MANIFEST_FORM: u32 = 1;

/// Content of a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BackupManifest {
    form: u32,
    /// Begin of the backup.
    pub made_at: String,
    /// Version of the program that made it.
    pub version: String,
    pub databases: Vec<SavedDatabase>,
    /// Every file of the backup but the manifest.
    pub files: Vec<SavedFile>,
}

/// Copy of a database.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedDatabase {
    /// Part that uses the database.
    pub part: String,
    pub engine: DatabaseEngine,
    /// Name of its file.
    pub file: String,
}

/// Kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DatabaseEngine {
    Sqlite,
    Postgresql,
}

/// File of a backup.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedFile {
    pub name: String,
    pub bytes: u64,
    /// Digest of the content, in hexadecimal.
    sha256: String,
}

impl DatabaseEngine {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgresql => "PostgreSQL",
        }
    }
}

impl SavedFile {
    /// Reads the file `name` in `directory`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn of(directory: &Path, name: &str) -> anyhow::Result<Self> {
        let path = directory.join(name);
        let unreadable = || format!("cannot read {}", path.display());
        let mut digest = Sha256::new();
        let bytes = File::open(&path).and_then(|mut file| io::copy(&mut file, &mut digest));
        let bytes = bytes.with_context(unreadable)?;
        let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { name: name.to_owned(), bytes, sha256 })
    }
}

impl BackupManifest {
    /// Creates the manifest of the files in `directory`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn new(
        directory: &Path,
        made_at: String,
        databases: Vec<SavedDatabase>,
        keys: &[String],
    ) -> anyhow::Result<Self> {
        let names = databases.iter().map(|database| &database.file).chain(keys);
        let files = names.map(|name| SavedFile::of(directory, name)).collect::<Result<_, _>>()?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self { form: MANIFEST_FORM, made_at, version, databases, files })
    }

    /// Reads the manifest in `directory` and compares every file with it.
    ///
    /// # Errors
    /// There is no manifest that can be read, or a file is missing or another than was written.
    pub(super) fn checked(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(MANIFEST);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} is no backup: cannot read {MANIFEST}", directory.display()))?;
        let manifest: Self = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let form = manifest.form;
        ensure!(form == MANIFEST_FORM, "{}: form {form} is not known to this version", path.display());
        for SavedDatabase { file, .. } in &manifest.databases {
            let is_listed = manifest.files.iter().any(|listed| listed.name == *file);
            ensure!(is_listed, "{}: '{file}' is no file of the backup", path.display());
        }
        for expected in &manifest.files {
            let name = Path::new(&expected.name);
            ensure!(name.file_name() == Some(name.as_os_str()), "'{}' is no name of a file", expected.name);
            if SavedFile::of(directory, &expected.name)? != *expected {
                bail!(
                    "{} is damaged: its content is another than was written",
                    directory.join(name).display()
                );
            }
        }
        Ok(manifest)
    }

    /// Returns the names of the files that are no databases: keys and certificates.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        let is_database = |name: &str| self.databases.iter().any(|database| database.file == name);
        self.files.iter().map(|file| file.name.as_str()).filter(move |name| !is_database(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let refusal = || BackupManifest::checked(path).unwrap_err().to_string();
        assert!(refusal().ends_with("is no backup: cannot read backup.json"), "{}", refusal());
        fs::write(path.join("a.sqlite"), "rows").unwrap();
        fs::write(path.join("host-secrets.key"), "key").unwrap();
        let database =
            SavedDatabase { part: "a".into(), engine: DatabaseEngine::Sqlite, file: "a.sqlite".into() };
        let keys = ["host-secrets.key".to_owned()];
        let manifest = BackupManifest::new(path, "now".into(), vec![database], &keys).unwrap();
        let write = |manifest: &BackupManifest| {
            fs::write(path.join(MANIFEST), serde_json::to_vec(manifest).unwrap()).unwrap();
        };
        write(&manifest);
        let checked = BackupManifest::checked(path).unwrap();
        assert_eq!(checked.keys().collect::<Vec<_>>(), ["host-secrets.key"]);
        fs::write(path.join("a.sqlite"), "r0ws").unwrap();
        assert!(refusal().contains("a.sqlite is damaged"), "{}", refusal());
        fs::remove_file(path.join("a.sqlite")).unwrap();
        assert!(refusal().starts_with("cannot read "), "{}", refusal());
        let elsewhere =
            SavedDatabase { part: "a".into(), engine: DatabaseEngine::Sqlite, file: "../a.sqlite".into() };
        write(&BackupManifest {
            databases: vec![elsewhere],
            files: Vec::new(),
            made_at: "now".into(),
            version: "1".into(),
            form: MANIFEST_FORM,
        });
        assert!(refusal().ends_with("'../a.sqlite' is no file of the backup"), "{}", refusal());
        write(&BackupManifest { form: 2, ..manifest });
        assert!(refusal().ends_with("form 2 is not known to this version"), "{}", refusal());
    }
}
