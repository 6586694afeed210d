//! Files that take the place of others, all or none.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};

/// Endings of the files of a SQLite database.
const DATABASE_ENDINGS: [&str; 3] = ["", "-wal", "-shm"];

/// Ending of a file that is to take a place.
const STAGED: &str = ".restored";

/// New file, and the place that it takes.
#[derive(Debug)]
pub(super) struct FileSwap {
    /// Name under which the old file is kept.
    name: String,
    place: PathBuf,
    /// The new file beside its place; `None`: the place stays empty.
    staged: Option<PathBuf>,
}

impl FileSwap {
    /// Copies `saved` beside `place`, for the user to whom the directory belongs. Nothing is replaced yet.
    ///
    /// # Errors
    /// The copy cannot be written, or belong to that user.
    pub(super) fn stage(saved: &Path, name: String, place: PathBuf) -> anyhow::Result<Self> {
        let staged = with_ending(&place, STAGED);
        let unwritable = || format!("cannot write {}", staged.display());
        let directory = directory_of(&place);
        fs::create_dir_all(directory).with_context(unwritable)?;
        fs::copy(saved, &staged).with_context(unwritable)?;
        let swap = Self { name, place: place.clone(), staged: Some(staged.clone()) };
        let owned = give_to_owner(&staged, directory).and_then(|()| File::open(&staged)?.sync_all());
        if let Err(error) = owned {
            swap.discard();
            return Err(error).with_context(unwritable);
        }
        Ok(swap)
    }

    /// Leaves `place` empty.
    pub(super) fn empty(name: String, place: PathBuf) -> Self {
        Self { name, place, staged: None }
    }

    /// Removes the new file. A rest of it harms nothing, and is replaced by the next attempt.
    pub(super) fn discard(&self) {
        if let Some(staged) = &self.staged {
            let _ = fs::remove_file(staged);
        }
    }
}

/// Puts every new file in its place. Old ones are moved to the directory `aside`, which is made beside each of them and stays.
/// Returns these directories.
///
/// # Errors
/// A file cannot be moved. Then everything is as it was.
pub(super) fn swap_all(swaps: &[FileSwap], aside: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut moved = Vec::new();
    let outcome = swaps.iter().try_for_each(|swap| swap_one(swap, aside, &mut moved));
    if let Err(error) = outcome {
        for (from, to) in moved.into_iter().rev() {
            fs::rename(&to, &from).with_context(|| format!("{} is now {}", from.display(), to.display()))?;
        }
        return Err(error);
    }
    let mut directories: Vec<_> = swaps.iter().map(|swap| directory_of(&swap.place).to_owned()).collect();
    directories.sort_unstable();
    directories.dedup();
    directories.iter().try_for_each(|directory| File::open(directory)?.sync_all()).context("cannot sync")?;
    Ok(directories.into_iter().map(|directory| directory.join(aside)).filter(|kept| kept.exists()).collect())
}

fn swap_one(swap: &FileSwap, aside: &str, moved: &mut Vec<(PathBuf, PathBuf)>) -> anyhow::Result<()> {
    let FileSwap { name, place, staged } = swap;
    let kept = directory_of(place).join(aside);
    for ending in DATABASE_ENDINGS {
        let (old, to) = (with_ending(place, ending), with_ending(&kept.join(name), ending));
        if !old.exists() {
            continue;
        }
        make_private_directory(&kept)?;
        ensure!(!to.exists(), "{} is there already", to.display());
        move_file(old, to, moved)?;
    }
    match staged {
        Some(staged) => move_file(staged.clone(), place.clone(), moved),
        None => Ok(()),
    }
}

fn move_file(from: PathBuf, to: PathBuf, moved: &mut Vec<(PathBuf, PathBuf)>) -> anyhow::Result<()> {
    fs::rename(&from, &to).with_context(|| format!("cannot move {}", from.display()))?;
    moved.push((from, to));
    Ok(())
}

/// Makes a directory that only its user can read, if it is not there.
///
/// # Errors
/// The directory cannot be made.
pub(super) fn make_private_directory(directory: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(directory);
    made.with_context(|| format!("cannot create {}", directory.display()))
}

/// Gives a file to the user and group of `directory`: whoever restores may be another user than that of the parts.
fn give_to_owner(file: &Path, directory: &Path) -> io::Result<()> {
    let (owner, own) = (fs::metadata(directory)?, fs::metadata(file)?);
    match (owner.uid(), owner.gid()) == (own.uid(), own.gid()) {
        true => Ok(()),
        false => chown(file, Some(owner.uid()), Some(owner.gid())),
    }
}

fn directory_of(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_take_their_places_or_none_does() {
        let directory = tempfile::tempdir().unwrap();
        let [saved, data, fast] = ["saved", "data", "fast"].map(|name| directory.path().join(name));
        for made in [&saved, &data, &fast] {
            fs::create_dir(made).unwrap();
        }
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        fs::write(saved.join("a"), "new a").unwrap();
        fs::write(saved.join("b"), "new b").unwrap();
        // Two databases with the same file name.
        for place in [&data, &fast] {
            fs::write(place.join("data.sqlite"), format!("old {}", place.display())).unwrap();
            fs::write(place.join("data.sqlite-wal"), "log").unwrap();
        }
        fs::write(data.join("unknown.sqlite"), "of no backup").unwrap();
        let staged = || {
            vec![
                FileSwap::stage(&saved.join("a"), "a.sqlite".into(), data.join("data.sqlite")).unwrap(),
                FileSwap::stage(&saved.join("b"), "b.sqlite".into(), fast.join("data.sqlite")).unwrap(),
                FileSwap::empty("c.sqlite".into(), data.join("unknown.sqlite")),
            ]
        };
        let swaps = staged();
        assert!(read(&data.join("data.sqlite")).starts_with("old"), "staging replaces nothing");
        // The last one cannot be moved.
        fs::create_dir_all(data.join("aside-1/c.sqlite")).unwrap();
        assert!(swap_all(&swaps, "aside-1").is_err());
        for place in [&data, &fast] {
            assert!(read(&place.join("data.sqlite")).starts_with("old"));
            assert_eq!(read(&place.join("data.sqlite-wal")), "log");
        }
        let kept = swap_all(&staged(), "aside-2").unwrap();
        assert_eq!(kept, [data.join("aside-2"), fast.join("aside-2")]);
        assert_eq!([read(&data.join("data.sqlite")), read(&fast.join("data.sqlite"))], ["new a", "new b"]);
        assert!(!data.join("data.sqlite-wal").exists() && !data.join("unknown.sqlite").exists());
        assert_eq!(read(&data.join("aside-2/a.sqlite-wal")), "log");
        assert_eq!(read(&data.join("aside-2/c.sqlite")), "of no backup");
        assert_eq!(read(&fast.join("aside-2/b.sqlite")), format!("old {}", fast.display()));
        let mut left: Vec<_> = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["aside-1", "aside-2", "data.sqlite"]);
    }
}
