//! JSON arrays of any length, read item by item.

use std::{fmt, fs::File, io::BufReader, marker::PhantomData, path::Path};

use anyhow::Context as _;
use serde::{
    Deserialize, Deserializer as _,
    de::{Error, IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Deserializer, Value};
use tokio::{sync::mpsc, task::JoinHandle};

/// Items that are read, compared and written together: small enough that three batches of large records take little
/// memory, large enough that one request per batch costs little time.
pub(crate) const BATCH: usize = 500;

/// Item with its index in the array.
pub(crate) type Item = (usize, Value);

/// Checks that a file holds one well-formed array.
///
/// # Errors
/// Names the file, and the line that is broken.
pub(crate) fn check(file: &Path) -> anyhow::Result<()> {
    read(file, |_: usize, _: IgnoredAny| true)
}

/// Returns the items of the array in a file, in batches, and the task that reads them. At most one batch is buffered,
/// so the file may be larger than memory.
pub(crate) fn batches(file: &Path) -> (mpsc::Receiver<Vec<Item>>, JoinHandle<anyhow::Result<()>>) {
    let (sender, receiver) = mpsc::channel(1);
    let file = file.to_owned();
    let task = tokio::task::spawn_blocking(move || {
        let mut batch = Vec::with_capacity(BATCH);
        // The receiver is gone if the import has failed; the import's own error counts.
        let send = |batch| sender.blocking_send(batch).is_ok();
        read(&file, |index, value| {
            batch.push((index, value));
            batch.len() < BATCH || send(std::mem::take(&mut batch))
        })?;
        send(batch);
        Ok(())
    });
    (receiver, task)
}

/// Passes every item to `take`. A false result of `take` is an error.
fn read<T>(file: &Path, take: impl FnMut(usize, T) -> bool) -> anyhow::Result<()>
where
    T: for<'de> Deserialize<'de>,
{
    let named = || file.display().to_string();
    let mut reader = Deserializer::from_reader(BufReader::new(File::open(file).with_context(named)?));
    reader.deserialize_seq(ArrayVisitor { take, item: PhantomData }).with_context(named)?;
    reader.end().with_context(named)
}

struct ArrayVisitor<F, T> {
    take: F,
    item: PhantomData<T>,
}

impl<'de, F, T> Visitor<'de> for ArrayVisitor<F, T>
where
    F: FnMut(usize, T) -> bool,
    T: Deserialize<'de>,
{
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(item) = items.next_element()? {
            if !(self.take)(index, item) {
                return Err(A::Error::custom("nobody reads on"));
            }
            index += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file(name: &str, text: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("reveille-array-{}-{name}", std::process::id()));
        File::create(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .expect("a writable directory");
        path
    }

    #[tokio::test]
    async fn long_arrays_come_in_batches() {
        let items: Vec<_> = (0..BATCH * 2 + 1).map(|number| number.to_string()).collect();
        let path = file("long", &format!("[{}]", items.join(",")));
        let (mut receiver, task) = batches(&path);
        let mut sizes = Vec::new();
        let mut next = 0;
        while let Some(batch) = receiver.recv().await {
            sizes.push(batch.len());
            for (index, value) in batch {
                assert_eq!((index, value), (next, Value::from(next)));
                next += 1;
            }
        }
        task.await.expect("a task that ends").expect("a readable file");
        std::fs::remove_file(path).expect("a file");
        assert_eq!(sizes, [BATCH, BATCH, 1], "the last batch may be short, even empty");
    }

    #[test]
    fn broken_files_are_named_with_the_line() {
        for (text, told) in [
            ("[]", ""),
            (" [1, {\"a\": [null]}]\n", ""),
            ("{}", "invalid type: map, expected an array at line 1 column 1"),
            ("[1,\n2", "EOF while parsing a list at line 2 column 1"),
            ("[1]\n]", "trailing characters at line 2 column 1"),
            ("", "EOF while parsing a value at line 1 column 0"),
        ] {
            let path = file("broken", text);
            let error = check(&path).err().map(|error| format!("{error:#}")).unwrap_or_default();
            std::fs::remove_file(&path).expect("a file");
            let expected =
                if told.is_empty() { String::new() } else { format!("{}: {told}", path.display()) };
            assert_eq!(error, expected, "{text}");
        }
    }
}
