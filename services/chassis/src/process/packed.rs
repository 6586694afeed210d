//! Bytes of many similar records, held small: each as its difference from one of them.
//!
//! Records of a kind mostly differ in a name, an id and some times. LZ4 with another record as its dictionary keeps
//! little more than these, and gives a record back without parsing it.

use std::{collections::VecDeque, fmt, sync::Arc};

use bytes::Bytes;
use lz4_flex::block::{compress_with_dict, decompress_into_with_dict};
use parking_lot::Mutex;

/// Part of its bytes that a record may take as a difference; one that takes more becomes the sample of later ones.
const WORTH: usize = 2;

/// Part of its bytes that a difference may take for no other sample to be tried.
const GOOD: usize = 4;

/// Times as long as a sample that a record may be. A longer one has more to say, and becomes a sample itself.
const RICHER: usize = 2;

/// Most samples of a packer: records of one kind may have a few forms, such as hosts that are new and hosts that are
/// provisioned, which resemble one another little.
const MOST_SAMPLES: usize = 4;

/// Bytes of a record that others are held as differences from.
type RecordSample = Arc<Box<[u8]>>;

/// Bytes of a record.
#[derive(Clone)]
pub struct PackedBytes {
    /// Difference from the sample; empty: the record is the sample.
    difference: Box<[u8]>,
    sample: RecordSample,
    length: u32,
}

/// Packer of similar records. It learns its samples from them.
#[derive(Debug, Default)]
pub struct SimilarBytes {
    /// The one that was of use last comes first.
    samples: Mutex<VecDeque<RecordSample>>,
}

impl SimilarBytes {
    /// Packs the bytes of a record.
    ///
    /// # Panics
    /// When they are four gigabytes or more.
    pub fn pack(&self, plain: &[u8]) -> PackedBytes {
        let length = u32::try_from(plain.len()).expect("records are of a few kilobytes");
        let samples = self.samples.lock().clone();
        let mut best: Option<(Vec<u8>, RecordSample)> = None;
        for sample in samples {
            let difference = compress_with_dict(plain, &sample);
            let is_worth = difference.len() <= plain.len() / WORTH && plain.len() / RICHER <= sample.len();
            if is_worth && best.as_ref().is_none_or(|(least, _)| difference.len() < least.len()) {
                best = Some((difference, sample));
            }
            if best.as_ref().is_some_and(|(least, _)| least.len() <= plain.len() / GOOD) {
                break;
            }
        }
        if let Some((difference, sample)) = best {
            self.put_first(&sample);
            return PackedBytes { difference: difference.into(), sample, length };
        }
        let sample = Arc::new(Box::from(plain));
        self.put_first(&sample);
        PackedBytes { difference: Box::default(), sample, length }
    }

    fn put_first(&self, sample: &RecordSample) {
        let mut samples = self.samples.lock();
        if samples.front().is_some_and(|first| Arc::ptr_eq(first, sample)) {
            return;
        }
        samples.retain(|held| !Arc::ptr_eq(held, sample));
        samples.push_front(Arc::clone(sample));
        samples.truncate(MOST_SAMPLES);
    }
}

impl PackedBytes {
    /// Returns the bytes of the record.
    pub fn unpack(&self) -> Bytes {
        let mut plain = Vec::with_capacity(self.len());
        self.append_to(&mut plain);
        plain.into()
    }

    /// Appends the bytes of the record to `plain`.
    pub fn append_to(&self, plain: &mut Vec<u8>) {
        if self.difference.is_empty() {
            return plain.extend_from_slice(&self.sample);
        }
        let from = plain.len();
        plain.resize(from + self.len(), 0);
        let unpacked = decompress_into_with_dict(&self.difference, &mut plain[from..], &self.sample);
        unpacked.expect("the difference was made from the sample that it is held with");
    }

    /// Number of bytes of the record.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Returns whether the record has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Number of bytes that the record takes, besides a sample that others share.
    pub fn held(&self) -> usize {
        if self.difference.is_empty() { self.len() } else { self.difference.len() }
    }
}

impl PartialEq for PackedBytes {
    fn eq(&self, other: &Self) -> bool {
        let is_same = Arc::ptr_eq(&self.sample, &other.sample) && self.difference == other.difference;
        is_same || (self.length == other.length && self.unpack() == other.unpack())
    }
}

impl Eq for PackedBytes {}

impl fmt::Debug for PackedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(number: u32) -> String {
        let words = ["registered", "healthy", "available", "manageable", "inspected", "powered on", "online"];
        let conditions = words.map(|word| format!(r#"{{"type":"{word}","status":"True","since":{number}}}"#));
        format!(r#"{{"name":"host-{number}","conditions":[{}]}}"#, conditions.join(","))
    }

    #[test]
    fn similar_records_take_a_fraction_of_their_bytes() {
        let similar = SimilarBytes::default();
        let plain: usize = (0..1000).map(|number| record(number).len()).sum();
        let held: usize = (0..1000).map(|number| similar.pack(record(number).as_bytes()).held()).sum();
        assert!(held < plain / 3, "{held} of {plain}");
    }

    #[test]
    fn forms_in_turn_are_all_packed() {
        let similar = SimilarBytes::default();
        let forms =
            |number| [record(number), record(number).to_uppercase(), record(number).replace('e', "~~")];
        let records: Vec<_> = (0..300).flat_map(forms).collect();
        let plain: usize = records.iter().map(String::len).sum();
        let held: usize = records.iter().map(|record| similar.pack(record.as_bytes()).held()).sum();
        assert!(held < plain / 3, "{held} of {plain}");
    }

    #[test]
    fn richer_record_becomes_the_sample() {
        let similar = SimilarBytes::default();
        let poor = similar.pack(b"{}");
        let rich = [similar.pack(record(1).as_bytes()), similar.pack(record(2).as_bytes())];
        assert_eq!(poor.unpack(), "{}");
        assert_eq!(rich[0].held(), rich[0].len());
        assert!(rich[1].held() < rich[1].len() / 2);
    }

    fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(0..4_u8, 0..300), 1..20)
    }

    proptest! {
        #[test]
        fn records_come_back_as_they_were(records in records()) {
            let similar = SimilarBytes::default();
            let packed: Vec<_> = records.iter().map(|record| similar.pack(record)).collect();
            for (packed, plain) in packed.iter().zip(&records) {
                prop_assert_eq!(&*packed.unpack(), plain.as_slice());
                prop_assert_eq!((packed.len(), packed.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert_eq!(&similar.pack(plain), packed);
            }
        }
    }
}
