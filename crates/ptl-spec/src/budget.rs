//! Bounds on what small parts come to, where each of them may be listed many times.

use tensor_core::{Error, Result};

/// What is left of a limit.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    limit: u64,
    what: &'static str,
    field: &'static str,
}

impl Budget {
    pub(crate) const fn new(what: &'static str, limit: u64, field: &'static str) -> Self {
        Self { left: limit, limit, what, field }
    }

    /// Takes a part of it.
    pub(crate) fn take(&mut self, amount: usize) -> Result<()> {
        let found = self.limit.saturating_sub(self.left).saturating_add(amount as u64);
        let (what, limit, field) = (self.what, self.limit, self.field);
        let over = Error::OverLimit { what, found, limit, field };
        self.left = self.left.checked_sub(amount as u64).ok_or(over)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_added_up() {
        let mut budget = Budget::new("names in bytes", 10, "name_bytes");
        budget.take(7).unwrap();
        budget.take(3).unwrap();
        assert_eq!(
            budget.take(2).unwrap_err().to_string(),
            "names in bytes is 12, over the limit of 10 (Limits::name_bytes)"
        );
    }
}
