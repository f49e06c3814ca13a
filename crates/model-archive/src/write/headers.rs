//! The records of an archive, in the order in which they stand in it. The numbers of sections are
//! those of the ZIP application note.

use tensor_core::CursorMut;

use crate::{Kind, Method, read::extra::ALIGNMENT};

/// Whose records a writer's are like, byte for byte, where the application note leaves a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// Those of this crate: checksums and sizes in the local header where they are known, and zip64
    /// records where they are needed.
    #[default]
    Plain,
    /// Those that PyTorch writes: data can be used where the file is mapped.
    ///
    /// ```text
    /// local header   without times, checksum and sizes; all data, compressed or not, starts at a
    ///                multiple of 64, behind the extra field 46 42 · length u16 · 5a…
    /// descriptor     behind all data; none where there is no data
    /// directory      without times and modes
    /// end            zip64 end record, its locator, end record, always all three
    /// ```
    PyTorch,
}

/// What the records of one entry say.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) layout: Layout,
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

    /// Returns what stands in the place of sizes that are in a zip64 field.
    fn marked(self) -> Self {
        Self { size: MARK_32.into(), stored_size: MARK_32.into(), ..self }
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
        let (small, large) = self.local_sums();
        let mut extra = zip64(&large);
        let before = [LOCAL_LEN, self.name.len() as u64, extra.len() as u64];
        let data = before.iter().fold(self.offset, |sum, len| sum.saturating_add(*len));
        extra.extend(match self.layout {
            Layout::Plain => padding(data, alignment),
            Layout::PyTorch => torch_padding(data),
        });
        let mut header = CursorMut::default();
        header.bytes(b"PK\x03\x04");
        self.common(&mut header, small, &extra);
        header.bytes(self.name.as_bytes()).bytes(&extra);
        header.into_bytes()
    }

    /// Returns what the fields and the zip64 field of the local header say.
    fn local_sums(&self) -> (Sums, Vec<u64>) {
        let Sums { size, stored_size, .. } = self.sums;
        if self.layout == Layout::PyTorch {
            let mut large = if self.sums.is_large() { vec![size, 0] } else { Vec::new() };
            large.extend(self.is_far().then_some(self.offset));
            return (Sums::default(), large);
        }
        match self.sums_place {
            SumsPlace::Local if self.sums.is_large() => {
                (self.sums.marked(), vec![size, stored_size])
            }
            SumsPlace::Local => (self.sums, Vec::new()),
            SumsPlace::Descriptor => (Sums::default(), Vec::new()),
            SumsPlace::LargeDescriptor => (Sums { crc32: 0, ..self.sums.marked() }, vec![0, 0]),
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
        // PyTorch moves both sizes where one is large.
        let both = self.layout == Layout::PyTorch && self.sums.is_large();
        let is_large = |size: u64| both || size >= MARK_32.into();
        let large = [(is_large(size), size), (is_large(stored_size), stored_size)];
        let large = large.into_iter().chain([(self.is_far(), self.offset)]);
        let large: Vec<u64> = large.filter_map(|(is_large, n)| is_large.then_some(n)).collect();
        let extra = zip64(&large);
        let mut record = CursorMut::default();
        record.bytes(b"PK\x01\x02").u16(match self.layout {
            Layout::Plain => MADE_BY,
            Layout::PyTorch => 0,
        });
        self.common(&mut record, if both { self.sums.marked() } else { self.sums }, &extra);
        record.u16(0).u16(0).u16(0).u32(self.external()).u32(saturated(self.offset));
        record.bytes(self.name.as_bytes()).bytes(&extra);
        record.into_bytes()
    }

    /// Appends what the local header and the directory both say.
    fn common(&self, header: &mut CursorMut, sums: Sums, extra: &[u8]) {
        header.u16(self.needed()).u16(self.flags()).u16(self.method.code());
        header.u16(TIME).u16(self.date()).u32(sums.crc32);
        header.u32(saturated(sums.stored_size)).u32(saturated(sums.size));
        header.u16(length(self.name.as_bytes())).u16(length(extra));
    }

    const fn date(&self) -> u16 {
        match self.layout {
            Layout::Plain => DATE,
            Layout::PyTorch => 0,
        }
    }

    /// Returns the version of the note that a reader has to know (4.4.3), times ten.
    fn needed(&self) -> u16 {
        let for_method = match (self.method, self.kind) {
            // Whatever the size.
            _ if self.layout == Layout::PyTorch => {
                return if self.method == Method::Stored { 0 } else { 20 };
            }
            // Info-ZIP's unzip 6.0 and Python's zipfile 3.11 list such entries all the same.
            (Method::Zstd, _) => 63,
            (Method::Deflate, _) | (Method::Stored, Kind::Folder) => 20,
            (Method::Stored, _) => 10,
        };
        let is_zip64 =
            self.sums.is_large() || self.is_far() || self.sums_place == SumsPlace::LargeDescriptor;
        if is_zip64 { for_method.max(45) } else { for_method }
    }

    /// Returns the flags (4.4.4): sums behind the data, and a name in UTF-8.
    fn flags(&self) -> u16 {
        let descriptor = if self.sums_place == SumsPlace::Local { 0 } else { 1 << 3 };
        let is_plain_ascii = self.layout == Layout::Plain && self.name.is_ascii();
        descriptor | if is_plain_ascii { 0 } else { 1 << 11 }
    }

    /// Returns the mode that Unix gives such a file, and the mark that DOS gives a folder (4.4.15).
    const fn external(&self) -> u32 {
        match (self.layout, self.kind) {
            (Layout::PyTorch, _) => 0,
            (Layout::Plain, Kind::File) => 0o100_644 << 16,
            (Layout::Plain, Kind::Folder) => 0o040_755 << 16 | 1 << 4,
            (Layout::Plain, Kind::Symlink) => 0o120_777 << 16,
        }
    }

    const fn is_far(&self) -> bool {
        self.offset >= MARK_32 as u64
    }
}

impl Layout {
    /// Returns where the sums of an entry stand that are known before its header is written.
    pub(crate) fn sums_place(self, sums: Sums, offset: u64) -> SumsPlace {
        match self {
            Self::Plain => SumsPlace::Local,
            Self::PyTorch if sums.stored_size == 0 => SumsPlace::Local,
            Self::PyTorch if sums.is_large() || offset >= MARK_32.into() => {
                SumsPlace::LargeDescriptor
            }
            Self::PyTorch => SumsPlace::Descriptor,
        }
    }
}

/// Returns the field of what has no room in 32 bits (4.5.3); empty where everything has.
fn zip64(large: &[u64]) -> Vec<u8> {
    let mut values = CursorMut::default();
    for &value in large {
        values.u64(value);
    }
    let values = values.into_bytes();
    let mut field = CursorMut::default();
    if !values.is_empty() {
        field.u16(ZIP64).u16(length(&values)).bytes(&values);
    }
    field.into_bytes()
}

/// Returns the field that PyTorch puts in front of all data, be there anything to fill or not.
fn torch_padding(offset: u64) -> Vec<u8> {
    let start = offset.saturating_add(4);
    let fill = start.checked_next_multiple_of(TORCH_ALIGNMENT).unwrap_or(start);
    let fill = vec![b'Z'; usize::try_from(fill.saturating_sub(start)).unwrap_or_default()];
    let mut field = CursorMut::default();
    field.bytes(b"FB").u16(length(&fill)).bytes(&fill);
    field.into_bytes()
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
    /// cannot hold the numbers or the layout wants it, the zip64 end record (4.3.14) and its locator
    /// (4.3.15).
    ///
    /// ```text
    /// 50 4b 06 06 · length of the rest u64 · made by u16 · needed u16 · disk u32 · disk u32
    /// entries u64 · entries u64 · length u64 · offset u64
    /// 50 4b 06 07 · disk u32 · offset of the record above u64 · disks u32
    /// 50 4b 05 06 · disk u16 · disk u16 · entries u16 · entries u16 · length u32 · offset u32
    /// comment length u16 · comment
    /// ```
    pub(crate) fn end(self, layout: Layout, comment: &[u8]) -> Vec<u8> {
        let Self { entries, len, offset } = self;
        let mut end = CursorMut::default();
        let (made_by, is_wide) = match layout {
            Layout::PyTorch => (TORCH_MADE_BY, true),
            Layout::Plain => {
                (MADE_BY, entries >= MARK_16.into() || len.max(offset) >= MARK_32.into())
            }
        };
        if is_wide {
            end.bytes(b"PK\x06\x06").u64(44).u16(made_by).u16(45).u32(0).u32(0);
            end.u64(entries).u64(entries).u64(len).u64(offset);
            end.bytes(b"PK\x06\x07").u32(0).u64(offset.saturating_add(len)).u32(1);
        }
        let entries = u16::try_from(entries).unwrap_or(MARK_16);
        end.bytes(b"PK\x05\x06").u16(0).u16(0).u16(entries).u16(entries);
        end.u32(saturated(len)).u32(saturated(offset)).u16(length(comment)).bytes(comment);
        end.into_bytes()
    }
}

/// Returns a value as a field of 32 bits holds it, with the mark that it is in a zip64 record.
fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(MARK_32)
}

/// Returns the length of a name, an extra field or a comment, all of which are proved to be short.
fn length(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX)
}

const LOCAL_LEN: u64 = 30;
/// Of an alignment field without zeros.
const ALIGNMENT_LEN: u64 = 6;
const DESCRIPTOR: &[u8] = b"PK\x07\x08";
/// Unix, version 6.3 of the note, whatever the machine (4.4.2).
const MADE_BY: u16 = 3 << 8 | 63;
/// What miniz, which PyTorch writes with, puts into zip64 end records.
const TORCH_MADE_BY: u16 = 3 << 8 | 30;
/// What all data of PyTorch's files starts at a multiple of, in bytes.
const TORCH_ALIGNMENT: u64 = 64;
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

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: u64 = MARK_32 as u64;

    fn torch(size: u64, offset: u64) -> Header {
        let sums = Sums { crc32: 7, size, stored_size: size };
        let (layout, name) = (Layout::PyTorch, "m/data/0".to_owned());
        let (kind, method) = (Kind::File, Method::Stored);
        let sums_place = layout.sums_place(sums, offset);
        Header { layout, name, kind, method, sums, offset, sums_place }
    }

    #[test]
    fn data_of_torch_starts_on_64_bytes() {
        for offset in (0..200).chain([WIDE - 1, WIDE, 1 << 40]) {
            for size in [0, 1, WIDE] {
                let header = torch(size, offset);
                assert_eq!((offset + header.local(1).len() as u64) % 64, 0, "{offset} {size}");
            }
        }
    }

    #[test]
    fn what_is_far_or_big_has_long_numbers() {
        assert_eq!(torch(1, 0).descriptor().len(), 16);
        assert_eq!(torch(0, 0).descriptor().len(), 0);
        assert_eq!(torch(1, WIDE).descriptor().len(), 24);
        assert_eq!(torch(WIDE, 0).descriptor().len(), 24);
        let lens = [torch(1, 0), torch(WIDE, 0), torch(1, WIDE), torch(WIDE, WIDE)];
        assert_eq!(lens.map(|header| header.record().len() - 46 - 8), [0, 20, 12, 28]);
    }
}
