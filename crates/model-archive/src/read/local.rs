//! The header in front of an entry's data, and what stands behind it.

use bytes::Bytes;
use tensor_core::{Cursor, Extent, Source};

use crate::{
    Fault, Result,
    read::{
        directory::{DESCRIPTOR, Directory, LOCAL_HEADER, Record},
        extra::Extra,
    },
};

/// Where the data of an entry is, and what is wrong with its local header.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) data: Extent,
    /// What the writer has aligned the data to, in bytes, where the header says.
    pub(crate) alignment: Option<u16>,
    /// The first field that is not as the directory says, or may be taken for something else.
    pub(crate) fault: Option<Fault>,
    /// The data, where it was read with the header.
    pub(crate) stored: Option<Bytes>,
}

impl Local {
    /// Reads the local header, and in the same go the data, where that has up to `ahead` bytes;
    /// data that does not fit before the next header is an error.
    pub(crate) fn read(
        source: &Source,
        directory: &Directory,
        index: usize,
        ahead: u64,
    ) -> Result<Self> {
        let Some(record) = directory.record(index) else {
            let fault = Fault::LocalHeader { what: "no such entry".to_owned() };
            return Err(directory.fault_at(index, fault).into());
        };
        let name = directory.name(record);
        // Most extra fields are short: one read takes header, name and extra field.
        let room = record.room_end.saturating_sub(record.header);
        let guess = LOCAL_HEADER.saturating_add(name.len() as u64).saturating_add(EXTRA);
        let ahead = Some(record.info.stored_size).filter(|&bytes| bytes <= ahead);
        let guess = guess.saturating_add(ahead.unwrap_or_default()).min(room);
        let bytes = source.read(Extent::new(record.header, guess)?, "local header")?;
        let fixed = Fixed::parse(&bytes)
            .map_err(|what| directory.fault_at(index, Fault::LocalHeader { what }))?;
        let len = LOCAL_HEADER
            .saturating_add(u64::from(fixed.name_len))
            .saturating_add(u64::from(fixed.extra_len));
        let data = Extent::new(record.header.saturating_add(len), record.info.stored_size)?;
        if data.end() > record.room_end {
            return Err(directory.overlap(index, data.end()).into());
        }
        let bytes = if len > guess {
            source.read(Extent::new(record.header, len)?, "local header")?
        } else {
            bytes
        };
        let name_extent = Extent::new(LOCAL_HEADER, fixed.name_len.into())?;
        let extra_extent = Extent::new(name_extent.end(), fixed.extra_len.into())?;
        let local_name = name_extent.slice(&bytes).unwrap_or_default();
        let extra = Extra::parse(extra_extent.slice(&bytes).unwrap_or_default());
        let mismatch = fixed.mismatch(record, name, local_name, &extra);
        let fault = mismatch.or_else(|| extra.fault(name));
        let stored = ahead.and_then(|stored| {
            let (start, stored) = (usize::try_from(len).ok()?, usize::try_from(stored).ok()?);
            let end = start.checked_add(stored).filter(|&end| end <= bytes.len())?;
            Some(bytes.slice(start..end))
        });
        Ok(Self { data, alignment: extra.alignment, fault, stored })
    }
}

/// Returns where an entry ends, its descriptor counted where it has one; `None` where that is not
/// as the directory says.
pub(crate) fn end_of(source: &Source, record: &Record, data: Extent) -> Result<Option<u64>> {
    if record.flags & DESCRIPTOR == 0 {
        return Ok(Some(data.end()));
    }
    let len = record.room_end.saturating_sub(data.end()).min(DESCRIPTOR_LEN);
    let bytes = source.read(Extent::new(data.end(), len)?, "data descriptor")?;
    let info = &record.info;
    let mut ends = Vec::new();
    // With and without signature, with sizes of 4 and of 8 bytes. Section 4.3.9.
    for signature in [&b"PK\x07\x08"[..], b""] {
        for wide in [false, true] {
            let mut expected = signature.to_vec();
            expected.extend(info.crc32.to_le_bytes());
            for size in [info.stored_size, info.size] {
                match u32::try_from(size) {
                    _ if wide => expected.extend(size.to_le_bytes()),
                    Ok(size) => expected.extend(size.to_le_bytes()),
                    Err(_) => expected.extend(u32::MAX.to_le_bytes()),
                }
            }
            if bytes.starts_with(&expected) {
                ends.push(data.end().saturating_add(expected.len() as u64));
            }
        }
    }
    // Where sizes are 0, the short form is the beginning of the long one: what follows decides.
    let exact = ends.iter().find(|&&end| end == record.room_end);
    Ok(exact.or(ends.first()).copied())
}

/// The fields of fixed length. Section 4.3.7.
struct Fixed {
    flags: u16,
    method: u16,
    crc32: u32,
    stored_size: u32,
    size: u32,
    name_len: u16,
    extra_len: u16,
}

impl Fixed {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        Self::read(&mut Cursor::new(bytes, 0)).unwrap_or_else(|error| Err(error.to_string()))
    }

    fn read(cursor: &mut Cursor<'_>) -> tensor_core::Result<Result<Self, String>> {
        let signature = cursor.take::<4>("signature")?;
        if signature != *b"PK\x03\x04" {
            let found = signature.escape_ascii();
            return Ok(Err(format!("signature is \"{found}\", expected \"PK\\x03\\x04\"")));
        }
        cursor.u16("version needed")?;
        let flags = cursor.u16("flags")?;
        let method = cursor.u16("method")?;
        cursor.u32("time")?;
        Ok(Ok(Self {
            flags,
            method,
            crc32: cursor.u32("CRC-32")?,
            stored_size: cursor.u32("stored size")?,
            size: cursor.u32("size")?,
            name_len: cursor.u16("length of the name")?,
            extra_len: cursor.u16("length of the extra field")?,
        }))
    }

    /// Returns the first field that is not as the directory says.
    fn mismatch(&self, record: &Record, name: &str, local: &[u8], extra: &Extra) -> Option<Fault> {
        let info = &record.info;
        if local != name.as_bytes() {
            let found = format!("{:?}", String::from_utf8_lossy(local));
            return Some(Fault::Mismatch { field: "name", found, expected: format!("{name:?}") });
        }
        let size = extra.size.filter(|_| self.size == u32::MAX).unwrap_or(self.size.into());
        let stored = extra.stored_size.filter(|_| self.stored_size == u32::MAX);
        let stored = stored.unwrap_or(self.stored_size.into());
        // With a descriptor the three may be zero here.
        let later = record.flags & DESCRIPTOR != 0;
        let differs = |found: u64, expected: u64| found != expected && !(later && found == 0);
        let field = if self.flags != record.flags {
            ("flags", u64::from(self.flags), u64::from(record.flags))
        } else if self.method != info.method.code() {
            ("method", self.method.into(), info.method.code().into())
        } else if differs(self.crc32.into(), info.crc32.into()) {
            ("CRC-32", self.crc32.into(), info.crc32.into())
        } else if differs(stored, info.stored_size) {
            ("stored size", stored, info.stored_size)
        } else if differs(size, info.size) {
            ("size", size, info.size)
        } else {
            return None;
        };
        let (field, found, expected) = field;
        let (found, expected) = (found.to_string(), expected.to_string());
        Some(Fault::Mismatch { field, found, expected })
    }
}

/// What is read of the extra field with the header, in bytes.
const EXTRA: u64 = 128;
/// Bytes of the longest descriptor.
const DESCRIPTOR_LEN: u64 = 24;
