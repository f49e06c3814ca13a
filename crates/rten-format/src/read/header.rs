//! The container of version 2: a header of 32 bytes that says where the other parts are. Format
//! text: "Header".

use tensor_core::{Cursor, CursorMut, Extent, Source};

use crate::{Error, Fault, Result};

/// Which of the two versions of the format a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// The file is the model data, and nothing else.
    V1,
    /// A header says where the model data and the tensor data are.
    V2,
}

/// The header of a file of version 2.
///
/// ```text
/// 0   magic               "RTEN"
/// 4   version             u32, 2
/// 8   model data offset   u64, from the start of the file
/// 16  model data length   u64, bytes
/// 24  tensor data offset  u64, from the start of the file
/// ```
///
/// The parts may stand in any order, and nothing bounds the tensor data but the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where the model data is, in bytes from the start of the file.
    pub model_data: Extent,
    /// Where the tensor data starts, in bytes from the start of the file.
    pub tensor_data_offset: u64,
}

impl Header {
    /// Bytes of the header.
    pub const LEN: u64 = 32;

    /// Where the header says where the model data is, in 16 bytes.
    pub(crate) const MODEL_DATA: u64 = 8;

    /// Reads the first bytes of a file that is `file_len` bytes long.
    ///
    /// Fields are checked one after another, as RTen does, so that both name the same fault.
    ///
    /// # Errors
    ///
    /// [`Error::BadMagic`] where the file is none of version 2; [`Error::UnsupportedVersion`];
    /// [`Error::SegmentOffset`] and [`Error::SegmentLength`] where a part does not lie between the
    /// header and the end of the file; [`Error::Core`] where the header is cut off.
    pub fn parse(bytes: &[u8], file_len: u64) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, 0);
        let found = cursor.take("magic")?;
        if found != MAGIC {
            return Err(Error::BadMagic { found });
        }
        let found = cursor.u32("version")?;
        if found != VERSION {
            return Err(Error::UnsupportedVersion { found });
        }
        let offset = segment_offset(&mut cursor, "model data offset", file_len)?;
        let (at, len) = (cursor.offset(), cursor.u64("model data length")?);
        let room = file_len.saturating_sub(offset);
        if len > room {
            return Err(Error::SegmentLength { at, found: len, offset, room });
        }
        let model_data = Extent::new(offset, len)?;
        let tensor_data_offset = segment_offset(&mut cursor, "tensor data offset", file_len)?;
        Ok(Self { model_data, tensor_data_offset })
    }

    /// Returns where a part of the tensor data is, in bytes from the start of a file of `file_len`
    /// bytes. Nothing but the end of the file bounds it.
    pub(crate) fn tensor(
        &self,
        data_offset: u64,
        len: u64,
        file_len: u64,
    ) -> Result<Extent, Fault> {
        let tensor_data_offset = self.tensor_data_offset;
        let extent = tensor_data_offset.checked_add(data_offset);
        let extent = extent.and_then(|offset| Extent::new(offset, len).ok());
        let inside = extent.filter(|extent| extent.end() <= file_len);
        inside.ok_or(Fault::OutOfBounds { data_offset, len, tensor_data_offset, file_len })
    }

    /// Returns the bytes that [`parse`](Self::parse) reads as this header.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = CursorMut::default();
        out.bytes(&MAGIC).u32(VERSION);
        out.u64(self.model_data.offset()).u64(self.model_data.len());
        out.u64(self.tensor_data_offset);
        out.into_bytes()
    }

    /// Reads the header of a file; `None` where it is one of version 1.
    ///
    /// Version 1 has no magic: it starts with the offset of the root table, a `u32`. Where that
    /// cannot be one, nothing of the file is read that could be gigabytes of something else.
    pub(crate) fn read(source: &Source) -> Result<Option<Self>> {
        let bytes = source.read(Extent::first(source.len().min(Self::LEN)), "header")?;
        let start: [u8; 4] = Cursor::new(&bytes, 0).take("magic or root offset")?;
        if start == MAGIC {
            return Self::parse(&bytes, source.len()).map(Some);
        }
        let root = u64::from(u32::from_le_bytes(start));
        let last = source.len().saturating_sub(4);
        if root < 4 || root > last || !root.is_multiple_of(4) {
            return Err(Error::NotRten { found: start, last });
        }
        Ok(None)
    }
}

/// Reads where a part starts: behind the header and not behind the end of the file.
fn segment_offset(cursor: &mut Cursor<'_>, field: &'static str, file_len: u64) -> Result<u64> {
    let (at, found) = (cursor.offset(), cursor.u64(field)?);
    if found < Header::LEN || found > file_len {
        return Err(Error::SegmentOffset { field, at, found, file_len });
    }
    Ok(found)
}

pub(crate) const MAGIC: [u8; 4] = *b"RTEN";

/// The only version that has a header.
const VERSION: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header { model_data: Extent::new(32, 100).unwrap(), tensor_data_offset: 192 }
    }

    fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut header = header().to_bytes();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        header
    }

    #[track_caller]
    fn rejects(bytes: &[u8], message: &str) {
        let error = Header::parse(bytes, 200).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn reads_back_what_was_written() {
        let bytes = header().to_bytes();
        assert_eq!(bytes.len() as u64, Header::LEN);
        assert_eq!(Header::parse(&bytes, 200).unwrap(), header());
    }

    #[test]
    fn parts_may_be_empty_at_the_end() {
        let empty = Header { model_data: Extent::new(200, 0).unwrap(), tensor_data_offset: 200 };
        assert_eq!(Header::parse(&empty.to_bytes(), 200).unwrap(), empty);
    }

    #[test]
    fn other_magic() {
        rejects(&with(0, b"RTEM"), "magic at byte 0 is \"RTEM\", expected \"RTEN\"");
    }

    #[test]
    fn other_version() {
        rejects(&with(4, &[1]), "version at byte 4 is 1, expected 2");
        rejects(&with(4, &[3, 0, 0, 1]), "version at byte 4 is 16777219, expected 2");
    }

    #[test]
    fn model_data_inside_the_header() {
        rejects(
            &with(8, &[31]),
            "model data offset at byte 8 is 31, expected 32 to 200, where the file ends",
        );
    }

    #[test]
    fn model_data_behind_the_end() {
        rejects(
            &with(8, &(u64::MAX - 3).to_le_bytes()),
            "model data offset at byte 8 is 18446744073709551612, expected 32 to 200, where the \
             file ends",
        );
    }

    #[test]
    fn model_data_past_the_end() {
        rejects(
            &with(16, &169_u64.to_le_bytes()),
            "model data length at byte 16 is 169 bytes, but 168 remain from byte 32",
        );
        rejects(
            &with(16, &[0xff; 8]),
            "model data length at byte 16 is 18446744073709551615 bytes, but 168 remain from byte \
             32",
        );
    }

    #[test]
    fn tensor_data_outside() {
        for found in [0, 31, 201, u64::MAX] {
            rejects(
                &with(24, &found.to_le_bytes()),
                &format!(
                    "tensor data offset at byte 24 is {found}, expected 32 to 200, where the file \
                     ends"
                ),
            );
        }
    }

    #[test]
    fn first_fault_is_named() {
        let mut bytes = with(4, &[9]);
        bytes.truncate(10);
        rejects(&bytes, "version at byte 4 is 9, expected 2");
        bytes[4] = 2;
        rejects(&bytes, "model data offset at byte 8 needs 8 bytes, but 2 remain");
    }

    #[test]
    fn every_truncation() {
        let bytes = header().to_bytes();
        test_support::truncations(&bytes, |bytes| {
            let error = Header::parse(bytes, 200).unwrap_err();
            assert!(matches!(error, Error::Core(_)), "{error}");
        });
    }

    #[test]
    fn file_without_magic_is_version_1() {
        let read = |bytes: &'static [u8]| Header::read(&Source::from_bytes(bytes));
        assert_eq!(read(&[4, 0, 0, 0, 0, 0, 0, 0]).unwrap(), None);
        for (bytes, message) in [
            (&b""[..], "magic or root offset at byte 0 needs 4 bytes, but 0 remain"),
            (b"RTE", "magic or root offset at byte 0 needs 4 bytes, but 3 remain"),
            (
                b"\x08\0\0\0\0\0\0\0",
                "first 4 bytes are \"\\x08\\x00\\x00\\x00\", expected \"RTEN\" or, in version 1, \
                 the offset of the root table: a multiple of 4 up to 4",
            ),
            (
                b"PK\x03\x04PK\x03\x04",
                "first 4 bytes are \"PK\\x03\\x04\", expected \"RTEN\" or, in version 1, the \
                 offset of the root table: a multiple of 4 up to 4",
            ),
        ] {
            assert_eq!(read(bytes).unwrap_err().to_string(), message);
        }
    }
}
