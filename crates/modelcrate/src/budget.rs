//! How much may be read for digests and statistics.

use tensor_core::{Error, Limits, Result};

/// Bytes that may still be read. Tensors may share bytes, so that a small file could ask for any
/// amount of work.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    left: u64,
}

impl Budget {
    /// Allows so many times the length of a file, in bytes, as [`Limits::expansion`] says.
    pub(crate) fn allow(&mut self, file_len: u64) {
        let more = file_len.saturating_mul(Limits::default().expansion);
        self.left = self.left.saturating_add(more);
    }

    /// Takes the bytes of one tensor.
    ///
    /// # Errors
    ///
    /// [`Error::OverLimit`] where there are more of them than are left.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or(Error::OverLimit {
            what: "bytes of this tensor, after all before",
            found: bytes,
            limit: self.left,
            field: "expansion",
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_gone() {
        let mut budget = Budget::default();
        budget.allow(1);
        budget.take(150).unwrap();
        assert_eq!(
            budget.take(51).unwrap_err().to_string(),
            "bytes of this tensor, after all before is 51, over the limit of 50 (Limits::expansion)"
        );
        budget.take(50).unwrap();
    }
}
