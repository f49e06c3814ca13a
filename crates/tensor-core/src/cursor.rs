//! Little-endian fields of a fixed structure: a reader that names the field it could not read, and
//! its writing twin.

use crate::{Error, Extent, Result};

/// Reads little-endian fields one after another.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Cursor<'a> {
    /// Starts at the first of `bytes`, which lies `offset` bytes from the start of the file.
    ///
    /// The offset serves the error messages only.
    #[must_use]
    pub const fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { rest: bytes, offset }
    }

    /// Returns where the next field starts, in bytes from the start of the file.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the bytes that have not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `N` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] that names `field`, here and in every method below.
    pub fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.short(field, N as u64));
        };
        self.advance(rest, N as u64);
        Ok(*taken)
    }

    /// Reads the next `len` bytes without a copy.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] that names `field`.
    pub fn bytes(&mut self, len: u64, field: &'static str) -> Result<&'a [u8]> {
        let split = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let Some((taken, rest)) = split else {
            return Err(self.short(field, len));
        };
        self.advance(rest, len);
        Ok(taken)
    }

    /// Reads an offset and a length, both `u64`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] that names `field`; [`Error::ExtentOverflow`].
    pub fn extent(&mut self, field: &'static str) -> Result<Extent> {
        Extent::new(self.u64(field)?, self.u64(field)?)
    }

    fn short(&self, what: &'static str, needed: u64) -> Error {
        Error::OutOfBounds { what, offset: self.offset, needed, remaining: self.rest.len() as u64 }
    }

    fn advance(&mut self, rest: &'a [u8], taken: u64) {
        self.rest = rest;
        self.offset = self.offset.saturating_add(taken);
    }
}

macro_rules! little_endian {
    ($($name:ident),*) => {
        impl Cursor<'_> {
            $(
                #[doc = concat!("Reads a little-endian `", stringify!($name), "`.")]
                ///
                /// # Errors
                ///
                /// [`Error::OutOfBounds`] that names `field`.
                pub fn $name(&mut self, field: &'static str) -> Result<$name> {
                    Ok($name::from_le_bytes(self.take(field)?))
                }
            )*
        }

        impl CursorMut {
            $(
                #[doc = concat!("Appends a little-endian `", stringify!($name), "`.")]
                pub fn $name(&mut self, value: $name) -> &mut Self {
                    self.bytes(&value.to_le_bytes())
                }
            )*
        }
    };
}

little_endian!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

/// Appends little-endian fields one after another.
#[derive(Clone, Debug, Default)]
pub struct CursorMut {
    bytes: Vec<u8>,
}

impl CursorMut {
    /// Appends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Returns what was appended.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_was_written() {
        let mut out = CursorMut::default();
        out.u16(7).i64(-9).f32(1.5).bytes(b"abc").u64(64).u64(8);
        let bytes = out.into_bytes();
        let mut cursor = Cursor::new(&bytes, 100);
        assert_eq!(cursor.u16("a").unwrap(), 7);
        assert_eq!(cursor.i64("b").unwrap(), -9);
        assert_eq!(cursor.f32("c").unwrap().to_bits(), 1.5_f32.to_bits());
        assert_eq!(cursor.bytes(3, "d").unwrap(), b"abc");
        assert_eq!(cursor.extent("e").unwrap(), Extent::new(64, 8).unwrap());
        assert_eq!((cursor.offset(), cursor.rest().len()), (133, 0));
    }

    #[test]
    fn the_missing_field_is_named() {
        let mut cursor = Cursor::new(&[1, 2, 3], 8);
        assert_eq!(cursor.u8("kind").unwrap(), 1);
        let error = cursor.u32("version").unwrap_err();
        assert_eq!(error.to_string(), "version at byte 9 needs 4 bytes, but 2 remain");
        assert_eq!(error.at().offset, Some(9));
        let error = cursor.bytes(u64::MAX, "name").unwrap_err();
        assert_eq!(
            error.to_string(),
            "name at byte 9 needs 18446744073709551615 bytes, but 2 remain"
        );
    }
}
