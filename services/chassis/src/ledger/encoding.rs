//! Batches as they are on the wire: encoded for the first watch that sends one, and kept for the others.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;

/// Bytes of encoded batches that are kept for watches that have not come so far: about a second's worth when every
/// component changes. A watch that is further behind encodes anew.
const ENCODED_BYTES: usize = 32 << 20;

/// One batch on the wire, while that is kept.
#[derive(Default)]
pub(super) struct Encoding(Mutex<Option<Bytes>>);

/// The encodings that are kept: the newest ones.
#[derive(Default)]
pub(super) struct Encodings {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Oldest first, each with its size.
    encodings: VecDeque<(Arc<Encoding>, usize)>,
    bytes: usize,
}

impl Encodings {
    /// The bytes of a batch, which `encode` makes if nobody has. Who asks meanwhile waits: that takes no longer than to
    /// do the same.
    pub(super) fn get(&self, encoding: &Arc<Encoding>, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut made = encoding.0.lock();
        if let Some(bytes) = &*made {
            return bytes.clone();
        }
        let bytes = made.insert(encode()).clone();
        drop(made);
        self.kept.lock().keep(Arc::clone(encoding), bytes.len());
        bytes
    }
}

impl Kept {
    /// Keeps one more. The oldest ones make room, but the newest always is kept.
    fn keep(&mut self, encoding: Arc<Encoding>, bytes: usize) {
        self.encodings.push_back((encoding, bytes));
        self.bytes += bytes;
        while self.bytes > ENCODED_BYTES && self.encodings.len() > 1 {
            let Some((oldest, bytes)) = self.encodings.pop_front() else { break };
            oldest.0.lock().take();
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::array;

    use super::*;

    #[test]
    fn a_batch_is_encoded_once_while_there_is_room() {
        let encodings = Encodings::default();
        let batches: [Arc<Encoding>; 3] = array::from_fn(|_| Arc::default());
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
    fn what_is_larger_than_all_room_is_kept_alone() {
        let encodings = Encodings::default();
        let [small, large]: [Arc<Encoding>; 2] = array::from_fn(|_| Arc::default());
        encodings.get(&small, || vec![0; 1].into());
        encodings.get(&large, || vec![0; ENCODED_BYTES + 1].into());
        assert!(small.0.lock().is_none() && large.0.lock().is_some());
        assert_eq!(encodings.kept.lock().bytes, ENCODED_BYTES + 1);
    }
}
