use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Limit, Limits, Result};

/// What is left of a limit on a sum, shared by all threads that take from it.
///
/// Bounds what many parts come to together where each alone is within its limit.
#[derive(Debug)]
pub struct Budget {
    spent: AtomicU64,
    allowed: u64,
    what: &'static str,
    limit: Limit,
}

impl Budget {
    /// Allows `allowed` in all; errors name the sum `what` and the field that allows more.
    #[must_use]
    pub const fn new(what: &'static str, allowed: u64, limit: Limit) -> Self {
        Self { spent: AtomicU64::new(0), allowed, what, limit }
    }

    /// Allows what [`Limits::expansion`] allows to be decoded from a file of `file_len` bytes.
    #[must_use]
    pub fn expansion(what: &'static str, limits: &Limits, file_len: u64) -> Self {
        let allowed = file_len.saturating_mul(limits.expansion).max(limits.decoded_bytes);
        Self::new(what, allowed, Limit::Expansion)
    }

    /// Allows parts that are stored as they are, and may share bytes, [`Limits::expansion`] times the
    /// file in all: else a small file could ask for any amount of work.
    #[must_use]
    pub const fn sharing(what: &'static str, limits: &Limits, file_len: u64) -> Self {
        Self::new(what, file_len.saturating_mul(limits.expansion), Limit::Expansion)
    }

    /// Takes `amount`, or nothing.
    ///
    /// # Errors
    ///
    /// [`Error::OverLimit`] where less is left; it names what all would come to.
    pub fn take(&self, amount: u64) -> Result<()> {
        let add = |spent: u64| spent.checked_add(amount).filter(|sum| *sum <= self.allowed);
        let taken = self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        taken.map(drop).map_err(|spent| self.over(spent.saturating_add(amount)))
    }

    /// Notes what was not known before it was spent.
    pub fn spend(&self, amount: u64) {
        let add = |spent: u64| Some(spent.saturating_add(amount));
        // The closure never declines.
        let _ = self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Returns what is left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.allowed.saturating_sub(self.spent.load(Ordering::Relaxed))
    }

    const fn over(&self, found: u64) -> Error {
        let Self { what, allowed: limit, .. } = *self;
        Error::OverLimit { what, found, limit, field: self.limit.name() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_added_up() {
        let budget = Budget::new("names in bytes", 10, Limit::NameBytes);
        budget.take(7).unwrap();
        budget.take(3).unwrap();
        assert_eq!(
            budget.take(2).unwrap_err().to_string(),
            "names in bytes is 12, over the limit of 10 (Limits::name_bytes)"
        );
        assert_eq!(budget.left(), 0);
    }

    #[test]
    fn what_is_refused_is_not_taken() {
        let budget = Budget::new("bytes", 10, Limit::Expansion);
        budget.take(11).unwrap_err();
        budget.take(10).unwrap();
    }

    #[test]
    fn small_files_may_decode_what_one_tensor_may() {
        let limits = Limits::default().with_expansion(2).with_decoded_bytes(100);
        assert_eq!(Budget::expansion("bytes", &limits, 7).left(), 100);
        assert_eq!(Budget::expansion("bytes", &limits, 70).left(), 140);
        assert_eq!(Budget::sharing("bytes", &limits, 7).left(), 14);
    }

    #[test]
    fn sums_do_not_wrap() {
        let budget = Budget::new("bytes", u64::MAX, Limit::Expansion);
        budget.spend(u64::MAX);
        budget.take(1).unwrap_err();
    }
}
