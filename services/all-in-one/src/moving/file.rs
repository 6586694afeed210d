//! Files of a backup.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// File of the options: one object.
pub(crate) const OPTIONS: &str = "options.json";
/// File of the session templates of all tenants: an array.
pub(crate) const TEMPLATES: &str = "sessiontemplates.json";
/// File of the components: an array.
pub(crate) const COMPONENTS: &str = "components.json";

/// Folder of the files in an archive of the BOS export procedure.
const FOLDER: &str = "v2";

/// Returns the folder of a backup's files: `directory` or its subfolder.
///
/// # Errors
/// When there is none of them.
pub(crate) fn find(directory: &Path) -> anyhow::Result<PathBuf> {
    let holds =
        |place: &PathBuf| [OPTIONS, TEMPLATES, COMPONENTS].iter().any(|file| place.join(file).exists());
    let places = [directory.join(FOLDER), directory.to_owned()];
    let found = places.into_iter().find(holds);
    found.with_context(|| {
        format!("{}: has none of {OPTIONS}, {TEMPLATES} and {COMPONENTS}", directory.display())
    })
}

/// Returns the folder of an export.
pub(crate) fn folder(directory: &Path) -> PathBuf {
    directory.join(FOLDER)
}

/// A file that gets its name when it is complete.
pub(crate) struct FileDraft {
    file: BufWriter<File>,
    partial: PathBuf,
    path: PathBuf,
    items: usize,
}

impl FileDraft {
    /// Creates the draft of the file `name` in `folder`.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub(crate) fn new(folder: &Path, name: &str) -> anyhow::Result<Self> {
        let partial = folder.join(format!(".{name}.partial"));
        let file = File::create(&partial).with_context(|| partial.display().to_string())?;
        Ok(Self { file: BufWriter::new(file), partial, path: folder.join(name), items: 0 })
    }

    /// Writes the whole content.
    ///
    /// # Errors
    /// As [`FileDraft::new`].
    pub(crate) fn write(&mut self, value: &Value) -> anyhow::Result<()> {
        self.append(&format!("{value:#}\n"))
    }

    /// Appends an item to the array.
    ///
    /// # Errors
    /// As [`FileDraft::new`].
    pub(crate) fn push(&mut self, item: &Value) -> anyhow::Result<()> {
        let before = if self.items == 0 { "[" } else { "," };
        self.items += 1;
        self.append(&format!("{before}\n  {}", format!("{item:#}").replace('\n', "\n  ")))
    }

    /// Ends the array.
    ///
    /// # Errors
    /// As [`FileDraft::new`].
    pub(crate) fn end_array(&mut self) -> anyhow::Result<()> {
        self.append(if self.items == 0 { "[]\n" } else { "\n]\n" })
    }

    fn append(&mut self, text: &str) -> anyhow::Result<()> {
        self.file.write_all(text.as_bytes()).with_context(|| self.partial.display().to_string())
    }

    /// Flushes the content to the disk.
    fn sync(&mut self) -> anyhow::Result<()> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        synced.with_context(|| self.partial.display().to_string())
    }
}

/// Removes an abandoned draft.
impl Drop for FileDraft {
    fn drop(&mut self) {
        // A published draft has no partial file; if a partial file cannot be removed, the next export replaces it.
        let _ = fs::remove_file(&self.partial);
    }
}

/// Renames every draft to its name, after all were flushed to the disk.
///
/// # Errors
/// Names the file that cannot be written; those before it are there.
pub(crate) fn publish(mut drafts: Vec<FileDraft>) -> anyhow::Result<()> {
    drafts.iter_mut().try_for_each(FileDraft::sync)?;
    for draft in &drafts {
        fs::rename(&draft.partial, &draft.path).with_context(|| draft.path.display().to_string())?;
    }
    Ok(())
}

/// Reads the object in a file.
///
/// # Errors
/// Names the file, and the line that is broken.
pub(crate) fn read_object(path: &Path) -> anyhow::Result<super::record::Object> {
    let named = || path.display().to_string();
    let text = fs::read_to_string(path).with_context(named)?;
    match serde_json::from_str(&text).with_context(named)? {
        Value::Object(members) => Ok(members),
        _ => bail!("{}: is no object", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drafts_appear_when_they_are_whole() {
        let folder = std::env::temp_dir().join(format!("reveille-file-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a directory");
        let names = || {
            let entries = fs::read_dir(&folder).expect("a directory");
            let mut names: Vec<_> = entries
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
                .collect();
            names.sort();
            names
        };
        let mut given_up = FileDraft::new(&folder, "a.json").expect("a draft");
        given_up.push(&json!(1)).expect("room");
        drop(given_up);
        assert!(names().is_empty(), "{:?}", names());

        let mut list = FileDraft::new(&folder, "list.json").expect("a draft");
        let mut none = FileDraft::new(&folder, "none.json").expect("a draft");
        let mut object = FileDraft::new(&folder, "object.json").expect("a draft");
        for item in [json!({"b": [1], "a": "line\nline"}), json!(2)] {
            list.push(&item).expect("room");
        }
        list.end_array().expect("room");
        none.end_array().expect("room");
        object.write(&json!({"b": 1, "a": {}})).expect("room");
        publish(vec![list, none, object]).expect("files");
        assert_eq!(names(), ["list.json", "none.json", "object.json"]);
        let text = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");
        assert_eq!(
            text("list.json"),
            "[\n  {\n    \"a\": \"line\\nline\",\n    \"b\": [\n      1\n    ]\n  },\n  2\n]\n"
        );
        assert_eq!(text("none.json"), "[]\n");
        assert_eq!(text("object.json"), "{\n  \"a\": {},\n  \"b\": 1\n}\n");
        fs::remove_dir_all(folder).expect("a directory");
    }
}
