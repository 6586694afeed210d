//! Encryption of the values of secrets at rest: AES-256-GCM, with the key of the record as associated data, so that a
//! sealed text of one secret is none of another.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context as _, bail};
use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey},
    digest::{SHA256, digest},
    rand,
};
use chassis::{Fault, Settings};
use proto::{Message, host::ReadSecretValuesResponse};

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Bytes of the id of a key, at the beginning of a sealed text.
const ID_BYTES: usize = 8;

/// Bytes of a nonce, after the id.
const NONCE_BYTES: usize = 12;

/// Beginning of a setting that names a file.
const FILE: &str = "file:";

/// File with the key, where the settings have none.
const KEY_FILE: &str = "host-secrets.key";

/// Keys by which values are sealed. The first one seals; every one opens.
pub(crate) struct SecretVault {
    /// File with the key, where the settings have none; `None`: replicas share the database, and each would make a key of
    /// its own.
    file: Option<PathBuf>,
    /// Keys; empty until the file is needed, so that a site without hosts has none.
    keys: OnceLock<Vec<SealingKey>>,
}

struct SealingKey {
    id: [u8; ID_BYTES],
    key: RandomizedNonceKey,
}

impl SecretVault {
    /// Takes the keys of the settings, or that of a file, which is made once a secret needs it. `is_shared`: replicas may
    /// share the database.
    ///
    /// # Errors
    /// A key of the settings is none.
    pub(crate) fn open(settings: &Settings, is_shared: bool) -> anyhow::Result<Self> {
        let file = (!is_shared).then(|| settings.data_dir.join(KEY_FILE));
        let vault = Self { file, keys: OnceLock::new() };
        let texts = settings.hosts.secret_keys.texts();
        if !texts.is_empty() {
            let keys: anyhow::Result<Vec<_>> = texts.iter().map(|text| named_key(text)).collect();
            let keys = keys.context("hosts.secret_keys")?;
            vault.keys.get_or_init(|| keys);
        }
        Ok(vault)
    }

    /// Returns the keys, of which there is one at least.
    fn keys(&self) -> Result<&[SealingKey], Fault> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys);
        }
        let Some(file) = &self.file else {
            let reason = "replicas that share a database need `hosts.secret_keys`";
            return Err(Fault::unavailable("secret", reason));
        };
        let key = key_of_file(file).and_then(|text| SealingKey::read(&text));
        let key = key.map_err(|error| Fault::unavailable("secret", format_args!("{error:#}")))?;
        Ok(self.keys.get_or_init(|| vec![key]))
    }

    /// Seals the values of the secret `name`.
    ///
    /// # Errors
    /// No key can be read or made, or the library fails.
    pub(super) fn seal(&self, name: &str, values: &ReadSecretValuesResponse) -> Result<Vec<u8>, Fault> {
        let Some(first) = self.keys()?.first() else { return Err(Fault::Internal("no key".into())) };
        let mut text = values.encode_to_vec();
        let nonce = first.key.seal_in_place_append_tag(Aad::from(name.as_bytes()), &mut text);
        let nonce = nonce.map_err(|_| Fault::Internal("values cannot be encrypted".into()))?;
        Ok([&first.id[..], nonce.as_ref(), &text].concat())
    }

    /// Opens the values of the secret `name`.
    ///
    /// # Errors
    /// No key can be read, the one that sealed is not known any more, or the text was changed.
    pub(super) fn open_values(&self, name: &str, sealed: &[u8]) -> Result<ReadSecretValuesResponse, Fault> {
        opened(self.keys()?, name, sealed)
            .ok_or_else(|| Fault::unavailable("secret", "no key of the settings can decrypt its values"))
    }

    /// Returns whether the first key has sealed a text.
    pub(super) fn is_current(&self, sealed: &[u8]) -> bool {
        let first = self.keys().ok().and_then(|keys| keys.first());
        first.is_some_and(|key| sealed.starts_with(&key.id))
    }
}

/// Returns the values of the secret `name`; `None`: no key opens them.
fn opened(keys: &[SealingKey], name: &str, sealed: &[u8]) -> Option<ReadSecretValuesResponse> {
    let (id, rest) = sealed.split_at_checked(ID_BYTES)?;
    let (nonce, text) = rest.split_at_checked(NONCE_BYTES)?;
    let key = keys.iter().find(|key| key.id == id)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut text = text.to_vec();
    let plain = key.key.open_in_place(nonce, Aad::from(name.as_bytes()), &mut text).ok()?;
    ReadSecretValuesResponse::decode(&*plain).ok()
}

impl SealingKey {
    fn read(text: &str) -> anyhow::Result<Self> {
        let bytes = hexadecimal(text.trim()).filter(|bytes| bytes.len() == KEY_BYTES);
        let Some(bytes) = bytes else { bail!("a key has to have {} hexadecimal digits", 2 * KEY_BYTES) };
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&digest(&SHA256, &bytes).as_ref()[..ID_BYTES]);
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).context("a key cannot be used")?;
        Ok(Self { id, key })
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Returns the key that a setting names: its digits, or a file with them.
fn named_key(text: &str) -> anyhow::Result<SealingKey> {
    match text.strip_prefix(FILE) {
        Some(file) => SealingKey::read(&fs::read_to_string(file).with_context(|| file.to_owned())?),
        None => SealingKey::read(text),
    }
}

/// Reads the key in `file`, which is made if it does not exist.
fn key_of_file(file: &Path) -> anyhow::Result<String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_file(file),
        read => read.with_context(|| file.display().to_string()),
    }
}

fn make_file(file: &Path) -> anyhow::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    rand::fill(&mut bytes).context("no random numbers")?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    // A full disk or a crash must not leave a file with half a key, so the whole key gets the name.
    let draft = file.with_extension(format!("key.{}", std::process::id()));
    let linked = write_key(&draft, &text).and_then(|()| fs::hard_link(&draft, file));
    let removed = fs::remove_file(&draft);
    match linked {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(fs::read_to_string(file)?),
        linked => {
            linked.and(removed).with_context(|| file.display().to_string())?;
            Ok(text)
        }
    }
}

fn write_key(file: &Path, text: &str) -> io::Result<()> {
    let mut made = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    made.write_all(text.as_bytes())?;
    made.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(keys: &[&str]) -> SecretVault {
        let keys = keys.iter().map(|digit| SealingKey::read(&digit.repeat(2 * KEY_BYTES)).unwrap());
        SecretVault { file: None, keys: OnceLock::from(keys.collect::<Vec<_>>()) }
    }

    fn values() -> ReadSecretValuesResponse {
        let values = [("password".to_owned(), b"s3cret".to_vec())].into();
        ReadSecretValuesResponse { values, ..ReadSecretValuesResponse::default() }
    }

    #[test]
    fn sealed_values_open_with_their_key_and_name_alone() {
        let sealed = vault(&["a"]).seal("m/s", &values()).unwrap();
        assert!(!sealed.windows(6).any(|window| window == b"s3cret"));
        for (keys, name, opens, is_current) in [
            (&["a"][..], "m/s", true, true),
            (&["b", "a"], "m/s", true, false),
            (&["b"], "m/s", false, false),
            (&["a"], "m/t", false, true),
        ] {
            let vault = vault(keys);
            assert_eq!(vault.open_values(name, &sealed).ok(), opens.then(values), "{keys:?} {name}");
            assert_eq!(vault.is_current(&sealed), is_current, "{keys:?}");
        }
        let mut changed = sealed.clone();
        changed[ID_BYTES + NONCE_BYTES] ^= 1;
        assert!(vault(&["a"]).open_values("m/s", &changed).is_err());
    }

    #[test]
    fn key_is_made_once_and_for_the_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings { data_dir: directory.path().join("data"), ..Settings::default() };
        let sealed = SecretVault::open(&settings, false).unwrap().seal("m/s", &values()).unwrap();
        assert_eq!(SecretVault::open(&settings, false).unwrap().open_values("m/s", &sealed), Ok(values()));
        let shared = SecretVault::open(&settings, true).unwrap().seal("m/s", &values()).unwrap_err();
        assert!(shared.to_string().contains("hosts.secret_keys"), "{shared}");
        let files = fs::read_dir(&settings.data_dir).unwrap().count();
        assert_eq!(files, 1, "no draft is left");
        let mut named = Settings::default();
        let file = settings.data_dir.join(KEY_FILE).display().to_string();
        named.hosts.secret_keys = vec![format!("{FILE}{file}")].into();
        assert_eq!(SecretVault::open(&named, true).unwrap().open_values("m/s", &sealed), Ok(values()));
        let mode = fs::metadata(settings.data_dir.join(KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
