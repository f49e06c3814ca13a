//! The records of a ZIP file exactly as PyTorch writes them, so that what is rewritten has the bytes
//! that PyTorch would have given it.
//!
//! ```text
//! local header   50 4b 03 04 · needed u16 · flags u16 · method u16 · 0 u32 · crc 0 · sizes 0
//!                lengths of name and extra u16 · name · zip64 · 46 42 · padding length u16 · 5a…
//! data           at a multiple of 64
//! descriptor     50 4b 07 08 · crc u32 · stored size · size; none behind an empty record
//! directory      as in the application note, without times and modes
//! end            zip64 end record, its locator, end record, always all three
//! ```

use model_archive::Info;
use tensor_core::CursorMut;

/// One record of a ZIP file.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// The whole name, root folder included.
    pub(crate) name: String,
    pub(crate) method: u16,
    pub(crate) crc32: u32,
    pub(crate) size: u64,
    pub(crate) stored_size: u64,
    /// Where its local header starts.
    pub(crate) offset: u64,
}

impl Header {
    /// Describes a record that is stored as it is.
    pub(crate) fn stored(name: String, content: &[u8], offset: u64) -> Self {
        let (crc32, size) = (crc32fast::hash(content), content.len() as u64);
        Self { name, method: 0, crc32, size, stored_size: size, offset }
    }

    /// Describes a record of another archive.
    pub(crate) fn copied(name: &str, info: Info, offset: u64) -> Self {
        let Info { method, crc32, size, stored_size, .. } = info;
        Self { name: name.to_owned(), method: method.code(), crc32, size, stored_size, offset }
    }

    /// Returns the local header; the data behind it starts at a multiple of 64.
    pub(crate) fn local(&self) -> Vec<u8> {
        let zip64 = self.zip64(self.size, 0);
        let before = [LOCAL, self.name.len() as u64, zip64.len() as u64, 4];
        let start = before.iter().fold(self.offset, |sum, len| sum.saturating_add(*len));
        let padding = start.next_multiple_of(ALIGNMENT).saturating_sub(start);
        let padding = vec![b'Z'; usize::try_from(padding).unwrap_or_default()];
        let mut extra = CursorMut::default();
        extra.bytes(&zip64).bytes(b"FB").u16(short(padding.len())).bytes(&padding);
        let extra = extra.into_bytes();
        let mut header = CursorMut::default();
        header.bytes(b"PK\x03\x04").u16(self.needed()).u16(self.flags()).u16(self.method);
        header.u32(0).u32(0).u32(0).u32(0);
        header.u16(short(self.name.len())).u16(short(extra.len()));
        header.bytes(self.name.as_bytes()).bytes(&extra);
        header.into_bytes()
    }

    /// Returns what stands behind the data.
    pub(crate) fn descriptor(&self) -> Vec<u8> {
        let mut descriptor = CursorMut::default();
        if self.size == 0 {
            return descriptor.into_bytes();
        }
        descriptor.bytes(b"PK\x07\x08").u32(self.crc32);
        if self.is_big() || self.is_far() {
            descriptor.u64(self.stored_size).u64(self.size);
        } else {
            // Neither is big.
            descriptor.u32(narrow(self.stored_size)).u32(narrow(self.size));
        }
        descriptor.into_bytes()
    }

    /// Returns the header in the directory.
    pub(crate) fn central(&self) -> Vec<u8> {
        let extra = self.zip64(self.size, self.stored_size);
        let sizes = |size| if self.is_big() { u32::MAX } else { narrow(size) };
        let mut header = CursorMut::default();
        header.bytes(b"PK\x01\x02").u16(0).u16(self.needed()).u16(self.flags()).u16(self.method);
        header.u32(0).u32(self.crc32).u32(sizes(self.stored_size)).u32(sizes(self.size));
        header.u16(short(self.name.len())).u16(short(extra.len())).u16(0).u16(0).u16(0).u32(0);
        header.u32(narrow(self.offset)).bytes(self.name.as_bytes()).bytes(&extra);
        header.into_bytes()
    }

    /// Returns the field of the numbers that have no room in 32 bits.
    fn zip64(&self, size: u64, stored_size: u64) -> Vec<u8> {
        let mut numbers = CursorMut::default();
        if self.is_big() {
            numbers.u64(size).u64(stored_size);
        }
        if self.is_far() {
            numbers.u64(self.offset);
        }
        let numbers = numbers.into_bytes();
        let mut field = CursorMut::default();
        if !numbers.is_empty() {
            field.u16(1).u16(short(numbers.len())).bytes(&numbers);
        }
        field.into_bytes()
    }

    const fn is_big(&self) -> bool {
        self.size >= WIDE || self.stored_size >= WIDE
    }

    const fn is_far(&self) -> bool {
        self.offset >= WIDE
    }

    const fn needed(&self) -> u16 {
        if self.method == 0 { 0 } else { 20 }
    }

    /// Bit 11: the name is UTF-8; bit 3: a descriptor follows.
    const fn flags(&self) -> u16 {
        if self.size == 0 { 0x0800 } else { 0x0808 }
    }
}

/// Returns the end records of a directory of `entries` headers.
pub(crate) fn end(entries: u64, offset: u64, len: u64, comment: &[u8]) -> Vec<u8> {
    let mut end = CursorMut::default();
    end.bytes(b"PK\x06\x06").u64(44).u16(0x031e).u16(45).u32(0).u32(0);
    end.u64(entries).u64(entries).u64(len).u64(offset);
    end.bytes(b"PK\x06\x07").u32(0).u64(offset.saturating_add(len)).u32(1);
    let count = u16::try_from(entries).unwrap_or(u16::MAX);
    end.bytes(b"PK\x05\x06").u16(0).u16(0).u16(count).u16(count);
    end.u32(narrow(len)).u32(narrow(offset)).u16(short(comment.len())).bytes(comment);
    end.into_bytes()
}

/// Names and fields are bounded far below by whoever makes them.
fn short(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What the data of every record starts at a multiple of, in bytes.
pub(crate) const ALIGNMENT: u64 = 64;
/// From here on numbers stand in a zip64 field.
const WIDE: u64 = u32::MAX as u64;
/// Bytes of a local header without name and extra field.
const LOCAL: u64 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(size: u64, offset: u64) -> Header {
        let name = "m/data/0".to_owned();
        Header { name, method: 0, crc32: 7, size, stored_size: size, offset }
    }

    #[test]
    fn data_starts_on_64_bytes() {
        for offset in (0..200).chain([WIDE - 1, WIDE, 1 << 40]) {
            for size in [0, 1, WIDE] {
                let header = header(size, offset);
                assert_eq!((offset + header.local().len() as u64) % 64, 0, "{offset} {size}");
            }
        }
    }

    #[test]
    fn what_is_far_or_big_has_long_numbers() {
        assert_eq!(header(1, 0).descriptor().len(), 16);
        assert_eq!(header(0, 0).descriptor().len(), 0);
        assert_eq!(header(1, WIDE).descriptor().len(), 24);
        assert_eq!(header(WIDE, 0).descriptor().len(), 24);
        let lens = [header(1, 0), header(WIDE, 0), header(1, WIDE), header(WIDE, WIDE)];
        assert_eq!(lens.map(|header| header.central().len() - 46 - 8), [0, 20, 12, 28]);
    }
}
