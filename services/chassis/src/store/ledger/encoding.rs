//! Batches as they are on the wire: encoded for the first watch that sends one, and there for the others.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use parking_lot::Mutex;

/// Bytes of encoded batches that are kept for slower watches: about a second's worth when every component changes. A
/// watch that is further behind encodes again.
const ENCODED_BYTES: usize = 32 << 20;

/// Encoded form of one batch, kept as long as the batch unless room runs out.
#[derive(Default)]
pub(super) struct BatchEncoding(Mutex<Option<Bytes>>);

/// Existing encodings; the newest ones have room.
#[derive(Default)]
pub(super) struct EncodingCache {
    kept: Mutex<KeptEncodings>,
}

#[derive(Default)]
struct KeptEncodings {
    /// Oldest first, each with its size.
    encodings: VecDeque<(Weak<BatchEncoding>, usize)>,
    bytes: usize,
}

impl EncodingCache {
    /// The bytes of a batch, encoded at most once. Concurrent callers wait, which takes no longer than to encode
    /// themselves.
    pub(super) fn get(&self, encoding: &Arc<BatchEncoding>, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut made = encoding.0.lock();
        if let Some(bytes) = &*made {
            return bytes.clone();
        }
        let bytes = made.insert(encode()).clone();
        drop(made);
        self.kept.lock().keep(Arc::downgrade(encoding), bytes.len());
        bytes
    }
}

impl KeptEncodings {
    /// Keeps one more. The oldest ones make room, but the newest always is kept.
    fn keep(&mut self, encoding: Weak<BatchEncoding>, bytes: usize) {
        self.encodings.push_back((encoding, bytes));
        self.bytes += bytes;
        while self.encodings.len() > 1 && (self.bytes > ENCODED_BYTES || self.oldest_is_gone()) {
            let Some((oldest, bytes)) = self.encodings.pop_front() else { break };
            if let Some(oldest) = oldest.upgrade() {
                *oldest.0.lock() = None;
            }
            self.bytes -= bytes;
        }
    }

    /// Returns whether every watch has sent the oldest encoding.
    fn oldest_is_gone(&self) -> bool {
        self.encodings.front().is_some_and(|(oldest, _)| oldest.strong_count() == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::array;

    use super::*;

    #[test]
    fn a_batch_is_encoded_once_while_there_is_room() {
        let encodings = EncodingCache::default();
        let batches: [Arc<BatchEncoding>; 3] = array::from_fn(|_| Arc::default());
        let mut encoded = Vec::new();
        for batch in [0, 0, 1, 0, 1, 2, 1, 2, 0, 0, 2, 1] {
            encodings.get(&batches[batch], || {
                encoded.push(batch);
                vec![0; ENCODED_BYTES / 2].into()
            });
        }
        assert_eq!(encoded, [0, 1, 2, 0, 1]);
        assert_eq!(encodings.kept.lock().bytes, ENCODED_BYTES);
    }

    #[test]
    fn what_every_watch_has_sent_is_gone() {
        let encodings = EncodingCache::default();
        let [first, second]: [Arc<BatchEncoding>; 2] = array::from_fn(|_| Arc::default());
        encodings.get(&first, || vec![0; 10].into());
        drop(first);
        encodings.get(&second, || vec![0; 20].into());
        assert_eq!(encodings.kept.lock().bytes, 20);
    }

    #[test]
    fn what_is_larger_than_all_room_is_kept_alone() {
        let encodings = EncodingCache::default();
        let [small, large]: [Arc<BatchEncoding>; 2] = array::from_fn(|_| Arc::default());
        encodings.get(&small, || vec![0; 1].into());
        encodings.get(&large, || vec![0; ENCODED_BYTES + 1].into());
        assert!(small.0.lock().is_none() && large.0.lock().is_some());
        assert_eq!(encodings.kept.lock().bytes, ENCODED_BYTES + 1);
    }
}
