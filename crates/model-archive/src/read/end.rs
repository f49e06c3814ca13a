//! The records at the end of an archive, which say where its directory is.

use bytes::Bytes;
use memchr::memmem;
use tensor_core::{Cursor, Extent, Limit, Limits, Source};

use crate::{Error, Fault, FaultAt, Result};

/// What the end records say, compared with each other and with the length of the file.
#[derive(Debug)]
pub(crate) struct End {
    /// Where the directory is.
    pub(crate) directory: Extent,
    /// Headers in the directory.
    pub(crate) entries: u64,
    /// Bytes before the archive that its offsets do not count.
    pub(crate) shift: u64,
    /// The bytes from the directory up to the end of the comment.
    pub(crate) tail: Bytes,
    /// Where the comment is.
    pub(crate) comment: Extent,
}

impl End {
    /// Finds the last end record that fits into the file, and reads the directory.
    ///
    /// What other readers may take for the end record is a fault. A directory that does not end
    /// where the end records start is refused: each reader looks for such a one elsewhere.
    pub(crate) fn read(
        source: &Source,
        limits: &Limits,
        faults: &mut Vec<FaultAt>,
    ) -> Result<Self> {
        let last = Last::read(source)?;
        let record = last.record()?;
        let wide = Wide::read(source, &last, &record)?;
        record.check_disks(wide.as_ref())?;
        let claims = match &wide {
            Some(wide) if record.claims.are_widened() => wide.claims,
            _ => record.claims,
        };
        limits.check(Limit::Entries, ENTRIES, claims.entries)?;
        limits.check(Limit::DirectoryBytes, BYTES, claims.bytes)?;
        if let Some(wide) = &wide
            && let Some(fault) = record.claims.mismatch(&wide.claims)
        {
            faults.push(FaultAt::archive(record.position, fault));
        }
        let end = wide.map_or(record.position, |wide| wide.position);
        let (directory, shift) = claims.locate(end)?;
        let found = last.signatures_from(directory.offset());
        if found > 1 {
            faults.push(FaultAt::archive(record.position, Fault::EndRecords { found }));
        }
        record.check_rest(source.len(), faults);
        let tail =
            last.or_read(source, Extent::between(directory.offset(), record.end()), "directory")?;
        let comment = Extent::new(record.position.saturating_add(RECORD), record.comment)?;
        Ok(Self { directory, entries: claims.entries, shift, tail, comment })
    }
}

/// Tells whether a file has the end of an archive, wherever the archive starts.
pub(crate) fn is_there(source: &Source) -> Result<bool> {
    Ok(Last::read(source)?.record().is_ok())
}

/// The bytes in which an end record with its comment can start.
struct Last {
    bytes: Bytes,
    start: u64,
    /// Where `bytes` has the signature of an end record, from the start of the file.
    signatures: Vec<u64>,
}

impl Last {
    fn read(source: &Source) -> Result<Self> {
        let longest = RECORD.saturating_add(u64::from(u16::MAX));
        let start = source.len().saturating_sub(longest);
        let bytes = source.read(Extent::between(start, source.len()), "end record")?;
        let signatures = memmem::find_iter(&bytes, &SIGNATURE);
        let signatures = signatures.map(|at| start.saturating_add(at as u64)).collect();
        Ok(Self { bytes, start, signatures })
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    /// Returns the last record that fits with its comment.
    fn record(&self) -> Result<Record> {
        let records = self.signatures.iter().rev().filter_map(|&position| {
            let index = usize::try_from(position.checked_sub(self.start)?).ok()?;
            Record::parse(self.bytes.get(index..)?, position).ok()
        });
        let fit = { records }.find(|record| record.end() <= self.end());
        fit.ok_or_else(|| {
            let text = match self.signatures.last() {
                Some(position) => format!("end record at byte {position} is cut off"),
                None => "there is no end record".to_owned(),
            };
            Error::Directory { source: text.into(), has_end: false }
        })
    }

    /// Counts what may be taken for end records from the directory on. What stands before it is
    /// data: an archive that is stored in this one has an end record of its own there.
    fn signatures_from(&self, directory: u64) -> u64 {
        self.signatures.iter().filter(|&&position| position >= directory).count() as u64
    }

    /// Returns the bytes of `extent`, read again only where they are not among these.
    fn or_read(&self, source: &Source, extent: Extent, what: &'static str) -> Result<Bytes> {
        let within = extent.offset().checked_sub(self.start).and_then(|start| {
            let end = usize::try_from(extent.end().checked_sub(self.start)?).ok()?;
            Some(usize::try_from(start).ok()?..end)
        });
        match within {
            Some(range) if range.end <= self.bytes.len() => Ok(self.bytes.slice(range)),
            _ => Ok(source.read(extent, what)?),
        }
    }
}

/// What an end record says of the directory.
#[derive(Clone, Copy, Debug)]
struct Claims {
    entries: u64,
    /// Entries on this disk.
    entries_here: u64,
    bytes: u64,
    offset: u64,
}

impl Claims {
    /// Tells whether a number stands in the zip64 record, as it has no room here. Section 4.4.1.4.
    fn are_widened(&self) -> bool {
        self.entries == u64::from(u16::MAX)
            || self.bytes == u64::from(u32::MAX)
            || self.offset == u64::from(u32::MAX)
    }

    /// Returns the first number that is not that of the zip64 record and does not point there.
    fn mismatch(&self, wide: &Self) -> Option<Fault> {
        let (short, long) = (u64::from(u16::MAX), u64::from(u32::MAX));
        [
            ("entries", self.entries, wide.entries, short),
            ("bytes of the directory", self.bytes, wide.bytes, long),
            ("start of the directory", self.offset, wide.offset, long),
        ]
        .into_iter()
        .find(|&(_, found, expected, widened)| found != expected && found != widened)
        .map(|(field, found, expected, _)| Fault::EndMismatch { field, found, expected })
    }

    /// Returns where the directory is that ends at `end`, and by how much offsets are too small.
    fn locate(&self, end: u64) -> Result<(Extent, u64)> {
        let Self { entries, bytes, offset, .. } = *self;
        let start = end.checked_sub(bytes);
        let shift = start.and_then(|start| start.checked_sub(offset));
        let (Some(start), Some(shift)) = (start, shift) else {
            return Err(malformed(format!(
                "{bytes} bytes from byte {offset} on are to end at byte {end}"
            )));
        };
        if entries.checked_mul(CENTRAL_HEADER).is_none_or(|least| least > bytes) {
            return Err(malformed(format!("{bytes} bytes are to hold {entries} headers")));
        }
        Ok((Extent::new(start, bytes)?, shift))
    }
}

/// The end record. Application note, section 4.3.16.
struct Record {
    position: u64,
    disk: u16,
    directory_disk: u16,
    claims: Claims,
    comment: u64,
}

impl Record {
    fn parse(bytes: &[u8], position: u64) -> tensor_core::Result<Self> {
        let mut cursor = Cursor::new(bytes, position);
        cursor.take::<4>("signature")?;
        let disk = cursor.u16("disk")?;
        let directory_disk = cursor.u16("disk of the directory")?;
        let claims = Claims {
            entries_here: cursor.u16("number of entries on this disk")?.into(),
            entries: cursor.u16("number of entries")?.into(),
            bytes: cursor.u32("bytes of the directory")?.into(),
            offset: cursor.u32("start of the directory")?.into(),
        };
        let comment = cursor.u16("bytes of the comment")?.into();
        Ok(Self { position, disk, directory_disk, claims, comment })
    }

    /// Returns where its comment ends.
    fn end(&self) -> u64 {
        self.position.saturating_add(RECORD).saturating_add(self.comment)
    }

    fn check_disks(&self, wide: Option<&Wide>) -> Result<()> {
        let is_one = |disk: u16| disk == 0 || wide.is_some() && disk == u16::MAX;
        let same = |claims: &Claims| claims.entries == claims.entries_here;
        if is_one(self.disk)
            && is_one(self.directory_disk)
            && same(&self.claims)
            && wide.is_none_or(|wide| wide.is_one_disk && same(&wide.claims))
        {
            return Ok(());
        }
        Err(malformed("it is split over several files".to_owned()))
    }

    fn check_rest(&self, len: u64, faults: &mut Vec<FaultAt>) {
        if self.comment > 0 {
            faults.push(FaultAt::archive(self.position, Fault::Comment { bytes: self.comment }));
        }
        let bytes = len.saturating_sub(self.end());
        if bytes > 0 {
            faults.push(FaultAt::archive(self.end(), Fault::Suffix { bytes }));
        }
    }
}

/// The zip64 end record. Application note, section 4.3.14.
struct Wide {
    position: u64,
    is_one_disk: bool,
    claims: Claims,
}

impl Wide {
    /// Reads the zip64 record where there is one; some writers put it beside an end record that
    /// does not need it.
    fn read(source: &Source, last: &Last, record: &Record) -> Result<Option<Self>> {
        let Some(position) = record.position.checked_sub(LOCATOR) else { return Ok(None) };
        let locator = last.or_read(source, Extent::new(position, LOCATOR)?, "zip64 locator")?;
        let mut cursor = Cursor::new(&locator, position);
        if cursor.take::<4>("signature")? != *b"PK\x06\x07" {
            return Ok(None);
        }
        let disk = cursor.u32("disk of the zip64 end record")?;
        let at = cursor.u64("start of the zip64 end record")?;
        let disks = cursor.u32("number of disks")?;
        // The offset does not count what stands before the archive, but where the record has
        // nothing more in it than it must, it stands right before its locator.
        for at in [at, position.saturating_sub(WIDE)] {
            if let Some(mut wide) = Self::read_at(source, last, at, position)? {
                wide.is_one_disk &= disk == 0 && disks <= 1;
                return Ok(Some(wide));
            }
        }
        if !record.claims.are_widened() {
            return Ok(None);
        }
        Err(malformed(format!("there is no zip64 end record at byte {at}")))
    }

    /// Reads the record at `position`, if one is there that ends where the locator starts.
    fn read_at(source: &Source, last: &Last, position: u64, locator: u64) -> Result<Option<Self>> {
        let Some(len) = locator.checked_sub(position).filter(|&len| len >= WIDE) else {
            return Ok(None);
        };
        let bytes = last.or_read(source, Extent::new(position, WIDE)?, "zip64 end record")?;
        let mut cursor = Cursor::new(&bytes, position);
        if cursor.take::<4>("signature")? != *b"PK\x06\x06"
            || cursor.u64("size of the record")?.checked_add(12) != Some(len)
        {
            return Ok(None);
        }
        cursor.u32("versions")?;
        let disk = cursor.u32("disk")?;
        let directory_disk = cursor.u32("disk of the directory")?;
        let claims = Claims {
            entries_here: cursor.u64("number of entries on this disk")?,
            entries: cursor.u64("number of entries")?,
            bytes: cursor.u64("bytes of the directory")?,
            offset: cursor.u64("start of the directory")?,
        };
        Ok(Some(Self { position, is_one_disk: disk == 0 && directory_disk == 0, claims }))
    }
}

fn malformed(text: String) -> Error {
    Error::Directory { source: text.into(), has_end: true }
}

// What limits are on.
pub(crate) const ENTRIES: &str = "entries of the directory";
pub(crate) const BYTES: &str = "directory in bytes";
const SIGNATURE: [u8; 4] = *b"PK\x05\x06";
// Bytes of the records without what has no fixed length. Sections 4.3.12 and 4.3.14 to 4.3.16.
const CENTRAL_HEADER: u64 = 46;
const WIDE: u64 = 56;
const LOCATOR: u64 = 20;
const RECORD: u64 = 22;
