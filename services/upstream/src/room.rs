//! Memory for the answers of one peer that are being read. However many calls are under way, a peer whose answers
//! do not end takes no more of it than one large answer may have.

use std::sync::atomic::{AtomicU64, Ordering};

/// What every answer may have, whatever others take: it is little, and most answers are no larger.
const ALWAYS: u64 = 256 << 10;

/// What all answers may have together, where one may have less.
const TOGETHER: u64 = 32 << 20;

/// Memory for answers.
#[derive(Debug)]
pub(crate) struct Room {
    /// For one answer; bytes.
    largest: u64,
    /// For all of them, but for what each may always have; bytes.
    together: u64,
    taken: AtomicU64,
}

/// The part of one answer. It is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    room: &'a Room,
    bytes: u64,
}

impl Room {
    /// Room for answers of at most `largest` bytes.
    pub(crate) fn new(largest: u64) -> Self {
        Self { largest, together: largest.max(TOGETHER), taken: AtomicU64::new(0) }
    }

    /// Room for one more answer, which is empty so far.
    pub(crate) fn share(&self) -> Share<'_> {
        Share { room: self, bytes: 0 }
    }
}

impl Share<'_> {
    /// Takes room for `more` bytes of the answer.
    ///
    /// # Errors
    /// Says what is too large.
    pub(crate) fn grow(&mut self, more: u64) -> Result<(), String> {
        let largest = self.room.largest;
        let bytes = self.bytes.saturating_add(more);
        if bytes > largest {
            return Err(format!("the answer is larger than {largest} bytes"));
        }
        let all = self.room.taken.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        self.bytes = bytes;
        let together = self.room.together;
        if all > together && bytes > ALWAYS {
            return Err(format!("all answers together are larger than {together} bytes"));
        }
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_share_what_one_may_have_and_small_ones_always_fit() {
        let room = Room::new(64 << 20);
        let (mut first, mut second, mut third) = (room.share(), room.share(), room.share());
        assert_eq!(first.grow(60 << 20), Ok(()));
        assert_eq!(first.grow(5 << 20), Err("the answer is larger than 67108864 bytes".into()));
        assert_eq!(second.grow(ALWAYS), Ok(()));
        assert_eq!(second.grow(4 << 20), Err("all answers together are larger than 67108864 bytes".into()));
        drop(first);
        assert_eq!([second.grow(1), third.grow(50 << 20)], [Ok(()), Ok(())]);
        drop((second, third));
        assert_eq!(room.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn many_small_answers_of_a_peer_with_a_small_limit_fit_together() {
        let room = Room::new(1 << 20);
        let mut shares: Vec<_> = (0..16).map(|_| room.share()).collect();
        assert!(shares.iter_mut().all(|share| share.grow(1 << 20).is_ok()));
    }
}
