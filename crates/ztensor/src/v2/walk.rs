//! Items of a manifest whose encoding was proved: nothing here can fail but by asking for another
//! type than there is.

use std::ops::Range;

/// Reads items one after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    pub(crate) const fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn head(&mut self) -> (u8, u64) {
        let Some(&initial) = self.bytes.get(self.at) else { return (SIMPLE, 0) };
        self.at = self.at.saturating_add(1);
        let (major, info) = (initial >> 5, initial & 0x1f);
        if info < 24 {
            return (major, info.into());
        }
        let width = 1_usize << (info & 3);
        let end = self.at.saturating_add(width);
        let bytes = self.bytes.get(self.at..end).unwrap_or_default();
        self.at = end;
        (major, bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    #[inline]
    fn wanted(&mut self, major: u8) -> Option<u64> {
        let initial = *self.bytes.get(self.at)?;
        (initial >> 5 == major).then(|| self.head().1)
    }

    /// Says that the next item is another than was expected.
    pub(crate) fn instead_of(&self, expected: &str) -> String {
        format!("is {}, expected {expected}", self.kind())
    }

    /// Names what the next item is.
    pub(crate) fn kind(&self) -> &'static str {
        match self.bytes.get(self.at).map(|initial| initial >> 5) {
            Some(0) => "an unsigned integer",
            Some(1) => "a negative integer",
            Some(2) => "bytes",
            Some(3) => "text",
            Some(4) => "an array",
            Some(5) => "a map",
            _ => "a float, a boolean or null",
        }
    }

    /// Enters a map; returns how many pairs it has.
    #[inline]
    pub(crate) fn map(&mut self) -> Option<u64> {
        self.wanted(5)
    }

    /// Enters an array; returns how many items it has.
    #[inline]
    pub(crate) fn array(&mut self) -> Option<u64> {
        self.wanted(4)
    }

    #[inline]
    pub(crate) fn unsigned(&mut self) -> Option<u64> {
        self.wanted(0)
    }

    /// Reads text as bytes, which are UTF-8.
    #[inline]
    pub(crate) fn text_bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.wanted(3)?).unwrap_or(usize::MAX);
        let end = self.at.saturating_add(len);
        let text = self.bytes.get(self.at..end).unwrap_or_default();
        self.at = end;
        Some(text)
    }

    #[inline]
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        self.text_bytes().map(|text| std::str::from_utf8(text).unwrap_or_default())
    }

    /// Reads a key; `None`, and past it, where it is not text.
    #[inline]
    pub(crate) fn key(&mut self) -> Option<&'a [u8]> {
        let key = self.text_bytes();
        if key.is_none() {
            self.skip();
        }
        key
    }

    /// Skips an item; returns where it is.
    pub(crate) fn skip(&mut self) -> Range<usize> {
        let start = self.at;
        let mut left = 1_u64;
        while left > 0 && self.at < self.bytes.len() {
            left = left.saturating_sub(1);
            match self.head() {
                (2 | 3, len) => {
                    let len = usize::try_from(len).unwrap_or(usize::MAX);
                    self.at = self.at.saturating_add(len);
                }
                (4, items) => left = left.saturating_add(items),
                (5, pairs) => left = left.saturating_add(pairs.saturating_mul(2)),
                _ => {}
            }
        }
        start..self.at.min(self.bytes.len())
    }
}

const SIMPLE: u8 = 7;
