use crate::{Error, Result};

/// An offset and a length, both in bytes, whose sum fits 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Extent {
    offset: u64,
    len: u64,
}

impl Extent {
    /// Joins an offset and a length.
    ///
    /// # Errors
    ///
    /// [`Error::ExtentOverflow`] where they add up to more than 64 bits.
    pub const fn new(offset: u64, len: u64) -> Result<Self> {
        match offset.checked_add(len) {
            Some(_) => Ok(Self { offset, len }),
            None => Err(Error::ExtentOverflow { offset, len }),
        }
    }

    /// Covers `len` bytes from the start.
    #[must_use]
    pub const fn first(len: u64) -> Self {
        Self { offset: 0, len }
    }

    /// Covers the bytes from `start` up to `end`; empty at `start` where `end` is not beyond it.
    #[must_use]
    pub const fn between(start: u64, end: u64) -> Self {
        Self { offset: start, len: end.saturating_sub(start) }
    }

    /// Returns where it starts.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// Returns its length.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.len
    }

    /// Tells whether it covers no byte.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the first offset behind it.
    #[must_use]
    pub const fn end(self) -> u64 {
        // `new` is the only way in and proves that the sum fits.
        self.offset.wrapping_add(self.len)
    }

    /// Returns it unchanged where it ends within the first `total` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] that names `what`.
    pub const fn within(self, total: u64, what: &'static str) -> Result<Self> {
        if self.end() <= total {
            return Ok(self);
        }
        Err(Error::OutOfBounds {
            what,
            offset: self.offset,
            needed: self.len,
            remaining: total.saturating_sub(self.offset),
        })
    }

    /// Returns the part of it that starts `offset` bytes in and is `len` bytes long.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] that names `what`, with offsets counted from the start of this extent.
    pub fn part(self, offset: u64, len: u64, what: &'static str) -> Result<Self> {
        let part = Self::new(offset, len)?.within(self.len, what)?;
        Ok(Self { offset: self.offset.wrapping_add(part.offset), len: part.len })
    }

    /// Tells whether the two share a byte; an empty extent shares none.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        !self.is_empty()
            && !other.is_empty()
            && self.offset < other.end()
            && other.offset < self.end()
    }

    /// Tells whether every byte of `other` lies in it; an empty extent lies in any that it touches.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.offset <= other.offset && other.end() <= self.end()
    }

    /// Tells whether it starts at a multiple of `alignment` bytes.
    #[must_use]
    pub const fn is_aligned(self, alignment: u64) -> bool {
        matches!(self.offset.checked_rem(alignment), Some(0))
    }

    /// Returns the bytes that it covers in `bytes`; `None` where it does not fit.
    #[must_use]
    pub fn slice(self, bytes: &[u8]) -> Option<&[u8]> {
        let start = usize::try_from(self.offset).ok()?;
        let end = usize::try_from(self.end()).ok()?;
        bytes.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sum_beyond_64_bits() {
        let error = Extent::new(u64::MAX, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "extent of 1 bytes at byte 18446744073709551615 ends beyond 2^64"
        );
    }

    #[test]
    fn past_the_end() {
        let error = Extent::new(32, 100).unwrap().within(32, "model data").unwrap_err();
        assert_eq!(error.to_string(), "model data at byte 32 needs 100 bytes, but 0 remain");
    }

    #[test]
    fn empty_extents_overlap_nothing() {
        let empty = Extent::new(64, 0).unwrap();
        let blob = Extent::new(0, 128).unwrap();
        assert!(!empty.overlaps(blob) && !blob.overlaps(empty) && blob.contains(empty));
    }

    proptest! {
        #[test]
        fn agrees_with_u128(a in any::<[u64; 2]>(), b in any::<[u64; 2]>(), total in any::<u64>()) {
            let end = |x: [u64; 2]| u128::from(x[0]) + u128::from(x[1]);
            prop_assert_eq!(Extent::new(a[0], a[1]).is_ok(), end(a) <= u128::from(u64::MAX));
            let (Ok(x), Ok(y)) = (Extent::new(a[0], a[1]), Extent::new(b[0], b[1])) else {
                return Ok(());
            };
            prop_assert_eq!(u128::from(x.end()), end(a));
            prop_assert_eq!(x.within(total, "x").is_ok(), end(a) <= u128::from(total));
            let shared = end(a).min(end(b)).saturating_sub(u128::from(a[0].max(b[0])));
            prop_assert_eq!(x.overlaps(y), shared > 0);
        }

        #[test]
        fn parts_stay_inside(offset in 0..99_u64, len in 0..99_u64, from in 0..99_u64, take in 0..99_u64) {
            let whole = Extent::new(offset, len).unwrap();
            match whole.part(from, take, "part") {
                Ok(part) => prop_assert!(whole.contains(part) && part.len() == take),
                Err(_) => prop_assert!(from + take > len),
            }
        }
    }
}
