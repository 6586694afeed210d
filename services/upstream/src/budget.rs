//! The memory budget for the answers of one peer. However many calls are under way, a peer with endless answers takes
//! no more memory than one large answer.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that every answer may use in any case: most answers are no larger.
const ALWAYS: u64 = 256 << 10;

/// Bytes that all answers may use together, if a single answer may use fewer.
const TOGETHER: u64 = 32 << 20;

/// Memory budget of one peer.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    /// Limit of one answer in bytes.
    largest: u64,
    /// Limit of all answers in bytes, without the part that every answer may use in any case.
    together: u64,
    taken: AtomicU64,
}

/// Part of one answer in the budget. Dropping the share releases it.
#[derive(Debug)]
pub(crate) struct BudgetShare<'a> {
    budget: &'a MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    /// Creates a budget for answers of at most `largest` bytes.
    pub(crate) fn new(largest: u64) -> Self {
        Self { largest, together: largest.max(TOGETHER), taken: AtomicU64::new(0) }
    }

    /// Creates an empty share for one more answer.
    pub(crate) fn share(&self) -> BudgetShare<'_> {
        BudgetShare { budget: self, bytes: 0 }
    }
}

impl BudgetShare<'_> {
    /// Acquires `more` bytes for the answer.
    ///
    /// # Errors
    /// The text names the limit that was exceeded.
    pub(crate) fn grow(&mut self, more: u64) -> Result<(), String> {
        let largest = self.budget.largest;
        let bytes = self.bytes.saturating_add(more);
        if bytes > largest {
            return Err(format!("the answer is larger than {largest} bytes"));
        }
        let all = self.budget.taken.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        self.bytes = bytes;
        let together = self.budget.together;
        if all > together && bytes > ALWAYS {
            return Err(format!("all answers together are larger than {together} bytes"));
        }
        Ok(())
    }
}

impl Drop for BudgetShare<'_> {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_share_the_limit_and_small_ones_always_fit() {
        let budget = MemoryBudget::new(64 << 20);
        let [mut first, mut second, mut third] = [(); 3].map(|()| budget.share());
        assert_eq!(first.grow(60 << 20), Ok(()));
        assert_eq!(first.grow(5 << 20), Err("the answer is larger than 67108864 bytes".into()));
        assert_eq!(second.grow(ALWAYS), Ok(()));
        assert_eq!(second.grow(4 << 20), Err("all answers together are larger than 67108864 bytes".into()));
        drop(first);
        assert_eq!([second.grow(1), third.grow(50 << 20)], [Ok(()), Ok(())]);
        drop((second, third));
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn many_small_answers_fit_a_small_limit() {
        let budget = MemoryBudget::new(1 << 20);
        let mut shares: Vec<_> = (0..16).map(|_| budget.share()).collect();
        assert!(shares.iter_mut().all(|share| share.grow(1 << 20).is_ok()));
    }
}
