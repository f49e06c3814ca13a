//! The records of an archive, in the order in which they stand in it. The numbers of sections are
//! those of the ZIP application note.

use tensor_core::CursorMut;

use crate::{Kind, Method, local::ALIGNMENT};

/// What the records of one entry say.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) method: Method,
    pub(crate) sums: Sums,
    /// Where the local header starts, in bytes from the start of the archive.
    pub(crate) offset: u64,
    pub(crate) sums_place: SumsPlace,
}

/// What is known of an entry once all of it went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Of the content.
    pub(crate) crc32: u32,
    /// Bytes of the content.
    pub(crate) size: u64,
    /// Bytes in the archive.
    pub(crate) stored_size: u64,
}

impl Sums {
    fn is_large(self) -> bool {
        self.size.max(self.stored_size) >= MARK_32.into()
    }
}

/// Where the sums of an entry stand, other than in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumsPlace {
    /// In the local header.
    Local,
    /// In a data descriptor whose sizes have 4 bytes.
    Descriptor,
    /// In a data descriptor whose sizes have 8 bytes, which the local header says by a zip64 field.
    LargeDescriptor,
}

impl Header {
    /// Returns the local header (4.3.7), which is as long as it takes for the data behind it to
    /// start at a multiple of `alignment`.
    ///
    /// ```text
    /// 50 4b 03 04 · needed u16 · flags u16 · method u16 · time u16 · date u16
    /// crc32 u32 · stored size u32 · size u32 · name length u16 · extra length u16
    /// name · zip64 field · alignment field
    /// ```
    pub(crate) fn local(&self, alignment: u32) -> Vec<u8> {
        let mut extra = CursorMut::default();
        let (small, zip64) = self.local_sums();
        if let Some(Sums { size, stored_size, .. }) = zip64 {
            extra.u16(ZIP64).u16(16).u64(size).u64(stored_size);
        }
        let mut extra = extra.into_bytes();
        let before = [LOCAL_LEN, self.name.len() as u64, extra.len() as u64];
        let data = before.iter().fold(self.offset, |sum, len| sum.saturating_add(*len));
        extra.extend(padding(data, alignment));
        let mut header = CursorMut::default();
        header.bytes(b"PK\x03\x04");
        self.common(&mut header, small, &extra);
        header.bytes(self.name.as_bytes()).bytes(&extra);
        header.into_bytes()
    }

    /// Returns what the fields and the zip64 field of the local header say.
    fn local_sums(&self) -> (Sums, Option<Sums>) {
        let marks = Sums { size: MARK_32.into(), stored_size: MARK_32.into(), ..self.sums };
        match self.sums_place {
            SumsPlace::Local if self.sums.is_large() => (marks, Some(self.sums)),
            SumsPlace::Local => (self.sums, None),
            SumsPlace::Descriptor => (Sums::default(), None),
            SumsPlace::LargeDescriptor => (Sums { crc32: 0, ..marks }, Some(Sums::default())),
        }
    }

    /// Returns the data descriptor (4.3.9), which is empty where there is none.
    ///
    /// ```text
    /// 50 4b 07 08 · crc32 u32 · stored size u32 or u64 · size u32 or u64
    /// ```
    pub(crate) fn descriptor(&self) -> Vec<u8> {
        let Sums { crc32, size, stored_size } = self.sums;
        let mut descriptor = CursorMut::default();
        match self.sums_place {
            SumsPlace::Local => {}
            SumsPlace::Descriptor => {
                let (stored_size, size) = (saturated(stored_size), saturated(size));
                descriptor.bytes(DESCRIPTOR).u32(crc32).u32(stored_size).u32(size);
            }
            SumsPlace::LargeDescriptor => {
                descriptor.bytes(DESCRIPTOR).u32(crc32).u64(stored_size).u64(size);
            }
        }
        descriptor.into_bytes()
    }

    /// Tells whether the data descriptor can hold the sizes.
    pub(crate) fn fits(&self) -> bool {
        self.sums_place != SumsPlace::Descriptor || !self.sums.is_large()
    }

    /// Returns the record of the directory (4.3.12).
    ///
    /// ```text
    /// 50 4b 01 02 · made by u16 · needed u16 · flags u16 · method u16 · time u16 · date u16
    /// crc32 u32 · stored size u32 · size u32 · name length u16 · extra length u16
    /// comment length u16 · disk u16 · internal u16 · external u32 · offset u32
    /// name · zip64 field
    /// ```
    pub(crate) fn record(&self) -> Vec<u8> {
        let Sums { size, stored_size, .. } = self.sums;
        let large = [size, stored_size, self.offset].map(|value| (value >= MARK_32.into(), value));
        let mut values = CursorMut::default();
        for (_, value) in large.iter().filter(|(is_large, _)| *is_large) {
            values.u64(*value);
        }
        let values = values.into_bytes();
        let mut extra = CursorMut::default();
        if !values.is_empty() {
            extra.u16(ZIP64).u16(length(&values)).bytes(&values);
        }
        let extra = extra.into_bytes();
        let mut record = CursorMut::default();
        record.bytes(b"PK\x01\x02").u16(MADE_BY);
        self.common(&mut record, self.sums, &extra);
        record.u16(0).u16(0).u16(0).u32(self.external()).u32(saturated(self.offset));
        record.bytes(self.name.as_bytes()).bytes(&extra);
        record.into_bytes()
    }

    /// Appends what the local header and the directory both say.
    fn common(&self, header: &mut CursorMut, sums: Sums, extra: &[u8]) {
        header.u16(self.needed()).u16(self.flags()).u16(self.method.code());
        header.u16(TIME).u16(DATE).u32(sums.crc32);
        header.u32(saturated(sums.stored_size)).u32(saturated(sums.size));
        header.u16(length(self.name.as_bytes())).u16(length(extra));
    }

    /// Returns the version of the note that a reader has to know (4.4.3), times ten.
    fn needed(&self) -> u16 {
        let for_method = match (self.method, self.kind) {
            // Info-ZIP's unzip 6.0 and Python's zipfile 3.11 list such entries all the same.
            (Method::Zstd, _) => 63,
            (Method::Deflate, _) | (Method::Stored, Kind::Folder) => 20,
            (Method::Stored, _) => 10,
        };
        let is_zip64 = self.sums.is_large()
            || self.offset >= MARK_32.into()
            || self.sums_place == SumsPlace::LargeDescriptor;
        if is_zip64 { for_method.max(45) } else { for_method }
    }

    /// Returns the flags (4.4.4): sums behind the data, and a name in UTF-8.
    fn flags(&self) -> u16 {
        let descriptor = if self.sums_place == SumsPlace::Local { 0 } else { 1 << 3 };
        let utf8 = if self.name.is_ascii() { 0 } else { 1 << 11 };
        descriptor | utf8
    }

    /// Returns the mode that Unix gives such a file, and the mark that DOS gives a folder (4.4.15).
    const fn external(&self) -> u32 {
        match self.kind {
            Kind::File => 0o100_644 << 16,
            Kind::Folder => 0o040_755 << 16 | 1 << 4,
            Kind::Symlink => 0o120_777 << 16,
        }
    }
}

/// Returns an alignment field (0xa11e: the alignment, then zeros) that is as long as it takes for
/// what follows byte `offset` to start at a multiple of `alignment`; none where it does already.
fn padding(offset: u64, alignment: u32) -> Vec<u8> {
    let aligned = |offset: u64| offset.checked_next_multiple_of(alignment.into());
    if aligned(offset) == Some(offset) {
        return Vec::new();
    }
    let start = offset.saturating_add(ALIGNMENT_LEN);
    // At the very end of 64 bits nothing can be aligned, nor written.
    let zeros = aligned(start).unwrap_or(start).saturating_sub(start);
    let zeros = vec![0; usize::try_from(zeros).unwrap_or_default()];
    let mut field = CursorMut::default();
    let alignment = u16::try_from(alignment).unwrap_or_default();
    field.u16(ALIGNMENT).u16(length(&zeros).saturating_add(2)).u16(alignment).bytes(&zeros);
    field.into_bytes()
}

/// Where the directory of an archive is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directory {
    pub(crate) entries: u64,
    pub(crate) len: u64,
    /// In bytes from the start of the archive.
    pub(crate) offset: u64,
}

impl Directory {
    /// Returns what stands behind the directory: the end record (4.3.16), and before it, where that
    /// cannot hold the numbers, the zip64 end record (4.3.14) and its locator (4.3.15).
    ///
    /// ```text
    /// 50 4b 06 06 · length of the rest u64 · made by u16 · needed u16 · disk u32 · disk u32
    /// entries u64 · entries u64 · length u64 · offset u64
    /// 50 4b 06 07 · disk u32 · offset of the record above u64 · disks u32
    /// 50 4b 05 06 · disk u16 · disk u16 · entries u16 · entries u16 · length u32 · offset u32
    /// comment length u16
    /// ```
    pub(crate) fn end(self) -> Vec<u8> {
        let Self { entries, len, offset } = self;
        let mut end = CursorMut::default();
        if entries >= MARK_16.into() || len.max(offset) >= MARK_32.into() {
            end.bytes(b"PK\x06\x06").u64(44).u16(MADE_BY).u16(45).u32(0).u32(0);
            end.u64(entries).u64(entries).u64(len).u64(offset);
            end.bytes(b"PK\x06\x07").u32(0).u64(offset.saturating_add(len)).u32(1);
        }
        let entries = u16::try_from(entries).unwrap_or(MARK_16);
        end.bytes(b"PK\x05\x06").u16(0).u16(0).u16(entries).u16(entries);
        end.u32(saturated(len)).u32(saturated(offset)).u16(0);
        end.into_bytes()
    }
}

/// Returns a value as a field of 32 bits holds it, with the mark that it is in a zip64 record.
fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(MARK_32)
}

/// Returns the length of a name or an extra field, both of which are proved to be short.
fn length(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX)
}

const LOCAL_LEN: u64 = 30;
/// Of an alignment field without zeros.
const ALIGNMENT_LEN: u64 = 6;
const DESCRIPTOR: &[u8] = b"PK\x07\x08";
/// Unix, version 6.3 of the note, whatever the machine (4.4.2).
const MADE_BY: u16 = 3 << 8 | 63;
/// Midnight (4.4.6).
const TIME: u16 = 0;
/// The first of January 1980 (4.4.6).
const DATE: u16 = 1 << 5 | 1;
/// Stands where the value is in a zip64 record (4.4.1.4).
const MARK_16: u16 = 0xffff;
/// Stands where the value is in a zip64 field or record (4.4.1.4).
pub(crate) const MARK_32: u32 = 0xffff_ffff;
/// Id of the extra field for large sizes and offsets (4.5.3).
const ZIP64: u16 = 0x0001;
